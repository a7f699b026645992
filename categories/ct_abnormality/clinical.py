"""The clinical edition: a CT-RATE volume written anew, with gold from what its radiologist's report says."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from categories.ct_abnormality.labels import LABELS
from categories.ct_abnormality.nifti import SOURCE, read_volume
from categories.ct_abnormality.report_gold import State, read_report
from categories.ct_abnormality.synthetic import DEFINITIONS, STUDY
from categories.ct_abnormality.writing import write_nifti, write_series
from categories.draw import Draw
from categories.sources.shelf import Shelf
from categories.sources.spec import not_as_published

REPORTS = "dataset/radiology_text_reports/validation_reports.csv"
PEOPLE = "dataset/metadata/validation_metadata.csv"
ANSWERS = {"present": "yes", "absent": "no", "undecided": ""}
TRIM = 6
"""Fewer rows than this are left out at each side."""
OLDEST = 89
"""Ages above it are shown as this."""
SMALL = (4, 4, 2)
"""Every how many voxels are kept at small scale: what its time and memory are for."""


def prepare(draw: Draw, *, public: Path, gold: Path, workspace: Path, sources: Shelf) -> str | None:  # noqa: ARG001
    """Write the same files as the synthetic edition. No word of the report leaves this function.

    Raises:
        SourceError: a file cannot be had or read, or the report decides nothing, or one side only.
    """
    name = str(draw.spec.clinical["volume"])
    volume, reports, people = sources.files(SOURCE, [volume_path(name), REPORTS, PEOPLE])
    states = read_report(report_of(reports, name))
    answers = {ANSWERS[state] for state in states.values()} - {""}
    if answers != {"yes", "no"}:
        raise not_as_published(SOURCE, REPORTS, f"does not decide labels of both kinds for the volume of {draw.case}")
    hu, affine = trimmed(draw, *read_volume(volume))
    if draw.scale == "small":
        hu = np.ascontiguousarray(hu[:: SMALL[0], :: SMALL[1], :: SMALL[2]])
        affine = affine @ np.diag([*map(float, SMALL), 1.0])
    sex, age = person_of(people, name)
    if draw.spec.parameters["format"] == "dicom":
        thickness = f"{abs(affine[2, 2]):g}"
        about = {"PatientSex": sex, "PatientAge": f"{age:03d}Y", "StudyDescription": STUDY, "SliceThickness": thickness}
        write_series(public / "series", hu, affine, draw.opaque_id, about)
    else:
        write_nifti(public / "scan.nii.gz", hu, affine)
    (public / "labels.txt").write_text("".join(f"{label}\n" for label in LABELS.values()), encoding="utf-8")
    (public / "definitions.md").write_text(DEFINITIONS.read_text(encoding="utf-8"), encoding="utf-8")
    truth = {
        "sex": sex,
        "age": age,
        "shape": list(hu.shape),
        "spacing_mm": [round(float(step), 4) for step in np.abs(np.diag(affine)[:3])],
        "labels": [_entry(key, states[key]) for key in LABELS],
    }
    (gold / "labels.json").write_text(json.dumps(truth, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return None


def trimmed(
    draw: Draw, hu: NDArray[np.int16], affine: NDArray[np.float64]
) -> tuple[NDArray[np.int16], NDArray[np.float64]]:
    """Return the volume without a few drawn rows of air at its sides, about a drawn origin.

    Neither its size, its digest nor its coordinates are then those of the source; no voxel is changed.
    """
    rng = draw.rng("trim")
    first, last = rng.integers(0, TRIM, 3), rng.integers(0, TRIM, 3)
    first[2] = last[2] = 0  # the ends along the body may hold anatomy
    kept = hu[first[0] : hu.shape[0] - last[0], first[1] : hu.shape[1] - last[1]]
    moved = affine.copy()
    moved[:3, 3] = np.round(-affine[:3, :3] @ (np.array(kept.shape) / 2) + rng.uniform(-40, 40, 3), 2)
    return np.ascontiguousarray(kept), moved


def volume_path(name: str) -> str:
    """Return where a volume lies: ``valid_1_a_2`` in the folders of its patient and scan."""
    patient, scan, _ = re.fullmatch(r"(valid_\d+)_([a-z]+)_(\d+)", name).groups()  # type: ignore[union-attr]
    return f"dataset/valid_fixed/{patient}/{patient}_{scan}/{name}.nii.gz"


def report_of(path: Path, name: str) -> str:
    """Return findings and impression of a volume's report.

    Raises:
        SourceError: the table has other columns, or no such report.
    """
    row = _row(path, name, ("Findings_EN", "Impressions_EN"))
    return "\n".join(text or "" for text in row)


def person_of(path: Path, name: str) -> tuple[str, int]:
    """Return sex (F, M or O) and age in years, with the oldest together."""
    sex, age = _row(path, name, ("PatientSex", "PatientAge"))
    digits = re.search(r"\d+", age or "")
    letter = (sex or "O")[:1].upper()
    return letter if letter in "FM" else "O", min(int(digits.group()) if digits else 0, OLDEST)


def _row(path: Path, name: str, columns: tuple[str, ...]) -> tuple[str | None, ...]:
    try:
        table = pl.read_csv(path, infer_schema=False).filter(pl.col("VolumeName") == f"{name}.nii.gz").select(columns)
    except pl.exceptions.PolarsError as error:
        what = f"does not hold the columns VolumeName, {', '.join(columns)} ({type(error).__name__})"
        raise not_as_published(SOURCE, path, what) from None
    if table.is_empty():
        raise not_as_published(SOURCE, path, "holds no line for the volume of this case")
    found: tuple[str | None, ...] = table.row(0)
    return found


def _entry(key: str, state: State) -> dict[str, Any]:
    """Return the gold of one label; what the report says of it is not repeated."""
    facts = {"state": state, "measure": None, "unit": "", "places": [], "signs": ["the radiologist's report"]}
    return {"label": LABELS[key], "scored": state != "undecided", "answer": ANSWERS[state], "facts": facts}
