"""Files into a box and out of it, and one-shot boxes."""

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from containers.box import EngineError, Mount

pytestmark = pytest.mark.engine


def tar_of(name, data, uid=1000):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size, entry.uid, entry.gid = len(data), uid, uid
        tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def members(box, path):
    with tarfile.open(fileobj=io.BytesIO(b"".join(box.get(path)))) as tar:
        return {one.name: one for one in tar.getmembers()}


def test_put_and_get(disk_box, say):
    disk_box.put("/workspace", tar_of("a.txt", b"hello"))
    assert say(disk_box, "stat -c %u /workspace/a.txt; cat /workspace/a.txt")[1] == "1000\nhello"
    disk_box.stop()
    with tarfile.open(fileobj=io.BytesIO(b"".join(disk_box.get("/workspace/a.txt")))) as tar:
        assert tar.extractfile("a.txt").read() == b"hello", "a stopped box keeps its files"
    with pytest.raises(EngineError):
        disk_box.put("/nowhere", tar_of("a", b""))


def test_links_and_pipes_come_as_what_they_are(disk_box, say):
    say(disk_box, "cd /workspace; mkdir d; ln -s /etc/passwd d/link; ln -s d alias; mkfifo d/pipe")
    found = members(disk_box, "/workspace/d")
    assert found["d/link"].issym() and found["d/link"].linkname == "/etc/passwd"
    assert found["d/pipe"].isfifo()
    assert members(disk_box, "/workspace/alias")["alias"].issym()


def test_missing_path(disk_box):
    with pytest.raises(FileNotFoundError, match="/workspace/none"):
        disk_box.get("/workspace/none")


def test_a_huge_sparse_file_can_be_dropped(disk_box, say):
    """To read the rest would take most of an hour."""
    assert say(disk_box, "truncate -s 1T /workspace/huge")[0] == 0
    pieces = disk_box.get("/workspace/huge")
    assert b"huge" in next(pieces)[:2048]
    pieces.close()
    assert say(disk_box, "echo alive") == (0, "alive")
    disk_box.stop()
    assert not disk_box.state().running


def test_one_shot(engine, spec):
    done = engine.run(replace(spec, command=("sh", "-c", "cat; echo err >&2; exit 3")), stdin=b"in", timeout_s=20)
    assert (done.exit_code, done.stdout, done.stderr) == (3, b"in", b"err\n")
    assert not done.timed_out and not done.oom_killed
    assert engine.find(spec.labels) == []


def test_one_shot_keeps_what_it_was_told_to(engine, spec):
    script = "head -c 30000000 /dev/zero; head -c 5 /dev/zero >&2"
    done = engine.run(replace(spec, command=("sh", "-c", script)), timeout_s=30, keep_bytes=1000)
    assert (done.exit_code, len(done.stdout), len(done.stderr)) == (0, 1000, 5)


def test_one_shot_time_limit(engine, spec):
    done = engine.run(replace(spec, command=("sh", "-c", "echo early; sleep 7777")), timeout_s=4)
    assert done.timed_out and done.exit_code is None and done.stdout == b"early\n"
    assert engine.find(spec.labels) == []


def test_one_shot_out_of_memory(engine, spec):
    done = engine.run(replace(spec, command=("python3", "-c", "bytearray(2_000_000_000)")), timeout_s=30)
    assert done.exit_code == 137 and done.oom_killed


def test_unknown_command_is_its_exit_code(engine, spec):
    done = engine.run(replace(spec, command=("no-such-command",)), timeout_s=20)
    assert done.exit_code == 127 and b"no-such-command" in done.stderr


def test_a_box_that_cannot_start_leaves_nothing(engine, spec):
    for make in (engine.open, lambda broken: engine.run(broken, timeout_s=20)):
        with pytest.raises(EngineError, match="nobody-of-that-name"):
            make(replace(spec, user="nobody-of-that-name"))
    with pytest.raises(EngineError, match="no-such-source"):
        engine.open(replace(spec, mounts=(Mount(Path("/no-such-source"), "/x"),)))
    assert engine.find(spec.labels) == []


def test_find_by_labels(engine, spec, opened):
    box = opened(spec)
    (found,) = engine.find(spec.labels)
    assert (found.id, found.running) == (box.id, True) and spec.labels.items() <= found.labels.items()
    assert [one.id for one in engine.find(dict.fromkeys(spec.labels, "")) if one.id == box.id] == [box.id]
    assert engine.find({**spec.labels, "hab-suite.run": "another"}) == []
    box.stop()
    assert [one.running for one in engine.find(spec.labels)] == [False]
