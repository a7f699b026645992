"""Time, memory and difficulty of each preparation: ``python tests/bench/bench_ehr_event_modelling.py [SCALE [SEED]]``.

Prints one line per task: seconds, peak memory, events, and the AUROC by true risks of the gate, the second baseline, the
best plain ordering and the true risks themselves.
"""

import sys
import tempfile
from pathlib import Path
from typing import cast

from categories.catalog import find_task, load_catalog
from categories.seed import DEFAULT_SEED
from categories.spec import Scale
from categories.staging import StageRequest, staged
from verifiers_hidden import ehr_event_modelling as verifier


def main() -> None:
    """Prepare all six tasks in a cache of their own."""
    scale = cast(Scale, sys.argv[1] if len(sys.argv) > 1 else "small")
    seed = sys.argv[2] if len(sys.argv) > 2 else DEFAULT_SEED
    category = next(one for one in load_catalog() if one.id == "ehr_event_modelling")
    for case in category.cases:
        task = find_task(f"{category.id}/{case}")
        with (
            tempfile.TemporaryDirectory() as folder,
            staged(StageRequest(task, seed, 0, scale), Path(folder)) as draw,
        ):
            with (draw.public / "events.csv").open("rb") as file:
                events = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 24), b"")) - 1
            answer = Path(folder) / "perfect"
            answer.mkdir()
            verifier.perfect(draw.gold, answer)
            metrics = verifier.judge(answer, draw.gold, dict(category.pass_rule.numbers)).metrics
            names = ("gate_auroc", "embedding_auroc", "plain_auroc", "best_auroc")
            reached = "  ".join(f"{name} {metrics[name]:.3f}" for name in names)
            print(f"{case:18} {draw.seconds:6.1f} s {draw.peak_memory_mb:7.0f} MB {events:10,} events  {reached}")


if __name__ == "__main__":
    main()
