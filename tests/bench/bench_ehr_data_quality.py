"""``python tests/bench/bench_ehr_data_quality.py [SCALE [SEED]]``: rows, time, memory, probes, reference of the four draws."""

import importlib.util
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

from categories.catalog import find_task
from categories.staging import StageRequest, staged
from verifiers_hidden import ehr_data_quality as verifier

CASES = ("impossible_value", "inconsistency", "demographic_conflict", "combined")


def load(folder: Path, name: str):
    spec = importlib.util.spec_from_file_location(f"dq_{name}", folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def line(name: str, metrics: dict[str, float]) -> str:
    passes = metrics["recall"] >= 1 and metrics["precision"] >= 0.3
    return f"  {name:22s} recall {metrics['recall']:.3f} precision {metrics['precision']:.4f} flagged {metrics['flagged_rows']:.0f}{' PASS' if passes else ''}"


def measure(case: str, seed: str, scale: str, cache: Path) -> None:
    task = find_task(f"ehr_data_quality/{case}")
    probes, reference = (load(task.category.folder, name) for name in ("probes", "reference"))
    with staged(StageRequest(task, seed, 0, scale), cache) as draw:
        clusters, rows = verifier._gold(draw.gold)
        size = sum(path.stat().st_size for path in draw.public.rglob("*")) / 1e6
        print(
            f"{case} {scale}: {sum(rows.values())} rows, {draw.seconds:.1f} s, peak {draw.peak_memory_mb:.0f} MB, {size:.1f} MB on disk, {draw.content_digest[:16]}",
            flush=True,
        )
        probes.DATA = reference.DATA = draw.public
        tables = probes.read()
        for name, (probe, _) in probes.PROBES.items():
            flagged = set(pl.concat(probe(tables)).unique().rows())
            print(line(name, verifier.measure(clusters, rows, flagged)), flush=True)
        began, tables = time.monotonic(), reference.read()
        flagged = set(pl.concat([found for check in reference.CHECKS for found in check(tables)]).rows())
        print(
            line(f"REFERENCE {time.monotonic() - began:.0f} s", verifier.measure(clusters, rows, flagged)), flush=True
        )


if __name__ == "__main__":
    words = sys.argv[1:]
    scale, seed = (words + ["small", "0"][len(words) :])[:2]
    with tempfile.TemporaryDirectory() as cache:
        for case in CASES:
            measure(case, seed, scale, Path(cache))
