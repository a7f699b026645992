"""An engine without containers, for tests: a function from command to reply stands in for everything that runs."""

import io
import secrets
import shutil
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from containers.box import (
    LABEL,
    Box,
    BoxInfo,
    BoxSpec,
    BoxState,
    Captured,
    EngineError,
    EngineInfo,
    Finished,
    Sink,
)

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


@dataclass
class Record:
    """Everything that was asked of a scripted engine, in order."""

    specs: list[BoxSpec] = field(default_factory=list)
    commands: list[Asked] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    """``open``, ``exec``, ``put``, ``get``, ``stop``, ``remove``, ``run``, ``build``, ``pull``."""
    builds: list[str] = field(default_factory=list)


class ScriptedEngine:
    """Implements ``containers.box.Engine``. Bind mounts are the host's own folders; all else is a temporary folder.

    ``fail`` maps a step (see ``Record.steps``) to the exceptions its next calls raise, one each.
    """

    def __init__(self, script: Script, *, fail: Mapping[str, list[Exception]] | None = None) -> None:
        self.record = Record()
        self.script = script
        self._fail = {step: list(errors) for step, errors in (fail or {}).items()}
        self._boxes: dict[str, ScriptedBox] = {}
        self._images: dict[str, float] = {}
        self._lock = threading.Lock()

    def step(self, name: str) -> None:
        """Note a step, and raise what was planned for it."""
        with self._lock:
            self.record.steps.append(name)
            if self._fail.get(name):
                raise self._fail[name].pop(0)

    def info(self) -> EngineInfo:
        self.step("info")
        return EngineInfo("scripted", "1", 2, 8000)

    def open(self, spec: BoxSpec) -> Box:
        self.step("open")
        return self._make(spec)

    def run(self, spec: BoxSpec, *, stdin: bytes = b"", timeout_s: float, keep_bytes: int = 1 << 24) -> Captured:
        self.step("run")
        box = self._make(spec)
        kept = {"stdout": bytearray(), "stderr": bytearray()}
        try:
            finished = box.play(
                spec.command,
                stdin=stdin,
                env={},
                sink=lambda stream, data: kept[stream].extend(data),
                timeout_s=timeout_s,
            )
        finally:
            box.discard()
        return Captured(
            exit_code=finished.exit_code,
            stdout=bytes(kept["stdout"][:keep_bytes]),
            stderr=bytes(kept["stderr"][:keep_bytes]),
            timed_out=finished.timed_out,
            oom_killed=box.oom_killed,
            seconds=finished.seconds,
        )

    def find(self, labels: Mapping[str, str]) -> list[BoxInfo]:
        def fits(box: ScriptedBox) -> bool:
            return all(name in box.labels and value in ("", box.labels[name]) for name, value in labels.items())

        with self._lock:
            found = [box for box in self._boxes.values() if fits(box)]
        return [BoxInfo(box.id, box.spec.image, box.labels, not box.stopped.is_set()) for box in found]

    def remove(self, box_id: str) -> None:
        box = self._boxes.get(box_id)
        if box:
            box.remove()

    def has_image(self, tag: str) -> bool:
        return tag in self._images

    def build(
        self, context: Mapping[str, bytes | Path], *, tag: str, labels: Mapping[str, str], args: Mapping[str, str]
    ) -> None:
        self.step("build")
        if "Dockerfile" not in context:
            raise EngineError(f"Building {tag} failed: no Dockerfile.")
        self.record.builds.append(tag)
        sizes = (len(data) if isinstance(data, bytes) else data.stat().st_size for data in context.values())
        self._images[tag] = sum(sizes) / 1e6

    def pull(self, reference: str) -> bool:
        self.step("pull")
        self._images[reference] = 80.0
        return True

    def load_root(self, tar: Path, *, tag: str, labels: Mapping[str, str]) -> None:
        self._images[tag] = tar.stat().st_size / 1e6

    def tag(self, source: str, target: str) -> None:
        if source not in self._images:
            raise EngineError(f"No such image: {source}")
        self._images[target] = self._images[source]

    def images(self) -> list[str]:
        return sorted(tag for tag in self._images if tag.startswith(f"{LABEL}/"))

    def image_mb(self, tag: str) -> float:
        return self._images[tag]

    def remove_image(self, tag: str) -> None:
        self._images.pop(tag, None)

    def forget(self, box_id: str) -> None:
        with self._lock:
            self._boxes.pop(box_id, None)

    def _make(self, spec: BoxSpec) -> "ScriptedBox":
        missing = [str(mount.source) for mount in spec.mounts if not mount.source.exists()]
        if missing:
            raise EngineError(f"The engine failed to make a box: bind source does not exist: {', '.join(missing)}")
        box = ScriptedBox(self, spec)
        with self._lock:
            self.record.specs.append(spec)
            self._boxes[box.id] = box
        return box


