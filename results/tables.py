"""A titled table of plain cells: what sections of reports and comparisons are made of."""

import math
from dataclasses import dataclass

Cell = str | int | float | None


@dataclass(frozen=True)
class Section:
    """A titled table; ``note`` says how to read it."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: list[tuple[Cell, ...]]


def points(low: float, high: float) -> str:
    """Return an interval of a difference in percentage points; with one cluster there is none."""
    return "not defined" if math.isnan(low) or math.isnan(high) else f"{100 * low:+.1f} to {100 * high:+.1f}"
