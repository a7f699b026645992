"""Ctrl-C or a kill in a download: nothing goes on alone, what has come stays, the same command goes on from there."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hosts import BucketHost

BODY = random.Random(8).randbytes(30_000_000)
FILES = {f"CAMELYON16/{name}": BODY for name in ("images/tumor_076.tif", "masks/tumor_076_mask.tif")}
COMMANDS = {
    "run": ("run", "--harness", "oracle", "--tasks", "tumor_area_selection/slide_01"),
    "prepare": ("prepare", "tumor_area_selection/slide_01"),
}


def workers() -> set[int]:
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
            mine = f"HAB_SUITE_CACHE={os.environ['HAB_SUITE_CACHE']}".encode() in (path.parent / "environ").read_bytes()
        except OSError:
            continue
        if mine and b"categories.worker" in words:
            found.add(int(path.parent.name))
    return found


def parts(cache: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in cache.rglob("*.part")}


@pytest.fixture
def bucket(serve, agree):
    agree("camelyon16")
    host = serve("camelyon16", BucketHost(dict(FILES)))
    host.faults.slow_s = 0.02
    return host


@pytest.mark.engine
@pytest.mark.parametrize(
    ("command", "number"), [("run", signal.SIGINT), ("prepare", signal.SIGINT), ("prepare", signal.SIGKILL)]
)
def test_an_interrupted_download_stops_and_is_gone_on_from(command: str, number: int, bucket, tmp_path) -> None:
    words = [sys.executable, "-m", "hab_suite", *COMMANDS[command], "--edition", "clinical"]
    child = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while sum(parts(tmp_path / "cache").values()) < 600_000:
        assert child.poll() is None, child.communicate()
        time.sleep(0.05)
    os.killpg(child.pid, number)
    _, err = child.communicate()
    assert child.returncode == (130 if number == signal.SIGINT else -number)
    if number == signal.SIGINT:
        assert "interrupted; what has been fetched and prepared is kept: the same command goes on from there" in err
        assert "Traceback" not in err
    while workers():  # a killed parent is noticed within a second
        time.sleep(0.05)
    had = parts(tmp_path / "cache")
    assert set(had) == {"tumor_076.tif.part", "tumor_076_mask.tif.part"}
    assert not (tmp_path / "runs").exists()
    bucket.faults.slow_s, before = 0.0, len(bucket.asked)
    again = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert again.returncode == 2, "the bytes are no slide"
    assert "is no slide that can be read" in again.stderr
    starts = {one.headers.get("range") for one in bucket.asked[before:] if one.method == "GET"}
    assert starts == {f"bytes={size}-" for size in had.values()}
