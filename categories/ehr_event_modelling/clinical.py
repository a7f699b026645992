"""The clinical edition: a task of EHRSHOT, test patients cut at their first prediction, the gate on the same rows."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
from scipy import sparse

from categories.draw import Draw
from categories.ehr_event_modelling.counting import Counting
from categories.ehr_event_modelling.gate import (
    GRID,
    embedding_scores,
    gate_scores,
    validation_aurocs,
    with_age,
)
from categories.ehr_event_modelling.measures import expected_auroc
from categories.ehr_event_modelling.plain import best_plain
from categories.ehr_event_modelling.timelines import Examples, Timelines, floats, read_examples
from categories.ehr_event_modelling.vocabulary import Ints
from categories.ehr_event_modelling.writing import STAMP
from categories.sources.errors import SourceError
from categories.sources.shelf import Shelf

SOURCE, ARCHIVE = "ehrshot", "EHRSHOT_ASSETS.zip"
MOST = {"full": None, "small": 400}
"""Patients of each split that are taken."""
YEAR_DAYS = 365.25


def prepare(draw: Draw, *, public: Path, gold: Path, workspace: Path, sources: Shelf) -> str | None:  # noqa: ARG001
    """Write the same files as the synthetic edition; the gold holds labels, as nobody knows true risks.

    Raises:
        SourceError: a file cannot be had or has another format.
    """
    benchmark = str(draw.spec.clinical["benchmark"])
    wanted = ["data/ehrshot.csv", "splits/person_id_map.csv", f"benchmark/{benchmark}/labeled_patients.csv"]
    found = sources.unpacked(SOURCE, ARCHIVE, wanted)
    lacking = [name for name in wanted if name not in found]
    if lacking:
        raise SourceError(f"{ARCHIVE} holds no {lacking[0]}; is it EHRSHOT's?")
    events, splits, labels = (found[name] for name in wanted)
    examples = read_examples(draw, labels, splits, MOST[draw.scale])
    with tempfile.TemporaryDirectory(dir=gold.parent) as scratch:
        timelines = Timelines(draw, events, examples, Path(scratch))
        cells, facts = timelines.write(public / "events.csv")
    for split in ("train", "val", "test"):
        name = "test_examples.csv" if split == "test" else f"{split}_labels.csv"
        _write_examples(draw, public / name, examples, split)
    _write_gold(draw, gold, examples, timelines.counting, cells, facts)
    return None


def _shown(examples: Examples, split: str) -> pl.DataFrame:
    """Return the examples of a split with the dates that are shown."""
    shown = pl.col("time") + pl.duration(days=pl.col("shift"))
    rows = examples.table.filter(pl.col("split") == split)
    return rows.select("patient_id", shown.alias("prediction_time"), "label")


def _write_examples(draw: Draw, path: Path, examples: Examples, split: str) -> None:
    table = _shown(examples, split)
    table = table[draw.rng("order", path.name).permutation(table.height)]
    (table.drop("label") if split == "test" else table).write_csv(path, datetime_format=STAMP)


def _write_gold(
    draw: Draw, gold: Path, examples: Examples, counting: Counting, cells: sparse.csr_matrix, facts: pl.DataFrame
) -> None:
    """Write labels and the baselines' scores of the test rows, and what plain orderings reach on them."""
    age = np.maximum(floats(facts["time"]) - floats(facts["born"]), 0) / YEAR_DAYS
    features, simple = counting.features(cells, age), with_age(counting.per_code(cells), age)
    label = np.asarray(examples.table["label"].to_numpy(), np.int64)
    train, val, test = (examples.rows(split).to_numpy() for split in ("train", "val", "test"))
    settings = _settings(draw, features, label, train, val)
    known = np.concatenate([train, val])
    scores = {
        "gate": gate_scores(features[known], label[known], features[test], settings),
        "embedding": embedding_scores(simple[known], label[known], simple[test]),
    }
    table = _shown(examples, "test").with_columns([pl.Series(name, score) for name, score in scores.items()])
    table.write_csv(gold / "gold.csv", datetime_format=STAMP)
    part = facts[test]
    shift = floats(part["shift"])
    columns = {
        "events": floats(part["events"]),
        "visits": floats(part["visits"]),
        "length of the record": floats(part["time"]) - floats(part["opens"]),
        "prediction time": floats(part["time"]) + shift,
        "first event": floats(part["opens"]) + shift,
        "id": floats(part["patient_id"]),
    }
    risk = label[test].astype(np.float64)
    name, reached = best_plain(
        columns, age[test], floats(part["male"]), risk, lambda score: expected_auroc(score, risk)
    )
    document = {"ordering": name, "auroc": round(reached, 4)}
    (gold / "plain.json").write_text(json.dumps(document) + "\n", encoding="utf-8")


def _settings(draw: Draw, features: sparse.csr_matrix, label: Ints, train: Ints, val: Ints) -> Mapping[str, object]:
    """Return the point of EHRSHOT's grid that does best on the validation split; at small scale the case's own."""
    if draw.scale == "small":
        return {name: draw.spec.parameters[f"gate_{name}"] for name in GRID[0]}
    reached = validation_aurocs(features, label, train, val)
    return GRID[reached.index(max(reached))]
