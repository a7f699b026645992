"""The seventeen findings, and the order in which they are drawn."""

from dataclasses import dataclass
from types import ModuleType

import numpy as np

from categories.chest.patient import Body
from categories.ct_abnormality import (
    arterial_calcification,
    atelectasis,
    bronchiectasis,
    cardiomegaly,
    consolidation,
    coronary_calcification,
    emphysema,
    hiatal_hernia,
    lymphadenopathy,
    medical_material,
    mosaic_attenuation,
    nodule,
    opacity,
    peribronchial_thickening,
    pericardial_effusion,
    pleural_effusion,
    septal_thickening,
)
from categories.ct_abnormality.canvas import Canvas, Facts, Insert, States
from categories.ct_abnormality.visibility import contrast_hu, noise_hu
from categories.draw import Draw


@dataclass(frozen=True)
class Finding:
    """The three ways in which a finding is drawn: there, only seemingly, and too slight to be scored."""

    present: Insert
    lookalike: Insert
    grey: Insert


ORDER: dict[str, ModuleType] = {
    "cardiomegaly": cardiomegaly,
    "pleural_effusion": pleural_effusion,
    "pericardial_effusion": pericardial_effusion,
    "hiatal_hernia": hiatal_hernia,
    "atelectasis": atelectasis,
    "consolidation": consolidation,
    "opacity": opacity,
    "emphysema": emphysema,
    "mosaic_attenuation": mosaic_attenuation,
    "septal_thickening": septal_thickening,
    "bronchiectasis": bronchiectasis,
    "peribronchial_thickening": peribronchial_thickening,
    "nodule": nodule,
    "lymphadenopathy": lymphadenopathy,
    "arterial_calcification": arterial_calcification,
    "coronary_calcification": coronary_calcification,
    "medical_material": medical_material,
}
"""Drawn from first to last: what takes room comes first, what is laid over all comes last."""
BODILY = ("cardiomegaly",)
"""Not drawn on the canvas but the patient's build: no scan without it to compare with."""
FINDINGS = {key: Finding(module.present, module.lookalike, module.grey) for key, module in ORDER.items()}


def draw_body(draw: Draw, states: States) -> Body:
    """Return what the findings ask of the patient's build, which is drawn before anything is."""
    heart = cardiomegaly.body(_rng(draw, "cardiomegaly", "body"), states["cardiomegaly"])
    lungs = emphysema.body(_rng(draw, "emphysema", "body"), states["emphysema"])
    return Body(**heart, **lungs)


def insert_all(canvas: Canvas, draw: Draw, states: States) -> dict[str, Facts]:
    """Draw all findings, each in its state and with numbers of its own; return what was drawn.

    A finding has its look-alike beside it: a scored label has one whether it is yes or no.
    """
    facts = {}
    noise = noise_hu(canvas, draw)
    for key, finding in FINDINGS.items():
        insert: Insert = getattr(finding, states[key])
        before = canvas.hu.copy() if states[key] == "present" else canvas.hu
        facts[key] = insert(canvas, _rng(draw, key), states)
        if states[key] == "present":
            if key not in BODILY:
                facts[key]["cnr"] = round(contrast_hu(before, canvas.hu) / noise, 2)
            facts[key]["beside"] = finding.lookalike(canvas, _rng(draw, key, "beside"), states)
    return facts


def _rng(draw: Draw, *label: str) -> np.random.Generator:
    return draw.rng("finding", *label)
