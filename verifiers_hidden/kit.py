"""What every verifier is made of: strict reading, a closed list of reasons, and a verdict in any case.

A verifier module has three functions::

    judge(submission: Path, gold: Path, rule: dict[str, float]) -> Verdict
    missing(gold: Path) -> tuple[float | None, dict[str, float]]
    perfect(gold: Path, out: Path) -> None

``submission`` is the collected ``/workspace/submission`` folder, ``missing`` the headline metric and the metrics of a
submission that cannot be measured, ``out`` an empty folder that becomes the perfect submission.

``judge`` raises ``Refused`` (by way of the readers below) for whatever is wrong with the submission, and
``GoldError`` for whatever is wrong with the gold: the first is reward 0 with a reason, the second no verdict at all.
"""

import csv
import hashlib
import io
import json
import math
import os
import re
import stat
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

MAX_TEXT_BYTES = 16 << 20
MAX_LINES = 2_000_000
MAX_JSON_DEPTH = 32
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
_INTEGER = re.compile(r"[+-]?\d{1,18}")


class Reason(StrEnum):
    """Why a reward is what it is. Closed: a verifier may use these and no others."""

    PASSED = "passed"
    BELOW_THRESHOLD = "below_threshold"
    MISSING_SUBMISSION = "missing_submission"
    EMPTY_SUBMISSION = "empty_submission"
    NO_RECORDS = "no_records"
    NOT_REGULAR_FILE = "not_regular_file"
    SYMLINK = "symlink"
    UNREADABLE = "unreadable"
    TOO_LARGE = "too_large"
    TOO_MANY_FILES = "too_many_files"
    NOT_UTF8 = "not_utf8"
    BAD_JSON = "bad_json"
    BAD_CSV = "bad_csv"
    BAD_TOKEN = "bad_token"  # noqa: S105 (a reason code)
    BAD_NUMBER = "bad_number"
    BAD_TYPE = "bad_type"
    BAD_SHAPE = "bad_shape"
    DUPLICATE_KEY = "duplicate_key"
    DUPLICATE_COLUMN = "duplicate_column"
    MISSING_COLUMN = "missing_column"
    NON_FINITE = "non_finite"
    OUT_OF_RANGE = "out_of_range"
    MISSING_KEYS = "missing_keys"
    UNKNOWN_KEYS = "unknown_keys"
    SCHEMA_MISMATCH = "schema_mismatch"
    UNSUPPORTED_FORMAT = "unsupported_format"
    UNPARSED = "unparsed"
    CHECK_FAILED = "check_failed"


class Refused(Exception):  # noqa: N818 (it is a verdict, not an error)
    """The submission broke a rule of the instruction."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class GoldError(Exception):
    """The gold is missing or damaged: no verdict, the trial is broken, not failed."""


@dataclass(frozen=True)
class Verdict:
    """The JSON document that leaves the verifier (the fields of ``results.records.Verdict``)."""

    reward: int
    reason: Reason
    headline: float | None
    metrics: dict[str, float]
    message: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return plain data; numbers that are not finite are a fault of the verifier and raise."""
        if any(not math.isfinite(value) for value in self.metrics.values()):
            raise ValueError(f"metrics must be finite: {self.metrics}")
        return {
            "schema_version": 1,
            "reward": int(self.reward),
            "reason": str(self.reason),
            "message": self.message,
            "headline": self.headline,
            "metrics": {name: float(value) for name, value in self.metrics.items()},
            "details": self.details,
        }


def read_bytes(path: Path, *, limit: int = MAX_TEXT_BYTES) -> bytes:
    """Read a submitted file: regular, no link followed, its size judged before it is opened for reading."""
    try:
        seen = path.lstat()
    except FileNotFoundError:
        raise Refused(Reason.MISSING_SUBMISSION, f"{path.name} was not submitted") from None
    except OSError as error:
        raise Refused(Reason.UNREADABLE, f"{path.name}: {error.strerror}") from None
    if stat.S_ISLNK(seen.st_mode):
        raise Refused(Reason.SYMLINK, f"{path.name} is a symbolic link")
    if not stat.S_ISREG(seen.st_mode):
        raise Refused(Reason.NOT_REGULAR_FILE, f"{path.name} is not a regular file")
    if seen.st_size > limit:
        raise Refused(Reason.TOO_LARGE, f"{path.name} has {seen.st_size} bytes, more than the {limit} allowed")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise Refused(Reason.UNREADABLE, f"{path.name}: {error.strerror}") from None
    if not data:
        raise Refused(Reason.EMPTY_SUBMISSION, f"{path.name} is empty")
    return data


def read_text(path: Path, *, limit: int = MAX_TEXT_BYTES) -> str:
    """Read UTF-8 text. A byte order mark, CRLF and lone CR are accepted; NUL bytes and UTF-16 are not."""
    data = read_bytes(path, limit=limit)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused(Reason.NOT_UTF8, f"{path.name} is not UTF-8 text") from None
    if "\x00" in text:
        raise Refused(Reason.NOT_UTF8, f"{path.name} holds NUL characters")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.count("\n") > MAX_LINES:
        raise Refused(Reason.TOO_LARGE, f"{path.name} has more than {MAX_LINES} lines")
    return text


