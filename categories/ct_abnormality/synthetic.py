"""The synthetic edition: a generated patient with findings, look-alikes and borderline findings, and the answers."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from categories.chest.finish import Image, finish
from categories.chest.patient import Sex, draw_patient
from categories.ct_abnormality.canvas import Facts, States, open_canvas
from categories.ct_abnormality.findings import draw_body, insert_all
from categories.ct_abnormality.labels import LABELS, draw_states
from categories.ct_abnormality.visibility import GATE
from categories.ct_abnormality.writing import write_nifti, write_series
from categories.draw import Draw

AGES = (50, 86)
"""Wide enough for every finding at every age, so that an age in a header tells nothing."""
ANSWERS = {"present": "yes", "lookalike": "no", "grey": ""}
STUDY = "CT chest without contrast"
DEFINITIONS = Path(__file__).parent / "definitions.md"
LEAST_SCORED, LEAST_EACH = 8, 2
"""A case has so many scored labels at least, and so many of each answer among them, or it is not handed out."""


def prepare(draw: Draw, *, public: Path, gold: Path, workspace: Path) -> None:  # noqa: ARG001 (nothing is copied in)
    """Write the scan, the labels and their definitions for the agent, the answers for the verifier."""
    who = draw.rng("who")
    sex: Sex = "F" if who.random() < 0.5 else "M"
    age = int(who.integers(*AGES))
    states = draw_states(draw.rng("states"), str(draw.spec.parameters["density"]))
    patient = draw_patient(draw, draw.scale, sex=sex, age=age, body=draw_body(draw, states))
    canvas = open_canvas(patient, draw.rng("texture"))
    facts = insert_all(canvas, draw, states)
    image = finish(canvas, draw, draw.scale)
    del canvas
    labels = [entry(key, states, facts[key], image) for key in LABELS]
    require_enough(draw.case, [label["answer"] for label in labels])
    if draw.spec.parameters["format"] == "dicom":
        about = {"PatientSex": sex, "PatientAge": f"{age:03d}Y", "StudyDescription": STUDY, **image.about}
        write_series(public / "series", image.hu, image.affine, draw.opaque_id, about)
    else:
        write_nifti(public / "scan.nii.gz", image.hu, image.affine)
    (public / "labels.txt").write_text("".join(f"{label}\n" for label in LABELS.values()), encoding="utf-8")
    (public / "definitions.md").write_text(DEFINITIONS.read_text(encoding="utf-8"), encoding="utf-8")
    truth = {
        "sex": sex,
        "age": age,
        "shape": list(image.hu.shape),
        "spacing_mm": [round(float(step), 4) for step in np.abs(np.diag(image.affine)[:3])],
        "labels": labels,
    }
    (gold / "labels.json").write_text(json.dumps(truth, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def entry(key: str, states: States, facts: Facts, image: Image) -> dict[str, Any]:
    """Return the gold of one label; ``voxel`` of a place is its position in the volume that is handed out.

    A finding below ``GATE`` is not scored.
    """
    plain = states[key] != "present" or facts.get("cnr", GATE) >= GATE
    state = states[key] if plain else "grey"
    shown = {"state": state, **_with_voxels(facts, image)}
    if "beside" in facts:
        shown["beside"] = _with_voxels(facts["beside"], image)
    return {"label": LABELS[key], "scored": state != "grey", "answer": ANSWERS[state], "facts": shown}


def require_enough(case: str, answers: list[str]) -> None:
    """Return if a case has enough labels to be judged by: the gate may have left out too many.

    Raises:
        ValueError: it has not; the message counts them.
    """
    yes, no = answers.count("yes"), answers.count("no")
    if yes + no < LEAST_SCORED or min(yes, no) < LEAST_EACH:
        raise ValueError(
            f"{case}: {yes + no} labels are scored, {yes} yes and {no} no; it takes {LEAST_SCORED}, {LEAST_EACH} of"
            " each. Its other findings cannot be seen; take another seed."
        )


def _with_voxels(facts: Facts, image: Image) -> Facts:
    inverse = np.linalg.inv(image.affine)
    places = []
    for place in facts["places"]:
        voxel = inverse[:3, :3] @ np.array(place["ras_mm"]) + inverse[:3, 3]
        places.append({**place, "voxel": [round(float(value), 1) for value in voxel]})
    return {**facts, "places": places}
