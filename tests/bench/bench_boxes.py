"""Time from nothing to nothing of a box with a disk: ``python tests/bench/bench_boxes.py [REPEATS]``."""

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from containers.box import BoxLimits, BoxSpec, Mount
from containers.disk import make_disk
from containers.docker_engine import DockerEngine
from containers.images import ensure_base
from containers.lease import RunLease

DISK_MB = 10_000
FOLDERS = {"workspace": "/workspace", "home": "/home/agent", "tmp": "/tmp"}


def cycle(engine: DockerEngine, image: str, lease: RunLease) -> dict[str, float]:
    """Return the seconds of each step of one box's life."""
    marks = [("", time.perf_counter())]

    def mark(name: str) -> None:
        marks.append((name, time.perf_counter()))

    with make_disk(lease.folder, DISK_MB, 1000, 1000) as disk:
        mark("disk")
        mounts = tuple(Mount(disk.path / name, target, read_only=False) for name, target in FOLDERS.items())
        limits = BoxLimits(cpus=1, memory_mb=500, pids=100)
        box = engine.open(BoxSpec(image, ("sleep", "600"), "1000:1000", limits, mounts, labels=lease.labels))
        mark("open")
        assert box.exec(("/opt/bin/make-env",)).exit_code == 0
        mark("make-env")
        box.stop()
        mark("stop")
        box.remove()
        mark("remove")
    mark("close disk")
    steps = {name: end - marks[index][1] for index, (name, end) in enumerate(marks[1:])}
    return {**steps, "total": marks[-1][1] - marks[0][1]}


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    engine = DockerEngine()
    with tempfile.TemporaryDirectory() as folder, RunLease(Path(folder) / "mnt", "bench") as lease:
        image = ensure_base(engine, Path(folder))
        runs = [cycle(engine, image, lease) for _ in range(repeats)]
    for name in runs[0]:
        print(f"{name:12} {median(run[name] for run in runs):6.3f} s  (median of {repeats})")


if __name__ == "__main__":
    main()
