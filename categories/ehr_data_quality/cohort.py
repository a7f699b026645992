"""The people: who they are, when they are in hospital, and which latent states their bodies go through."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from categories.draw import Draw
from categories.ehr_data_quality.catalogue import DRIVERS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
DAY = 1440
KNOT = 360
"""Minutes between two knots of a latent state."""


@dataclass(frozen=True)
class Size:
    """How large the world is at one scale; medians in days."""

    patients: int
    admissions: int
    stays: int
    icu_days: float
    icu_spread: float
    ward_days: float


SIZES = {"full": Size(100, 262, 142, 4.5, 0.72, 3.2), "small": Size(60, 76, 40, 0.68, 0.25, 1.5)}
EPISODES = {"gly": 0.018, "nat": 0.022, "kal": 0.016, "leu": 0.009, "war": 0.016, "ble": 0.03, "shk": 0.014}
"""Share of the admissions in which a rare but natural derangement happens."""


def quantise(values: Floats, decimals: int = 6) -> Floats:
    """Drop the last bits, in which processors differ, before a value decides anything."""
    return np.asarray(np.round(values, decimals))


def spread(rng: np.random.Generator, count: int, median: float, sd: float, low: float, high: float) -> Floats:
    """Return log-normal durations on a permuted grid of quantiles: their sum hardly depends on the seed."""
    grid = (rng.permutation(count) + 0.5) / count
    return quantise(np.clip(median * np.exp(sd * ndtri(grid)), low, high), 4)


@dataclass
class Cohort:
    """Arrays over patients (``p_``), admissions (``a_``) and ICU stays (``s_``); times in minutes since 1970."""

    male: Bools
    age: Ints
    subject: Ints
    year: Ints
    height: Floats
    """cm"""
    weight: Floats
    """kg"""
    dod: Ints
    """Minute of death, -1 for the living."""
    a_patient: Ints
    a_id: Ints
    a_start: Ints
    a_end: Ints
    a_dead: Bools
    s_adm: Ints
    s_id: Ints
    s_in: Ints
    s_out: Ints
    s_vent: Ints
    """Minutes of ventilation from the start of the stay; 0 = never."""
    dialysis: Bools
    """Over admissions."""
    marks: dict[str, Bools] = field(default_factory=dict)
    """Traits of patients that the tables show: sex tests, drugs, devices, history."""
    knots: Floats = field(default_factory=lambda: np.zeros((0, len(DRIVERS))))
    knot_at: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    episode: dict[str, Ints] = field(default_factory=dict)
    """Name of a derangement -> admissions in which it happens."""

    def state(self, admission: Ints, minute: Ints) -> Floats:
        """Return the latent states [n, drivers] of admissions at minutes, linear between the knots."""
        place = np.maximum(minute - self.a_start[admission], 0) / KNOT
        last = np.append(self.knot_at[1:], len(self.knots))[admission] - self.knot_at[admission] - 2
        low = np.minimum(place.astype(np.int64), last)
        share = np.minimum(place - low, 1.0)[:, None]
        first = self.knot_at[admission] + low
        return np.asarray(self.knots[first] * (1 - share) + self.knots[first + 1] * share)


def load(states: Floats, loads: dict[str, float]) -> Floats:
    """Return the summed effect of the latent states, one driver after the other (no BLAS: same bits everywhere)."""
    total = np.zeros(len(states))
    for name, weight in loads.items():
        total += weight * states[:, DRIVERS.index(name)]
    return total


def make_cohort(draw: Draw) -> Cohort:
    """Draw the people and their courses."""
    size = SIZES[draw.scale]
    people = _people(draw.rng("people"), size)
    visits = _visits(draw.rng("visits"), size, people)
    cohort = Cohort(**people, **visits)
    _courses(draw.rng("courses"), cohort)
    _ventilation(draw.rng("ventilation"), cohort)
    _marks(draw.rng("marks"), cohort)
    return cohort


def _people(rng: np.random.Generator, size: Size) -> dict[str, Any]:
    n = size.patients
    age = np.clip(np.round(62 + 17 * ndtri((rng.permutation(n) + 0.5) / n)), 18, 97).astype(np.int64)
    age[age > 89] = 91  # MIMIC-IV groups everybody above 89
    male = rng.permutation(n) < round(0.54 * n)
    height = quantise(np.where(male, rng.normal(175.5, 7, n), rng.normal(161.5, 6.5, n)), 0)
    weight = quantise(np.clip((height / 100) ** 2 * np.exp(rng.normal(3.33, 0.2, n)), 42, 190), 1)
    return {
        "male": male,
        "age": age,
        "subject": 10_000_000 + rng.choice(9_999_999, n, replace=False),
        "year": rng.integers(2110, 2200, n),
        "height": np.clip(height, 145, 200),
        "weight": weight,
    }


def _visits(rng: np.random.Generator, size: Size, people: dict[str, Any]) -> dict[str, Any]:
    """Admissions one after another, ICU stays inside them, deaths at the end of the last."""
    n, count = size.patients, size.admissions
    extra = rng.choice(n, count - n, p=_shares(rng, n))
    patient = np.sort(np.concatenate([np.arange(n), extra])).astype(np.int64)
    icu = np.zeros(count, dtype=bool)
    icu[rng.choice(count, size.stays, replace=False)] = True
    icu_days = np.zeros(count)
    icu_days[icu] = spread(rng, size.stays, size.icu_days, size.icu_spread, 0.5, 21)
    los = icu_days + spread(rng, count, size.ward_days, 0.7, 0.7, 30)
    minutes = np.round(los * DAY).astype(np.int64)
    gap = np.round((2 + rng.exponential(120, count)) * DAY).astype(np.int64)
    start = np.zeros(count, dtype=np.int64)
    for a in range(count):
        if a == 0 or patient[a] != patient[a - 1]:
            year = int(people["year"][patient[a]]) - 1970
            start[a] = year * 365 * DAY + year // 4 * DAY + int(rng.integers(2 * DAY, 200 * DAY))
        else:
            start[a] = start[a - 1] + minutes[a - 1] + gap[a]
    last = np.append(patient[1:] != patient[:-1], [True])
    dead = np.zeros(count, dtype=bool)
    final = np.flatnonzero(last)
    risk = quantise(rng.random(len(final)) / (0.4 + icu[final] + people["age"][patient[final]] / 80))
    dead[final[np.argsort(risk, kind="stable")[: round(0.13 * n)]]] = True
    stays = np.flatnonzero(icu)
    wait = np.minimum(rng.integers(40, 420, len(stays)), (minutes[stays] - icu_days[stays] * DAY - 60).astype(np.int64))
    begin = start[stays] + np.maximum(wait, 15)
    stop = np.minimum(begin + np.round(icu_days[stays] * DAY).astype(np.int64), start[stays] + minutes[stays])
    stop = np.where(dead[stays], start[stays] + minutes[stays], stop)
    begin = np.where(dead[stays], np.maximum(begin, stop - np.round(icu_days[stays] * DAY).astype(np.int64)), begin)
    dod = np.full(n, -1, dtype=np.int64)
    dod[patient[dead]] = (start + minutes)[dead]
    return {
        "dod": dod,
        "a_patient": patient,
        "a_id": 20_000_000 + rng.choice(9_999_999, count, replace=False),
        "a_start": start,
        "a_end": start + minutes,
        "a_dead": dead,
        "s_adm": stays,
        "s_id": 30_000_000 + rng.choice(9_999_999, size.stays, replace=False),
        "s_in": begin,
        "s_out": stop,
        "s_vent": np.zeros(size.stays, dtype=np.int64),
        "dialysis": np.zeros(count, dtype=bool),
    }


def _shares(rng: np.random.Generator, n: int) -> Floats:
    weight = quantise(rng.gamma(0.9, 1.0, n) + 0.05)
    return np.asarray(weight / np.add.accumulate(weight)[-1])


def _courses(rng: np.random.Generator, cohort: Cohort) -> None:
    """Fill the knots: a chronic part, an acute part that fades, a wiggle; then the rare derangements."""
    n, count = len(cohort.male), len(cohort.a_id)
    length = (cohort.a_end - cohort.a_start) // KNOT + 3
    cohort.knot_at = np.concatenate([[0], np.cumsum(length)[:-1]]).astype(np.int64)
    owner = np.repeat(np.arange(count), length)
    hours = (np.arange(len(owner)) - cohort.knot_at[owner]) * KNOT / 60
    knots = np.zeros((len(owner), len(DRIVERS)))
    icu = np.isin(np.arange(count), cohort.s_adm)
    chronic = {"ren": (-0.25, 0.85), "hep": (-1.0, 0.8), "ane": (0.55, 0.75), "res": (-0.6, 0.6), "neu": (-0.9, 0.6)}
    acute = {"inf": 1.0, "ren": 0.5, "ane": 0.5, "res": 0.8, "cir": 0.55, "neu": 0.8, "hep": 0.15}
    for d, name in enumerate(DRIVERS[:7]):
        middle, width = chronic.get(name, (-3.0, 0.1))
        base = np.maximum(0, rng.normal(middle, width, n))[cohort.a_patient]
        if name == "ren":  # end-stage disease
            base = np.where((rng.random(n) < 0.05)[cohort.a_patient], base + 3.1, base)
        start = np.maximum(0, rng.normal(acute[name] - 0.5, 0.8, count) + 0.5 * icu)
        fade = np.exp(-hours / rng.uniform(48, 220, count)[owner])
        if name == "ane":
            fade = 0.6 + 0.4 * fade
        wiggle = np.convolve(rng.normal(0, 0.16, len(owner)), np.ones(3) / 1.7, mode="same")
        knots[:, d] = np.maximum(0, base[owner] + start[owner] * fade + wiggle)
    cohort.knots = quantise(knots, 9)
    cohort.dialysis = quantise(np.maximum.reduceat(knots[:, DRIVERS.index("ren")], cohort.knot_at)) > 2.6
    _derange(rng, cohort, owner, hours)


def _derange(rng: np.random.Generator, cohort: Cohort, owner: Ints, hours: Floats) -> None:
    count = len(cohort.a_id)
    order = rng.permutation(count)
    order = order[np.argsort(cohort.dialysis[order], kind="stable")]
    icu = set(cohort.s_adm.tolist())
    shapes = {
        "gly": np.clip(1.0 - hours / 26, 0, 1),
        "nat": np.clip(1.0 - hours / 130, 0, 1),
        "kal": np.clip(1.0 - hours / 16, 0, 1),
        "leu": np.clip(1.0 - hours / 600, 0.3, 1),
        "war": np.clip(1.0 - hours / 48, 0, 1),
        "ble": np.clip(1.0 - hours / 110, 0, 1),
        "shk": np.clip(hours / 18, 0, 1) * np.clip(1.25 - hours / 120, 0, 1),
    }
    free = order.tolist()
    for name, share in EPISODES.items():
        wanted = max(1, round(share * count))
        pool = free[::-1] if name == "kal" else free
        chosen = [a for a in pool if name != "shk" or a in icu][:wanted]
        free = [a for a in free if a not in set(chosen)]
        cohort.episode[name] = np.array(sorted(chosen), dtype=np.int64)
        for a in chosen:
            here = owner == a
            cohort.knots[here, DRIVERS.index(name)] = quantise(rng.uniform(0.75, 1.12) * shapes[name][here], 9)
    stays = rng.permutation(cohort.s_adm)
    cooled, febrile = stays[: max(1, len(stays) // 45)], stays[max(1, len(stays) // 45) :][: max(1, len(stays) // 12)]
    cohort.episode["cold"], cohort.episode["fev"] = np.sort(cooled), np.sort(febrile)
    for a in cooled:
        here = owner == a
        cohort.knots[here, DRIVERS.index("cold")] = np.clip(1.5 - hours[here] / 30, 0, 1)
    for a in febrile:
        here = np.flatnonzero(owner == a)
        peak = here[rng.integers(1, max(2, len(here) - 1))]
        cohort.knots[peak, DRIVERS.index("fev")] = quantise(np.array(rng.uniform(0.75, 1.4)), 9)
    for a in np.flatnonzero(cohort.dialysis):
        here = np.flatnonzero(owner == a)
        phase = (hours[here] + rng.integers(0, 48)) % 48
        cohort.knots[here, DRIVERS.index("dia")] = np.clip(1 - phase / 42, 0, 1)


def _ventilation(rng: np.random.Generator, cohort: Cohort) -> None:
    stays = len(cohort.s_adm)
    worst = cohort.state(cohort.s_adm, cohort.s_in)
    need = worst[:, DRIVERS.index("res")] + 0.6 * worst[:, DRIVERS.index("neu")] + rng.normal(0, 0.5, stays)
    need[np.isin(cohort.s_adm, cohort.episode["cold"])] += 9
    ventilated = np.argsort(-quantise(need), kind="stable")[: max(3, round(0.42 * stays))]
    share = rng.uniform(0.35, 0.9, stays)
    cohort.s_vent[ventilated] = ((cohort.s_out - cohort.s_in) * share).astype(np.int64)[ventilated]


def _marks(rng: np.random.Generator, cohort: Cohort) -> None:
    """Traits of people that later stand in several tables; none is present in most."""
    n, male, age = len(cohort.male), cohort.male, cohort.age

    def some(share: float) -> Bools:
        return np.asarray(rng.random(n) < share)

    old, young = age >= 72, age <= 40
    cohort.marks = {
        "sex_test": np.where(male, (age >= 42) & some(0.42), (age <= 62) & some(0.48) | (age > 62) & some(0.22)),
        "sex_drug": np.where(male, (age >= 45) & some(0.46), some(0.4)),
        "device": some(0.7),
        "history": ~male & ((age <= 58) & some(0.85) | (age > 58) & some(0.6)),
        "stone": ~male & some(0.07),
        "tumour": male & some(0.05),
        "height": some(0.8),
        "age_drug": old & some(0.5) | young & some(0.5),
        "frail": old & some(0.75),
        "parents": (age <= 30) & some(0.65),
        "medicare": np.where(age >= 65, some(0.93), some(0.13)),
        "widowed": np.where(age >= 70, some(0.35), (age >= 50) & some(0.06)),
    }
