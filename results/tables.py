"""A titled table of plain cells: what sections of reports and comparisons are made of."""

from dataclasses import dataclass

Cell = str | int | float | None


@dataclass(frozen=True)
class Section:
    """A titled table; ``note`` says how to read it."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
