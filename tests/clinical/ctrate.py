"""Miniature CT-RATE volumes, reports and metadata in the real format; the reports are written for these tests."""

import csv
import gzip
import io
from functools import cache

import nibabel as nib
import numpy as np

from categories.catalog import load_catalog
from categories.ct_abnormality.clinical import PEOPLE, REPORTS, volume_path

VOLUMES = [
    str(spec.clinical["volume"])
    for category in load_catalog()
    if category.id == "ct_abnormality"
    for spec in category.cases.values()
]
SHAPE, SPACING = (192, 176, 44), (0.9, 0.9, 3.0)
FINDINGS = (
    "Trachea and both main bronchi are open. Heart contour and size are normal. "
    "Calcified atherosclerotic plaques are observed in the wall of the thoracic aorta and coronary arteries. "
    "Pericardial effusion-thickening was not observed. No enlarged lymph nodes in pathological dimensions were detected. "
    "There is a 7 mm nodule in the right upper lobe. Pleural effusion was not detected. "
    "Areas of consolidation, the largest in the left lower lobe, are observed. "
    "Emphysematous changes may be present at the apices."
)
IMPRESSION = "Consolidation in the left lower lobe. Nodule in the right lung."
WANTED = {
    "Arterial wall calcification": "yes",
    "Cardiomegaly": "no",
    "Pericardial effusion": "no",
    "Coronary artery wall calcification": "yes",
    "Lymphadenopathy": "no",
    "Lung nodule": "yes",
    "Pleural effusion": "no",
    "Consolidation": "yes",
}
"""What the report decides; the other labels it leaves open."""


@cache
def hu() -> np.ndarray:
    """Return a thorax: air, soft tissue, two lungs, a spine behind and to the middle; right, front, head grow."""
    rng = np.random.default_rng(9)
    x, y, z = np.ogrid[: SHAPE[0], : SHAPE[1], : SHAPE[2]]
    body = ((x - 96) / 88) ** 2 + ((y - 88) / 70) ** 2 < 1
    volume = np.where(body, 40, -1000) * np.ones(SHAPE)
    for centre, reach in ((52, 34), (136, 38)):
        lung = ((x - centre) / reach) ** 2 + ((y - 92) / 50) ** 2 + ((z - 20) / 30) ** 2 < 1
        volume[np.broadcast_to(lung, SHAPE)] = -850
    volume[90:102, 26:38] = 500
    return np.round(volume + rng.normal(0, 20, SHAPE) * body).astype(np.int16)


@cache
def volume() -> bytes:
    """Return a compressed NIfTI whose axes run left, back, head, in stored values with a slope."""
    affine = np.diag([-SPACING[0], -SPACING[1], SPACING[2], 1.0])
    affine[:3, 3] = (90.0, 70.0, -200.0)
    stored = hu()[::-1, ::-1].astype(np.int16) + 1024
    image = nib.Nifti1Image(stored, affine)
    image.header.set_slope_inter(1, -1024)
    image.header["descrip"] = b"CT-RATE valid_670_a_1 Ankara"
    image.header.set_sform(affine, 1)
    image.header.set_qform(affine, 1)
    return gzip.compress(image.to_bytes(), 1)


def table(header: list[str], rows: list[list[str]]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue().encode()


def files() -> dict[str, bytes]:
    """Return the data set's files by name."""
    head = ["VolumeName", "ClinicalInformation_EN", "Technique_EN", "Findings_EN", "Impressions_EN"]
    reports = [[f"{name}.nii.gz", "Mr Real Person, cough", "CT", FINDINGS, IMPRESSION] for name in VOLUMES]
    people = [[f"{name}.nii.gz", "M", "067Y"] for name in VOLUMES]
    return {
        **{volume_path(name): volume() for name in VOLUMES},
        REPORTS: table(head, [["valid_1_a_1.nii.gz", "", "", "Nothing.", ""], *reports]),
        PEOPLE: table(["VolumeName", "PatientSex", "PatientAge"], people),
    }
