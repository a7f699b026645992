"""Read a submitted MEDS cohort as data: every file is brought into one form before two of them meet."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from verifiers_hidden.ehr_format_conversion.compare import as_texts, canonical, canonical_splits
from verifiers_hidden.ehr_format_conversion.parquet import MAX_COLUMNS, Budget, is_list, read_table
from verifiers_hidden.kit import Reason, Refused, read_json

MAX_FILES = 800
"""As many as a submission may have (``category.toml``)."""
MEDS = {"subject_id": pa.int64(), "time": pa.timestamp("us"), "code": pa.string(), "numeric_value": pa.float32()}
"""The mandatory columns of MEDS 0.3.3."""


@dataclass(frozen=True)
class Submitted:
    """A cohort as it was submitted, in the form of ``compare``."""

    events: pl.DataFrame
    codes: pl.DataFrame
    splits: pl.DataFrame
    dataset: dict[str, Any]
    shards: tuple[str, ...]
    """Data files below ``data/``, without their suffix."""
    faults: tuple[str, ...]
    """What is wrong with the form of the data files; empty for a valid MEDS data set."""


def read_cohort(folder: Path, max_rows: int) -> Submitted:
    """Read ``data/`` and ``metadata/`` of a cohort.

    Raises:
        Refused: something is missing, not parquet, of a type that cannot be compared, or larger than an answer can be.
    """
    files = _data_files(folder / "data")
    budget = Budget(max_rows)
    with submitted_work():
        frames, faults = [], []
        for path in files:
            table = read_table(path, budget)
            faults += [f"{path.name}: {fault}" for fault in _faults(table)]
            frames.append(canonical(_frame(table)))
        if len({name for frame in frames for name in frame.columns}) > MAX_COLUMNS:
            raise Refused(Reason.SCHEMA_MISMATCH, f"the data files have more than {MAX_COLUMNS} columns together")
        seen = pl.concat([frame.select(pl.col("subject_id").unique()) for frame in frames])
        if seen["subject_id"].drop_nulls().is_duplicated().any():
            faults.append("a subject stands in more than one data file")
        events = pl.concat(frames, how="diagonal")
        metadata = folder / "metadata"
        codes = as_texts(_frame(read_table(metadata / "codes.parquet", Budget(100_000), lists=True)))
        splits = canonical_splits(_frame(read_table(metadata / "subject_splits.parquet", Budget(100_000))))
    dataset = read_json(folder / "metadata" / "dataset.json", limit=1 << 16)
    if not isinstance(dataset, dict):
        raise Refused(Reason.BAD_SHAPE, "dataset.json holds no object")
    shards = tuple(path.relative_to(folder / "data").with_suffix("").as_posix() for path in files)
    return Submitted(events, codes, splits, dataset, shards, tuple(faults))


@contextmanager
def submitted_work() -> Iterator[None]:
    """Turn whatever the frame libraries cannot do with submitted values into a refusal."""
    errors = (pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException, ValueError, OverflowError)
    try:
        yield
    except errors as error:
        words = str(error).encode("ascii", "backslashreplace").decode()
        raise Refused(Reason.SCHEMA_MISMATCH, f"values that cannot be compared: {words}"[:300]) from None


def _data_files(folder: Path) -> list[Path]:
    found: list[Path] = []
    for parent, _, names in os.walk(folder, followlinks=False):
        found += [Path(parent) / name for name in names if name.endswith(".parquet")]
        if len(found) > MAX_FILES:
            raise Refused(Reason.TOO_MANY_FILES, f"data/ holds more than {MAX_FILES} parquet files")
    if not found:
        raise Refused(Reason.MISSING_SUBMISSION, "MEDS_cohort/data/ holds no parquet file")
    return sorted(found)


def _faults(table: pa.Table) -> list[str]:
    """Return what MEDS asks of a data file and this one has not."""
    faults = []
    for name, wanted in MEDS.items():
        if name not in table.column_names:
            raise Refused(Reason.MISSING_COLUMN, f"a data file has no column {name}")
        kind = table.schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        text = pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
        if kind != wanted and not (name == "code" and text):
            faults.append(f"column {name} is {kind}, MEDS asks for {wanted}"[:200])
    faults += [f"column {name} holds nulls" for name in ("subject_id", "code") if table[name].null_count]
    return faults


def _frame(table: pa.Table) -> pl.DataFrame:
    """Return a frame of plain types: dictionaries decoded, no zones (the instant stays), no decimals."""
    columns = []
    for field in table.schema:
        column = table[field.name]
        inner = _plain(field.type.value_type if is_list(field.type) else field.type)
        kind = pa.large_list(inner) if is_list(field.type) else inner
        columns.append(column if kind == field.type else column.cast(kind))
    frame = pl.from_arrow(pa.table(columns, schema=pa.schema(list(_fields(table, columns)))))
    if not isinstance(frame, pl.DataFrame):
        raise Refused(Reason.SCHEMA_MISMATCH, "a parquet file without columns")
    return frame


def _fields(table: pa.Table, columns: list[pa.ChunkedArray]) -> Iterator[pa.Field]:
    """Yield fields without the metadata by which a file could ask for types of its own."""
    for name, column in zip(table.column_names, columns, strict=True):
        yield pa.field(name, column.type)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit if kind.unit != "s" else "ms")
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        return pa.float64()
    return pa.large_string() if pa.types.is_string_view(kind) else kind
