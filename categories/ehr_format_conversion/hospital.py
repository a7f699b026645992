"""Who was in hospital when: patients, admissions, transfers and ICU stays on which every other table hangs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from categories.ehr_format_conversion.files import Seconds, clock, day, distinct, document, pick

HOUR, DAY, YEAR = 3600, 86400, 31557600
MENUS: dict[str, list[str]] = document("vocabulary/menus.json")
Ints = NDArray[np.int64]
Rngs = Callable[..., np.random.Generator]


@dataclass(frozen=True)
class Spans:
    """Admissions or ICU stays as parallel arrays; times are seconds since 1970."""

    subject: Ints
    hadm: Ints
    stay: Ints
    """ICU stay id; zero for an admission as a whole."""
    start: Seconds
    end: Seconds

    def __len__(self) -> int:
        return len(self.subject)

    def repeat(self, counts: Ints) -> "Spans":
        """Return every span as often as its count says."""
        return Spans(*(np.repeat(part, counts) for part in (self.subject, self.hadm, self.stay, self.start, self.end)))

    def within(self, rng: np.random.Generator, step_s: int = 60) -> Seconds:
        """Return one time inside each span, on a grid of ``step_s``."""
        inside = self.start + (rng.random(len(self)) * (self.end - self.start)).astype(np.int64)
        return np.maximum(self.start, inside // step_s * step_s)


@dataclass(frozen=True)
class Hospital:
    """The drawn people and their stays, and the tables that state them."""

    admissions: Spans
    stays: Spans
    tables: dict[str, pl.DataFrame]


def draw_hospital(rngs: Rngs, patients: int) -> Hospital:
    """Draw the patients; the first comes to the ICU and the second dies in hospital, so that no table is empty."""
    rng = rngs("people")
    subject = np.sort(distinct(rng, patients, 10_000_000, 20_000_000))
    counts = 1 + np.minimum(rng.geometric(0.36, patients) - 1, 9)
    anchor_year = rng.integers(2110, 2196, patients)
    age = np.minimum(np.round(rng.normal(62, 16, patients)).astype(np.int64), 91)
    age = np.where(age < 18, 18 + age % 50, np.where(age == 90, 91, age))
    first = (anchor_year - 1970) * YEAR + rng.integers(0, YEAR, patients)
    admissions, died = _admissions(rngs("admissions"), subject, counts, first)
    stays = _icu_stays(rngs("stays"), admissions)
    dead_later = (rng.random(patients) < 0.16) & ~np.isin(subject, admissions.subject[died])
    last = np.array([admissions.end[admissions.subject == one].max() for one in subject])
    death = last + rng.integers(5, 365, patients) * DAY
    for one in np.flatnonzero(died):
        death[subject == admissions.subject[one]] = admissions.end[one]
    known = dead_later | np.isin(subject, admissions.subject[died])
    people = pl.DataFrame(
        {
            "subject_id": subject,
            "gender": pick(["F", "M"], rng.integers(0, 2, patients)),
            "anchor_age": age,
            "anchor_year": anchor_year,
            "anchor_year_group": pick(["2008 - 2010", "2011 - 2013", "2014 - 2016"], rng.integers(0, 3, patients)),
            "dod": day(death, known),
        }
    )
    tables = {
        "hosp/patients": people,
        "hosp/admissions": _admission_table(rngs("admission table"), admissions, died),
        "hosp/transfers": _transfers(rngs("transfers"), admissions, stays),
        "hosp/services": _services(rngs("services"), admissions),
        "icu/icustays": _stay_table(rngs("stay table"), stays),
    }
    return Hospital(admissions, stays, tables)


def _admissions(
    rng: np.random.Generator, subject: Ints, counts: Ints, first: Seconds
) -> tuple[Spans, NDArray[np.bool_]]:
    total = int(counts.sum())
    place = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    days = np.minimum(np.round(np.exp(rng.normal(1.9, 0.7, total)), 3), 45)
    length = (days * 1440).astype(np.int64) * 60 + 8 * HOUR
    gap = np.round(rng.exponential(130, total) * 1440).astype(np.int64) * 60 + 2 * DAY
    step = np.where(place == 0, 0, gap)
    start = np.empty(total, np.int64)
    for row in range(total):
        before = np.repeat(first, counts)[row] if place[row] == 0 else start[row - 1] + length[row - 1] + step[row]
        start[row] = before // 60 * 60
    last = place == np.repeat(counts, counts) - 1
    died = last & (rng.random(total) < 0.07)
    died[np.flatnonzero(last)[1]] = True
    hadm = distinct(rng, total, 20_000_000, 30_000_000)
    return Spans(np.repeat(subject, counts), hadm, np.zeros(total, np.int64), start, start + length), died


def _icu_stays(rng: np.random.Generator, admissions: Spans) -> Spans:
    chosen = rng.random(len(admissions)) < 0.5
    chosen[0] = True
    host = admissions.repeat(chosen.astype(np.int64))
    room = host.end - host.start
    start = host.start + (room * rng.uniform(0.01, 0.25, len(host))).astype(np.int64)
    end = start + np.maximum((room * rng.uniform(0.3, 0.7, len(host))).astype(np.int64), 5 * HOUR)
    stay = distinct(rng, len(host), 30_000_000, 40_000_000)
    return Spans(host.subject, host.hadm, stay, start, np.minimum(end, host.end))


def _admission_table(rng: np.random.Generator, spans: Spans, died: NDArray[np.bool_]) -> pl.DataFrame:
    n = len(spans)
    ed = rng.random(n) < 0.62
    registered = spans.start - rng.integers(2 * 60, 9 * 60, n) * 60
    return pl.DataFrame(
        {
            "subject_id": spans.subject,
            "hadm_id": spans.hadm,
            "admittime": clock(spans.start),
            "dischtime": clock(spans.end),
            "deathtime": clock(spans.end, died),
            "admission_type": some(rng, "admission_type", n),
            "admit_provider_id": providers(rng, n),
            "admission_location": some(rng, "admission_location", n),
            "discharge_location": pl.select(
                pl.when(pl.Series(died)).then(pl.lit("DIED")).otherwise(some(rng, "discharge_location", n, 0.2))
            ).to_series(),
            "insurance": some(rng, "insurance", n),
            "language": some(rng, "language", n),
            "marital_status": some(rng, "marital_status", n, 0.06),
            "race": some(rng, "race", n),
            "edregtime": clock(registered, ed),
            "edouttime": clock(spans.start + rng.integers(10, 300, n) * 60, ed),
            "hospital_expire_flag": died.astype(np.int64),
        }
    )


def _transfers(rng: np.random.Generator, admissions: Spans, stays: Spans) -> pl.DataFrame:
    """An arrival on a ward, the ICU where there was one, and the discharge, which has no care unit."""
    n, m = len(admissions), len(stays)
    subject = np.concatenate([admissions.subject, stays.subject, admissions.subject])
    seconds = np.concatenate([admissions.start, stays.start, admissions.end])
    ends = np.concatenate([admissions.end, stays.end, admissions.end])
    unit = pl.concat([some(rng, "ward", n), some(rng, "icu", m), pl.Series([None] * n, dtype=pl.String)])
    frame = pl.DataFrame(
        {
            "subject_id": subject,
            "hadm_id": np.concatenate([admissions.hadm, stays.hadm, admissions.hadm]),
            "transfer_id": distinct(rng, 2 * n + m, 30_000_000, 40_000_000),
            "eventtype": ["admit"] * n + ["transfer"] * m + ["discharge"] * n,
            "careunit": unit,
            "intime": clock(seconds),
            "outtime": clock(ends, np.arange(2 * n + m) < n + m),
        }
    )
    return frame.sort("subject_id", "intime", "transfer_id")


def _services(rng: np.random.Generator, admissions: Spans) -> pl.DataFrame:
    n = len(admissions)
    return pl.DataFrame(
        {
            "subject_id": admissions.subject,
            "hadm_id": admissions.hadm,
            "transfertime": clock(admissions.start + rng.integers(60, 900, n)),
            "prev_service": some(rng, "service", n, 0.8),
            "curr_service": some(rng, "service", n),
        }
    )


def _stay_table(rng: np.random.Generator, stays: Spans) -> pl.DataFrame:
    first = some(rng, "icu", len(stays))
    moved = pl.Series(rng.random(len(stays)) < 0.12)
    return pl.DataFrame(
        {
            "subject_id": stays.subject,
            "hadm_id": stays.hadm,
            "stay_id": stays.stay,
            "first_careunit": first,
            "last_careunit": pl.select(pl.when(moved).then(some(rng, "icu", len(stays))).otherwise(first)).to_series(),
            "intime": clock(stays.start),
            "outtime": clock(stays.end),
            "los": np.round((stays.end - stays.start) / DAY, 6),
        }
    )


def some(rng: np.random.Generator, menu: str, n: int, missing: float = 0.0) -> pl.Series:
    """Return values of a menu, the first ones most often, and nulls at the rate given."""
    weight = 1 / np.arange(1, len(MENUS[menu]) + 1) ** 1.3
    index = np.searchsorted(np.cumsum(weight / weight.sum())[:-1], rng.random(n)).astype(np.int64)
    return pick(MENUS[menu], index, rng.random(n) >= missing)


def providers(rng: np.random.Generator, n: int) -> pl.Series:
    return pick(PROVIDERS, rng.integers(0, len(PROVIDERS), n))


def provider(number: int) -> str:
    """Return a provider id in MIMIC's form: P, two digits, two letters, one digit."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return f"P{number * 37 % 100:02d}{letters[number * 11 % 26]}{letters[number * 5 % 26]}{number % 10}"


PROVIDERS = sorted({provider(number) for number in range(60)})
