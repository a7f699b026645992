"""Timelines: visits, what is coded, measured and given at them, block of patients by block of patients.

The disease to come changes *what* is coded and measured, not how often anything happens: prodrome codes take the place
of background codes, and visits do not depend on any disease before its diagnosis.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from categories.draw import Draw
from categories.ehr_event_modelling.cohort import NEVER, SIZES, YEAR, Cohort
from categories.ehr_event_modelling.values import lab_values, person_levels
from categories.ehr_event_modelling.visits import DAY, Visits, make_visits
from categories.ehr_event_modelling.vocabulary import (
    BIRTH,
    DEATH,
    INPATIENT,
    RACES,
    SLOTS,
    VISITS,
    Floats,
    Ints,
    Topics,
    Vocabulary,
)

NO_END = -1
PANEL_RATES = {
    # sets of each panel: per office visit, per emergency visit, per inpatient day
    "vitals": (0.9, 2.5, 9.0),
    "body": (0.7, 0.2, 0.3),
    "basic": (0.30, 0.8, 1.1),
    "count": (0.26, 0.8, 1.0),
    "differential": (0.14, 0.5, 0.5),
    "hepatic": (0.20, 0.5, 0.45),
    "biliary": (0.06, 0.2, 0.12),
    "lipid": (0.16, 0.02, 0.03),
    "glycated": (0.14, 0.03, 0.03),
    "iron": (0.07, 0.02, 0.04),
    "thyroid": (0.08, 0.02, 0.02),
    "inflammation": (0.09, 0.2, 0.15),
    "clotting": (0.05, 0.3, 0.35),
    "cardiac": (0.05, 0.25, 0.12),
    "minerals": (0.09, 0.2, 0.6),
    "vitamins": (0.07, 0.01, 0.03),
    "urine": (0.12, 0.3, 0.1),
    "gas": (0.0, 0.1, 0.4),
    "sepsis": (0.0, 0.08, 0.08),
}
CODES_AT = (7.0, 10.0, 19.0)
"""Diagnoses and medicines per office visit, emergency visit, inpatient day."""


@dataclass(frozen=True)
class Block:
    """Events of some patients, by patient and time."""

    patient: Ints
    """Place in the cohort."""
    minute: Ints
    """Minutes since 1970-01-01."""
    end: Ints
    code: Ints
    value: Floats
    visit: Ints
    """Index of the visit in this block, -1 for none."""

    def select(self, keep: NDArray[np.bool_] | Ints) -> "Block":
        """Return some of the events."""
        return Block(
            self.patient[keep], self.minute[keep], self.end[keep], self.code[keep], self.value[keep], self.visit[keep]
        )

    def history(self, patient: int, minute: int) -> tuple[Ints, Floats, Floats]:
        """Return codes, values and days before ``minute`` of a patient's events that start before it."""
        start, stop = np.searchsorted(self.patient, [patient, patient + 1])
        stop = start + np.searchsorted(self.minute[start:stop], minute)
        return self.code[start:stop], self.value[start:stop], (minute - self.minute[start:stop]) / DAY


def make_block(draw: Draw, vocabulary: Vocabulary, topics: Topics, cohort: Cohort, first: int, last: int) -> Block:
    """Return the events of patients ``first`` to ``last``, sorted."""
    rng = draw.rng("events", first)
    intensity = SIZES[draw.scale].intensity
    visits = make_visits(rng, vocabulary, cohort, first, last, intensity)
    parts = [
        _fixed(vocabulary, cohort, visits, first, last),
        _diagnoses(rng, vocabulary, cohort, visits, first, last),
        _coded(rng, vocabulary, topics, cohort, visits, first, last, intensity),
        _measured(rng, vocabulary, cohort, visits, first, last, intensity),
    ]
    block = _join(parts)
    order = np.lexsort((rng.permutation(len(block.minute)), block.minute, block.patient))
    return block.select(order)


def _join(parts: list[Block]) -> Block:
    return Block(
        patient=np.concatenate([part.patient for part in parts]),
        minute=np.concatenate([part.minute for part in parts]),
        end=np.concatenate([part.end for part in parts]),
        code=np.concatenate([part.code for part in parts]),
        value=np.concatenate([part.value for part in parts]),
        visit=np.concatenate([part.visit for part in parts]),
    )


