"""A box without a container: a script's replies stand in for processes, folders of the host for its files."""

import io
import secrets
import shutil
import tarfile
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from containers.box import LABEL, BoxSpec, BoxState, EngineError, Finished, Sink

KILLED = 128 + 9
CHUNK_BYTES = 1 << 16


@dataclass(frozen=True)
class Reply:
    """What a command does, besides what the script wrote."""

    exit_code: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    seconds: float = 0.0
    """How long it takes, in real time; a stop ends it early."""
    hangs: bool = False
    """Runs until the box is stopped."""
    oom_killed: bool = False


@dataclass(frozen=True)
class Asked:
    """A command as it was asked for, and a hold on the files of its box."""

    argv: tuple[str, ...]
    stdin: bytes
    env: Mapping[str, str]
    user: str
    workdir: str
    box: "ScriptedBox"

    def read(self, path: str) -> bytes:
        return self.box.host_path(path).read_bytes()

    def write(self, path: str, content: bytes) -> None:
        """Write a file in the box.

        Raises:
            PermissionError: a read-only mount, or a read-only root.
        """
        target = self.box.host_path(path, writing=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


Script = Callable[[Asked], Reply]


@dataclass(frozen=True)
class Stage:
    """What a scripted box needs of its engine."""

    script: Script
    step: Callable[[str], None]
    note: Callable[[Asked], None]
    forget: Callable[[str], None]


class ScriptedBox:
    """Implements ``containers.box.Box``."""

    def __init__(self, spec: BoxSpec, stage: "Stage") -> None:
        self.spec = spec
        self.labels = {LABEL: "", **spec.labels}
        self.stopped = threading.Event()
        self.oom_killed = False
        self._stage = stage
        self._id = secrets.token_hex(32)
        self._root = Path(tempfile.mkdtemp(prefix="scripted-box-"))
        # A test that removes no box leaves no folder either.
        weakref.finalize(self, shutil.rmtree, self._root, ignore_errors=True)

    @property
    def id(self) -> str:
        return self._id

    def host_path(self, path: str, *, writing: bool = False) -> Path:
        """Return where a path of the box lies on the host, by the longest mount that holds it."""
        parts = Path("/", path).parts
        holders = [
            mount for mount in self.spec.mounts if Path(mount.target).parts == parts[: len(Path(mount.target).parts)]
        ]
        if not holders:
            if writing and self.spec.read_only_root and not any(path.startswith(folder) for folder in self.spec.tmpfs):
                raise PermissionError(f"{path}: read-only file system")
            return self._root.joinpath(*parts[1:])
        mount = max(holders, key=lambda one: len(Path(one.target).parts))
        if writing and mount.read_only:
            raise PermissionError(f"{path}: read-only file system")
        return mount.source.joinpath(*parts[len(Path(mount.target).parts) :])

    def exec(
        self,
        argv: tuple[str, ...],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        sink: Sink | None = None,
        timeout_s: float | None = None,
        user: str | None = None,
        workdir: str | None = None,
    ) -> Finished:
        self._stage.step("exec")
        return self.play(argv, stdin=stdin, env=env or {}, sink=sink, timeout_s=timeout_s, user=user, workdir=workdir)

    def play(
        self,
        argv: tuple[str, ...],
        *,
        stdin: bytes,
        env: Mapping[str, str],
        sink: Sink | None,
        timeout_s: float | None,
        user: str | None = None,
        workdir: str | None = None,
    ) -> Finished:
        """Run a command of the script."""
        began = time.monotonic()
        merged = {**self.spec.env, **env}
        asked = Asked(argv, stdin, merged, user or self.spec.user, workdir or self.spec.workdir, self)
        self._stage.note(asked)
        if self.stopped.is_set():
            return Finished(None, timed_out=False, seconds=0.0)
        reply = self._stage.script(asked)
        self.oom_killed |= reply.oom_killed
        if sink is not None and reply.stdout:
            sink("stdout", reply.stdout)
        if sink is not None and reply.stderr:
            sink("stderr", reply.stderr)
        needs_s = None if reply.hangs else reply.seconds
        late = timeout_s is not None and (needs_s is None or needs_s > timeout_s)
        stopped = self.stopped.wait(timeout_s if late else needs_s)
        exit_code = None if stopped or late else reply.exit_code
        return Finished(exit_code, timed_out=late and not stopped, seconds=time.monotonic() - began)

    def terminal(
        self, argv: tuple[str, ...], *, env: Mapping[str, str] | None = None, workdir: str | None = None
    ) -> int:
        self._stage.step("terminal")
        exit_code = self.play(argv, stdin=b"", env=env or {}, sink=None, timeout_s=None, workdir=workdir).exit_code
        return KILLED if exit_code is None else exit_code

    def put(self, folder: str, tar: bytes) -> None:
        self._stage.step("put")
        target = self.host_path(folder, writing=True)
        if not target.is_dir():
            raise EngineError(f"The engine failed to copy files to {folder}: no such folder.")
        with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
            archive.extractall(target, filter="data")

    def get(self, path: str) -> Iterator[bytes]:
        self._stage.step("get")
        source = self.host_path(path)
        if not source.exists() and not source.is_symlink():
            raise FileNotFoundError(f"{path}: not in the box")
        spool = tempfile.TemporaryFile()  # noqa: SIM115  (closed by the generator below)
        with tarfile.open(fileobj=spool, mode="w") as archive:
            archive.add(source, arcname=Path(path).name)
        spool.seek(0)
        return _chunks(spool)

    def stop(self) -> None:
        self._stage.step("stop")
        self.stopped.set()

    def state(self) -> BoxState:
        running = not self.stopped.is_set()
        return BoxState(running, None if running else KILLED, self.oom_killed, None)

    def remove(self) -> None:
        self._stage.step("remove")
        self.discard()

    def discard(self) -> None:
        self.stopped.set()
        self._stage.forget(self._id)
        shutil.rmtree(self._root, ignore_errors=True)


def _chunks(spool: IO[bytes]) -> Iterator[bytes]:
    with spool:
        while chunk := spool.read(CHUNK_BYTES):
            yield chunk
