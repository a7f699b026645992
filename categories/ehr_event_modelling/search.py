"""``python -m categories.ehr_event_modelling.search [CASE ...]``: search the gate's settings on seed 0, at full scale.

One point serves all tasks: a split of one disease holds as few as 43 positives. It is then frozen in ``cases.toml``.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from categories.catalog import load_category
from categories.draw import Draw
from categories.ehr_event_modelling.gate import GRID, validation_aurocs
from categories.ehr_event_modelling.synthetic import World
from categories.seed import DEFAULT_SEED, case_key


def search(case: str) -> list[float]:
    """Return the validation AUROC of each point of the grid, fitted once on the training split."""
    category = load_category(Path(__file__).parent)
    draw = Draw(case, category.cases[case], case_key(DEFAULT_SEED, category.id, case, 0), "full")
    with tempfile.TemporaryDirectory() as folder:
        world = World.of(draw, Path(folder) / "events.csv")
    return validation_aurocs(world.features, world.cohort.rows[:, 2], world.rows_of(0), world.rows_of(1))


def main() -> None:
    """Print one line of JSON per case and point, then the points by their mean, the best last."""
    cases, reached = sys.argv[1:] or list(load_category(Path(__file__).parent).cases), []
    for case in cases:
        reached.append(search(case))
        for settings, auroc in zip(GRID, reached[-1], strict=True):
            sys.stdout.write(json.dumps({"case": case, **settings, "validation_auroc": round(auroc, 4)}) + "\n")
            sys.stdout.flush()
    means = np.mean(reached, axis=0)
    for place in np.argsort(means, kind="stable"):
        sys.stdout.write(json.dumps({**GRID[place], "mean_validation_auroc": round(float(means[place]), 4)}) + "\n")


if __name__ == "__main__":
    main()
