"""The real gateway program as a process of this host, and a client that speaks through a door's socket.

For tests of what the gateway does; that it does it in a container is tested with the engine.
"""

import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from containers.box import BoxSpec, Finished, Sink
from containers.door import DOORS, Door, Gateway
from containers.endpoints import GatewaySettings
from tests.stub_model.server import LONG_S

PROGRAMS = Path(__file__).parents[2] / "containers" / "images"


class HostBox:
    """Runs the gateway's command here, with the box's path translated."""

    id = "host"

    def __init__(self, spec: BoxSpec) -> None:
        self.spec = spec
        self.mounted = Path(tempfile.mkdtemp()) / "doors"
        """A short name for the folder, as the box has one: a socket's path may not be long."""
        self.mounted.symlink_to(spec.mounts[0].source)
        self.processes: list[subprocess.Popen[bytes]] = []

    def exec(self, argv: tuple[str, ...], *, stdin: bytes = b"", sink: Sink | None = None, **_: Any) -> Finished:
        command = [{"python3": sys.executable, DOORS: str(self.mounted)}.get(word, word) for word in argv]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=PROGRAMS, stdin=pipe, stdout=pipe, stderr=pipe) as process:
            self.processes.append(process)
            process.stdin.write(stdin)
            process.stdin.close()
            errors = threading.Thread(target=lambda: sink("stderr", process.stderr.read()))
            errors.start()
            for line in process.stdout:
                sink("stdout", line)
            errors.join()
        return Finished(process.returncode, timed_out=False, seconds=0)

    def remove(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        shutil.rmtree(self.mounted.parent, ignore_errors=True)


class HostEngine:
    """As much of an engine as the gateway needs."""

    def __init__(self) -> None:
        self.boxes: list[HostBox] = []

    def open(self, spec: BoxSpec) -> HostBox:
        self.boxes.append(HostBox(spec))
        return self.boxes[-1]


@contextmanager
def gateway(folder: Path, settings: GatewaySettings) -> Iterator[Gateway]:
    """Start the gateway; ``folder`` also takes its journal."""
    made = Gateway(
        HostEngine(), image="-", folder=folder / "doors", journal=folder / "gateway.jsonl", labels={}, settings=settings
    )
    made.start()
    try:
        yield made
    finally:
        made.stop()


class Connection(http.client.HTTPConnection):
    """HTTP through a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("127.0.0.1", 8080, timeout=LONG_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(LONG_S)
        self.sock.connect(str(self._path))


def call(door: Door, path: str, body: Any = None, **more: Any) -> tuple[int, bytes]:
    """Send one request as an agent in the box would; returns status and body."""
    return call_socket(door.mount.source / "model", path, body, **more)


def call_socket(
    where: Path, path: str, body: Any = None, *, method: str = "", headers: Mapping[str, str] = MappingProxyType({})
) -> tuple[int, bytes]:
    """Send one request through a socket; returns status and body."""
    connection = Connection(where)
    data = body if isinstance(body, bytes) or body is None else json.dumps(body)
    try:
        connection.request(
            method or ("POST" if body is not None else "GET"), path, data, {"Authorization": "Bearer box", **headers}
        )
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
