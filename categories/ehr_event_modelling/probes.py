"""Dumb and cheating solvers that must fail, and a baseline with its bound. ``python probes.py NAME`` or ``--list``."""

import json
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import lightgbm
import numpy as np
import polars as pl

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
SUBMISSION = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))


def rows(name: str) -> pl.DataFrame:
    """Return examples with their time as a number beside it."""
    table = pl.read_csv(DATA / name)
    return table.with_columns(day=pl.col("prediction_time").str.slice(0, 10).str.to_date().cast(pl.Int64))


def events(*columns: pl.Expr) -> pl.DataFrame:
    """Return one row per patient: aggregates over ``events.csv``, read in a stream."""
    scanned = pl.scan_csv(DATA / "events.csv", schema_overrides={"value": pl.Float64, "unit": pl.String})
    day = pl.col("start").str.slice(0, 10).str.to_date().cast(pl.Int64)
    return scanned.with_columns(day=day).group_by("patient_id").agg(*columns).collect(engine="streaming")


def joined(*columns: pl.Expr) -> pl.DataFrame:
    """Return the test rows with aggregates of their patients, in the order of the file."""
    return rows("test_examples.csv").join(events(*columns), on="patient_id", how="left", maintain_order="left")


def ranked(score: pl.Series | np.ndarray) -> np.ndarray:
    """Return ranks scaled to (0, 1): an order is all that is scored."""
    values = np.asarray(score, dtype=np.float64)
    return np.searchsorted(np.sort(values), values) / len(values)


def constant() -> np.ndarray:
    return np.full(rows("test_examples.csv").height, 0.07)


def history_length() -> np.ndarray:
    born = pl.col("code").str.starts_with("SNOMED/3950001") | (pl.col("omop_table") == "person")
    table = joined(pl.col("day").filter(~born).min().alias("opens"))
    return ranked(table["day"] - table["opens"])


def event_count() -> np.ndarray:
    return ranked(joined(pl.len().alias("n"))["n"])


def visit_count() -> np.ndarray:
    return ranked(joined((pl.col("omop_table") == "visit_occurrence").sum().alias("n"))["n"])


def demographics(table: pl.DataFrame, people: pl.DataFrame) -> np.ndarray:
    joined_people = table.join(people, on="patient_id", how="left", maintain_order="left")
    age = (joined_people["day"] - joined_people["born"]).to_numpy() / 365.25
    return np.column_stack([age, joined_people["male"].to_numpy().astype(float)])


def age_and_sex() -> np.ndarray:
    people = events(pl.col("day").min().alias("born"), (pl.col("code") == "Gender/M").any().alias("male"))
    train, test = rows("train_labels.csv"), rows("test_examples.csv")
    return fitted(demographics(train, people), train["label"], demographics(test, people))


def fitted(train: np.ndarray, label: pl.Series, test: np.ndarray) -> np.ndarray:
    """Fit small boosted trees and predict."""
    settings = {"objective": "binary", "num_leaves": 7, "learning_rate": 0.05, "min_data_in_leaf": 20, "verbose": -1}
    fixed = {"deterministic": True, "force_row_wise": True, "num_threads": 1, "seed": 0}
    model = lightgbm.train({**settings, **fixed}, lightgbm.Dataset(train, label=label.to_numpy()), 60)
    return np.asarray(model.predict(test))


def last_event_time() -> np.ndarray:
    return ranked(joined(pl.col("day").max().alias("last"))["last"])


def id_order() -> np.ndarray:
    return ranked(rows("test_examples.csv")["patient_id"])


def file_order() -> np.ndarray:
    return ranked(np.arange(rows("test_examples.csv").height))


def file_metadata() -> np.ndarray:
    """Score by how many bytes a patient takes in ``events.csv`` and by a checksum of the id."""
    width = pl.sum_horizontal(pl.col("code", "visit_id", "value", "end").cast(pl.String).str.len_bytes())
    table = joined(width.sum().alias("bytes"))
    check = np.array([zlib.crc32(str(i).encode()) % 97 for i in table["patient_id"]]) / 970.0
    return ranked(ranked(table["bytes"]) + check)


