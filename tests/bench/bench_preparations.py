"""What each preparation costs: ``python tests/bench/bench_preparations.py [SCALE [SEED [GLOB ...]]]``.

One line per draw: seconds, processor seconds, peak memory, bytes the agent is given, content digest. Without words: all
categories at small scale, their first case.
"""

import os
import resource
import sys
import tempfile
from pathlib import Path
from typing import cast

from categories.catalog import load_catalog, select_tasks
from categories.seed import DEFAULT_SEED
from categories.spec import Scale, Task
from categories.staging import StageRequest, staged
from runners.cache import default_cache
from suite.etl_environment import ENVIRONMENT, ensure_environment, needs_etl


def measure(task: Task, seed: str, scale: Scale) -> None:
    """Stage one draw into a cache of its own."""
    if needs_etl(task, scale, "synthetic"):
        os.environ[ENVIRONMENT] = str(ensure_environment(default_cache()))
    before = children_s()
    with (
        tempfile.TemporaryDirectory() as folder,
        staged(StageRequest(task, seed, 0, scale), Path(folder)) as draw,
    ):
        size = sum(path.stat().st_size for path in draw.public.rglob("*") if path.is_file()) / 1e6
        print(
            f"{task.id:42} {scale}: {draw.seconds:6.1f} s, {children_s() - before:6.1f} s of CPU, "
            f"peak {draw.peak_memory_mb:5.0f} MB, {size:7.1f} MB given, {draw.content_digest[:16]}",
            flush=True,
        )


def children_s() -> float:
    """Processor seconds of all children that have ended."""
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


if __name__ == "__main__":
    words = sys.argv[1:]
    scale, seed = (words + ["small", DEFAULT_SEED][len(words) :])[:2]
    globs = words[2:]
    firsts = [f"{category.id}/{next(iter(category.cases))}" for category in load_catalog()]
    for chosen in select_tasks(globs or firsts, []):
        if not chosen.spec.draw_as:
            measure(chosen, seed, cast(Scale, scale))
