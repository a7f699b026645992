"""Read a submitted MEDS cohort as data: parquet by its footer first, nothing decoded that could not be right."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from verifiers_hidden.kit import Reason, Refused, read_json

MAX_FILES = 200
MAX_COLUMNS = 64
MAX_FILE_BYTES = 256 << 20
MAX_DECODED_BYTES = 512 << 20
MEDS = {"subject_id": pa.int64(), "time": pa.timestamp("us"), "code": pa.string(), "numeric_value": pa.float32()}
"""The mandatory columns of MEDS 0.3.3."""


@dataclass(frozen=True)
class Submitted:
    """A cohort as it was submitted."""

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
    tables, faults, left = [], [], max_rows
    for path in files:
        table = _read(path, left)
        left -= table.num_rows
        faults += [f"{path.name}: {fault}" for fault in _faults(table)]
        tables.append(table)
    frames = [_frame(table) for table in tables]
    seen = pl.concat([frame.select(pl.col("subject_id").unique()) for frame in frames], how="vertical_relaxed")
    if seen["subject_id"].is_duplicated().any():
        faults.append("a subject stands in more than one data file")
    dataset = read_json(folder / "metadata" / "dataset.json", limit=1 << 16)
    if not isinstance(dataset, dict):
        raise Refused(Reason.BAD_SHAPE, "dataset.json holds no object")
    return Submitted(
        events=pl.concat(frames, how="diagonal_relaxed"),
        codes=_frame(_read(folder / "metadata" / "codes.parquet", 100_000, lists=True)),
        splits=_frame(_read(folder / "metadata" / "subject_splits.parquet", 100_000)),
        dataset=dataset,
        shards=tuple(path.relative_to(folder / "data").with_suffix("").as_posix() for path in files),
        faults=tuple(faults),
    )


def _data_files(folder: Path) -> list[Path]:
    found: list[Path] = []
    for parent, _, names in os.walk(folder, followlinks=False):
        found += [Path(parent) / name for name in names if name.endswith(".parquet")]
        if len(found) > MAX_FILES:
            raise Refused(Reason.TOO_MANY_FILES, f"data/ holds more than {MAX_FILES} parquet files")
    if not found:
        raise Refused(Reason.MISSING_SUBMISSION, "MEDS_cohort/data/ holds no parquet file")
    return sorted(found)


def _read(path: Path, max_rows: int, *, lists: bool = False) -> pa.Table:
    """Read one parquet file: footer first, texts as dictionaries, their decoded size judged before they are decoded."""
    _check_file(path)
    try:
        with pq.ParquetFile(path) as file:
            _check_footer(path, file, max_rows, lists=lists)
            leaves = [file.schema.column(at) for at in range(len(file.schema))]
            texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        # Without threads: one thread's memory is bounded by what the footer promised.
        table = pq.ParquetFile(path, read_dictionary=texts).read(use_threads=False)
        if _decoded_bytes(table) > MAX_DECODED_BYTES:
            raise Refused(Reason.TOO_LARGE, f"{path.name}: its texts decode to more than {MAX_DECODED_BYTES} bytes")
    except (pa.ArrowException, OSError, ValueError, NotImplementedError) as error:
        raise Refused(Reason.UNSUPPORTED_FORMAT, f"{path.name} is no readable parquet file: {error}"[:300]) from None
    return table


def _check_file(path: Path) -> None:
    try:
        seen = path.lstat()
    except FileNotFoundError:
        raise Refused(Reason.MISSING_SUBMISSION, f"{path.name} was not submitted") from None
    if stat.S_ISLNK(seen.st_mode):
        raise Refused(Reason.SYMLINK, f"{path.name} is a symbolic link")
    if not stat.S_ISREG(seen.st_mode):
        raise Refused(Reason.NOT_REGULAR_FILE, f"{path.name} is not a regular file")
    if seen.st_size == 0:
        raise Refused(Reason.EMPTY_SUBMISSION, f"{path.name} is empty")
    if seen.st_size > MAX_FILE_BYTES:
        raise Refused(Reason.TOO_LARGE, f"{path.name} has {seen.st_size} bytes")


def _check_footer(path: Path, file: pq.ParquetFile, max_rows: int, *, lists: bool) -> None:
    footer, schema = file.metadata, file.schema_arrow
    size = sum(footer.row_group(group).total_byte_size for group in range(footer.num_row_groups))
    if footer.num_rows > max_rows or size > MAX_DECODED_BYTES or footer.num_row_groups > 10_000:
        raise Refused(
            Reason.TOO_LARGE, f"{path.name}: {footer.num_rows} rows and {size} bytes are more than an answer has"
        )
    if len(schema) > MAX_COLUMNS or len(set(schema.names)) != len(schema):
        raise Refused(Reason.SCHEMA_MISMATCH, f"{path.name} has too many columns, or two of one name")
    for field in schema:
        kind = field.type.value_type if lists and _is_list(field.type) else field.type
        if not _comparable(kind):
            raise Refused(Reason.SCHEMA_MISMATCH, f"{path.name}: column {field.name} has the type {field.type}"[:300])


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _comparable(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = ("is_string", "is_large_string", "is_integer", "is_floating", "is_boolean", "is_timestamp", "is_null")
    return any(getattr(pa.types, test)(kind) for test in tests)


def _decoded_bytes(table: pa.Table) -> int:
    total = 0
    for column in table.columns:
        for chunk in column.chunks:
            values = chunk.values if _is_list(chunk.type) else chunk
            if pa.types.is_dictionary(values.type):
                lengths = pc.binary_length(values.dictionary).cast(pa.int64())
                total += pc.sum(lengths.take(values.indices.drop_null())).as_py() or 0
    return total


def _faults(table: pa.Table) -> list[str]:
    """Return what MEDS asks of a data file and this one has not."""
    faults = []
    for name, wanted in MEDS.items():
        if name not in table.column_names:
            raise Refused(Reason.MISSING_COLUMN, f"a data file has no column {name}")
        kind = table.schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if kind != wanted and not (name == "code" and pa.types.is_large_string(kind)):
            faults.append(f"column {name} is {kind}, MEDS asks for {wanted}")
    faults += [f"column {name} holds nulls" for name in ("subject_id", "code") if table[name].null_count]
    return faults


def _frame(table: pa.Table) -> pl.DataFrame:
    """Return a frame with its dictionaries decoded."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(field.type.value_type))
        elif _is_list(field.type) and pa.types.is_dictionary(field.type.value_type):
            table = table.set_column(
                at, field.name, table.column(at).cast(pa.large_list(field.type.value_type.value_type))
            )
    frame = pl.from_arrow(table)
    if not isinstance(frame, pl.DataFrame):
        raise Refused(Reason.SCHEMA_MISMATCH, "a parquet file without columns")
    return frame
