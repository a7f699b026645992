"""The test double keeps the promises of the protocols."""

import io
import tarfile
import threading
from dataclasses import replace

import pytest

from containers.box import Box, BoxLimits, BoxSpec, Engine, EngineError, Mount
from containers.scripted_engine import Asked, Reply, ScriptedEngine

SPEC = BoxSpec("image", ("main",), "1000:1000", BoxLimits(cpus=1, memory_mb=100, pids=10), env={"A": "1"})


def test_a_scripted_agent_writes_into_the_mounted_folder(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "data" / "in.txt").write_bytes(b"in")
    mounts = (Mount(tmp_path / "work", "/workspace", read_only=False), Mount(tmp_path / "data", "/workspace/data"))

    def agent(asked: Asked) -> Reply:
        asked.write("/workspace/submission/out.txt", asked.read("/workspace/data/in.txt") + asked.stdin)
        with pytest.raises(PermissionError):
            asked.write("/workspace/data/in.txt", b"")
        with pytest.raises(PermissionError):
            asked.write("/etc/passwd", b"")
        return Reply(exit_code=3, stdout=b"o", stderr=b"e")

    engine: Engine = ScriptedEngine(agent)
    box: Box = engine.open(replace(SPEC, mounts=mounts))
    heard = []
    finished = box.exec(
        ("agent", "-x"), stdin=b"!", env={"B": "2"}, sink=lambda *piece: heard.append(piece), workdir="/w"
    )
    assert finished.exit_code == 3 and heard == [("stdout", b"o"), ("stderr", b"e")]
    assert (tmp_path / "work" / "submission" / "out.txt").read_bytes() == b"in!"
    (asked,) = engine.record.commands
    assert (asked.argv, asked.env, asked.user, asked.workdir) == (
        ("agent", "-x"),
        {"A": "1", "B": "2"},
        "1000:1000",
        "/w",
    )
    assert engine.record.steps == ["open", "exec"]


def test_blocks_until_stopped():
    def agent(asked: Asked) -> Reply:
        threading.Timer(0.2, asked.box.stop).start()
        return Reply(hangs=True)

    box = ScriptedEngine(agent).open(SPEC)
    finished = box.exec(("agent",))
    assert finished.exit_code is None and not finished.timed_out and finished.seconds > 0.1
    assert not box.state().running and box.exec(("agent",)).exit_code is None


def test_time_limits():
    engine = ScriptedEngine(lambda _: Reply(seconds=7777))
    box = engine.open(SPEC)
    finished = box.exec(("agent",), timeout_s=0.1)
    assert finished.timed_out and finished.exit_code is None and box.state().running
    done = engine.run(SPEC, timeout_s=0.1)
    assert done.timed_out and done.exit_code is None
    assert len(engine.find({"hab-suite": ""})) == 1, "the one-shot box is gone, the other is not"


def test_takes_its_time():
    done = ScriptedEngine(lambda _: Reply(seconds=0.2)).run(SPEC, timeout_s=60)
    assert done.exit_code == 0 and done.seconds > 0.15


def test_fails_where_it_is_told_to():
    engine = ScriptedEngine(lambda _: Reply(), fail={"open": [EngineError("disk full")], "exec": [EngineError("gone")]})
    with pytest.raises(EngineError, match="disk full"):
        engine.open(SPEC)
    box = engine.open(SPEC)
    with pytest.raises(EngineError, match="gone"):
        box.exec(("a",))
    assert box.exec(("a",)).exit_code == 0


def test_files_and_memory():
    engine = ScriptedEngine(lambda _: Reply(exit_code=137, oom_killed=True))
    box = engine.open(replace(SPEC, read_only_root=False))
    box.exec(("a",))
    assert box.state().oom_killed
    folder = box.host_path("/in")
    folder.mkdir()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("a/b.txt"), io.BytesIO())
    box.put("/in", buffer.getvalue())
    (folder / "a" / "link").symlink_to("/etc/passwd")
    with tarfile.open(fileobj=io.BytesIO(b"".join(box.get("/in/a")))) as tar:
        assert sorted(tar.getnames()) == ["a", "a/b.txt", "a/link"] and tar.getmember("a/link").issym()
    with pytest.raises(FileNotFoundError):
        box.get("/none")
    with pytest.raises(EngineError):
        box.put("/none", buffer.getvalue())
    box.remove()
    box.remove()
    assert not folder.exists() and engine.find({"hab-suite": ""}) == []


def test_one_shot_output_is_cut():
    done = ScriptedEngine(lambda _: Reply(stdout=b"12345", stderr=b"67890")).run(SPEC, timeout_s=5, keep_bytes=2)
    assert (done.stdout, done.stderr) == (b"12", b"67")


def test_missing_mount_source(tmp_path):
    with pytest.raises(EngineError, match="bind source"):
        ScriptedEngine(lambda _: Reply()).open(replace(SPEC, mounts=(Mount(tmp_path / "none", "/x"),)))
