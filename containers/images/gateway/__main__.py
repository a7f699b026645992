"""``python -m gateway FOLDER``: settings on the first line of standard input, the journal on standard output.

The orchestrator talks to ``FOLDER/control``: one JSON object per line each way. ``open`` makes a door,
``FOLDER/<name>/``, which is bound into one box; ``close`` shuts it and returns what went through. Every line from the
orchestrator is a sign of life; when the last is too old, nothing passes.
"""

import asyncio
import contextlib
import json
import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from aiohttp import web

from .ledger import Ledger, Tally
from .proxy import Proxy, serve, session
from .settings import Refusal, Settings, parse
from .tunnel import Tunnel

ORPHAN_S = 1800.0
"""A gateway that has heard nothing for so long ends, and its keys with it."""
MODEL_SOCKET, TUNNEL_SOCKET = "model", "connect"
SHUT_S = 10.0
KEPT_REPORTS = 100
NAME = re.compile(r"[0-9a-f]{8,64}")


def journal(entry: Any) -> None:
    """Write one line to standard output; nobody may be there to read it."""
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(entry) + "\n")
        sys.stdout.flush()


class Door:
    """One trial's sockets."""

    def __init__(self, folder: Path, tally: Tally) -> None:
        self.folder = folder
        self.tally = tally
        self.runner: web.AppRunner | None = None
        self.tunnel: asyncio.Server | None = None

    async def shut(self) -> None:
        """Cut what is under way and take the sockets away."""
        if self.tunnel is not None:
            self.tunnel.close()
        if self.runner is not None:
            await self.runner.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)


class Gateway:
    """All doors of a run."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        self._settings = settings
        self._ledger = Ledger(settings)
        self._session = session(settings)
        self._doors: dict[str, Door] = {}
        self._reports: dict[str, dict[str, Any]] = {}
        """Of the doors closed last."""
        self._beat = time.monotonic()
        self.done = asyncio.Event()

    @property
    def silent_s(self) -> float:
        """Seconds since the orchestrator was heard."""
        return time.monotonic() - self._beat

    def gate(self) -> None:
        """Let nothing through once the orchestrator is gone."""
        if self.silent_s > self._settings.stale_s:
            raise Refusal("stale", f"the orchestrator was not heard of for {self.silent_s:.0f} s", status=503)

    async def control(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the orchestrator."""
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                self._beat = time.monotonic()
                try:
                    answer = await self._obey(json.loads(line))
                except Exception as error:  # noqa: BLE001 (whoever asks waits for an answer, whatever it is)
                    answer = {"error": f"{type(error).__name__}: {error}"}
                writer.write(json.dumps({"spent_usd": self._ledger.run.spent_usd, **answer}).encode() + b"\n")
                await writer.drain()
            writer.close()

    async def _obey(self, order: dict[str, Any]) -> dict[str, Any]:
        match order["op"]:
            case "open":
                await self._open(order["door"], order["trial"])
            case "close":
                return {"report": await self._close(order["door"], again="again" in order)}
            case "stop":
                self.done.set()
        return {}

    async def _open(self, name: str, trial: str) -> None:
        if not NAME.fullmatch(name):
            raise ValueError(name)
        if name in self._doors:  # asked again, since the first answer was lost
            return
        folder = self._folder / name
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)
        door = Door(folder, Tally(trial))
        try:
            await self._serve(door, trial)
        except BaseException:
            await door.shut()
            raise
        self._doors[name] = door

    async def _serve(self, door: Door, trial: str) -> None:
        folder = door.folder
        proxy = Proxy(
            door.tally,
            settings=self._settings,
            ledger=self._ledger,
            session=self._session,
            gate=self.gate,
            journal=journal,
        )
        door.runner = await serve(proxy, str(folder / MODEL_SOCKET))
        (folder / MODEL_SOCKET).chmod(0o666)
        if self._settings.connect_hosts:
            tunnel = Tunnel(self._settings.connect_hosts, gate=self.gate, journal=journal, trial=trial)
            door.tunnel = await asyncio.start_unix_server(tunnel.handle, str(folder / TUNNEL_SOCKET))
            (folder / TUNNEL_SOCKET).chmod(0o666)

    async def _close(self, name: str, *, again: bool) -> dict[str, Any] | None:
        """Shut a door and return its report: once, or again where the first answer was lost on the way."""
        door = self._doors.pop(name, None)
        if door is None:
            return self._reports.get(name) if again else None
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(door.shut(), SHUT_S)
        self._reports[name] = door.tally.report()
        for old in list(self._reports)[:-KEPT_REPORTS]:
            del self._reports[old]
        return self._reports[name]

    async def close(self) -> None:
        """Shut every door."""
        for door in self._doors.values():
            await door.shut()
        await self._session.close()


async def run(folder: Path, settings: Settings) -> None:
    """Serve until told to stop, or orphaned."""
    gateway = Gateway(folder, settings)
    server = await asyncio.start_unix_server(gateway.control, str(folder / "control"))
    while not gateway.done.is_set() and gateway.silent_s < ORPHAN_S:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(gateway.done.wait(), 5)
    server.close()
    await gateway.close()


def main() -> None:
    """Read the settings, then serve."""
    settings = parse(sys.stdin.readline())
    os.environ.update(settings.proxies)  # only here: the environment of the container shows in `docker inspect`
    asyncio.run(run(Path(sys.argv[1]), settings))


if __name__ == "__main__":
    main()
