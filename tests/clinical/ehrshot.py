"""A miniature of EHRSHOT in the real format: one table of events, splits, labels of each task, in one archive.

Timelines go on after the predictions, test patients have several, and an event tells their outcome: what the
preparation must keep from the agent.
"""

import io
import os
import random
import zipfile
from functools import cache
from pathlib import Path

import polars as pl

from categories.catalog import find_task, load_catalog
from categories.staging import StageRequest, staged

ARCHIVE = "EHRSHOT_ASSETS.zip"
TASK = "ehr_event_modelling/hypertension"
TELLING = "SNOMED/59621000-after"
LATER = "SNOMED/later-visit"
BENCHMARKS = [
    str(spec.clinical["benchmark"])
    for category in load_catalog()
    if category.id == "ehr_event_modelling"
    for spec in category.cases.values()
]


def users_cache() -> Path:
    """Return the cache that other tests keep the synthetic edition in: a clinical session has one of its own."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "box-store"


@cache
def tables() -> dict[str, pl.DataFrame]:
    """Return events, examples (with split and label) as text, from one generated world."""
    with staged(StageRequest(find_task(TASK), "the miniature", 0, "small"), users_cache()) as draw:
        events = pl.read_csv(draw.public / "events.csv", infer_schema=False)
        parts = [
            pl.read_csv(draw.public / f"{name}_labels.csv", infer_schema=False).with_columns(split=pl.lit(name))
            for name in ("train", "val")
        ]
        test = pl.read_csv(draw.gold / "gold.csv", infer_schema=False).select("patient_id", "prediction_time", "label")
    test = test.with_columns(split=pl.lit("test"))
    return {"events": pl.concat([events, *after(events, test)]), "examples": pl.concat([*parts, test, again(test)])}


def moved(days: int) -> pl.Expr:
    time = pl.col("prediction_time").str.to_datetime("%Y-%m-%d %H:%M:%S") + pl.duration(days=days)
    return time.dt.strftime("%Y-%m-%d %H:%M:%S")


def again(test: pl.DataFrame) -> pl.DataFrame:
    """Return a second discharge of every third test patient."""
    return test.gather_every(3).with_columns(prediction_time=moved(200))


def after(events: pl.DataFrame, test: pl.DataFrame) -> list[pl.DataFrame]:
    """Return what happens to test patients later: the diagnosis of those who get it, a stay that outlasts the prediction."""
    blank = [pl.lit(None, pl.String).alias(name) for name in events.columns]

    def rows(who: pl.DataFrame, **cells: pl.Expr) -> pl.DataFrame:
        return who.with_columns(**cells).select(
            pl.col(name) if name in {"patient_id", *cells} else blank[place]
            for place, name in enumerate(events.columns)
        )

    ill = rows(
        test.filter(pl.col("label") == "1"),
        start=moved(30), end=moved(31), code=pl.lit(TELLING), omop_table=pl.lit("condition_occurrence"),
    )  # fmt: skip
    stay = rows(
        test,
        start=moved(-3),
        end=moved(5),
        code=pl.lit("Visit/IP"),
        visit_id=pl.lit("77"),
        omop_table=pl.lit("visit_occurrence"),
    )
    later = rows(test, start=moved(0), end=moved(0), code=pl.lit(LATER), omop_table=pl.lit("visit_occurrence"))
    house = rows(
        test, start=moved(-2), code=pl.lit("STANFORD_OBS/note"), value=pl.lit("Positive"), omop_table=pl.lit("note")
    )
    return [ill, stay, later, house]


def csv_of(table: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    table.write_csv(out)
    return out.getvalue()


@cache
def archive() -> bytes:
    """Return ``EHRSHOT_ASSETS.zip``."""
    made = tables()
    order = list(made["events"]["patient_id"].unique(maintain_order=True))
    random.Random(3).shuffle(order)
    turn = pl.DataFrame({"patient_id": order}).with_row_index("turn")
    events = made["events"].join(turn, on="patient_id").sort("turn", "start", maintain_order=True).drop("turn")
    examples = made["examples"]
    labels = examples.select(
        "patient_id", "prediction_time",
        value=pl.when(pl.col("label") == "1").then(pl.lit("True")).otherwise(pl.lit("False")), label_type=pl.lit("boolean"),
    )  # fmt: skip
    splits = examples.select("split", omop_person_id="patient_id").unique(maintain_order=True)
    out = io.BytesIO()
    names = {
        "features/count_features.pkl": b"\x80\x04never read" * 1000,
        "data/ehrshot.csv": csv_of(events.with_row_index("")),
        "splits/person_id_map.csv": csv_of(splits),
        **{f"benchmark/{name}/labeled_patients.csv": csv_of(labels) for name in BENCHMARKS},
        "benchmark/guo_icu/labeled_patients.csv": b"patient_id\n",
    }
    with zipfile.ZipFile(out, "w") as file:
        for name, body in names.items():  # without a time, so that two processes make the same archive
            file.writestr(zipfile.ZipInfo(f"EHRSHOT_ASSETS/{name}"), body, zipfile.ZIP_DEFLATED, 1)
    return out.getvalue()
