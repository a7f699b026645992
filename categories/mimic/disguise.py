"""Tables of MIMIC-IV under other names: people, stays and orders are numbered anew, each person's dates are shifted.

What a record says stays as it is; which record of the source it was can no longer be read off an identifier or a date.
All cells are text, as a reader of the CSV files finds them; empty cells are null.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl

from categories.draw import Draw

RANGES = {
    "subject_id": (10_000_000, 19_999_999),
    "hadm_id": (20_000_000, 29_999_999),
    "stay_id": (30_000_000, 39_999_999),
    "transfer_id": (30_000_000, 39_999_999),
    "specimen_id": (1, 99_999_999),
    "labevent_id": (1, 158_000_000),
    "pharmacy_id": (1, 99_999_999),
    "microevent_id": (1, 3_200_000),
    "micro_specimen_id": (1, 9_999_999),
    "orderid": (1, 9_999_999),
    "caregiver_id": (1, 99_999),
}
"""Kind of number -> the range in which the source numbers, roughly."""
SAME_KIND = {"linkorderid": "orderid"}
PERSON_FIRST = ("poe_id", "emar_id", "discontinue_of_poe_id", "discontinued_by_poe_id")
"""``<subject_id>-<number>``"""
PROVIDERS = ("admit_provider_id", "order_provider_id", "enter_provider_id", "provider_id")
QUADRENNIUM_DAYS, YEARS = 1461, 4
"""A shift by whole leap-year cycles keeps the calendar and every interval as they are."""
FIRST_YEAR, LAST_YEAR = 2104, 2196
"""Between two centuries that are no leap years; the source's own shifted dates lie there too."""
STAMP = "%Y-%m-%d %H:%M:%S"


def disguise(draw: Draw, tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Return the tables, all cells text, with new identifiers and shifted dates, in the same order and format."""
    numbers = _new_numbers(draw, tables)
    people = tables["patients"]["subject_id"]
    shifts = dict(zip(people, _shifts(draw, tables), strict=True))
    return {name: _disguised(draw, table, numbers, shifts) for name, table in tables.items()}


def _new_numbers(draw: Draw, tables: Mapping[str, pl.DataFrame]) -> dict[str, dict[str, str]]:
    """Return, by kind, the new number of every number in use."""
    found: dict[str, dict[str, str]] = {}
    for kind, (low, high) in RANGES.items():
        names = [kind, *(name for name, other in SAME_KIND.items() if other == kind)]
        columns = [table[name] for table in tables.values() for name in names if name in table.columns]
        if not columns:
            continue
        used = pl.concat([column.rename(kind) for column in columns]).drop_nulls().unique().sort().to_list()
        rng, fresh = draw.rng("numbers", kind), np.empty(0, np.int64)
        top = max(high, low + 4 * len(used))
        while len(fresh) < len(used):
            fresh = np.unique(np.concatenate([fresh, rng.integers(low, top, 2 * len(used) + 8)]))
        chosen = rng.permutation(fresh)[: len(used)]
        found[kind] = dict(zip(used, map(str, chosen.tolist()), strict=True))
    return found


def _shifts(draw: Draw, tables: Mapping[str, pl.DataFrame]) -> list[int]:
    """Return each person's shift in quadrennia; never none where the person's years leave a choice."""
    years = _years(tables)
    shifts = []
    for number, subject in enumerate(tables["patients"]["subject_id"]):
        low, high = years[subject]
        least, most = -((low - FIRST_YEAR) // YEARS), (LAST_YEAR - high) // YEARS
        choices = [n for n in range(least, most + 1) if n != 0] or [0]
        shifts.append(choices[int(draw.rng("shift", number).integers(len(choices)))])
    return shifts


def _years(tables: Mapping[str, pl.DataFrame]) -> dict[str, tuple[int, int]]:
    """Return the first and last year of each person, by anchor year and admissions."""
    patients, admissions = tables["patients"], tables["admissions"]
    anchor = patients.select("subject_id", year=pl.col("anchor_year").cast(pl.Int64))
    died = patients.select("subject_id", year=pl.col("dod").str.slice(0, 4).cast(pl.Int64))
    stays = [
        admissions.select("subject_id", year=pl.col(c).str.slice(0, 4).cast(pl.Int64))
        for c in ("admittime", "dischtime")
    ]
    both = pl.concat([anchor, died, *stays]).group_by("subject_id").agg(pl.min("year").alias("low"), pl.max("year"))
    return {subject: (low, high) for subject, low, high in both.select("subject_id", "low", "year").rows()}


def _disguised(
    draw: Draw, table: pl.DataFrame, numbers: Mapping[str, Mapping[str, str]], shifts: Mapping[str, int]
) -> pl.DataFrame:
    made = []
    for name in table.columns:
        column, kind = pl.col(name), SAME_KIND.get(name, name)
        if name in PERSON_FIRST:
            person = column.str.extract(r"^(\d+)-").replace_strict(dict(numbers["subject_id"]), default=None)
            column = pl.concat_str(person, column.str.extract(r"^\d+(-.*)$"))
        elif name in PROVIDERS:
            used = table[name].drop_nulls().unique().to_list()
            column = column.replace_strict(
                {one: _provider(draw, one) for one in used}, default=None, return_dtype=pl.String
            )
        elif kind in numbers:
            column = column.replace_strict(dict(numbers[kind]), default=None, return_dtype=pl.String)
        elif name == "anchor_year":
            column = (column.cast(pl.Int64) + YEARS * _shift_of(shifts)).cast(pl.String)
        elif "subject_id" in table.columns and _holds_dates(table[name]):
            column = _shifted(column, shifts)
        made.append(column.alias(name))
    return table.select(made)


def _provider(draw: Draw, name: str) -> str:
    return f"P{draw.opaque_id('provider', name, length=5).upper()}"


def _shift_of(shifts: Mapping[str, int]) -> pl.Expr:
    return pl.col("subject_id").replace_strict(dict(shifts), default=0, return_dtype=pl.Int64)


def _holds_dates(column: pl.Series) -> bool:
    """Whether all filled cells are dates, or times of day on a date."""
    filled = column.drop_nulls()
    return bool(len(filled)) and bool(filled.str.contains(r"^\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?$").all())


def _shifted(column: pl.Expr, shifts: Mapping[str, int]) -> pl.Expr:
    """Move every date of a column by its person's shift."""
    days = pl.duration(days=QUADRENNIUM_DAYS * _shift_of(shifts))
    time = (column.str.to_datetime(STAMP, strict=False) + days).dt.strftime(STAMP)
    date = (column.str.to_date("%Y-%m-%d", strict=False) + days).dt.strftime("%Y-%m-%d")
    return pl.coalesce(time, date)
