"""The clinical edition: the MIMIC-IV demo under other names, with errors by the injector of the synthetic one."""

import json
from pathlib import Path

import polars as pl

from categories.draw import Draw
from categories.ehr_data_quality.ledger import Ledger
from categories.ehr_data_quality.synthetic import gold_clusters, inject, write_tables
from categories.ehr_data_quality.world import TABLES
from categories.mimic.disguise import disguise
from categories.sources.shelf import Shelf
from categories.sources.spec import not_as_published

SOURCE = "mimic_iv_demo"
STAMP, DATE, WHOLE, REAL = pl.Datetime("us"), pl.Date, pl.Int64, pl.Float64
TYPES: dict[str, pl.DataType | type[pl.DataType]] = {
    **dict.fromkeys(("subject_id", "hadm_id", "stay_id", "labevent_id", "specimen_id", "pharmacy_id", "itemid"), WHOLE),
    **dict.fromkeys(("anchor_age", "anchor_year", "hospital_expire_flag", "caregiver_id", "poe_seq", "warning"), WHOLE),
    **dict.fromkeys(("admittime", "dischtime", "deathtime", "edregtime", "edouttime", "charttime", "storetime"), STAMP),
    **dict.fromkeys(("starttime", "stoptime", "intime", "outtime"), STAMP),
    **dict.fromkeys(
        ("valuenum", "ref_range_lower", "ref_range_upper", "los", "lownormalvalue", "highnormalvalue"), REAL
    ),
    "dod": DATE,
    "doses_per_24_hrs": REAL,
}
"""Columns that are not text."""


def prepare(draw: Draw, *, public: Path, gold: Path, workspace: Path, sources: Shelf) -> str | None:  # noqa: ARG001
    """Write the same files as the synthetic edition, from the hundred patients of the demo.

    Raises:
        SourceError: a file cannot be had, or no error of a kind finds a place in it.
    """
    names = {table: f"{folder}/{table}.csv.gz" for folder, tables in TABLES.items() for table in tables}
    paths = sources.files(SOURCE, list(names.values()))
    read = {table: read_text(path) for table, path in zip(names, paths, strict=True)}
    ledger = Ledger({table: typed(frame) for table, frame in disguise(draw, read).items()}, strict=False)
    inject(ledger, draw)
    families = draw.spec.parameters["families"]
    assert isinstance(families, tuple)
    lacking = set(map(str, families)) - {cluster.family for cluster in ledger.clusters}
    if lacking:
        what = f"have no place for an error of {', '.join(sorted(lacking))} ({draw.case})"
        raise not_as_published(SOURCE, "its tables", what)
    ids = write_tables(ledger, draw, public)
    document = {
        "rows": {name: table.height for name, table in ledger.tables.items()},
        "clusters": gold_clusters(ledger, ids),
    }
    (gold / "clusters.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    return None


def read_text(path: Path) -> pl.DataFrame:
    """Return a table as it stands in its file: all cells text, empty ones null."""
    return pl.read_csv(path, infer_schema=False)


def typed(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table with numbers and times as such; cells that are none are left empty."""
    made = []
    for name in table.columns:
        column, kind = pl.col(name), TYPES.get(name)
        if kind == STAMP:
            column = column.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)
        elif kind == DATE:
            column = column.str.to_date("%Y-%m-%d", strict=False)
        elif kind is not None:
            column = column.cast(pl.Float64, strict=False).cast(kind, strict=False)
        made.append(column)
    found = table.select(made)
    whole = "doses_per_24_hrs" in found.columns and found.select((pl.col("doses_per_24_hrs") % 1 == 0).all()).item()
    return found.with_columns(pl.col("doses_per_24_hrs").cast(pl.Int64)) if whole else found
