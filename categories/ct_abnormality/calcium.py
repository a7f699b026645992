"""Calcium as it looks on CT: dense cores that lose their peak to partial volume."""

import numpy as np
from numpy.typing import NDArray

from categories.ct_abnormality.canvas import Box, Canvas
from categories.ct_abnormality.heart_shapes import Points, tube_distance
from categories.ct_abnormality.lung_texture import Field, fractal, pool


def plaque(
    canvas: Canvas, rng: np.random.Generator, points: Points, radius_mm: float, peak_hu: float
) -> tuple[Box, Field, NDArray[np.bool_]]:
    """Lay calcium along a short course: uneven, beaded, blurred. Return its box, share of each voxel, and core."""
    fine = (2, 2, 3) if canvas.spacing_mm[0] < 1.2 else (4, 4, 4)
    box, nearest = tube_distance(canvas, points, radius_mm + 1.0, fine)
    i, j, k = (np.arange(n, dtype=np.float64) for n in nearest.shape)
    steps = [mm / f for mm, f in zip(canvas.spacing_mm, fine, strict=True)]
    axes = (i[:, None, None] * steps[0], j[None, :, None] * steps[1], k[None, None, :] * steps[2])
    beads = 1 + 0.28 * fractal(rng, axes, 4.0, octaves=2)
    share = pool(np.clip((radius_mm * np.clip(beads, 0.35, 1.5) - nearest) / 0.5 + 0.5, 0, 1), fine)
    here = canvas.hu[box]
    canvas.put(box, share, np.maximum(here, peak_hu))
    return box, share, share > 0.35


def number_of_plaques(canvas: Canvas, rng: np.random.Generator) -> int:
    """Return 2 to 12: more in the old, and in men as in women ten years older (as in the cohorts that counted them)."""
    years = canvas.patient.age + (0 if canvas.patient.sex == "M" else -10)
    mean = 1.0 + 5.0 * np.clip((years - 45) / 40, 0.05, 1.0)
    return int(2 + min(rng.poisson(mean), 10))
