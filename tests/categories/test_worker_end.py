"""A preparation whose orchestrator is gone ends, and so does what it started."""

import subprocess
import sys
import time
from pathlib import Path

WORKER = """
import subprocess, time
from categories.worker import _end_with_parent
_end_with_parent()
print(subprocess.Popen(["sleep", "7777"]).pid, flush=True)
time.sleep(7777)
"""
ORCHESTRATOR = """
import subprocess, sys
worker = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, start_new_session=True)
print(worker.stdout.readline().decode(), worker.pid)
"""


def test_what_a_preparation_started_ends_with_it() -> None:
    command = [sys.executable, "-c", ORCHESTRATOR, WORKER]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parents[2])
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    until = time.monotonic() + 300
    while any(map(runs, pids)):
        assert time.monotonic() < until, "still there"
        time.sleep(0.1)


def runs(pid: int) -> bool:
    """Return whether a process is there and no zombie that waits to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
