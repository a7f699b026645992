"""An engine without containers, for tests: a function from command to reply stands in for everything that runs."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from containers.box import LABEL, Box, BoxInfo, BoxSpec, Captured, EngineError, EngineInfo, Stream
from containers.scripted_box import Asked, Reply, Script, ScriptedBox, Stage

__all__ = ["Asked", "Build", "Record", "Reply", "Script", "ScriptedBox", "ScriptedEngine"]


@dataclass(frozen=True)
class Build:
    """An image as it was asked for."""

    tag: str
    context: Mapping[str, bytes | Path]
    labels: Mapping[str, str]
    args: Mapping[str, str]


@dataclass
class Record:
    """Everything that was asked of a scripted engine, in order."""

    specs: list[BoxSpec] = field(default_factory=list)
    commands: list[Asked] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    """``open``, ``exec``, ``put``, ``get``, ``stop``, ``remove``, ``run``, ``build``, ``pull``."""
    builds: list[Build] = field(default_factory=list)


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
        kept: dict[Stream, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
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
        self.record.builds.append(Build(tag, dict(context), dict(labels), dict(args)))
        sizes = (len(data) if isinstance(data, bytes) else data.stat().st_size for data in context.values())
        self._images[tag] = sum(sizes) / 1e6

    def pull(self, reference: str) -> bool:
        self.step("pull")
        self._images[reference] = 80.0
        return True

    def load_root(self, tar: Path, *, tag: str, labels: Mapping[str, str]) -> None:
        self.step("load_root")
        self.record.builds.append(Build(tag, {"root.tar": tar}, dict(labels), {}))
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

    def _forget(self, box_id: str) -> None:
        with self._lock:
            self._boxes.pop(box_id, None)

    def _make(self, spec: BoxSpec) -> "ScriptedBox":
        missing = [str(mount.source) for mount in spec.mounts if not mount.source.exists()]
        if missing:
            raise EngineError(f"The engine failed to make a box: bind source does not exist: {', '.join(missing)}")
        box = ScriptedBox(spec, Stage(self.script, self.step, self.record.commands.append, self._forget))
        with self._lock:
            self.record.specs.append(spec)
            self._boxes[box.id] = box
        return box
