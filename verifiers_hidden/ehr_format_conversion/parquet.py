"""Read a submitted parquet file within bounds: footer first, texts as dictionaries, under a memory limit."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from verifiers_hidden.kit import Reason, Refused, read_bytes

MAX_COLUMNS = 64
MAX_VALUES = 2_000_000
"""Values in the lists of a metadata file."""
MAX_FILE_BYTES = 256 << 20
MAX_DECODED_BYTES = 256 << 20
"""Of all files read within one budget."""
MEMORY = 1 << 30
"""What decoding one file may make the process grow by: no footer says what a page unpacks to."""
STATM = Path("/proc/self/statm")
SIMPLE = (
    "is_string",
    "is_large_string",
    "is_string_view",
    "is_integer",
    "is_floating",
    "is_decimal",
    "is_boolean",
    "is_timestamp",
    "is_null",
)


@dataclass
class Budget:
    """What the files still to be read may hold together."""

    rows: int
    nbytes: int = MAX_DECODED_BYTES


def read_table(path: Path, budget: Budget, *, lists: bool = False) -> pa.Table:
    """Read one parquet file and take what it holds from the budget; its texts stay dictionaries.

    Raises:
        Refused: it is missing, no parquet, no UTF-8, of a type that cannot be compared, or larger than an answer is.
    """
    source = pa.BufferReader(read_bytes(path, limit=MAX_FILE_BYTES))
    try:
        with memory_limit(MEMORY):
            file = pq.ParquetFile(source, pre_buffer=False)
            _check_footer(path, file, budget, lists=lists)
            leaves = [file.schema.column(at) for at in range(len(file.schema))]
            texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
            table = pq.ParquetFile(source, read_dictionary=texts, pre_buffer=False).read(use_threads=False)
        if sum(len(chunk.values) for chunk in _lists(table)) > MAX_VALUES:
            raise Refused(Reason.TOO_LARGE, f"{path.name}: more than {MAX_VALUES} values in columns of lists")
        budget.rows -= table.num_rows
        budget.nbytes -= _decoded_bytes(table)
        if budget.rows < 0 or budget.nbytes < 0:
            raise Refused(Reason.TOO_LARGE, f"{path.name}: the texts up to it decode to more than an answer has")
    except (MemoryError, pa.ArrowMemoryError):
        raise Refused(Reason.TOO_LARGE, f"{path.name} unpacks to more than {MEMORY} bytes") from None
    except (pa.ArrowException, OSError, ValueError, NotImplementedError, OverflowError) as error:
        raise Refused(Reason.UNSUPPORTED_FORMAT, f"{path.name} is no readable parquet file: {error}"[:300]) from None
    return _valid(path, table)


@contextmanager
def memory_limit(more: int) -> Iterator[None]:
    """Let the process take no more than so many further bytes: what asks for them gets an error, not the machine's.

    Arrow's allocator reserves a gigabyte with the first byte asked of it, within which no limit is felt: that is made
    to happen before, so that it is not mistaken for what a file needs.
    """
    pa.allocate_buffer(1 << 20)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    held = int(STATM.read_text().split()[0]) * resource.getpagesize()
    wanted = [limit for limit in (soft, held + more) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _check_footer(path: Path, file: pq.ParquetFile, budget: Budget, *, lists: bool) -> None:
    footer, schema = file.metadata, file.schema_arrow
    if len(schema) > MAX_COLUMNS or len(file.schema) > MAX_COLUMNS or len(set(schema.names)) != len(schema):
        raise Refused(Reason.SCHEMA_MISMATCH, f"{path.name} has too many columns, or two of one name")
    # Columns of a row group are not looked at: pyarrow ends the whole process where one's statistics are damaged.
    sizes = [footer.row_group(number).total_byte_size for number in range(min(footer.num_row_groups, 10_001))]
    if len(sizes) > 10_000 or footer.num_rows > budget.rows or sum(sizes) > MAX_DECODED_BYTES:
        words = f"{footer.num_rows} rows and {sum(sizes)} bytes"
        raise Refused(Reason.TOO_LARGE, f"{path.name}: {words} are more than an answer has")
    if min([footer.num_rows, *sizes]) < 0:
        raise Refused(Reason.UNSUPPORTED_FORMAT, f"{path.name}: its footer holds a negative size")
    for field in schema:
        if not _comparable(field.type.value_type if lists and is_list(field.type) else field.type):
            raise Refused(Reason.SCHEMA_MISMATCH, f"{path.name}: column {field.name} has the type {field.type}"[:300])


def is_list(kind: pa.DataType) -> bool:
    """Tell whether a column holds lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _lists(table: pa.Table) -> list[pa.Array]:
    return [chunk for column in table.columns if is_list(column.type) for chunk in column.chunks]


def _comparable(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(getattr(pa.types, test)(kind) for test in SIMPLE)


def _decoded_bytes(table: pa.Table) -> int:
    total = 0
    for column in table.columns:
        for chunk in column.chunks:
            values = chunk.values if is_list(chunk.type) else chunk
            if pa.types.is_dictionary(values.type) and not pa.types.is_primitive(values.type.value_type):
                lengths = pc.binary_length(values.dictionary).cast(pa.int64())
                total += pc.sum(lengths.take(values.indices.drop_null())).as_py() or 0
    return total


def _valid(path: Path, table: pa.Table) -> pa.Table:
    """Return the table if all that it promises holds: parquet keeps texts as bytes that nobody has looked at."""
    for field, column in zip(table.schema, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowException as error:
            reason = Reason.NOT_UTF8 if "UTF8" in str(error) else Reason.UNSUPPORTED_FORMAT
            raise Refused(reason, f"{path.name}: column {field.name}: {error}"[:300]) from None
    return table
