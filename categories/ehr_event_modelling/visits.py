"""Visits: office on working days, emergencies at any hour, stays as the cohort has them.

Nothing here depends on a disease before its diagnosis.
"""

from dataclasses import dataclass

import numpy as np

from categories.ehr_event_modelling.cohort import NEVER, YEAR, Cohort
from categories.ehr_event_modelling.vocabulary import EMERGENCY, INPATIENT, OFFICE, Floats, Ints, Vocabulary

DAY = 1440
VISITS_Y = (12.8, 0.95)
"""Office and emergency visits per year."""


@dataclass(frozen=True)
class Visits:
    """Visits of some patients, by patient and time; minutes since 1970-01-01."""

    patient: Ints
    start: Ints
    end: Ints
    kind: Ints

    def days(self) -> Floats:
        """Return inpatient days, 1 for the others."""
        length = np.ceil((self.end - self.start) / DAY)
        days: Floats = np.where(self.kind == INPATIENT, np.maximum(length, 1.0), 1.0)
        return days


Parts = list[tuple[Ints, Ints, Ints]]
"""Patient, first minute, kind."""


def make_visits(
    rng: np.random.Generator, vocabulary: Vocabulary, cohort: Cohort, first: int, last: int, intensity: float
) -> Visits:
    """Return the visits of patients ``first`` to ``last``; none begins inside a stay."""
    stays = cohort.stays[(cohort.stays[:, 0] >= first) & (cohort.stays[:, 0] < last)]
    who = np.arange(first, last)
    parts: Parts = [
        (stays[:, 0], stays[:, 1] * DAY + rng.integers(0, DAY, len(stays)), np.full(len(stays), INPATIENT)),
        (who, cohort.opens[who] * DAY + rng.integers(480, 1000, len(who)), np.full(len(who), OFFICE)),
        *_unplanned(rng, cohort, who, intensity),
        *_diagnosed(rng, vocabulary, cohort, who),
    ]
    patient, start, kind = (np.concatenate(column) for column in zip(*parts, strict=True))
    length = np.where(kind == OFFICE, rng.integers(15, 60, len(kind)), rng.integers(120, 600, len(kind)))
    end = start + length
    end[: len(stays)] = stays[:, 2] * DAY + rng.integers(560, 1200, len(stays))
    stay = np.searchsorted(stays[:, 0] * NEVER * DAY + stays[:, 1] * DAY, patient * NEVER * DAY + end, side="right") - 1
    inside = (stay >= 0) & (stays[stay, 0] == patient) & (start < (stays[stay, 2] + 1) * DAY)
    keep = (kind == INPATIENT) | (~inside & (end < cohort.closes[patient] * DAY))
    order = np.lexsort((start[keep], patient[keep]))
    return Visits(*(column[keep][order] for column in (patient, start, end, kind)))


def _unplanned(rng: np.random.Generator, cohort: Cohort, who: Ints, intensity: float) -> Parts:
    """Office and emergency visits at a rate that is the patient's own; few offices open at weekends."""
    days = cohort.closes[who] - cohort.opens[who]
    use = rng.gamma(1.6, 1 / 1.6, len(who)) * intensity
    parts = []
    for kind, rate in zip((OFFICE, EMERGENCY), VISITS_Y, strict=True):
        place = np.repeat(np.arange(len(who)), rng.poisson(rate * use * days / YEAR))
        day = cohort.opens[who[place]] + (rng.random(len(place)) * days[place]).astype(np.int64)
        minute = rng.integers(0, DAY, len(place))
        if kind == OFFICE:
            weekend = (day + 3) % 7 - 4
            day = day + np.where((weekend > 0) & (rng.random(len(place)) > 0.08), 3 - weekend, 0)
            minute = 480 + minute * 540 // DAY
        parts.append((who[place], day * DAY + minute, np.full(len(place), kind)))
    return parts


def _diagnosed(rng: np.random.Generator, vocabulary: Vocabulary, cohort: Cohort, who: Ints) -> Parts:
    """Return the office visit at which a chronic disease is diagnosed."""
    parts = []
    for k, disease in enumerate(vocabulary.diseases.values()):
        found = cohort.diagnosis[who, k]
        ill = who[(found < NEVER) & (found >= cohort.opens[who])] if disease["visit"] == "office" else who[:0]
        minute = cohort.diagnosis[ill, k] * DAY + rng.integers(500, 960, len(ill))
        parts.append((ill, minute, np.full(len(ill), OFFICE)))
    return parts
