"""What a finding is drawn on: a patient's scan on its native grid, written in place before the output grid is made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from categories.chest.labels import where
from categories.chest.patient import Patient

State = Literal["present", "lookalike", "grey"]
States = Mapping[str, State]
"""Key of a finding -> how it is drawn in this patient: yes, no, or between the two thresholds (not scored)."""
Facts = dict[str, Any]
"""What was drawn: ``measure`` (the number the definitions compare), ``unit``, ``places``, ``signs``, and more."""
Box = tuple[slice, slice, slice]
TEXTURE_TILE = (192, 192, 48)
TEXTURE_BLUR = 0.8
"""In-plane smoothing of the texture laid on replaced tissue, in voxels."""


class Insert(Protocol):
    """Draws one finding and tells what it drew."""

    def __call__(self, canvas: "Canvas", rng: np.random.Generator, states: States) -> Facts: ...


@dataclass
class Canvas:
    """A scan being painted; all arrays are (I, J, K): right to left, back to front, foot to head."""

    patient: Patient
    hu: NDArray[np.float32]
    organs: NDArray[np.uint8]
    occupied: NDArray[np.bool_]
    """Voxels that an earlier finding uses."""
    hollow: NDArray[np.bool_]
    """Holes, bullae and cysts: air without lung, which no haze can fill."""
    tile: NDArray[np.float32] = field(repr=False)
    """A periodic block of what unreplaced soft tissue varies by, HU; the scan's noise itself comes last, with all."""

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        return self.patient.spacing_mm

    def organ(self, *names: str) -> NDArray[np.bool_]:
        """Return where the named organs are now (names of ``categories.chest.labels.ORGANS``)."""
        return where(self.organs, names)

    def box(self, centre_ijk: NDArray[np.float64], half_mm: float | tuple[float, float, float]) -> Box:
        """Return the part of the grid within ``half_mm`` of a voxel, clipped to the grid; at least one voxel."""
        half = np.broadcast_to(np.asarray(half_mm, float), 3) / self.spacing_mm
        low = np.clip(np.floor(np.asarray(centre_ijk) - half).astype(int), 0, np.array(self.hu.shape) - 1)
        high = np.clip(np.ceil(np.asarray(centre_ijk) + half).astype(int) + 1, low + 1, self.hu.shape)
        return (slice(int(low[0]), int(high[0])), slice(int(low[1]), int(high[1])), slice(int(low[2]), int(high[2])))

    def mm(self, box: Box) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return index times spacing along each axis of a box, shaped to broadcast."""
        i, j, k = (
            np.arange(part.start, part.stop, dtype=np.float64) * step
            for part, step in zip(box, self.spacing_mm, strict=True)
        )
        return i[:, None, None], j[None, :, None], k[None, None, :]

    def put(self, box: Box, alpha: NDArray[Any], target: float | NDArray[Any]) -> None:
        """Replace tissue: ``alpha`` (0 to 1, box-shaped) of ``target`` HU, with the texture of soft tissue on it."""
        here = self.hu[box]
        here += np.asarray(alpha, np.float32) * (np.asarray(target, np.float32) + self._texture(box) - here)

    def add(self, box: Box, delta: NDArray[Any]) -> None:
        """Add HU and keep the texture beneath."""
        self.hu[box] += np.asarray(delta, np.float32)

    def occupy(self, box: Box, mask: NDArray[np.bool_]) -> None:
        """Mark voxels of a box as used."""
        self.occupied[box] |= mask

    def ras(self, ijk: NDArray[np.float64]) -> list[float]:
        """Return the RAS+ position (mm) of a voxel."""
        return [round(float(value), 2) for value in self.patient.ras_mm(np.asarray(ijk, float))]

    def place(self, ijk: NDArray[np.float64], what: str, size_mm: float, **more: Any) -> dict[str, Any]:
        """Return an entry for ``Facts["places"]``."""
        voxel = [round(float(value), 2) for value in ijk]
        return {"ijk": voxel, "ras_mm": self.ras(ijk), "what": what, "size_mm": round(float(size_mm), 2), **more}

    def _texture(self, box: Box) -> NDArray[np.float32]:
        index = [np.arange(part.start, part.stop) % size for part, size in zip(box, self.tile.shape, strict=True)]
        return self.tile[np.ix_(*index)]


def open_canvas(patient: Patient, rng: np.random.Generator) -> Canvas:
    """Return a canvas with copies of the patient's arrays; ``rng`` draws the texture of replaced tissue."""
    hu = patient.hu.astype(np.float32)
    tile = ndimage.gaussian_filter(rng.standard_normal(TEXTURE_TILE), (TEXTURE_BLUR, TEXTURE_BLUR, 0.0), mode="wrap")
    return Canvas(
        patient=patient,
        hu=hu,
        organs=patient.organs.copy(),
        occupied=np.zeros(hu.shape, bool),
        hollow=np.zeros(hu.shape, bool),
        tile=(tile * (texture_sd(patient) / tile.std())).astype(np.float32),
    )


def texture_sd(patient: Patient) -> float:
    """Return the spread (HU) of the fine texture in the patient's liver, without slow changes and borders."""
    liver = patient.organ("liver")
    planes = np.flatnonzero(liver.any((0, 1)))
    if len(planes) == 0:
        return 0.0
    counts = liver[:, :, planes].sum((0, 1))
    plane = int(planes[counts.argmax()])
    inner = ndimage.binary_erosion(liver[:, :, plane], iterations=3)
    picture = patient.hu[:, :, plane].astype(float)
    fine = (picture - ndimage.uniform_filter(picture, 5))[inner]
    return float(1.25 * np.median(np.abs(fine)) / 0.6745) if fine.size > 20 else 0.0
