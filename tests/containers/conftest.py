"""A real engine, its base image, and boxes with a disk that are gone after the test."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from containers.box import Box, BoxLimits, BoxSpec, Mount
from containers.disk import make_disk
from containers.docker_engine import DockerEngine
from containers.images import ensure_base, ensure_image
from containers.lease import RunLease

LOCKS = Path(tempfile.gettempdir()) / "hab-suite-test-locks"
USER = "1000:1000"


@pytest.fixture(scope="session")
def engine() -> DockerEngine:
    return DockerEngine()


@pytest.fixture(scope="session")
def base(engine) -> str:
    LOCKS.mkdir(exist_ok=True)
    return ensure_base(engine, LOCKS)


@pytest.fixture(scope="session")
def role_image(engine) -> Callable[..., str]:
    return lambda role, extra=None: ensure_image(engine, role, extra or {}, LOCKS)


@pytest.fixture
def lease(tmp_path) -> Iterator[RunLease]:
    with RunLease(tmp_path / "mnt", "run") as held:
        yield held


@pytest.fixture
def spec(base, lease) -> BoxSpec:
    """A hardened box of the base image without a disk."""
    return BoxSpec(
        image=base,
        command=("sleep", "infinity"),
        user=USER,
        limits=BoxLimits(cpus=2, memory_mb=400, pids=100),
        labels=lease.labels,
        tmpfs={"/tmp": "", "/home/agent": "uid=1000,gid=1000", "/workspace": "uid=1000,gid=1000"},
    )


@pytest.fixture
def opened(engine) -> Iterator[Callable[[BoxSpec], Box]]:
    with ExitStack() as stack:

        def open_box(spec: BoxSpec) -> Box:
            box = engine.open(spec)
            stack.callback(box.remove)
            return box

        yield open_box


@pytest.fixture
def box(opened, spec) -> Box:
    return opened(spec)


@pytest.fixture
def disk_box(engine, spec, lease) -> Iterator[Box]:
    """A box as a trial has it: workspace, home and tmp on one disk of 50 MB."""
    with make_disk(lease.folder, 50, 1000, 1000) as disk:
        folders = {"workspace": "/workspace", "home": "/home/agent", "tmp": "/tmp"}
        mounts = tuple(Mount(disk.path / name, target, read_only=False) for name, target in folders.items())
        box = engine.open(replace(spec, mounts=mounts, tmpfs={}))
        try:
            yield box
        finally:
            box.remove()


@pytest.fixture
def say() -> Callable[..., tuple[int | None, str]]:
    """``say(box, "shell script")`` -> exit code, and both streams as one text."""

    def run(box: Box, script: str, **options) -> tuple[int | None, str]:
        output = bytearray()
        finished = box.exec(("bash", "-c", script), sink=lambda _, data: output.extend(data), **options)
        return finished.exit_code, output.decode().strip()

    return run
