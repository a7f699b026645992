"""Calcium as it looks on CT: dense cores that lose their peak to partial volume."""

import numpy as np
from numpy.typing import NDArray

from categories.ct_abnormality.canvas import Box, Canvas
from categories.ct_abnormality.heart_shapes import Points, tube_distance
from categories.ct_abnormality.lung_texture import Field, fractal, pool

SEEN_HU, SPECK_HU = 270.0, 175.0
"""Of a plaque that is to be seen; of a speck that may escape."""


def plaque(
    canvas: Canvas, rng: np.random.Generator, points: Points, radius_mm: float, peak_hu: float, seen_hu: float = SEEN_HU
) -> tuple[Box, Field, NDArray[np.bool_]]:
    """Lay calcium along a short course: uneven, beaded, blurred. Return its box, share of each voxel, and core.

    ``seen_hu`` is what its densest voxel reaches at least, however thick the slices are.
    """
    fine = (2, 2, 3) if canvas.spacing_mm[0] < 1.2 else (4, 4, 4)
    box, nearest = tube_distance(canvas, points, radius_mm + 1.0, fine)
    i, j, k = (np.arange(n, dtype=np.float64) for n in nearest.shape)
    steps = [mm / f for mm, f in zip(canvas.spacing_mm, fine, strict=True)]
    axes = (i[:, None, None] * steps[0], j[None, :, None] * steps[1], k[None, None, :] * steps[2])
    beads = 1 + 0.28 * fractal(rng, axes, 4.0, octaves=2)
    share = pool(np.clip((radius_mm * np.clip(beads, 0.35, 1.5) - nearest) / 0.5 + 0.5, 0, 1), fine)
    here = canvas.hu[box]
    share = visible(here, share, peak_hu, seen_hu)
    canvas.put(box, share, np.maximum(here, peak_hu))
    return box, share, share > 0.35 * float(share.max())


def visible(here: NDArray[np.float32], share: Field, peak_hu: float, seen_hu: float = SEEN_HU) -> Field:
    """Return the shares of calcium, raised alike so that its densest voxel reaches ``seen_hu``: slices may be thick."""
    dense = here + share * (np.maximum(here, peak_hu) - here)
    at = np.unravel_index(int(np.argmax(np.where(share > 0, dense, -1e4))), dense.shape)
    if dense[at] >= seen_hu or share[at] <= 0:
        return share
    needed = (seen_hu - float(here[at])) / (peak_hu - float(here[at]))
    return np.asarray(np.minimum(share * np.float32(needed / float(share[at])), 1), np.float32)


def number_of_plaques(canvas: Canvas, rng: np.random.Generator) -> int:
    """Return 2 to 12: more in the old, and in men as in women ten years older (as in the cohorts that counted them)."""
    years = canvas.patient.age + (0 if canvas.patient.sex == "M" else -10)
    mean = 1.0 + 5.0 * np.clip((years - 45) / 40, 0.05, 1.0)
    return int(2 + min(rng.poisson(mean), 10))
