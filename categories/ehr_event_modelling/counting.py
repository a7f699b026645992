"""What the gate counts: codes, their ancestors in ICD-10 and deciles of values, each by how long before the prediction.

The form is that of FEMR's count features, which EHRSHOT's baseline uses: ontology expansion, time bins, deciles of
numeric values. Of the ontology only what a code itself shows is used: ``I25.10`` counts for ``I25.1`` and ``I25``.
Deciles enter as their mean in each time bin, a column for an item and not ten.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from categories.ehr_event_modelling.vocabulary import Floats, Ints

BINS_DAYS = (365,)
"""Borders between the time bins, days before the prediction; the last bin is open."""
DECILES = 10
PARTS = DECILES + 1
"""A code is counted in parts: without a value, and in each decile of its values."""
HIERARCHIES = ("ICD10CM/", "ICD10PCS/")
SEEN_BY = 20
"""A column that fewer examples fill is left out."""
CATEGORY = 3
"""Characters of the highest ancestor."""


@dataclass(frozen=True)
class Counting:
    """Which codes there are and where the deciles of their values lie."""

    codes: tuple[str, ...]
    borders: Floats
    """(codes, 9) values; not a number where a code has none."""
    seen_by: int = SEEN_BY

    @classmethod
    def of(cls, codes: Sequence[str], code: Ints, value: Floats) -> "Counting":
        """Take the deciles from a sample of events: ``code`` their places in ``codes``, ``value`` NaN for none."""
        known = np.isfinite(value)
        code, value = code[known], value[known]
        order = np.lexsort((value, code))
        first, after = (np.searchsorted(code[order], np.arange(len(codes)), side) for side in ("left", "right"))
        at = first[:, None] + np.arange(1, DECILES) * (after - first)[:, None] // DECILES
        borders = np.full(at.shape, np.nan)
        borders[after > first] = value[order][at[after > first]]
        return cls(tuple(codes), borders)

    @property
    def width(self) -> int:
        """Return the number of cells."""
        return (len(BINS_DAYS) + 1) * len(self.codes) * PARTS

    def cells(self, code: Ints, value: Floats, days: Floats) -> Ints:
        """Return the cell of each event, by time bin, code and part; ``days`` are those before the prediction."""
        above = np.isfinite(value).astype(np.int64)
        for borders in self.borders.T:
            above += borders[code] <= value
        found: Ints = (np.searchsorted(BINS_DAYS, days, side="left") * len(self.codes) + code) * PARTS + above
        return found

    def per_code(self, cells: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return (examples, codes): how often each code stands in the whole history."""
        codes = np.arange(self.width) // PARTS % len(self.codes)
        return sparse.csr_matrix(cells @ _membership(np.arange(self.width), codes, len(self.codes)))

    def features(self, cells: sparse.csr_matrix, age_y: Floats) -> sparse.csr_matrix:
        """Return (examples, features): age in whole years; by time bin counts of codes and ancestors, mean deciles.

        A column that hardly any example fills is left out.
        """
        sums, size = self._sums(), len(self.codes) * PARTS
        columns = [sparse.csr_matrix(np.floor(age_y)[:, None])]
        for first in range(0, self.width, size):
            part = cells[:, first : first + size]
            columns += [part @ sums, self._mean_deciles(part)]
        everything = sparse.hstack(columns, format="csr", dtype=np.float32)
        return everything[:, everything.getnnz(axis=0) >= self.seen_by]

    def _sums(self) -> sparse.csr_matrix:
        """Return (codes x parts, columns): which codes and ancestors a cell of a time bin counts for."""
        cell = np.arange(len(self.codes) * PARTS)
        families = _families(self.codes)
        members = [(np.array(family)[:, None] * PARTS + np.arange(PARTS)).ravel() for family in families]
        family = np.repeat(np.arange(len(families)), [len(cells) for cells in members])
        columns = np.concatenate([cell // PARTS, len(self.codes) + family])
        return _membership(np.concatenate([cell, *members]), columns, len(self.codes) + len(families))

    def _mean_deciles(self, part: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return (examples, codes with values): the mean decile, 1 to 10, of a code's values in a time bin."""
        valued = np.flatnonzero(np.isfinite(self.borders[:, 0]))
        cells = valued[:, None] * PARTS + np.arange(1, PARTS)
        code = np.repeat(np.arange(len(valued)), DECILES)
        number = part[:, cells.ravel()] @ _membership(np.arange(len(code)), code, len(valued))
        deciles = np.tile(np.arange(1.0, PARTS), len(valued))
        total = part[:, cells.ravel()] @ _membership(np.arange(len(code)), code, len(valued), deciles)
        # a sum that is filled has a number: both hold the same places
        number.sort_indices()
        total.sort_indices()
        total.data = total.data / number.data
        return sparse.csr_matrix(total)


def _membership(rows: Ints, columns: Ints, width: int, weight: Floats | None = None) -> sparse.csr_matrix:
    """Return a matrix of ones, or of weights, at the given places."""
    data = np.ones(len(rows)) if weight is None else weight
    return sparse.csr_matrix((data, (rows, columns)), shape=(int(rows.max(initial=-1)) + 1, width))


def _families(codes: Sequence[str]) -> list[list[int]]:
    """Return the places of the codes below each ancestor that has two of them or more."""
    found: dict[str, list[int]] = {}
    for place, code in enumerate(codes):
        hierarchy, _, name = code.partition("/")
        if code.startswith(HIERARCHIES):
            name = name.replace(".", "")
            for length in range(CATEGORY, len(name)):
                found.setdefault(f"{hierarchy}/{name[:length]}", []).append(place)
    return [places for places in found.values() if len(places) > 1]


@dataclass
class Counter:
    """Collects counts example by example."""

    counting: Counting
    rows: list[int] = field(default_factory=list)
    cells: list[Ints] = field(default_factory=list)
    counts: list[Ints] = field(default_factory=list)

    def add(self, row: int, code: Ints, value: Floats, days: Floats) -> None:
        """Count the events of an example's history."""
        seen, count = np.unique(self.counting.cells(code, value, days), return_counts=True)
        self.rows.append(row)
        self.cells.append(seen.astype(np.int32))
        self.counts.append(count.astype(np.int32))

    def matrix(self, rows: int) -> sparse.csr_matrix:
        """Return (rows, cells) counts."""
        at = np.repeat(np.array(self.rows, dtype=np.int32), [len(cells) for cells in self.cells])
        places = (at, np.concatenate(self.cells))
        return sparse.csr_matrix((np.concatenate(self.counts), places), shape=(rows, self.counting.width))
