"""How plainly a finding shows: what it changes in the scan, against the noise that the scanner lays over it."""

import numpy as np
from numpy.typing import NDArray

from categories.chest.scanner import draw_scanner
from categories.ct_abnormality.canvas import Canvas
from categories.draw import Draw

GATE = 2.0
"""Least contrast-to-noise, voxel by voxel, of a finding that is scored."""
CHANGED_HU = 15.0
"""What changes by less is not counted among the finding's voxels."""


def contrast_hu(before: NDArray[np.float32], after: NDArray[np.float32]) -> float:
    """Return the median change of the voxels that change by at least half as much as the most changed ones do."""
    change = np.abs(after - before)
    change = change[change > CHANGED_HU]
    if change.size == 0:
        return 0.0
    return float(np.median(change[change >= 0.5 * np.quantile(change, 0.98)]))


def noise_hu(canvas: Canvas, draw: Draw) -> float:
    """Return the spread (HU) of the noise that ``finish`` will lay over the middle of the body."""
    height_mm = (canvas.hu.shape[2] - 1) * canvas.spacing_mm[2]
    return draw_scanner(draw, draw.scale, height_mm).noise_hu
