"""Errors go into tables through the ledger: it knows every changed cell, every added row and what belongs together."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from categories.ehr_data_quality.catalogue import lab_items

INDEX = "_i"
"""The row's number in its table; it never leaves this package."""
EQUIVALENT = (
    {"mEq/L", "mmol/L", "mM"},
    {"K/uL", "10^3/uL"},
    {"IU/L", "U/L"},
    {"mg/dL", "MG/DL"},
    {"g/dL", "gm/dl", "g/dl"},
    {"ng/mL", "ug/L"},
    {"ug/mL", "mg/L"},
)
"""Unit labels of equal meaning and magnitude."""


@dataclass(frozen=True)
class Trace:
    """One row of a cluster; ``field`` is empty for a row that is evidence only."""

    table: str
    row: int
    field: str = ""
    original: str = ""
    corrupted: str = ""


@dataclass(frozen=True)
class Cluster:
    """One injected error: it counts as found when any of its rows is flagged."""

    family: str
    subtype: str
    rows: tuple[Trace, ...]
    crude: bool = False
    """Lies in the published benchmark's bands, which a one-line check finds; reported apart."""


@dataclass
class Ledger:
    """Tables of MIMIC-IV's shape, and what was done to them."""

    tables: dict[str, pl.DataFrame]
    strict: bool = True
    """Whether every error must find a place. Generated tables have room for all; real ones need not."""
    clusters: list[Cluster] = field(default_factory=list)
    taken: set[tuple[str, int]] = field(default_factory=set)
    """Rows that already belong to a cluster."""
    _edits: dict[tuple[str, str], dict[int, Any]] = field(default_factory=dict)
    _added: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tables = {
            name: table.with_row_index(INDEX).with_columns(pl.col(INDEX).cast(pl.Int64))
            for name, table in self.tables.items()
        }

    def short(self, what: str) -> None:
        """Say that errors of a kind found no place.

        Raises:
            ValueError: the ledger is strict.
        """
        if self.strict:
            raise ValueError(f"too little room for {what}")

    def row(self, table: str, row: int) -> dict[str, Any]:
        """Return a row as it was before this round of edits."""
        return self.tables[table].row(row, named=True)

    def free(self, table: str, rows: Iterable[int]) -> bool:
        """Tell whether none of the rows belongs to a cluster yet."""
        return all((table, row) not in self.taken for row in rows)

    def edit(self, table: str, row: int, **values: Any) -> None:
        """Change cells."""
        for column, value in values.items():
            self._edits.setdefault((table, column), {})[row] = value

    def add(self, table: str, values: dict[str, Any]) -> int:
        """Append a row that is complete in every column; return its number."""
        added = self._added.setdefault(table, [])
        number = self.tables[table].height + len(added)
        added.append({**values, INDEX: number})
        return number

    def record(self, cluster: Cluster) -> None:
        """Enter a cluster and reserve its rows."""
        self.clusters.append(cluster)
        self.taken |= {(trace.table, trace.row) for trace in cluster.rows}

    def flush(self) -> None:
        """Carry edits and additions out, so that the next injector sees them."""
        for name, rows in self._added.items():
            frame = self.tables[name]
            self.tables[name] = pl.concat([frame, pl.DataFrame(rows, schema=frame.schema)])
        for (name, column), cells in self._edits.items():
            frame = self.tables[name]
            change = pl.DataFrame(
                {INDEX: list(cells), "_new": pl.Series(list(cells.values()), dtype=frame.schema[column])}
            ).with_columns(_changed=pl.lit(value=True))
            self.tables[name] = (
                frame.join(change, on=INDEX, how="left", maintain_order="left")
                .with_columns(pl.when(pl.col("_changed")).then("_new").otherwise(column).alias(column))
                .drop("_new", "_changed")
            )
        self._edits.clear()
        self._added.clear()

    def unused(self, table: str, column: str, count: int, pick: Any) -> list[int]:
        """Return identifiers that no row carries, within the natural range."""
        present = set(self.tables[table][column].drop_nulls().to_list())
        low, high = min(present), max(present)
        found: list[int] = []
        while len(found) < count:
            number = int(pick.integers(low, high))
            if number not in present:
                present.add(number)
                found.append(number)
        return found


def decimals_of(table: pl.DataFrame, itemid: int) -> int:
    """Return how many decimals a column of results is printed with (the most frequent count)."""
    texts = table.filter((pl.col("itemid") == itemid) & pl.col("valuenum").is_not_null())["value"]
    places = texts.str.extract(r"\.(\d+)$").str.len_chars().fill_null(0)
    return int(places.value_counts(sort=True)[texts.name][0]) if len(places) else 0


def printed(value: float, decimals: int) -> tuple[str, float]:
    """Return a result as text and number, in the item's own format."""
    number = round(value, decimals) + 0.0
    return f"{number:.{decimals}f}", number


def flag_of(row: dict[str, Any], value: float, noise: bool = False) -> str:
    """Return the flag that the laboratory would set."""
    low, high = row["ref_range_lower"], row["ref_range_upper"]
    outside = (low is not None and value < low) or (high is not None and value > high)
    return "abnormal" if outside != noise else ""


def set_result(ledger: Ledger, table: str, row: int, value: float, decimals: int) -> Trace:
    """Change a result, its text and its flag together; return the trace of it."""
    old = ledger.row(table, row)
    text, number = printed(value, decimals)
    cells: dict[str, Any] = {"value": text, "valuenum": number}
    if "flag" in old:
        was = flag_of(old, old["valuenum"]) != (old["flag"] or "")
        cells["flag"] = flag_of(old, number, noise=was)
    ledger.edit(table, row, **cells)
    return Trace(table, row, "valuenum", str(old["value"]), text)


def equivalent(one: str, other: str) -> bool:
    """Tell whether two unit labels mean the same."""
    return one == other or any(one in group and other in group for group in EQUIVALENT)


def change_value(itemid: int) -> float:
    """Return the reference change value of an analyte as a fraction."""
    return next(item.reference_change for item in lab_items() if item.itemid == itemid)
