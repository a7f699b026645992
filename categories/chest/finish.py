"""From anatomy to image: the output grid, the scanner's blur, table and noise, all blind to the findings."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.chest.patient import Patient
from categories.chest.scanner import ACROSS_SLICES, Field, Scanner, draw_scanner, grain, noise_levels, table
from categories.draw import Draw
from categories.spec import Scale

PAD_HU = -1024
"""Outside the round field of view."""
THREADS = 2


class Painted(Protocol):
    """What ``finish`` needs of a canvas."""

    @property
    def patient(self) -> Patient: ...
    @property
    def hu(self) -> NDArray[np.float32]: ...


@dataclass(frozen=True)
class Image:
    """A finished volume."""

    hu: NDArray[np.int16]
    """(I, J, K), axes as the patient's."""
    affine: NDArray[np.float64]
    """4 x 4, voxel -> RAS+ mm."""
    about: dict[str, str]
    """Acquisition attributes by their DICOM keywords."""


def finish(canvas: Painted, draw: Draw, grid: Scale) -> Image:
    """Return the canvas as a scanner shows it; the same draw has the same scanner and the same noise.

    Nothing here looks at what was drawn: noise levels come from the patient before any finding.
    """
    patient = canvas.patient
    native = canvas.hu.shape[2]
    scanner = draw_scanner(draw, grid, (native - 1) * patient.spacing_mm[2])
    levels, places = noise_levels(patient.hu, patient.spacing_mm[0])
    pixel_mm = patient.spacing_mm[0]
    back = int(np.nonzero((patient.organs > 0).any((0, 2)))[0].min())
    below = table(scanner, canvas.hu.shape[:2], pixel_mm, back)
    seen = _field_of_view(canvas.hu.shape[:2])
    out = np.empty((*canvas.hu.shape[:2], scanner.slices), np.int16)
    at = np.linspace(0, native - 1, scanner.slices)
    chunks = np.array_split(np.arange(scanner.slices), THREADS)

    def some(chunk: NDArray[np.int64]) -> None:
        before = grain(draw.rng("noise", int(chunk[0]) - 1), out.shape[:2], scanner.kernel)
        for k in chunk.tolist():
            own = grain(draw.rng("noise", k), out.shape[:2], scanner.kernel)
            noise = (own + ACROSS_SLICES * before) / np.float32((1 + ACROSS_SLICES**2) ** 0.5)
            before = own
            level = np.float32(scanner.noise_hu * np.interp(at[k], np.arange(native), levels))
            slice_ = _blur(between(canvas.hu, float(at[k])), scanner) + below + noise * places * level
            out[:, :, k] = np.where(seen, np.clip(np.rint(slice_), PAD_HU, 3071), PAD_HU)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(some, chunks))
    affine = patient.affine.copy()
    affine[:3, 2] *= (native - 1) / (scanner.slices - 1)
    return Image(out, affine, scanner.about(float(np.abs(affine[2, 2]))))


def between(hu: NDArray[np.float32], at: float) -> Field:
    """Return the slice at a fractional index, by Mitchell and Netravali's cubic: no slice is sharper than another."""
    low = int(at)
    total = np.zeros(hu.shape[:2], np.float32)
    for k in range(low - 1, low + 3):
        x = abs(at - k)
        near = (7 * x**3 - 12 * x**2 + 16 / 3) / 6
        far = (-7 / 3 * x**3 + 12 * x**2 - 20 * x + 32 / 3) / 6
        weight = near if x < 1 else far if x < 2 else 0.0
        total += np.float32(weight) * hu[:, :, min(max(k, 0), hu.shape[2] - 1)]
    return total


def _blur(flat: Field, scanner: Scanner) -> Field:
    share = scanner.kernel.sharpen
    if share == 0:
        return flat
    smooth = ndi.gaussian_filter(flat, 0.9, truncate=3)
    return np.asarray(flat + np.float32(share) * (flat - smooth), np.float32)


def _field_of_view(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    i, j = (np.arange(n) - (n - 1) / 2 for n in shape)
    return np.asarray(i[:, None] ** 2 + j[None, :] ** 2 <= (shape[0] / 2) ** 2)
