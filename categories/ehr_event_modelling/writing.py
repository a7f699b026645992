"""The files of a draw: one formatting for all rows, ids that are keyed and tell nothing."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np
import polars as pl

from categories.draw import Draw
from categories.ehr_event_modelling.cohort import Cohort
from categories.ehr_event_modelling.events import NO_END, Block
from categories.ehr_event_modelling.visits import DAY
from categories.ehr_event_modelling.vocabulary import Floats, Ints, Vocabulary

STAMP = "%Y-%m-%d %H:%M:%S"
VISIT_BITS = 30


class EventFile:
    """``events.csv``, written block by block; a context manager."""

    def __init__(self, draw: Draw, path: Path, vocabulary: Vocabulary, ids: Ints) -> None:
        self._path = path
        self._ids = ids
        self._visits = 0
        self._keys = draw.rng("visit ids").integers(1, 1 << (VISIT_BITS - 1), 4) * 2 + 1
        units = [""] * len(vocabulary.codes)
        for place, unit in enumerate(vocabulary.labs.units):
            units[vocabulary.lab_start + place] = unit
        self._codes = pl.Series(vocabulary.codes)
        self._tables = pl.Series(vocabulary.tables)
        self._units = pl.Series([unit or None for unit in units], dtype=pl.String)
        self._file: IO[bytes]

    def __enter__(self) -> Self:
        self._file = self._path.open("wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def write(self, block: Block) -> None:
        """Append a block; visit ids are a keyed permutation of the running number."""
        visit = np.where(block.visit >= 0, scramble(block.visit + self._visits, self._keys), -1)
        code = pl.Series(block.code)
        pl.DataFrame(
            {
                "patient_id": self._ids[block.patient],
                "start": _times(block.minute),
                "end": _times(block.end),
                "code": self._codes.gather(code),
                "value": pl.Series(block.value).fill_nan(None),
                "unit": self._units.gather(code),
                "visit_id": pl.select(
                    pl.when(pl.lit(pl.Series(visit)) >= 0).then(pl.lit(pl.Series(visit)))
                ).to_series(),
                "omop_table": self._tables.gather(code),
            }
        ).write_csv(self._file, include_header=self._file.tell() == 0, datetime_format=STAMP)
        self._visits += int(block.visit.max(initial=-1)) + 1


def scramble(number: Ints, keys: Ints) -> Ints:
    """Return a bijection on 30-bit integers: xor-shift and odd multiplication, keyed, no gap or order left."""
    mask = (1 << VISIT_BITS) - 1
    mixed = number & mask
    for key in keys:
        mixed = (mixed + key) & mask
        mixed = ((mixed ^ (mixed >> 15)) * key) & mask
        mixed = mixed ^ (mixed >> 13)
    return mixed


def _times(minute: Ints) -> pl.Series:
    """Return times to the second; ``NO_END`` is empty."""
    stamps = pl.Series(minute * 60_000_000).cast(pl.Datetime("us"))
    empty = pl.Series(minute == NO_END)
    return pl.select(pl.when(~pl.lit(empty)).then(pl.lit(stamps))).to_series()


def _examples(cohort: Cohort, rows: Ints) -> pl.DataFrame:
    patient, day, label = cohort.rows[rows].T
    return pl.DataFrame(
        {"patient_id": cohort.ids[patient], "prediction_time": _times(day * DAY + DAY - 1), "label": label}
    )


def write_examples(draw: Draw, path: Path, cohort: Cohort, rows: Ints, *, with_label: bool) -> None:
    """Write examples in a random order, so that neither ids nor places group them."""
    shuffled = draw.rng("order", path.name).permutation(rows)
    table = _examples(cohort, shuffled)
    (table if with_label else table.drop("label")).write_csv(path, datetime_format=STAMP)


def write_gold(path: Path, cohort: Cohort, rows: Ints, scores: Mapping[str, Floats]) -> None:
    """Write each test patient's label, true risk and the baselines' scores, to six decimals."""
    columns = {"risk": np.round(cohort.risk[rows], 6), **scores}
    table = _examples(cohort, rows).with_columns([pl.Series(name, column) for name, column in columns.items()])
    table.write_csv(path, datetime_format=STAMP)