def cut_shape() -> np.ndarray:
    """Score by the gap to the cut, the ends that are blank, and how much happened on the last day."""
    people = ["gap", "blank", "last_day"]
    examples = pl.concat([rows(f"{name}_labels.csv") for name in ("train", "val")])
    test = rows("test_examples.csv")
    scanned = pl.scan_csv(DATA / "events.csv", schema_overrides={"value": pl.Float64, "unit": pl.String})
    early = pl.col("start") < pl.col("prediction_time")
    ended = pl.col("end").is_null() | (pl.col("end") >= pl.col("prediction_time"))
    day = pl.col("start").str.slice(0, 10).str.to_date().cast(pl.Int64)
    shape = [
        (pl.col("day") - day).min().alias("gap"),
        (ended & pl.col("omop_table").is_in(["drug_exposure", "condition_occurrence"])).sum().alias("blank"),
        (day == pl.col("day")).sum().alias("last_day"),
    ]
    keys = ["patient_id", "prediction_time"]

    def shapes(table: pl.DataFrame) -> np.ndarray:
        seen = scanned.join(table.lazy(), on="patient_id").filter(early).group_by(keys).agg(shape)
        found = table.join(seen.collect(engine="streaming"), on=keys, how="left", maintain_order="left")
        return found.select(people).fill_null(0).to_numpy().astype(float)

    return fitted(shapes(examples), examples["label"], shapes(test))


def without_cut() -> np.ndarray:
    """Fit code counts on whole timelines, what comes after the prediction time included."""
    scanned = pl.scan_csv(DATA / "events.csv", schema_overrides={"value": pl.Float64, "unit": pl.String})
    counts = scanned.group_by("patient_id", "code").len().collect(engine="streaming")
    codes = counts.group_by("code").agg(pl.len()).sort("len", "code", descending=[True, False])["code"].head(1500)
    place = {code: i for i, code in enumerate(codes)}
    counts = counts.filter(pl.col("code").is_in(codes.implode()))
    train, test = rows("train_labels.csv"), rows("test_examples.csv")
    people = {patient: i for i, patient in enumerate(counts["patient_id"].unique(maintain_order=True))}
    matrix = np.zeros((len(people), len(codes)), dtype=np.float32)
    at = [people[patient] for patient in counts["patient_id"]], [place[code] for code in counts["code"]]
    matrix[at] = counts["len"].to_numpy()
    which = [[people[patient] for patient in table["patient_id"]] for table in (train, test)]
    return fitted(matrix[which[0]], train["label"], matrix[which[1]])


def random_scores() -> np.ndarray:
    """Random scores; the seed comes from the data, so that every draw has its own."""
    ids = rows("test_examples.csv")["patient_id"].to_numpy()
    return np.random.default_rng(int(ids.sum())).random(len(ids))


PROBES: dict[str, tuple[Callable[[], np.ndarray], str]] = {
    "constant": (constant, "one score for everybody orders nobody"),
    "history_length": (history_length, "sicker people are seen for longer"),
    "event_count": (event_count, "sicker people have more events"),
    "visit_count": (visit_count, "sicker people come more often"),
    "age_and_sex": (age_and_sex, "demographics alone are no reading of the record"),
    "last_event_time": (last_event_time, "calendar time must not tell the outcome"),
    "id_order": (id_order, "ids are keyed and random"),
    "file_order": (file_order, "rows stand in random order"),
    "file_metadata": (file_metadata, "sizes and formatting must not tell the outcome"),
    "cut_shape": (cut_shape, "the cut must not tell what came after it"),
    "without_cut": (without_cut, "a model that saw the future in training must fail"),
    "random": (random_scores, "chance"),
}


BOUNDS = {"random": (3, 600)}
"""Passes a baseline may have, and of how many tries; every other probe earns 0."""


def listing() -> list[dict[str, object]]:
    """Return what each probe is expected to earn."""
    found: list[dict[str, object]] = []
    for name, (_, why) in PROBES.items():
        bound, of = BOUNDS.get(name, (None, None))
        expects = "zero" if bound is None else "bound"
        found.append({"name": name, "expects": expects, "bound": bound, "of": of, "why": why})
    return found


def main() -> None:
    """Write the submission of the probe named on the command line."""
    name = sys.argv[1]
    if name == "--list":
        sys.stdout.write(json.dumps(listing()) + "\n")
        return
    solve, _ = PROBES[name]
    score = np.clip(solve(), 0.0, 1.0)
    SUBMISSION.mkdir(parents=True, exist_ok=True)
    table = rows("test_examples.csv").drop("day").with_columns(pl.Series("probability", score.round(6)))
    table.write_csv(SUBMISSION / "predictions.csv")


if __name__ == "__main__":
    main()
