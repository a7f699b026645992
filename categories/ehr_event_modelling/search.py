"""``python -m categories.ehr_event_modelling.search [CASE ...]``: find the gate's settings on seed 0.

They are then frozen in ``cases.toml``.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from categories.catalog import load_category
from categories.draw import Draw
from categories.ehr_event_modelling.gate import SEARCHED, as_dataset, fit_trees
from categories.ehr_event_modelling.measures import expected_auroc
from categories.ehr_event_modelling.synthetic import World
from categories.seed import DEFAULT_SEED, case_key


def search(case: str) -> dict[str, object]:
    """Return the settings with the best AUROC on the validation split of seed 0 at full scale."""
    category = load_category(Path(__file__).parent)
    draw = Draw(case, category.cases[case], case_key(DEFAULT_SEED, category.id, case, 0), "full")
    with tempfile.TemporaryDirectory() as folder:
        return {"case": case, **best_settings(World.of(draw, Path(folder) / "events.csv"))}


def best_settings(world: World) -> dict[str, object]:
    """Return the point of ``SEARCHED`` with the best AUROC on the validation split, fitted on the train split."""
    train, val = world.rows_of(0), world.rows_of(1)
    label = world.cohort.rows[:, 2]
    data = as_dataset(world.features[train], label[train])
    reached = {}
    for place, settings in enumerate(SEARCHED):
        model = fit_trees(data, settings)
        score = np.asarray(model.predict(world.features[val]), dtype=np.float64)
        reached[place] = expected_auroc(score, label[val].astype(np.float64))
    best = max(reached, key=lambda place: reached[place])
    return {**SEARCHED[best], "validation_auroc": round(reached[best], 4)}


def main() -> None:
    """Print one line of JSON per case."""
    cases = sys.argv[1:] or list(load_category(Path(__file__).parent).cases)
    for case in cases:
        sys.stdout.write(json.dumps(search(case)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
