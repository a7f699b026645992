"""From anatomy to image: the output grid, the scanner's blur and noise, all drawn without a look at the labels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.chest.patient import Canvas
from categories.draw import Draw
from categories.spec import Scale

SLICES: dict[Scale, tuple[int, int]] = {"full": (285, 316), "small": (92, 101)}
NOISE_HU = (12.0, 26.0)


@dataclass(frozen=True)
class Image:
    """A finished volume."""

    hu: NDArray[np.int16]
    """(I, J, K), axes as the patient's."""
    affine: NDArray[np.float64]
    """4 x 4, voxel -> RAS+ mm."""


def finish(canvas: Canvas, draw: Draw, grid: Scale) -> Image:
    """Return the canvas as a scanner shows it; the same draw has the same scanner."""
    rng = draw.rng("scanner")
    count = int(rng.integers(*SLICES[grid]))
    native = canvas.hu.shape[2]
    at = np.linspace(0, native - 1, count)
    low = np.minimum(at.astype(int), native - 2)
    share = (at - low).astype(np.float32)
    noise_hu = rng.uniform(*NOISE_HU)
    out = np.empty((*canvas.hu.shape[:2], count), np.int16)
    for k in range(count):
        flat = canvas.hu[:, :, low[k]] * (1 - share[k]) + canvas.hu[:, :, low[k] + 1] * share[k]
        grain = ndi.gaussian_filter(rng.standard_normal(flat.shape), 0.7)
        out[:, :, k] = np.rint(np.clip(flat + grain * (noise_hu * 2.5), -1024, 3071))
    affine = canvas.patient.affine.copy()
    affine[:3, 2] *= (native - 1) / (count - 1)
    return Image(out, affine)
