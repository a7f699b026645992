"""What the host's kernel counts for a container: its memory peak and its OOM kills, of cgroup version 1 or 2."""

from dataclasses import dataclass
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
PROC = Path("/proc")


@dataclass(frozen=True)
class MemoryUse:
    """Read while the container lives: the kernel forgets it with the last process."""

    peak_mb: float | None = None
    oom_kills: int = 0


def memory_use(pid: int, *, proc: Path = PROC, cgroups: Path = CGROUPS) -> MemoryUse:
    """Return the memory use of the cgroup that a process of this host is in; empty where it cannot be read."""
    for line in _text(proc / str(pid) / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            return _read(cgroups / "memory" / path.lstrip("/"), "memory.max_usage_in_bytes", "memory.oom_control")
        folder = cgroups / path.lstrip("/")
        if controllers == "" and (folder / "memory.events").exists():
            return _read(folder, "memory.peak", "memory.events")
    return MemoryUse()


def _read(folder: Path, peak_file: str, events_file: str) -> MemoryUse:
    peak = _text(folder / peak_file).strip()
    events = dict(line.split() for line in _text(folder / events_file).splitlines())
    return MemoryUse(int(peak) / 1e6 if peak.isdigit() else None, int(events.get("oom_kill", 0)))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
