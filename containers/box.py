"""What the suite asks of a container engine: two protocols and the values that pass through them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

Stream = Literal["stdout", "stderr"]
Sink = Callable[[Stream, bytes], None]
"""Receives output as it comes. An exception it raises ends the exec and reaches the caller."""

LABEL = "hab-suite"
"""Every container, image and network that the suite makes carries this label."""


class EngineError(Exception):
    """The engine did not do what it was asked; the message says what, and what to try."""


class EngineUnavailableError(EngineError):
    """No engine answers."""


@dataclass(frozen=True)
class Mount:
    """A bind mount. ``source`` is absolute; what it is called shows in the box, so it must name nothing."""

    source: Path
    target: str
    read_only: bool = True


@dataclass(frozen=True)
class BoxLimits:
    """Hard limits; swap is off, so memory is memory."""

    cpus: float
    memory_mb: int
    pids: int


@dataclass(frozen=True)
class BoxSpec:
    """A container to be made: hardened unless it says otherwise.

    Always: all capabilities dropped, no-new-privileges, init as PID 1, no engine logging, private IPC, a random
    host name.
    """

    image: str
    command: tuple[str, ...]
    user: str
    """``uid:gid``."""
    limits: BoxLimits
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    network: Literal["none", "bridge", "host"] = "none"
    read_only_root: bool = True
    tmpfs: Mapping[str, str] = field(default_factory=dict)
    """Path -> options, for boxes without a disk of their own."""
    host_helper: bool = False
    """May mount, in the host's process space: for the disk helper alone, never for an agent or a verifier."""


@dataclass(frozen=True)
class Finished:
    """How a command ended. ``exit_code`` is null where its end was not seen (stopped with the box, or timed out)."""

    exit_code: int | None
    timed_out: bool
    seconds: float


@dataclass(frozen=True)
class Captured:
    """A one-shot container's whole life; each stream is cut at the limit asked for."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    oom_killed: bool
    seconds: float


@dataclass(frozen=True)
class BoxState:
    """What the engine knows of a box, alive or stopped."""

    running: bool
    exit_code: int | None
    oom_killed: bool
    peak_memory_mb: float | None
    """Highest memory in use (page cache included), where the engine and the kernel tell."""


@dataclass(frozen=True)
class BoxInfo:
    """A container found by its labels."""

    id: str
    image: str
    labels: Mapping[str, str]
    running: bool


@dataclass(frozen=True)
class EngineInfo:
    """The engine that answered."""

    name: str
    version: str
    cpus: int
    memory_mb: int


class Box(Protocol):
    """A running container."""

    @property
    def id(self) -> str: ...

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
        """Run a command to its end. ``stdin`` is written and closed. Does not stop the command at the time limit:
        the caller stops the box. If the box is stopped meanwhile, returns with a null exit code.
        """
        ...

    def terminal(
        self, argv: tuple[str, ...], *, env: Mapping[str, str] | None = None, workdir: str | None = None
    ) -> int:
        """Join the caller's terminal to a command in the box until it ends; returns its exit code."""
        ...

    def put(self, folder: str, tar: bytes) -> None:
        """Unpack a tar archive in an existing folder of the box."""
        ...

    def get(self, path: str) -> Iterator[bytes]:
        """Stream a tar archive of a path, links unfollowed, from a running or stopped box; may be dropped half-way.

        Raises:
            FileNotFoundError: the path does not exist.
        """
        ...

    def stop(self) -> None:
        """End every process in the box at once (SIGKILL); what it wrote stays. Idempotent."""
        ...

    def state(self) -> BoxState: ...

    def remove(self) -> None:
        """Remove the box, running or not. Idempotent."""
        ...


class Engine(Protocol):
    """A container engine."""

    def info(self) -> EngineInfo:
        """Raise ``EngineUnavailableError`` where nothing answers."""
        ...

    def open(self, spec: BoxSpec) -> Box:
        """Create and start a box."""
        ...

    def run(self, spec: BoxSpec, *, stdin: bytes = b"", timeout_s: float, keep_bytes: int = 1 << 24) -> Captured:
        """Run a one-shot container to its end and remove it."""
        ...

    def find(self, labels: Mapping[str, str]) -> list[BoxInfo]:
        """Return all containers, running or not, that carry these labels (an empty value matches any)."""
        ...

    def remove(self, box_id: str) -> None:
        """Remove a container found by ``find``. Idempotent."""
        ...

    def has_image(self, tag: str) -> bool: ...

    def build(
        self, context: Mapping[str, bytes | Path], *, tag: str, labels: Mapping[str, str], args: Mapping[str, str]
    ) -> None:
        """Build an image from a context given as path -> content (a ``Dockerfile`` among them), on the host's network.

        Raises:
            EngineError: with the last lines of the build's output.
        """
        ...

    def pull(self, reference: str) -> bool:
        """Pull an image; False where the registry does not give it (offline, unknown)."""
        ...

    def load_root(self, tar: Path, *, tag: str, labels: Mapping[str, str]) -> None:
        """Import a root file system as an image."""
        ...

    def tag(self, source: str, target: str) -> None: ...

    def images(self) -> list[str]:
        """Return the tags of all images that the suite has made."""
        ...

    def image_mb(self, tag: str) -> float:
        """Return the size of an image with all its layers, some of them shared with others, in MB."""
        ...

    def remove_image(self, tag: str) -> None:
        """Remove an image. Idempotent; an image that a container still uses stays, and raises ``EngineError``."""
        ...
