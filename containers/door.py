"""The only way out of a box: a folder with a Unix socket, and the gateway behind it.

The gateway runs in a container of its own, one per run, and is told everything over standard input: no key is in an
argument, an environment or what `docker inspect` shows. Each trial gets a folder with a random name, bound into its
box alone; inside, a forwarder carries ``127.0.0.1:8080`` to the socket in it.
"""

import os
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from containers.box import Box, BoxLimits, BoxSpec, Engine, EngineError, Mount, Stream
from containers.control import ControlLine
from containers.endpoints import GatewaySettings
from containers.journal import door_lines, entries, spent_by_trial

DOOR = "/run/door"
MODEL_PORT, CONNECT_PORT = 8080, 8081
DOORS = "/run/doors"
UNPRIVILEGED = 65532
START_S = 20.0
POLL_S = 0.02
KEEP_STDERR = 4000


class GatewayError(EngineError):
    """The gateway is not there, or did not do what it was told."""


@dataclass(frozen=True)
class Door:
    """A trial's way out."""

    name: str
    trial_id: str
    mount: Mount
    tunnel: bool = False

    @property
    def endpoint(self) -> str:
        """Base URL in the box; the upstream's name follows."""
        return f"http://127.0.0.1:{MODEL_PORT}"

    @property
    def env(self) -> dict[str, str]:
        """Return the variables that lead package managers to the tunnel; none where there is no tunnel."""
        if not self.tunnel:
            return {}
        proxy = f"http://127.0.0.1:{CONNECT_PORT}"
        names = dict.fromkeys(("HTTPS_PROXY", "https_proxy"), proxy)
        return names | dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")

    @property
    def forwarder(self) -> tuple[str, ...]:
        """The command to run once in the box; it returns when the ports answer."""
        ports = {MODEL_PORT: "model"} | ({CONNECT_PORT: "connect"} if self.tunnel else {})
        start = "".join(
            f"setsid socat TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr,backlog=64 UNIX-CONNECT:{DOOR}/{name} "
            "</dev/null >/dev/null 2>&1 &\n"
            for port, name in ports.items()
        )
        wait = "".join(
            f"n=0; until (: </dev/tcp/127.0.0.1/{port}) 2>/dev/null; do n=$((n+1)); [ $n -lt 250 ] || exit 1; "
            "sleep 0.02; done\n"
            for port in ports
        )
        return ("bash", "-c", start + wait)


@dataclass(frozen=True)
class DoorReport:
    """What went through a door."""

    usage: tuple[dict[str, Any], ...] = ()
    """One entry per model, with the fields of the record format's usage."""
    requests: int = 0
    unmetered: int = 0
    """Answers that ended before they told their token counts; the budget was charged an estimate."""
    spent_usd: float = 0.0
    refusals: Mapping[str, int] = field(default_factory=dict)
    """Kind (``budget``, ``hosted_tool``, ``remote_file``, ``unpriced``, ``unknown_path``, ``stale`` ...) -> count."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    last_error: str = ""
    """Empty where the last answer was good; else a status, a code, ``cut``, ``silence``, ``unreachable``, ``gone``, or
    ``gateway`` where the gateway was no more when the door was shut: the rest is then what its journal tells."""
    message: str = ""
    last_status: int = 0
    """HTTP status of the last answer; 0 where there was none."""
    last_stop: str = ""
    """Why the model stopped in the last answer, in its API's word."""


