"""A miniature of the MIMIC-IV demo in its real format: the files' names, columns, cells, order, and their untidiness."""

import gzip
import io
import random
from functools import cache

import polars as pl

from categories.catalog import find_task
from categories.draw import Draw
from categories.ehr_data_quality.world import TABLES, make_world
from categories.ehr_format_conversion.synthetic import generated
from categories.seed import case_key

TASK = "ehr_data_quality/combined"


@cache
def tables() -> dict[str, pl.DataFrame]:
    """Return the eight tables of a hospital that no test draws otherwise, as text."""
    task = find_task(TASK)
    key = case_key("the miniature demo", "ehr_data_quality", "combined", 0)
    world = make_world(Draw(case="combined", spec=task.spec, key=key, scale="small"))
    made = {}
    for name, table in world.items():
        stamps = [c for c, kind in table.schema.items() if kind == pl.Datetime("us")]
        text = table.with_columns(pl.col(stamps).dt.strftime("%Y-%m-%d %H:%M:%S")).cast(pl.String)
        made[name] = _untidy(name, text)
    return made


def _untidy(name: str, table: pl.DataFrame) -> pl.DataFrame:
    """Add what real tables hold: empty cells, values that are no numbers, doses that are ranges."""
    rng = random.Random(name)
    n = table.height

    def some(share: float) -> pl.Series:
        return pl.Series([rng.random() < share for _ in range(n)])

    if name == "labevents":
        spoiled, lost, outside = some(0.01), some(0.01), some(0.02)
        return table.with_columns(
            value=pl.when(spoiled).then(pl.lit("___")).otherwise("value"),
            valuenum=pl.when(spoiled).then(None).otherwise("valuenum"),
            storetime=pl.when(lost).then(None).otherwise("storetime"),
            hadm_id=pl.when(outside).then(None).otherwise("hadm_id"),
            order_provider_id=pl.when(some(0.3)).then(None).otherwise("order_provider_id"),
            comments=pl.when(pl.col("comments") == "").then(None).otherwise("comments"),
            flag=pl.when(pl.col("flag") == "").then(None).otherwise("flag"),
        ).sort("labevent_id", maintain_order=True)
    if name == "chartevents":
        lost = some(0.01)
        return table.with_columns(
            storetime=pl.when(lost).then(None).otherwise("storetime"),
            caregiver_id=pl.when(some(0.02)).then(None).otherwise("caregiver_id"),
            value=pl.when(some(0.002)).then(None).otherwise("value"),
        )
    if name == "prescriptions":
        ranged = some(0.02)
        return table.with_columns(
            dose_val_rx=pl.when(ranged).then(pl.lit("500-1000")).otherwise("dose_val_rx"),
            form_val_disp=pl.when(ranged).then(pl.lit("1-2")).otherwise("form_val_disp"),
            stoptime=pl.when(some(0.02)).then(None).otherwise("stoptime"),
            poe_id=pl.when(some(0.02)).then(None).otherwise("poe_id"),
        )
    return table


def zipped_csv(table: pl.DataFrame) -> bytes:
    text, out = io.BytesIO(), io.BytesIO()
    table.write_csv(text)
    with gzip.GzipFile("", "wb", fileobj=out, mtime=0) as file:
        file.write(text.getvalue())
    return out.getvalue()


@cache
def other_tables() -> dict[str, pl.DataFrame]:
    """Return the demo's other tables (``hosp/poe`` ...), about the same people and stays, and the concept maps."""
    task = find_task("ehr_format_conversion/mimic_iv_to_meds")
    key = case_key("the miniature demo", "ehr_format_conversion", "mimic_iv_to_meds", 0)
    made = generated(Draw("mimic_iv_to_meds", task.spec, key, "small"), "cohort", 40)
    mine = {f"{folder}/{name}.csv.gz" for folder, names in TABLES.items() for name in names}
    stays = made["hosp/admissions.csv.gz"].select(pl.col("subject_id", "hadm_id").cast(pl.String))
    people = dict(
        zip(stays["subject_id"].unique(maintain_order=True), tables()["patients"]["subject_id"], strict=False)
    )
    hadm = {}
    for place, (subject, number) in enumerate(stays.rows()):
        own = tables()["admissions"].filter(pl.col("subject_id") == people[subject])["hadm_id"]
        pool = own if len(own) else tables()["admissions"]["hadm_id"]
        hadm[number] = pool[place % len(pool)]
    maps = {"subject_id": people, "hadm_id": hadm}
    found = {}
    for name, frame in made.items():
        if name in mine or name == "demo_subject_id.csv":
            continue
        text = frame.cast(pl.String)
        renamed = [
            pl.col(column).replace_strict(known, default=None, return_dtype=pl.String).alias(column)
            for column, known in maps.items()
            if column in text.columns
        ]
        text = text.with_columns(renamed)
        for column in ("poe_id", "emar_id", "discontinue_of_poe_id", "discontinued_by_poe_id"):
            if column in text.columns:
                number = pl.col(column).str.extract(r"-(\d+)$")
                text = text.with_columns(pl.concat_str("subject_id", pl.lit("-"), number).alias(column))
        found[name] = text
    return found


@cache
def files() -> dict[str, bytes]:
    """Return the demo's files by name."""
    own = {f"{folder}/{name}.csv.gz": zipped_csv(tables()[name]) for folder, names in TABLES.items() for name in names}
    others = {name: zipped_csv(table) for name, table in other_tables().items() if name.endswith(".gz")}
    return {**own, **others, "LICENSE.txt": b"ODbL", "demo_subject_id.csv": b"subject_id\n"}


@cache
def maps() -> dict[str, bytes]:
    """Return the concept maps of mimic-code by name."""
    return {name: table.write_csv().encode() for name, table in other_tables().items() if name.endswith(".csv")}