def read_lines(path: Path, *, limit: int = MAX_TEXT_BYTES) -> list[str]:
    """Return the lines that say something: blank lines and those that begin with ``#`` are left out, ends trimmed."""
    lines = (line.strip(" \t") for line in read_text(path, limit=limit).split("\n"))
    kept = [line for line in lines if line and not line.startswith("#")]
    if not kept:
        raise Refused(Reason.NO_RECORDS, f"{path.name} holds no entries")
    return kept


def read_json(path: Path, *, limit: int = MAX_TEXT_BYTES) -> Any:
    """Read one JSON document: duplicate names, NaN, deep nesting and huge integers are refused."""
    text = read_text(path, limit=limit)
    if _depth(text) > MAX_JSON_DEPTH:
        raise Refused(Reason.BAD_JSON, f"{path.name} is nested deeper than {MAX_JSON_DEPTH} levels")
    try:
        return json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_small_integer, parse_float=finite
        )
    except (json.JSONDecodeError, RecursionError) as error:
        raise Refused(Reason.BAD_JSON, f"{path.name} is not valid JSON: {error}") from None


def _depth(text: str) -> int:
    """Return the deepest nesting in one pass: a regular expression for strings can take quadratic time."""
    level = deepest = 0
    in_string = escaped = False
    for mark in text:
        if in_string:
            in_string = escaped or mark != '"'
            escaped = mark == "\\" and not escaped
        elif mark == '"':
            in_string = True
        elif mark in "[{":
            level += 1
            deepest = max(deepest, level)
        elif mark in "]}":
            level -= 1
    return deepest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise Refused(Reason.BAD_JSON, "a name stands twice in one JSON object")
    return result


def _no_constant(token: str) -> float:
    raise Refused(Reason.NON_FINITE, f"{token} is not a number")


def _small_integer(token: str) -> int:
    return integer(token)


def read_csv(
    path: Path, *, columns: tuple[str, ...], aliases: dict[str, str] | None = None, limit: int = MAX_TEXT_BYTES
) -> list[dict[str, str]]:
    """Read a comma-separated table as text. Extra and re-ordered columns are accepted, header case and blanks ignored.

    Quotes as in RFC 4180. A row with another number of cells than the header, a missing or doubled column is refused.
    """
    text = read_text(path, limit=limit)
    try:
        rows = [row for row in csv.reader(io.StringIO(text), strict=True) if any(cell.strip(" \t") for cell in row)]
    except csv.Error as error:
        raise Refused(Reason.BAD_CSV, f"{path.name}: {error}") from None
    if not rows:
        raise Refused(Reason.NO_RECORDS, f"{path.name} holds no header")
    header = [cell.strip().lower() for cell in rows[0]]
    header = [(aliases or {}).get(name, name) for name in header]
    for name in columns:
        if header.count(name) > 1:
            raise Refused(Reason.DUPLICATE_COLUMN, f"{path.name}: column {name} stands twice")
        if name not in header:
            raise Refused(Reason.MISSING_COLUMN, f"{path.name}: no column {name}")
    places = {name: header.index(name) for name in columns}
    table = []
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise Refused(Reason.BAD_CSV, f"{path.name}: record {number}: {len(row)} cells, header {len(header)}")
        table.append({name: row[place].strip(" \t") for name, place in places.items()})
    if not table:
        raise Refused(Reason.NO_RECORDS, f"{path.name} holds a header and no rows")
    return table


def token(text: str, *, pattern: str, what: str) -> str:
    """Return an ASCII token that matches the pattern as a whole."""
    if not text.isascii() or not re.fullmatch(pattern, text):
        raise Refused(Reason.BAD_TOKEN, f"{what}: {text[:60]!r} is not of the form asked for")
    return text


def integer(text: str) -> int:
    """Return a plain ASCII integer of at most 18 digits."""
    if not text.isascii() or not _INTEGER.fullmatch(text):
        raise Refused(Reason.BAD_NUMBER, f"{text[:60]!r} is not an integer")
    return int(text)


def finite(text: str) -> float:
    """Return a finite number written in ASCII digits with a point."""
    if text.strip().lower().lstrip("+-") in ("nan", "inf", "infinity", ""):
        raise Refused(Reason.NON_FINITE, f"{text[:60]!r} is not a finite number")
    if not text.isascii() or not _NUMBER.fullmatch(text):
        raise Refused(Reason.BAD_NUMBER, f"{text[:60]!r} is not a number")
    value = float(text)
    if not math.isfinite(value):
        raise Refused(Reason.NON_FINITE, f"{text[:60]!r} is not a finite number")
    return value


def check_seal(gold: Path) -> None:
    """Raise ``GoldError`` unless every file of the gold is as it was staged."""
    sealed = gold_json(gold / "sha256.json")
    for name, digest in sealed.items():
        try:
            found = hashlib.sha256((gold / name).read_bytes()).hexdigest()
        except OSError as error:
            raise GoldError(f"gold {name}: {error.strerror}") from error
        if found != digest:
            raise GoldError(f"gold {name} is not what was staged")


def gold_json(path: Path) -> Any:
    """Read a gold document; whatever is wrong with it is the suite's fault."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GoldError(f"gold {path.name}: {error}") from error
