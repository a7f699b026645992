"""``python tests/bench/bench_ct_abnormality.py [SEED SCALE [CASE ...]]``: seconds, memory and bytes of a preparation."""

import sys
import tempfile
from pathlib import Path

from categories.catalog import find_task
from categories.staging import StageRequest, staged

DEFAULT = ("scan_01", "scan_09")
"""One of each format."""


def measure(case: str, seed: str, scale: str, cache: Path) -> None:
    """Stage one draw anew and tell what it cost."""
    with staged(StageRequest(find_task(f"ct_abnormality/{case}"), seed, 0, scale), cache) as draw:
        size = sum(path.stat().st_size for path in draw.public.rglob("*") if path.is_file()) / 1e6
        print(
            f"{case} {scale}: {draw.seconds:.1f} s, peak {draw.peak_memory_mb:.0f} MB, {size:.1f} MB on disk, {draw.content_digest[:16]}",
            flush=True,
        )


if __name__ == "__main__":
    seed, scale, *cases = sys.argv[1:] or ["0", "small"]
    with tempfile.TemporaryDirectory() as folder:
        for name in cases or DEFAULT:
            measure(name, seed, scale, Path(folder))
