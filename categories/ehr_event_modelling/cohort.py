"""Who the patients are, when a disease begins and is diagnosed, which discharges are examples, and the true risks.

Days are integers since 1970-01-01. For each disease a preclinical phase begins at ``begin`` (a Poisson process: its
rate depends on age, sex and a frailty) and the recorded diagnosis follows after a Weibull time. What a timeline shows
before a moment depends on ``begin`` only, never on the diagnosis to come; so the risk given ``begin`` is exact.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from categories.draw import Draw
from categories.ehr_event_modelling.vocabulary import RACE_SHARES, Floats, Ints
from categories.spec import Scale

YEAR = 365.25
LEAD_IN_Y = 8.0
"""The processes run this long before the record opens, so that history length says nothing about the phase."""
WINDOW = 365
"""Days after the prediction time in which a first diagnosis counts, and days of follow-up of every example."""
HISTORY = 180
"""Days of record before the first example."""
SPLITS = ("train", "val", "test")
NEVER = 10**7
CANDIDATES, CANDIDATES_TEST = 12, 40
"""Candidates drawn for one patient wanted: diseases are rare, and a test patient in a preclinical phase rarer still."""


@dataclass(frozen=True)
class Size:
    """How much of everything there is at one scale."""

    patients: tuple[int, int, int]
    """Train, validation, test."""
    intensity: float
    """Scales the events per visit and the visits per year."""
    block: int
    """Patients whose events are made at once."""


SIZES: dict[Scale, Size] = {
    "full": Size(patients=(2290, 2210, 2200), intensity=1.0, block=240),
    "small": Size(patients=(100, 70, 150), intensity=0.15, block=240),
}


@dataclass(frozen=True)
class Cohort:
    """Patients in the order of their ids; two-dimensional arrays are (patients, six diseases)."""

    ids: Ints
    split: Ints
    male: Ints
    race: Ints
    birth: Ints
    opens: Ints
    closes: Ints
    dies: NDArray[np.bool_]
    frailty: Floats
    begin: Floats
    diagnosis: Ints
    stays: Ints
    """(stays, 3): patient, day of admission, day of discharge; by patient and day."""
    rows: Ints
    """(examples, 3): patient, day of discharge, label; by patient and day."""
    risk: Floats
    """True risk of each example."""


def build_cohort(draw: Draw, diseases: dict[str, dict[str, Any]]) -> Cohort:
    """Draw candidates for each split, keep those with an example, and give them opaque ids in random order."""
    target = str(draw.spec.parameters["disease"])
    size = SIZES[draw.scale]
    parts = []
    for split, wanted in enumerate(size.patients):
        candidates = _candidates(draw, diseases, split, wanted)
        rows, risk = _examples(candidates, list(diseases), target, diseases[target])
        begun = candidates["begin"][:, list(diseases).index(target)]
        chosen = _choose(draw, rows, begun, wanted, split)
        parts.append(_restrict(candidates, rows, risk, chosen, split))
    return _shuffle(draw, parts)


def _candidates(draw: Draw, diseases: dict[str, dict[str, Any]], split: int, wanted: int) -> dict[str, Any]:
    rng = draw.rng("candidates", SPLITS[split])
    n = wanted * (CANDIDATES_TEST if SPLITS[split] == "test" else CANDIDATES)
    male = (rng.random(n) < 0.46).astype(np.int64)
    age = np.clip(rng.normal(52.0, 17.5, n), 18.0, 88.0)
    span = np.minimum(np.clip(2.5 + rng.gamma(2.2, 4.0, n), 2.5, 24.0), 99.0 - age)
    opens = np.floor(rng.uniform(7305, 19300 - span * YEAR)).astype(np.int64)
    closes = opens + np.floor(span * YEAR).astype(np.int64)
    shared = rng.standard_normal((n, 1)) * np.array([[0.6, 0.6, 0.0, 0.6, 0.0, 0.0]])
    frailty = shared + rng.standard_normal((n, len(diseases))) * 0.8
    rate, begin = np.empty((2, n, len(diseases)))
    diagnosis = np.empty((n, len(diseases)), dtype=np.int64)
    for k, disease in enumerate(diseases.values()):
        rate[:, k] = incidence(disease, age + span / 2, male, frailty[:, k])
        begin[:, k] = opens - LEAD_IN_Y * YEAR + rng.exponential(1.0, n) / rate[:, k] * YEAR
        wait = disease["scale_y"] * rng.weibull(disease["shape"], n) * YEAR
        day = np.floor(np.minimum(begin[:, k] + wait, NEVER)).astype(np.int64)
        diagnosis[:, k] = to_weekday(day) if disease["visit"] == "office" else day
    diagnosis[diagnosis >= closes[:, None]] = NEVER
    dies = rng.random(n) < 0.02 + 0.25 / (1.0 + np.exp(-(age + span - 72.0) / 7.0))
    person = {
        "male": male,
        "race": rng.choice(len(RACE_SHARES), n, p=RACE_SHARES),
        "birth": opens - np.floor(age * YEAR).astype(np.int64),
        "opens": opens,
        "closes": closes,
        "dies": dies,
        "frailty": frailty,
        "begin": begin,
        "diagnosis": diagnosis,
    }
    inpatient = [k for k, disease in enumerate(diseases.values()) if disease["visit"] == "inpatient"]
    return {**person, "rate": rate, "stays": _stays(rng, person, inpatient)}


def incidence(disease: dict[str, Any], age: Floats, male: Ints, frailty: Floats) -> Floats:
    """Return preclinical phases begun per year."""
    log_rate = disease["age"] * (age - 55.0) / 15.0 + disease["male"] * (male - 0.5) + 0.5 * frailty
    rates: Floats = disease["incidence_y"] * np.exp(log_rate)
    return rates


def to_weekday(day: Ints) -> Ints:
    """Move Saturdays and Sundays to the Monday after (1970-01-01 was a Thursday)."""
    weekday = (day + 3) % 7
    moved: Ints = day + np.where(weekday == 5, 2, np.where(weekday == 6, 1, 0))
    return moved


def _stays(rng: np.random.Generator, person: dict[str, Any], inpatient: list[int]) -> Ints:
    """Draw admissions; of overlapping ones the earlier stays. A disease diagnosed at admission brings its own."""
    days = person["closes"] - person["opens"]
    n = len(days)
    count = 1 + rng.poisson(0.13 * days / YEAR * rng.gamma(1.5, 1 / 1.5, n))
    who = np.repeat(np.arange(n), count)
    first = person["opens"][who] + 2 + np.floor(rng.random(len(who)) * (days[who] - 40)).astype(np.int64)
    for k in inpatient:
        ill = np.flatnonzero(person["diagnosis"][:, k] < person["closes"] - 30)
        ill = ill[person["diagnosis"][ill, k] >= person["opens"][ill]]
        who, first = np.concatenate([who, ill]), np.concatenate([first, person["diagnosis"][ill, k]])
    length = np.clip(np.round(np.exp(rng.normal(1.38, 0.62, len(who)))), 1, 28).astype(np.int64)
    order = np.lexsort((first, who))
    who, first, length = who[order], first[order], length[order]
    reach = np.maximum.accumulate(who * NEVER + first + length)
    clear = np.ones(len(who), dtype=bool)
    clear[1:] = who[1:] * NEVER + first[1:] > reach[:-1] + 1
    return np.stack([who, first, first + length], axis=1)[clear]


def _examples(person: dict[str, Any], names: list[str], target: str, disease: dict[str, Any]) -> tuple[Ints, Floats]:
    """Return (patient, day, label) and true risk of every discharge at risk with history and full follow-up."""
    k = names.index(target)
    who, day = person["stays"][:, 0], person["stays"][:, 2]
    found = person["diagnosis"][who, k]
    keep = (day - person["opens"][who] >= HISTORY) & (day + WINDOW < person["closes"][who]) & (found > day)
    who, day, found = who[keep], day[keep], found[keep]
    rows = np.stack([who, day, (found <= day + WINDOW).astype(np.int64)], axis=1)
    return rows, true_risk(disease, day, person["begin"][who, k], person["rate"][who, k])


def true_risk(disease: dict[str, Any], day: Ints, begin: Floats, rate_y: Floats) -> Floats:
    """Return P(first diagnosis 1 to 365 days after ``day`` | none up to it, the phase as it stands)."""
    after, until = day + 1, day + WINDOW + 1
    if disease["visit"] == "office":
        # a diagnosis due at a weekend is recorded on Monday: map the window back to the days it was due
        weekday = (day + 3) % 7
        after = day + np.where(weekday == 5, 0, np.where(weekday == 6, -1, 1))
        last = (day + WINDOW + 3) % 7
        until = day + WINDOW + np.where(last == 5, 0, np.where(last == 6, -1, 1))
    scale, shape = disease["scale_y"] * YEAR, disease["shape"]
    started = begin < after
    survived = np.exp(-((np.maximum(after - begin, 0.0) / scale) ** shape))
    survives = np.exp(-((np.maximum(until - begin, 0.0) / scale) ** shape))
    known = 1.0 - survives / survived
    nodes, weights = np.polynomial.legendre.leggauss(24)
    span = (until - after).astype(np.float64)
    u = (nodes + 1.0) / 2.0 * span[:, None]
    rate = rate_y[:, None] / YEAR
    ends = 1.0 - np.exp(-(((span[:, None] - u) / scale) ** shape))
    unknown = (weights * rate * np.exp(-rate * u) * ends).sum(axis=1) * span / 2.0
    risk: Floats = np.where(started, known, unknown)
    return risk


def _choose(draw: Draw, rows: Ints, begun: Floats, wanted: int, split: int) -> Ints:
    """Pick patients: train and validation so that labels are as rare as published, the test split enriched.

    The test split is enriched by phase, not by label: given the phase, nobody looked at the label, so true risks
    stay true.
    """
    rng = draw.rng("choice", SPLITS[split])
    patients, first = np.unique(rows[:, 0], return_index=True)
    if len(patients) < wanted:
        raise ValueError(f"{len(patients)} candidates have an example, {wanted} are needed")
    if SPLITS[split] == "test":
        ahead = begun[patients] <= rows[first, 1]
        ill, well = rng.permutation(patients[ahead]), rng.permutation(patients[~ahead])
        share = min(len(ill), round(wanted * float(str(draw.spec.parameters["test_phase_share"]))))
        return np.concatenate([ill[:share], well[: wanted - share]])
    ends = np.append(first[1:], len(rows))
    examples = ends - first
    positives = np.add.reduceat(rows[:, 2], first)
    order = rng.permutation(len(patients))
    ill, well = order[positives[order] > 0], order[positives[order] == 0]
    rate = float(str(draw.spec.parameters["small_rate" if draw.scale == "small" else "rate"]))
    most = min(len(ill), wanted)
    k = np.arange(max(1, wanted - len(well)), most + 1)
    labels = np.cumsum(positives[ill])[k - 1]
    total = np.cumsum(examples[ill])[k - 1] + np.append(0, np.cumsum(examples[well]))[wanted - k]
    best = int(k[np.argmin(np.abs(labels / total - rate))])
    chosen: Ints = patients[np.concatenate([ill[:best], well[: wanted - best]])]
    return chosen


def _restrict(person: dict[str, Any], rows: Ints, risk: Floats, chosen: Ints, split: int) -> dict[str, Any]:
    """Keep the chosen patients, renumbered; of a test patient only the earliest example."""
    place = np.full(len(person["opens"]), -1, dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    kept = place[rows[:, 0]] >= 0
    if SPLITS[split] == "test":
        kept &= np.append(True, rows[1:, 0] != rows[:-1, 0])
    part = {name: value[chosen] for name, value in person.items() if name not in ("stays", "rate")}
    stays = person["stays"][place[person["stays"][:, 0]] >= 0].copy()
    rows, risk = rows[kept].copy(), risk[kept]
    for table in (stays, rows):
        table[:, 0] = place[table[:, 0]]
    return {**part, "split": np.full(len(chosen), split), "stays": stays, "rows": rows, "risk": risk}


def _shuffle(draw: Draw, parts: list[dict[str, Any]]) -> Cohort:
    """Join the splits in an order that tells nothing: opaque ids are ascending, patients behind them random."""
    offsets = np.cumsum([0, *(len(part["split"]) for part in parts)])
    rng = draw.rng("ids")
    n = int(offsets[-1])
    ids = np.sort(rng.permutation(np.unique(rng.integers(100_000_000, 1_000_000_000, n * 2)))[:n])
    place = rng.permutation(n)
    back = np.argsort(place)
    joined = {
        name: np.concatenate([part[name] for part in parts])[back]
        for name in parts[0]
        if name not in ("stays", "rows", "risk")
    }
    risk = np.concatenate([part["risk"] for part in parts])
    tables = {}
    for name in ("stays", "rows"):
        table = np.concatenate(
            [part[name] + np.array([offset, 0, 0]) for part, offset in zip(parts, offsets, strict=False)]
        )
        table[:, 0] = place[table[:, 0]]
        order = np.lexsort((table[:, 1], table[:, 0]))
        tables[name] = table[order]
        if name == "rows":
            risk = risk[order]
    return Cohort(ids=ids, **joined, **tables, risk=risk)
