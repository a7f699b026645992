"""A run's claim to the host, and what happens to its things when it dies."""

import json
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from containers.box import BoxLimits, BoxSpec, EngineError
from containers.disk import make_disk
from containers.lease import LOCK, RunLease, is_held
from containers.reap import Reaped, reap
from containers.scripted_engine import Reply, ScriptedEngine
from tests.containers.loops import loops_under

HOUSE = Path(__file__).parent.parent.parent
HOLDER = """
import sys, time
from pathlib import Path
from containers.lease import RunLease
with RunLease(Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    time.sleep(7777)
"""
ORCHESTRATOR = """
import sys, time
from pathlib import Path
from containers.box import BoxLimits, BoxSpec, Mount
from containers.disk import make_disk
from containers.docker_engine import DockerEngine
from containers.lease import RunLease
with RunLease(Path(sys.argv[1]), "doomed") as lease:
    disk = make_disk(lease.folder, 20, 1000, 1000)
    (lease.folder / "doors" / "abc").mkdir(parents=True)
    mounts = (Mount(disk.path / "workspace", "/workspace", read_only=False),)
    limits = BoxLimits(cpus=1, memory_mb=100, pids=20)
    box = DockerEngine().open(BoxSpec(sys.argv[2], ("sleep", "600"), "1000:1000", limits, mounts, labels=lease.labels))
    print(disk.path, flush=True)
    time.sleep(7777)
"""


def start(code, *arguments):
    child = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=HOUSE, stdout=subprocess.PIPE, text=True
    )
    return child, child.stdout.readline().strip()


def kill(child):
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()


def test_lease_is_exclusive_and_leaves_nothing(tmp_path):
    with RunLease(tmp_path, "one") as lease:
        lock = lease.folder / LOCK
        assert is_held(lock) and json.loads((lease.folder / "owner.json").read_text())["host"] == socket.gethostname()
        with (
            pytest.raises(EngineError, match=r"one is being driven already, by process \d+ on"),
            RunLease(tmp_path, "one"),
        ):
            pass
        with RunLease(tmp_path, "two"):
            pass
    assert not is_held(lock) and list(tmp_path.iterdir()) == []


def test_lease_ends_with_its_process(tmp_path):
    child, said = start(HOLDER, tmp_path, "one")
    assert said == "held" and is_held(tmp_path / "one" / LOCK)
    assert reap(None, tmp_path) == Reaped(0, 0, 0)
    kill(child)
    assert not is_held(tmp_path / "one" / LOCK)
    with RunLease(tmp_path, "one"):
        assert reap(None, tmp_path) == Reaped(0, 0, 0), "resumed: alive again"


def test_a_resumed_run_may_not_start_while_it_is_reaped(tmp_path):
    child, _ = start(HOLDER, tmp_path, "one")
    kill(child)
    assert reap(None, tmp_path) == Reaped(0, 0, 1)
    assert list(tmp_path.iterdir()) == []


def test_only_dead_runs_of_this_host_lose_their_containers(tmp_path):
    engine = ScriptedEngine(lambda _: Reply())
    with RunLease(tmp_path, "alive") as alive, RunLease(tmp_path, "ended") as ended:
        from_spec = scripted_spec()
        kept = engine.open(replace(from_spec, labels=alive.labels))
        other_host = engine.open(replace(from_spec, labels={**ended.labels, "hab-suite.host": "elsewhere"}))
        unlabelled = engine.open(from_spec)
        engine.open(replace(from_spec, labels={**ended.labels, "hab-suite.lease": str(tmp_path / "gone" / LOCK)}))
        assert reap(engine, tmp_path) == Reaped(1, 0, 0)
        assert {box.id for box in engine.find({"hab-suite": ""})} == {kept.id, other_host.id, unlabelled.id}


def test_a_disk_that_was_not_closed_stays_for_the_reaper(tmp_path):
    with RunLease(tmp_path, "one") as lease:
        (lease.folder / "left.img").write_bytes(b"")
    assert (tmp_path / "one" / "left.img").exists()
    assert reap(None, tmp_path) == Reaped(0, 1, 1)


@pytest.mark.engine
def test_sigkill_leaves_nothing_after_reaping(engine, base, tmp_path):
    with RunLease(tmp_path, "living") as living, make_disk(living.folder, 20, 1000, 1000) as own:
        mine = engine.open(replace(scripted_spec(), image=base, labels=living.labels))
        child, disk = start(ORCHESTRATOR, tmp_path, base)
        # Not the number of containers: those of other dead runs on this engine go too.
        assert reap(engine, tmp_path).disks == 0
        doomed = {"hab-suite.run": "doomed", "hab-suite.lease": str(tmp_path / "doomed" / LOCK)}
        assert [box.running for box in engine.find(doomed)] == [True]
        kill(child)
        assert Path(disk).is_mount()
        reaped = reap(engine, tmp_path)
        assert reaped.containers >= 1 and (reaped.disks, reaped.folders) == (1, 1)
        assert engine.find(doomed) == []
        assert not Path(disk).exists() and sorted(path.name for path in tmp_path.iterdir()) == ["living"]
        assert not loops_under(tmp_path / "doomed")
        assert mine.state().running and own.path.is_mount()
        mine.remove()


def scripted_spec():
    return BoxSpec("image", ("sleep", "60"), "1000:1000", BoxLimits(cpus=1, memory_mb=100, pids=20))
