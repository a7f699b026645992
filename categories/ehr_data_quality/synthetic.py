"""Generated patients: a hospital without errors, then the case's errors, rows shuffled and named anew, gold beside."""

import gzip
import io
import json
from pathlib import Path

import numpy as np
import polars as pl

from categories.draw import Draw
from categories.ehr_data_quality.demographic import inject_demographic
from categories.ehr_data_quality.impossible import inject_impossible
from categories.ehr_data_quality.inconsistent import inject_inconsistent
from categories.ehr_data_quality.ledger import INDEX, Ledger
from categories.ehr_data_quality.world import TABLES, make_world


def prepare(draw: Draw, *, public: Path, gold: Path, workspace: Path) -> str | None:  # noqa: ARG001 (nothing to copy in)
    """Write ``hosp/`` and ``icu/`` tables (csv.gz) for the agent and ``clusters.json`` for the verifier."""
    ledger = Ledger(make_world(draw))
    inject(ledger, draw)
    names = write_tables(ledger, draw, public)
    document = {
        "rows": {name: table.height for name, table in ledger.tables.items()},
        "clusters": gold_clusters(ledger, names),
    }
    (gold / "clusters.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    return None


def inject(ledger: Ledger, draw: Draw) -> None:
    """Put the errors of the case's families into tables of MIMIC-IV's shape, wherever these come from."""
    families = draw.spec.parameters["families"]
    assert isinstance(families, tuple)
    if "impossible_value" in families:
        inject_impossible(ledger, draw.rng("impossible_value"))
        ledger.flush()
    if "inconsistency" in families:
        inject_inconsistent(ledger, draw.rng("inconsistency"))
        ledger.flush()
    if "demographic_conflict" in families:
        inject_demographic(ledger, draw, draw.rng("demographic_conflict"))
        ledger.flush()


def write_tables(ledger: Ledger, draw: Draw, public: Path) -> dict[str, list[str]]:
    """Write all tables, shuffled, with random row ids; return the id of each row by table and row number."""
    names: dict[str, list[str]] = {}
    for folder, tables in TABLES.items():
        (public / folder).mkdir(parents=True, exist_ok=True)
        for name in tables:
            table = ledger.tables[name].sort(INDEX)
            rng = draw.rng("row ids", name)
            order = rng.permutation(table.height)
            numbers = np.unique(rng.integers(1 << 60, 1 << 63, table.height * 2))
            numbers = rng.permutation(numbers)[: table.height].astype(np.int64)
            ids = [f"{number:016x}" for number in numbers.tolist()]
            names[name] = ids
            shuffled = table.with_columns(_row_id=pl.Series(ids)).select("_row_id", pl.exclude("_row_id", INDEX))[order]
            _write(shuffled, public / folder / f"{name}.csv.gz")
    return names


def _write(table: pl.DataFrame, path: Path) -> None:
    text = io.BytesIO()
    table.write_csv(text, datetime_format="%Y-%m-%d %H:%M:%S")
    with path.open("wb") as raw, gzip.GzipFile("", "wb", compresslevel=5, fileobj=raw, mtime=0) as file:
        file.write(text.getbuffer())


def gold_clusters(ledger: Ledger, names: dict[str, list[str]]) -> list[dict[str, object]]:
    """Return the clusters as the verifier reads them."""
    return [
        {
            "id": f"c{number:02d}",
            "family": cluster.family,
            "subtype": cluster.subtype,
            "crude": cluster.crude,
            "rows": [
                {
                    "table": trace.table,
                    "_row_id": names[trace.table][trace.row],
                    "field": trace.field,
                    "original": trace.original,
                    "corrupted": trace.corrupted,
                }
                for trace in cluster.rows
            ],
        }
        for number, cluster in enumerate(ledger.clusters)
    ]
