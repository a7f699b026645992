"""Text files of the raw input: the same bytes for the same rows, on any machine."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

HERE = Path(__file__).parent
Seconds = NDArray[np.int64]


def vocabulary(name: str) -> list[dict[str, str]]:
    """Return the rows of ``vocabulary/<name>.csv``, all cells as text."""
    with (HERE / "vocabulary" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def document(name: str) -> Any:
    """Return a JSON document of this folder."""
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def write_csv(frame: pl.DataFrame, path: Path) -> None:
    """Write a table; compressed, with no time stamp in it, where the name ends in ``.gz``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = frame.write_csv(line_terminator="\n").encode()
    path.write_bytes(gzip.compress(data, compresslevel=4, mtime=0) if path.suffix == ".gz" else data)


def clock(seconds: Seconds, known: NDArray[np.bool_] | None = None) -> pl.Series:
    """Return ``YYYY-mm-dd HH:MM:SS`` texts of seconds since 1970; null where the time is not known."""
    text = pl.from_epoch(pl.Series(seconds), "s").dt.strftime("%Y-%m-%d %H:%M:%S")
    return text if known is None else pl.select(pl.when(pl.Series(known)).then(text)).to_series()


def day(seconds: Seconds, known: NDArray[np.bool_] | None = None) -> pl.Series:
    """Return ``YYYY-mm-dd`` texts of seconds since 1970."""
    return clock(seconds, known).str.slice(0, 10)


def pick(values: list[str], index: NDArray[np.int64], known: NDArray[np.bool_] | None = None) -> pl.Series:
    """Return the value at each index; null where it is not known."""
    text = pl.Series(values, dtype=pl.String).gather(pl.Series(index))
    return text if known is None else pl.select(pl.when(pl.Series(known)).then(text)).to_series()


def distinct(rng: np.random.Generator, count: int, low: int, high: int) -> NDArray[np.int64]:
    """Return ``count`` different integers of ``[low, high)`` in random order."""
    found = np.unique(rng.integers(low, high, size=2 * count + 16))
    return rng.permutation(found)[:count].astype(np.int64)


def decimals(values: NDArray[np.float64], places: NDArray[np.int64]) -> pl.Series:
    """Return plain decimal texts with as many places as each item is reported with."""
    texts = [f"{value:.{place}f}" for value, place in zip(values.tolist(), places.tolist(), strict=True)]
    return pl.Series(texts, dtype=pl.String)
