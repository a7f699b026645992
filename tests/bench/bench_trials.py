"""What the orchestration costs: nop trials on a prepared task, the orchestrator's memory, the start of the command.

Prints medians; asserts nothing. Run on a machine that does nothing else.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

HAB = [sys.executable, "-m", "hab_suite"]
TASK = "ehr_data_quality/impossible_value"
REPEATS = 7


def timed(*words: str) -> tuple[float, float]:
    """Return wall seconds and peak resident megabytes of a command."""
    began = time.monotonic()
    child = subprocess.Popen([*HAB, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, words
    return time.monotonic() - began, usage.ru_maxrss / 1024


def trial_seconds(out: Path) -> list[float]:
    """Return, for every trial under ``out``, the seconds from its start to its record."""
    lines = (line for path in out.glob("*/events.jsonl") for line in path.read_text().splitlines())
    events = [json.loads(line) for line in lines]
    started = {e["trial_id"]: e["at"] for e in events if e["kind"] == "trial_started"}
    ended = {e["trial_id"]: e["at"] for e in events if e["kind"] == "trial_ended"}
    return [seconds(ended[i]) - seconds(started[i]) for i in started]


def seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def main() -> None:
    print(f"hab-suite --help: {statistics.median(timed('--help')[0] for _ in range(REPEATS)):.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        common = ("run", "--harness", "nop", "--scale", "small", "--out")
        timed(*common, folder, "--category", "ehr_data_quality")
        one = Path(folder) / "one"
        timed(*common, str(one), "--tasks", TASK, "--trials", str(REPEATS), "--jobs", "1")
        print(f"a nop trial, create to removed: median {statistics.median(trial_seconds(one)):.2f} s of {REPEATS}")
        eight = [
            timed(*common, str(Path(folder) / str(n)), "--category", "ehr_data_quality", "--jobs", "2")
            for n in range(3)
        ]
        print(
            f"8 nop trials at --jobs 2: median {statistics.median(s for s, _ in eight):.1f} s of 3 runs, whole command"
        )
        print(f"orchestrator: peak {max(mb for _, mb in eight):.0f} MB")


if __name__ == "__main__":
    main()
