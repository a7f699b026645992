"""Data quality on the demo: nobody's identifier or date is left, nothing else is changed, errors find their places."""

import json
from datetime import timedelta
from pathlib import Path

import mimic
import polars as pl
import pytest

from categories.catalog import find_task
from categories.staging import StageRequest, StagingError, staged

TASK = "ehr_data_quality/combined"


def read(folder: Path, name: str) -> pl.DataFrame:
    return pl.read_csv(next(folder.rglob(f"{name}.csv.gz")), infer_schema=False)


def numbers(table: pl.DataFrame, column: str) -> set[str]:
    return set(table[column].drop_nulls())


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("patients", ["subject_id"]),
        ("admissions", ["subject_id", "hadm_id", "admit_provider_id"]),
        ("labevents", ["subject_id", "hadm_id", "specimen_id", "labevent_id", "order_provider_id"]),
        ("prescriptions", ["subject_id", "hadm_id", "pharmacy_id", "poe_id"]),
        ("icustays", ["subject_id", "hadm_id", "stay_id"]),
        ("chartevents", ["subject_id", "hadm_id", "stay_id", "caregiver_id"]),
    ],
)
def test_no_identifier_of_the_source_is_left(stage, name: str, columns: list[str]) -> None:
    shown, source = read(stage(TASK).public, name), mimic.tables()[name]
    for column in columns:
        shared = numbers(shown, column) & numbers(source, column)
        # Numbers are drawn anew from the source's own range, so a few coincide by chance.
        assert len(shared) <= max(3, 0.02 * len(numbers(source, column))), column
        assert len(numbers(shown, column)) >= len(numbers(source, column)), column


def test_tables_still_join_and_orders_name_their_patient(stage) -> None:
    public = stage(TASK).public
    patients, stays = read(public, "patients"), read(public, "icustays")
    for name in ("admissions", "labevents", "prescriptions", "icustays", "chartevents"):
        assert numbers(read(public, name), "subject_id") <= numbers(patients, "subject_id"), name
    assert numbers(read(public, "chartevents"), "stay_id") <= numbers(stays, "stay_id")
    orders = read(public, "prescriptions").drop_nulls("poe_id")
    assert (orders["poe_id"].str.split("-").list.first() == orders["subject_id"]).all()
    assert (orders["poe_id"].str.split("-").list.last() == orders["poe_seq"]).all()


def test_every_date_moves_with_its_person_by_whole_leap_cycles(stage) -> None:
    shown = read(stage(TASK).public, "admissions").sort("admittime", "dischtime")
    source = mimic.tables()["admissions"]

    def lengths(table: pl.DataFrame) -> list[timedelta]:
        times = table.select(pl.col("admittime", "dischtime").str.to_datetime())
        return sorted(times.select(pl.col("dischtime") - pl.col("admittime")).to_series())

    assert lengths(shown) == lengths(source)
    assert shown["admittime"].str.slice(5).sort().equals(source["admittime"].str.slice(5).sort()), "day and hour stay"
    assert numbers(shown, "admittime").isdisjoint(numbers(source, "admittime"))
    assert shown["admittime"].str.slice(0, 4).cast(int).is_between(2100, 2200).all()


def test_what_the_records_say_is_what_the_source_says(stage) -> None:
    """All untouched laboratory rows have their value, unit, range and comment of the source."""
    draw = stage(TASK)
    gold = json.loads((draw.gold / "clusters.json").read_text())
    touched = {row["_row_id"] for cluster in gold["clusters"] for row in cluster["rows"] if row["table"] == "labevents"}
    columns = ["itemid", "value", "valueuom", "comments", "priority"]
    source = mimic.tables()["labevents"].select(columns)
    shown = read(draw.public, "labevents").filter(~pl.col("_row_id").is_in(touched)).select(columns)
    extra = shown.group_by(columns).len().join(source.group_by(columns).len(), on=columns, how="left", nulls_equal=True)
    added = extra.select((pl.col("len") - pl.col("len_right").fill_null(0)).clip(0).sum()).item()
    conflicts = sum(cluster["subtype"] == "in_table_conflict" for cluster in gold["clusters"])
    assert added <= 20 * conflicts, "only the redrawn specimens are new"


def test_all_families_find_places_in_untidy_records(stage) -> None:
    gold = json.loads((stage(TASK).gold / "clusters.json").read_text())
    kinds = {(cluster["family"], cluster["subtype"]) for cluster in gold["clusters"]}
    assert {family for family, _ in kinds} == {"impossible_value", "inconsistency", "demographic_conflict"}
    assert len(kinds) >= 8
    assert len(gold["clusters"]) >= 60


def test_a_demo_without_room_for_a_family_is_refused_in_words(clinic, stage, tmp_path, monkeypatch) -> None:
    """A source that lacks what errors are made from gives a message, not a task that cannot be passed."""
    few = {name: table.head(3) for name, table in mimic.tables().items()}
    host = clinic["mimic_iv_demo"]
    tables = {name: Path(name).name.removesuffix(".csv.gz") for name in host.files}
    small = {name: mimic.zipped_csv(few[table]) for name, table in tables.items() if table in few}
    monkeypatch.setattr(host, "files", small)
    request = StageRequest(find_task("ehr_data_quality/inconsistency"), "0", 0, "small", "clinical")
    with pytest.raises(StagingError, match="have no place") as caught, staged(request, tmp_path):
        pass
    assert "Traceback" not in str(caught.value)
