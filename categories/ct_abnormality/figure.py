"""A contact sheet of a scan: slices in two windows, or with the gold one slice through each label's finding."""

import json
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pydicom
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import NDArray

from categories.ct_abnormality.reading import read_nifti

LUNG, SOFT = (-1350.0, 150.0), (-160.0, 240.0)
"""Lowest and highest HU of the lung and the soft-tissue window."""
BODY_HU = -300
"""What is denser is body, in order to leave out the air around it."""
LUNG_LABELS = (
    "Emphysema",
    "Atelectasis",
    "Lung nodule",
    "Lung opacity",
    "Mosaic attenuation pattern",
    "Peribronchial thickening",
    "Consolidation",
    "Bronchiectasis",
    "Interlobular septal thickening",
)
COLOURS = {"present": "red", "lookalike": "deepskyblue", "grey": "gold"}
LEVELS = 6
MAX_ANSWER_BYTES = 1 << 16
Volume = NDArray[np.int16]


def draw_figure(public: Path, gold: Path | None, out: Path, submission: Path | None = None) -> None:
    """Write the contact sheet of the files in ``public``; ``gold`` adds what is where, ``submission`` what was said."""
    hu, spacing_mm = read_scan(public)
    said = _said(submission) if submission else {}
    with mpl.rc_context({"font.size": 7}):
        figure = Figure(figsize=(16, 9.6), layout="constrained", facecolor="black")
        if gold is None:
            _overview(figure, hu, spacing_mm)
            if said:
                words = ", ".join(label for label, answer in said.items() if answer == "yes") or "nothing"
                figure.suptitle(f"answered yes: {words}", color="white")
        else:
            labels = json.loads((gold / "labels.json").read_text(encoding="utf-8"))["labels"]
            _findings(figure, hu, spacing_mm, labels, said)
        figure.savefig(out, dpi=110)


def read_scan(public: Path) -> tuple[Volume, tuple[float, float, float]]:
    """Return the HU (I, J, K), right to left, back to front, foot to head, and the voxel size in mm."""
    if (public / "scan.nii.gz").exists():
        return read_nifti(public / "scan.nii.gz")
    images = [pydicom.dcmread(path) for path in (public / "series").iterdir()]
    images.sort(key=lambda image: float(image.ImagePositionPatient[2]))
    slope, intercept = float(images[0].RescaleSlope), float(images[0].RescaleIntercept)
    planes = [image.pixel_array[::-1].T * slope + intercept for image in images]
    step = float(images[1].ImagePositionPatient[2]) - float(images[0].ImagePositionPatient[2])
    rows, columns = (float(value) for value in images[0].PixelSpacing)
    return np.stack(planes, -1).astype(np.int16), (columns, rows, step)


def _said(submission: Path) -> dict[str, str]:
    """Return the answers of a submission that can be read, by label in small letters."""
    path = submission / "predictions.txt"
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_ANSWER_BYTES:
        return {}
    text = path.read_text(encoding="utf-8", errors="replace").lower()
    return dict(re.findall(r"^[ \t]*([a-z][a-z ]{0,60}?)[ \t]*:[ \t]*(yes|no)[ \t]*$", text, re.MULTILINE))


def _overview(figure: Figure, hu: Volume, spacing_mm: tuple[float, float, float]) -> None:
    """Show slices from head to foot, above in the lung window, below in the soft one, and two coronal planes."""
    grid = figure.add_gridspec(3, LEVELS, height_ratios=(1, 1, 1))
    for column, part in enumerate(np.linspace(0.88, 0.2, LEVELS)):
        number = int(part * (hu.shape[2] - 1))
        for row, window in enumerate((LUNG, SOFT)):
            axes = figure.add_subplot(grid[row, column])
            _axial(axes, hu, number, window, spacing_mm)
            axes.set_title(f"slice {number}", color="white")
    for column, part in enumerate((0.35, 0.5, 0.65)):
        for window in (LUNG, SOFT):
            axes = figure.add_subplot(grid[2, 2 * column + (window == SOFT)])
            plane = hu[:, int(part * hu.shape[1]), ::-1].T
            axes.imshow(plane, "gray", vmin=window[0], vmax=window[1], aspect=spacing_mm[2] / spacing_mm[0])
            axes.axis("off")


def _findings(
    figure: Figure,
    hu: Volume,
    spacing_mm: tuple[float, float, float],
    labels: list[dict[str, Any]],
    said: dict[str, str],
) -> None:
    """Show one slice a label, through the largest of its places, with what the gold says of it."""
    grid = figure.add_gridspec(3, 6)
    for number, label in enumerate(labels):
        axes = figure.add_subplot(grid[number // 6, number % 6])
        facts = label["facts"]
        places = sorted(facts["places"], key=lambda place: -place["size_mm"])
        centre = places[0]["voxel"] if places else [size / 2 for size in hu.shape]
        plane = int(np.clip(round(centre[2]), 0, hu.shape[2] - 1))
        _axial(axes, hu, plane, LUNG if label["label"] in LUNG_LABELS else SOFT, spacing_mm)
        colour = COLOURS[facts["state"]]
        for place in places:
            reach_mm = max(10.0, place["size_mm"] / 2)
            if abs(place["voxel"][2] - plane) * spacing_mm[2] <= reach_mm:
                at = (place["voxel"][0], hu.shape[1] - 1 - place["voxel"][1])
                axes.add_patch(Circle(at, (reach_mm + 4) / spacing_mm[0], fill=False, color=colour, linewidth=0.8))
        answer = label["answer"] or "not scored"
        if said:
            answer += f" (answered {said.get(label['label'].lower(), 'nothing')})"
        what = f", {places[0]['what']}" if places else ""
        axes.set_title(f"{label['label']}: {answer}\n{facts['measure']:g} {facts['unit']}{what}", color=colour)


def _axial(
    axes: Axes, hu: Volume, number: int, window: tuple[float, float], spacing_mm: tuple[float, float, float]
) -> None:
    """Show a slice as radiologists look at it: from the feet, the patient's front above."""
    plane = hu[:, ::-1, number].T
    axes.imshow(plane, "gray", vmin=window[0], vmax=window[1], aspect=spacing_mm[1] / spacing_mm[0])
    body = plane > BODY_HU
    for limit, along in ((axes.set_xlim, 0), (axes.set_ylim, 1)):
        inside = np.flatnonzero(body.mean(along) > 0.04)
        if len(inside):
            low, high = int(inside[0]) - 4, int(inside[-1]) + 4
            limit(low, high) if along == 0 else limit(high, low)
    axes.axis("off")
