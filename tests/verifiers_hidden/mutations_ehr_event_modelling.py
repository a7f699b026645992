"""Edits of the perfect submission and the reward each must earn."""

import csv
from collections.abc import Callable
from pathlib import Path

Rows = list[list[str]]
Edit = Callable[[Rows, Path], Rows]


def edited(edit: Edit) -> Callable[[Path, Path], None]:
    """Apply an edit to the records of ``predictions.csv``, header first."""

    def mutate(submission: Path, gold: Path) -> None:
        path = submission / "predictions.csv"
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(edit(rows, gold))

    return mutate


def text(change: Callable[[bytes], bytes]) -> Callable[[Path, Path], None]:
    def mutate(submission: Path, gold: Path) -> None:
        path = submission / "predictions.csv"
        path.write_bytes(change(path.read_bytes()))

    return mutate


def scores(change: Callable[[float], float]) -> Callable[[Path, Path], None]:
    def edit(rows: Rows, gold: Path) -> Rows:
        return [rows[0], *([p, t, f"{change(float(s)):.9f}"] for p, t, s in rows[1:])]

    return edited(edit)


def cell(column: int, value: str) -> Callable[[Path, Path], None]:
    def edit(rows: Rows, gold: Path) -> Rows:
        rows[1][column] = value
        return rows

    return edited(edit)


def each(column: int, change: Callable[[str], str]) -> Callable[[Path, Path], None]:
    def edit(rows: Rows, gold: Path) -> Rows:
        for row in rows[1:]:
            row[column] = change(row[column])
        return rows

    return edited(edit)


def swapped(rows: Rows, gold: Path) -> Rows:
    low, high = (pick(rows[1:], key=lambda row: float(row[2])) for pick in (min, max))
    low[2], high[2] = high[2], low[2]
    return rows


MUTATIONS: list[tuple[str, Callable[[Path, Path], None], int]] = [
    ("rows reversed", edited(lambda rows, gold: [rows[0], *rows[:0:-1]]), 1),
    ("columns reversed", edited(lambda rows, gold: [row[::-1] for row in rows]), 1),
    ("an extra column", edited(lambda rows, gold: [[*row, "x"] for row in rows]), 1),
    ("header in capitals", edited(lambda rows, gold: [[name.upper() for name in rows[0]], *rows[1:]]), 1),
    ("byte order mark and CRLF", text(lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")), 1),
    ("no final newline", text(lambda data: data.rstrip(b"\n")), 1),
    ("time with T", each(1, lambda value: value.replace(" ", "T")), 1),
    ("time without seconds", each(1, lambda value: value[:16]), 1),
    ("time with zero fractions", each(1, lambda value: value + ".000000"), 1),
    ("halved probabilities", scores(lambda p: p / 2), 1),
    ("square roots", scores(lambda p: p**0.5), 1),
    ("the largest and the smallest swapped", edited(swapped), 1),
    ("inverted", scores(lambda p: 1 - p), 0),
    ("constant", scores(lambda p: 0.1), 0),
    ("one row missing", edited(lambda rows, gold: rows[:-1]), 0),
    ("one row doubled", edited(lambda rows, gold: [*rows, rows[1]]), 0),
    ("one row doubled in another form", edited(lambda rows, gold: [*rows, [rows[1][0], rows[1][1][:16], "0.5"]]), 0),
    ("an unknown patient", edited(lambda rows, gold: [*rows, ["7", rows[1][1], "0.5"]]), 0),
    ("another time", cell(1, "2001-01-01 23:59:00"), 0),
    ("a date without time", cell(1, "2001-01-01"), 0),
    ("a time zone", each(1, lambda value: value + "+00:00"), 0),
    ("seconds that are not zero", each(1, lambda value: value[:17] + "30"), 0),
    ("an empty probability", cell(2, ""), 0),
    ("not a number", cell(2, "nan"), 0),
    ("infinite", cell(2, "1e999"), 0),
    ("negative", cell(2, "-0.000001"), 0),
    ("more than one", cell(2, "1.000001"), 0),
    ("a percentage", cell(2, "12%"), 0),
    ("a decimal comma", cell(2, "0,12"), 0),
    ("an underscore", cell(2, "0.1_2"), 0),
    ("Arabic digits", cell(2, "0.\u0661"), 0),
    ("an id with a point", each(0, lambda value: value + ".0"), 0),
    ("a column gone", edited(lambda rows, gold: [row[:2] for row in rows]), 0),
    ("a doubled column", edited(lambda rows, gold: [[*row, row[2]] for row in rows]), 0),
    ("semicolons", text(lambda data: data.replace(b",", b";")), 0),
    ("header only", edited(lambda rows, gold: rows[:1]), 0),
]