class Gateway:
    """The gateway of one run. Safe to use from several threads."""

    def __init__(
        self,
        engine: Engine,
        *,
        image: str,
        folder: Path,
        journal: Path,
        labels: Mapping[str, str],
        settings: GatewaySettings,
    ) -> None:
        self._engine = engine
        self._image = image
        self._folder = folder
        """Private to this run; the doors are made in it."""
        self._journal = journal
        self._labels = labels
        self._settings = settings
        self._box: Box | None = None
        self._control: ControlLine | None = None
        self._ended = threading.Event()
        self._stderr = b""
        self._lock = threading.Lock()
        """Held while the line or the container is replaced."""
        self._begun_at = journal.stat().st_size if journal.exists() else 0
        self._opened_at: dict[str, int] = {}
        """Open door -> length of the journal when it was opened."""
        self._started_anew = False
        self.spent_usd = settings.spent_usd
        """As of the last word from the gateway."""

    def start(self) -> None:
        """Start the container and wait until the gateway answers.

        Raises:
            GatewayError: it did not come up; with the last that it said.
        """
        self._folder.mkdir(mode=0o700, parents=True)
        self._launch()

    def _launch(self) -> None:
        user = os.getuid() or UNPRIVILEGED
        if user == UNPRIVILEGED:
            os.chown(self._folder, user, user)
        self._box = self._engine.open(self._spec(f"{user}:{user if user == UNPRIVILEGED else os.getgid()}"))
        self._ended = threading.Event()
        threading.Thread(target=self._serve, args=(self._box, self._ended), name="gateway", daemon=True).start()
        deadline = time.monotonic() + START_S
        while self._control is None and time.monotonic() < deadline and not self._ended.wait(POLL_S):
            self._control = ControlLine.to(self._folder / "control")
        if self._control is None:
            text = self._stderr.decode(errors="replace").strip()
            self.stop()
            raise GatewayError(f"the gateway did not start: {text or 'no word from it'}")

    def _spec(self, user: str) -> BoxSpec:
        return BoxSpec(
            image=self._image,
            command=("sleep", "infinity"),
            user=user,
            limits=BoxLimits(cpus=2, memory_mb=1024, pids=128),
            mounts=(Mount(self._folder, DOORS, read_only=False),),
            labels=self._labels,
            workdir="/opt/gateway",
            network="host" if self._settings.near else "bridge",
        )

    def _serve(self, box: Box, ended: threading.Event) -> None:
        try:
            with self._journal.open("ab", buffering=0) as journal:

                def sink(stream: Stream, data: bytes) -> None:
                    if stream == "stdout":
                        journal.write(data)
                    else:
                        self._stderr = (self._stderr + data)[-KEEP_STDERR:]

                box.exec(("python3", "-m", "gateway", DOORS), stdin=self._settings.line(), sink=sink)
        except EngineError as error:
            self._stderr += str(error).encode()
        finally:
            ended.set()

    def _tell(self, **order: str) -> dict[str, Any]:
        line = self._control
        if line is None or self._ended.is_set():
            said = self._stderr.decode(errors="replace").strip()
            raise GatewayError(f"the gateway is gone: {said or 'it was stopped'}")
        try:
            try:
                answer = line.ask(order)
            except (OSError, ValueError):
                answer = self._another(line).ask({**order, "again": "1"})
        except (OSError, ValueError) as error:
            raise GatewayError(f"the gateway does not answer: {error}") from error
        self.spent_usd = float(answer["spent_usd"])
        if "error" in answer:
            raise GatewayError(f"the gateway could not {order['op']}: {answer['error']}")
        return answer

    def _another(self, broken: ControlLine) -> ControlLine:
        """Return a new line in the place of a broken one, which another thread may have replaced already."""
        with self._lock:
            if self._control is broken:
                made = ControlLine.to(self._folder / "control")
                if made is None:
                    raise ConnectionRefusedError("nobody listens any more")
                broken.close()
                self._control = made
            if self._control is None:
                raise ConnectionAbortedError("it was stopped")
            return self._control

    def _revive(self) -> None:
        """Start a gateway that died anew, once in a run: the doors it had are lost, those of other trials to come not.

        What was spent is read from the journal; only requests that were under way are unknown.
        """
        with self._lock:
            if self._box is None or not self._ended.is_set() or self._started_anew:
                return
            self._started_anew = True
            self._box.remove()
            if self._control is not None:
                self._control.close()
            self._control = None
            spent = spent_by_trial(entries(self._journal, self._begun_at))
            total = max(self.spent_usd, self._settings.spent_usd + sum(spent.values()))
            self._settings = replace(self._settings, spent_usd=total, spent_by_trial=spent)
            self._launch()

    def heartbeat(self) -> float:
        """Say that the run is alive (every 15 s or so); returns what it has spent, in USD."""
        self._tell(op="beat")
        return self.spent_usd

    def open_door(self, trial_id: str) -> Door:
        """Make a door for a trial; every try of it takes a new one.

        Raises:
            GatewayError: the gateway is gone or could not.
        """
        self._revive()
        name = secrets.token_hex(8)
        self._opened_at[name] = self._journal.stat().st_size if self._journal.exists() else 0
        self._tell(op="open", door=name, trial=trial_id)
        return Door(name, trial_id, Mount(self._folder / name, DOOR), tunnel=bool(self._settings.connect_hosts))

    def close_door(self, door: Door) -> DoorReport:
        """Shut a door, cut what is under way, and return what went through. Empty the second time. Never raises."""
        opened_at = self._opened_at.pop(door.name, None)
        try:
            report = self._tell(op="close", door=door.name).get("report") or {}
        except GatewayError as error:
            if opened_at is None:
                return DoorReport()
            dialects = {upstream.name: upstream.dialect for upstream in self._settings.upstreams}
            report = door_lines(entries(self._journal, opened_at), door.trial_id, dialects)
            report |= {"last_error": "gateway", "message": str(error)[:500]}
        report.pop("trial", None)
        return DoorReport(**{**report, "usage": tuple(report.get("usage", ()))})

    def stop(self) -> None:
        """End the gateway and remove its container. Idempotent."""
        if self._control is not None:
            self._control.close()
        self._control = None
        if self._box is not None:
            self._box.remove()
        self._box = None
