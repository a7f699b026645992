"""Time and memory of preparing and judging a format conversion: ``python tests/bench/bench_ehr_format_conversion.py``."""

import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

import meds_env  # noqa: E402 (the tests' folder is on the path now)

from categories.catalog import find_task  # noqa: E402
from categories.staging import StageRequest, staged  # noqa: E402
from verifiers_hidden import ehr_format_conversion as verifier  # noqa: E402


def cpu_s() -> float:
    """Seconds of this process and of all children that have ended."""
    uses = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def main() -> None:
    task = find_task("ehr_format_conversion/mimic_iv_to_meds")
    meds_env.ensure()
    for scale in ("small", "full"):
        with tempfile.TemporaryDirectory() as scratch:
            before = cpu_s()
            with staged(StageRequest(task, "bench", 0, scale), Path(scratch)) as draw:
                print(
                    f"{scale}: prepared in {draw.seconds:.1f} s, {cpu_s() - before:.1f} s of CPU, {draw.peak_memory_mb:.0f} MB"
                )
                out = Path(scratch) / "perfect"
                verifier.perfect(draw.gold, out)
                for round_ in ("first", "again"):
                    before, began = cpu_s(), time.monotonic()
                    verdict = verifier.judge(out, draw.gold, {"checks_failed": 0})
                    spent = time.monotonic() - began
                    print(
                        f"{scale}: {round_} verdict {verdict.reward} in {spent:.1f} s, {cpu_s() - before:.1f} s of CPU"
                    )
                print(f"{scale}: {verdict.metrics['rows']:.0f} rows")
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"peak memory {peak / 1024:.0f} MB")


if __name__ == "__main__":
    main()