class ScriptedBox:
    """Implements ``containers.box.Box``."""

    def __init__(self, engine: ScriptedEngine, spec: BoxSpec) -> None:
        self.spec = spec
        self.labels = {LABEL: "", **spec.labels}
        self.stopped = threading.Event()
        self.oom_killed = False
        self._engine = engine
        self._id = secrets.token_hex(32)
        self._root = Path(tempfile.mkdtemp(prefix="scripted-box-"))

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
        self._engine.step("exec")
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
        self._engine.record.commands.append(asked)
        if self.stopped.is_set():
            return Finished(None, timed_out=False, seconds=0.0)
        reply = self._engine.script(asked)
        self.oom_killed |= reply.oom_killed
        if sink is not None:
            for stream, data in (("stdout", reply.stdout), ("stderr", reply.stderr)):
                if data:
                    sink(stream, data)  # type: ignore[arg-type]  # a literal, in a tuple
        needs_s = None if reply.hangs else reply.seconds
        late = timeout_s is not None and (needs_s is None or needs_s > timeout_s)
        stopped = self.stopped.wait(timeout_s if late else needs_s)
        exit_code = None if stopped or late else reply.exit_code
        return Finished(exit_code, timed_out=late and not stopped, seconds=time.monotonic() - began)

    def terminal(
        self, argv: tuple[str, ...], *, env: Mapping[str, str] | None = None, workdir: str | None = None
    ) -> int:
        self._engine.step("terminal")
        exit_code = self.play(argv, stdin=b"", env=env or {}, sink=None, timeout_s=None, workdir=workdir).exit_code
        return KILLED if exit_code is None else exit_code

    def put(self, folder: str, tar: bytes) -> None:
        self._engine.step("put")
        target = self.host_path(folder, writing=True)
        if not target.is_dir():
            raise EngineError(f"The engine failed to copy files to {folder}: no such folder.")
        with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
            archive.extractall(target, filter="data")

    def get(self, path: str) -> Iterator[bytes]:
        self._engine.step("get")
        source = self.host_path(path)
        if not source.exists() and not source.is_symlink():
            raise FileNotFoundError(f"{path}: not in the box")
        spool = tempfile.TemporaryFile()  # noqa: SIM115  (closed by the generator below)
        with tarfile.open(fileobj=spool, mode="w") as archive:
            archive.add(source, arcname=Path(path).name)
        spool.seek(0)
        return _chunks(spool)

    def stop(self) -> None:
        self._engine.step("stop")
        self.stopped.set()

    def state(self) -> BoxState:
        running = not self.stopped.is_set()
        return BoxState(running, None if running else KILLED, self.oom_killed, None)

    def remove(self) -> None:
        self._engine.step("remove")
        self.discard()

    def discard(self) -> None:
        self.stopped.set()
        self._engine.forget(self._id)
        shutil.rmtree(self._root, ignore_errors=True)


def _chunks(spool: "io.BufferedRandom | tempfile._TemporaryFileWrapper[bytes]") -> Iterator[bytes]:
    with spool:
        while chunk := spool.read(CHUNK_BYTES):
            yield chunk
