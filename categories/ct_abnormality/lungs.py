"""Where the lungs are: a coarse map for choosing places and for wide, smooth changes, and the fine parenchyma."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from categories.chest.labels import LOBES, ORGANS
from categories.ct_abnormality.canvas import Box, Canvas
from categories.ct_abnormality.lung_texture import Axes, Field, smooth_step, upsample

_LOBE_TABLE = np.zeros(256, np.uint8)
_LOBE_TABLE[[ORGANS[name] for name in LOBES]] = np.arange(1, len(LOBES) + 1)
COARSE_MM = (4.2, 4.2, 5.0)
DENSE_HU = -600.0
"""Vessels, airway walls and partial volume of them lie above; aerated lung below."""


@dataclass(frozen=True)
class Lungs:
    """The lungs of a canvas. Coarse arrays have one point per ``step`` voxels of ``box``."""

    box: Box
    step: tuple[int, int, int]
    spacing_mm: NDArray[np.float64]
    """Of the coarse grid."""
    lobe: NDArray[np.uint8]
    """0 outside, else 1 + index in ``LOBES``."""
    free: NDArray[np.bool_]
    """Aerated lung that no earlier finding uses."""
    level: Field
    """Mean HU of the aerated lung nearby."""
    depth_mm: Field
    """Distance to the nearest point outside the lung (its wall, the mediastinum)."""

    @property
    def height(self) -> NDArray[np.float64]:
        """0 at the lowest, 1 at the highest slice of the lungs, shaped to broadcast."""
        return np.linspace(0, 1, self.lobe.shape[2])[None, None, :]

    @property
    def front(self) -> NDArray[np.float64]:
        """0 at the rearmost, 1 at the foremost row of the lungs, shaped to broadcast."""
        return np.linspace(0, 1, self.lobe.shape[1])[None, :, None]

    @property
    def axes(self) -> Axes:
        """Coordinates of the coarse points in mm of the whole grid, shaped to broadcast."""
        i, j, k = (
            (part.start + (step - 1) / 2) / step * mm + np.arange(n) * mm
            for part, step, mm, n in zip(self.box, self.step, self.spacing_mm, self.lobe.shape, strict=True)
        )
        return i[:, None, None], j[None, :, None], k[None, None, :]

    def pick(self, rng: np.random.Generator, where: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return a random voxel (i, j, k) where the coarse map is true, of the free lung if it is true nowhere."""
        for mask in (where & self.free, self.free, self.lobe > 0):
            points = np.argwhere(mask)
            if len(points):
                break
        point = points[rng.integers(len(points))] + rng.uniform(0, 1, 3)
        return np.asarray(np.array([part.start for part in self.box]) + point * self.step - 0.5)

    def spread(self, field: Field, box: Box) -> Field:
        """Return a coarse field on the voxels of a box, linear between the coarse points."""
        positions = [
            (np.arange(part.start, part.stop) - whole.start - (step - 1) / 2) / step
            for part, whole, step in zip(box, self.box, self.step, strict=True)
        ]
        return upsample(field, positions)

    def at(self, ijk: NDArray[np.float64]) -> tuple[int, int, int]:
        """Return the coarse index of a voxel, clipped."""
        start = np.array([part.start for part in self.box])
        i, j, k = np.clip(((ijk - start + 0.5) / self.step).astype(int), 0, np.array(self.lobe.shape) - 1)
        return int(i), int(j), int(k)

    def lobe_name(self, ijk: NDArray[np.float64]) -> str:
        """Return the name of the lobe at a voxel, or of nothing if it lies outside."""
        number = int(self.lobe[self.at(ijk)])
        return LOBES[number - 1] if number else "outside"

    def side(self, name: str) -> NDArray[np.bool_]:
        """Return the coarse map of the lung of one side, ``left`` or ``right``."""
        return np.isin(self.lobe, [n for n, lobe in enumerate(LOBES, 1) if lobe.endswith(name)])


def lobe_map(canvas: Canvas, box: Box) -> NDArray[np.uint8]:
    """Return the lobe numbers (see ``Lungs.lobe``) of a box of voxels."""
    return _LOBE_TABLE[canvas.organs[box]]


def aerated(canvas: Canvas, box: Box) -> NDArray[np.bool_]:
    """Return the voxels of a box that are aerated lung and not used by an earlier finding."""
    return (lobe_map(canvas, box) > 0) & (canvas.hu[box] < DENSE_HU) & ~canvas.occupied[box]


def survey(canvas: Canvas) -> Lungs:
    """Return the map of the lungs of a canvas as it is now."""
    spacing = np.array(canvas.spacing_mm)
    step = np.maximum(1, np.rint(np.array(COARSE_MM) / spacing).astype(int))
    thin = _LOBE_TABLE[canvas.organs[:: step[0], :: step[1], :: step[2]]] > 0
    ranges = [np.flatnonzero(thin.any(tuple(a for a in range(3) if a != axis))) for axis in range(3)]
    box, counts = [], []
    for found, size, full in zip(ranges, step, canvas.hu.shape, strict=True):
        low = max(0, (int(found[0]) - 1) * int(size))
        count = min((int(found[-1]) + 2) * int(size) - low, full - low) // int(size)
        box.append(slice(low, low + count * int(size)))
        counts.append(count)
    middle = tuple(slice(part.start + s // 2, part.stop, s) for part, s in zip(box, step, strict=True))
    lobe = _LOBE_TABLE[canvas.organs[middle]]
    hu = canvas.hu[middle]
    free = (lobe > 0) & (hu < DENSE_HU) & ~canvas.occupied[middle]
    weight = ndimage.uniform_filter(free.astype(np.float64), 5)
    total = ndimage.uniform_filter(np.where(free, hu, 0.0).astype(np.float64), 5)
    level = np.where(weight > 0.02, total / np.maximum(weight, 0.02), -870.0)
    depth = ndimage.distance_transform_edt(lobe > 0, sampling=step * spacing)
    i, j, k = (int(s) for s in step)
    return Lungs(
        (box[0], box[1], box[2]), (i, j, k), step * spacing, lobe, free,
        level.astype(np.float32), depth.astype(np.float32),
    )  # fmt: skip


def airy(canvas: Canvas, box: Box) -> Field:
    """Return 1 where the voxels of a box are parenchyma, be it hazy; 0 in vessels, bronchi and holes.

    Haze takes part in what changes the lung around it: else it would lose its contrast.
    """
    hu = canvas.hu[box]
    inside = (lobe_map(canvas, box) > 0) & ~canvas.hollow[box]
    return smooth_step(hu, -450, -750) * smooth_step(hu, -990, -945) * inside