def _events(patient: Ints, minute: Ints, end: Ints, code: Ints, visit: Ints) -> Block:
    return Block(patient, minute, end, code, np.full(len(patient), np.nan), visit)


def _fixed(vocabulary: Vocabulary, cohort: Cohort, visits: Visits, first: int, last: int) -> Block:
    """Birth, sex, race, the visits themselves and death."""
    who = np.arange(first, last)
    birth = cohort.birth[who] * DAY
    dead = who[cohort.dies[who]]
    sexes = np.array([vocabulary.index("Gender/F"), vocabulary.index("Gender/M")])
    races = np.array([vocabulary.index(race) for race in RACES])
    kinds = np.array([vocabulary.index(visit) for visit in VISITS])
    none = np.full(len(who), -1)
    people = [
        _events(who, birth, none, np.full(len(who), vocabulary.index(BIRTH)), none),
        _events(who, birth, none, sexes[cohort.male[who]], none),
        _events(who, birth, none, races[cohort.race[who]], none),
        _events(
            dead,
            cohort.closes[dead] * DAY,
            none[: len(dead)],
            np.full(len(dead), vocabulary.index(DEATH)),
            none[: len(dead)],
        ),
        _events(visits.patient, visits.start, visits.end, kinds[visits.kind], np.arange(len(visits.patient))),
    ]
    return _join(people)


def _diagnoses(
    rng: np.random.Generator, vocabulary: Vocabulary, cohort: Cohort, visits: Visits, first: int, last: int
) -> Block:
    """The first diagnosis of each disease: its SNOMED CT code, one of ICD-10-CM, and the test that settles it."""
    parts = []
    stamp = visits.patient * NEVER + visits.start // DAY
    for k, disease in enumerate(vocabulary.diseases.values()):
        who = np.arange(first, last)
        who = who[cohort.diagnosis[who, k] < NEVER]
        # known before the record opens: carried over at the first visit
        day = np.maximum(cohort.diagnosis[who, k], cohort.opens[who])
        place = np.clip(np.searchsorted(stamp, who * NEVER + day, side="right") - 1, 0, len(stamp) - 1)
        same = (visits.patient[place] == who) & (visits.end[place] >= day * DAY)
        minute = np.where(
            same, np.maximum(visits.start[place], day * DAY) + rng.integers(1, 12, len(who)), day * DAY + 720
        )
        visit = np.where(same, place, -1)
        icd = np.array([vocabulary.index(f"ICD10CM/{code}") for code in disease["icd"]])
        snomed = np.full(len(who), vocabulary.index(f"SNOMED/{disease['snomed']}"))
        for code in (snomed, icd[rng.integers(0, len(icd), len(who))]):
            parts.append(_events(who, minute, np.full(len(who), NO_END), code, visit))
        for test in disease["defining"]:
            lab = vocabulary.labs.at(test)
            value = lab_values(rng, vocabulary.labs, np.full(len(who), lab), cohort.male[who], np.zeros(len(who)))
            code = np.full(len(who), vocabulary.lab_start + lab)
            parts.append(Block(who, minute, np.full(len(who), NO_END), code, value, visit))
    return _join(parts)


def phase(cohort: Cohort, patient: Ints, day: Floats, k: int, ramp_y: float) -> Floats:
    """Return how full the preclinical phase of disease ``k`` is, 0 to 1; 0 before it begins and 0.35 once treated."""
    since = (day - cohort.begin[patient, k]) / YEAR
    full: Floats = np.clip((since + 0.15) / ramp_y, 0.0, 1.0)
    full[since < 0] = 0.0
    full[day >= cohort.diagnosis[patient, k]] *= 0.35
    return full


