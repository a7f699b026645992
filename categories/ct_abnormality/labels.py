"""Which findings a patient has, which only look so, and which are too slight to be scored."""

from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from categories.ct_abnormality.canvas import State

LABELS = {
    "medical_material": "Medical material",
    "arterial_calcification": "Arterial wall calcification",
    "cardiomegaly": "Cardiomegaly",
    "pericardial_effusion": "Pericardial effusion",
    "coronary_calcification": "Coronary artery wall calcification",
    "hiatal_hernia": "Hiatal hernia",
    "lymphadenopathy": "Lymphadenopathy",
    "emphysema": "Emphysema",
    "atelectasis": "Atelectasis",
    "nodule": "Lung nodule",
    "opacity": "Lung opacity",
    "pleural_effusion": "Pleural effusion",
    "mosaic_attenuation": "Mosaic attenuation pattern",
    "peribronchial_thickening": "Peribronchial thickening",
    "consolidation": "Consolidation",
    "bronchiectasis": "Bronchiectasis",
    "septal_thickening": "Interlobular septal thickening",
}
"""Key of a finding -> the published label, in the published order."""
KEYS = tuple(LABELS)
SELDOM_SCORED = ("medical_material", "cardiomegaly", "pericardial_effusion", "hiatal_hernia", "emphysema")
"""Easy to see: scored in about two of ten cases, so that a reader of easy signs alone does not get far."""
SCORING_WEIGHTS = {"seldom": 0.15, "paired": 20.0, "other": 1.0}
"""How readily a finding is among the scored: those of ``IMPLICATIONS`` most of all, so that inferring costs."""
IMPLICATIONS = (
    ("pleural_effusion", "atelectasis"),
    ("consolidation", "opacity"),
    ("bronchiectasis", "peribronchial_thickening"),
    ("coronary_calcification", "arterial_calcification"),
)
"""Pairs of which readers infer the second from the first."""
PAIR_WEIGHTS = np.array([[1.0, 1.1], [1.35, 0.8]])
"""Relative weight of (first, second): the first without the second is made common enough to cost whoever infers."""
POSITIVES = {"normal": (3,), "light": (4, 5), "moderate": (5, 6, 7), "heavy": (7, 8, 9)}
"""Density of a case -> how many of its scored labels are yes."""
SCORED = 12


def draw_states(rng: np.random.Generator, density: str) -> dict[str, State]:
    """Return the state of all seventeen findings: ``present`` (yes), ``lookalike`` (no) or ``grey`` (not scored)."""
    weights = np.array([SCORING_WEIGHTS[_scoring(key)] for key in KEYS])
    scored = np.sort(rng.choice(len(KEYS), SCORED, replace=False, p=weights / weights.sum()))
    positives = int(rng.choice(POSITIVES[density]))
    subsets = _subsets(len(scored), positives)
    likely = _likelihood(scored, subsets)
    chosen = subsets[min(int(np.searchsorted(np.cumsum(likely), rng.random() * likely.sum())), len(subsets) - 1)]
    states: dict[str, State] = dict.fromkeys(KEYS, "grey")
    for number, yes in zip(scored, chosen, strict=True):
        states[KEYS[number]] = "present" if yes else "lookalike"
    return states


def _scoring(key: str) -> str:
    if key in SELDOM_SCORED:
        return "seldom"
    return "paired" if any(key in pair for pair in IMPLICATIONS) else "other"


@cache
def _subsets(size: int, positives: int) -> NDArray[np.int64]:
    """Return all 0/1 rows of a size with so many ones."""
    rows = list(combinations(range(size), positives))
    subsets = np.zeros((len(rows), size), np.int64)
    np.put_along_axis(subsets, np.array(rows), 1, axis=1)
    return subsets


def _likelihood(scored: NDArray[np.int64], subsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the relative weight of each assignment of yes and no to the scored labels."""
    column = {KEYS[number]: place for place, number in enumerate(scored)}
    weight = np.ones(len(subsets))
    for first, second in IMPLICATIONS:
        if first in column and second in column:
            weight *= PAIR_WEIGHTS[subsets[:, column[first]], subsets[:, column[second]]]
    return weight