def _coded(
    rng: np.random.Generator,
    vocabulary: Vocabulary,
    topics: Topics,
    cohort: Cohort,
    visits: Visits,
    first: int,
    last: int,
    intensity: float,
) -> Block:
    """Diagnoses and medicines: each is drawn from one topic, the topics' shares depend on patient and day."""
    shares = _shares(rng, vocabulary, topics, cohort, visits, first, last)
    edges = np.cumsum(shares, axis=1)
    edges /= edges[:, -1:]
    rate = np.array(CODES_AT)[visits.kind] * visits.days() * (0.5 + 0.5 * intensity)
    which = np.repeat(np.arange(len(visits.patient)), rng.poisson(rate))
    topic = (edges[which] < rng.random(len(which))[:, None]).sum(axis=1)
    code = topics.tables[cohort.male[visits.patient[which]], topic, rng.integers(0, SLOTS, len(which))]
    minute, end = _within(rng, visits, which)
    given = np.array([table == "drug_exposure" for table in vocabulary.tables])[code]
    supply = rng.choice(np.array([1, 3, 5, 7, 14, 30, 30, 90]), len(which)) * DAY + minute
    end = np.where(given, np.where(rng.random(len(which)) < 0.7, supply, NO_END), end)
    last_minute = cohort.closes[visits.patient[which]] * DAY
    return _events(visits.patient[which], minute, np.minimum(end, last_minute), code, which)


def _within(rng: np.random.Generator, visits: Visits, which: Ints) -> tuple[Ints, Ints]:
    """Return a minute inside each visit, and for inpatient events the end of the visit."""
    length = visits.end[which] - visits.start[which]
    minute = visits.start[which] + (rng.random(len(which)) * length).astype(np.int64)
    end = np.where(visits.kind[which] == INPATIENT, visits.end[which], NO_END)
    return minute, end


def _shares(
    rng: np.random.Generator,
    vocabulary: Vocabulary,
    topics: Topics,
    cohort: Cohort,
    visits: Visits,
    first: int,
    last: int,
) -> Floats:
    """Return the weight of each topic at each visit.

    Look-alikes carry the complaints and signs of a disease they never get, evenly over their whole history; in a
    preclinical phase they are recent and rising.
    """
    n, people, six = len(visits.patient), last - first, list(vocabulary.diseases.values())
    local = visits.patient - first
    shares = np.zeros((n, topics.tables.shape[1]))
    shares[:, : topics.background] = rng.dirichlet(np.full(topics.background, 0.45), people)[local]
    day = visits.start / DAY
    for k, disease in enumerate(six):
        strength = rng.gamma(3.0, 1 / 3.0, people)
        alike = np.clip(rng.standard_normal((people, 2)), 0.0, None) * disease["alike"]
        burst = phase(cohort, visits.patient, day, k, disease["ramp_y"]) * strength[local]
        shares[:, topics.prodrome + k] = disease["common_share"] * burst + alike[local, 0] * disease["common_share"]
        shares[:, topics.telling + k] = disease["telling_share"] * burst + alike[local, 1] * disease["telling_share"]
        shares[:, topics.treatment + k] = np.where(day >= cohort.diagnosis[visits.patient, k] + 1, 0.08, 0.0)
    return shares


def _measured(
    rng: np.random.Generator,
    vocabulary: Vocabulary,
    cohort: Cohort,
    visits: Visits,
    first: int,
    last: int,
    intensity: float,
) -> Block:
    """Vital signs and laboratory panels; their values drift in a preclinical phase."""
    labs = vocabulary.labs
    whose, items, minutes = [], [], []
    days = visits.days()
    for name, rates in PANEL_RATES.items():
        rate = np.array(rates)[visits.kind] * days * (0.5 + 0.5 * intensity)
        which = np.repeat(np.arange(len(days)), rng.poisson(rate))
        minute, _ = _within(rng, visits, which)
        panel = np.array(labs.panels[name])
        whose.append(np.repeat(which, len(panel)))
        minutes.append(np.repeat(minute, len(panel)))
        items.append(np.tile(panel, len(which)))
    which, item, minute = (np.concatenate(column) for column in (whose, items, minutes))
    patient = visits.patient[which]
    level = person_levels(rng, labs, last - first)[patient - first, item]
    for k, disease in enumerate(vocabulary.diseases.values()):
        drift = np.zeros(len(labs.names))
        for code, shift in disease["drift"].items():
            drift[labs.at(code)] = shift * disease["drift_share"]
        strength = rng.gamma(4.0, 1 / 4.0, last - first)
        touched = np.flatnonzero(drift[item] != 0.0)
        full = phase(cohort, patient[touched], minute[touched] / DAY, k, disease["ramp_y"])
        level[touched] += drift[item[touched]] * full * strength[patient[touched] - first]
    value = lab_values(rng, labs, item, cohort.male[patient], level)
    return Block(patient, minute, np.full(len(item), NO_END), vocabulary.lab_start + item, value, which)
