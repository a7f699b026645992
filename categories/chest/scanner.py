"""The scanner of a draw: reconstruction kernel, noise, dose, table. Drawn from the draw alone, never from findings."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.draw import Draw
from categories.spec import Scale

Field = NDArray[np.float32]


@dataclass(frozen=True)
class Kernel:
    """A reconstruction kernel."""

    name: str
    noise_hu: tuple[float, float]
    """Spread of the noise in the middle of the body, at the full grid."""
    grain: float
    """Reach of the noise's grain, pixels."""
    hollow: float
    """How much of the noise's coarse part is taken out again: sharp kernels have little of it."""
    sharpen: float
    """Share of an unsharp mask; negative: blur."""


KERNELS = (
    Kernel("SOFT", (9.0, 14.0), 0.95, 0.30, -0.30),
    Kernel("STANDARD", (13.0, 21.0), 0.75, 0.45, 0.0),
    Kernel("LUNG", (22.0, 30.0), 0.50, 0.60, 0.35),
)
INCREMENT_MM = (1.0, 1.25)
SMALL_SLICES = (92, 101)
SMALL_NOISE = 0.5
"""A voxel of the small grid averages several of the full one."""
ACROSS_SLICES = 0.4
"""Share of a slice's noise that the next one carries on."""
COARSE = 2.6
"""Reach of the coarse part of noise, in grains."""
MILLIGRAYS = 8.0
"""Dose that goes with the middle of a kernel's range of noise."""


@dataclass(frozen=True)
class Scanner:
    """What lies between anatomy and image."""

    kernel: Kernel
    noise_hu: float
    slices: int
    kilovolts: int
    table_gap_mm: float
    table_bend: float
    """Rise of the table at the edge of the field, mm per mm squared."""
    table_hu: float
    table_mm: float
    table_depth_mm: float
    milligrays: float

    def about(self, increment_mm: float) -> dict[str, str]:
        """Return acquisition attributes by their DICOM keywords."""
        return {
            "ConvolutionKernel": self.kernel.name,
            "KVP": str(self.kilovolts),
            "SliceThickness": f"{max(1.25, round(increment_mm * 5) / 4):g}",
            "CTDIvol": f"{self.milligrays:.2f}",
        }


def draw_scanner(draw: Draw, grid: Scale, height_mm: float) -> Scanner:
    """Draw the scanner of a draw."""
    rng = draw.rng("scanner")
    kernel = KERNELS[int(rng.choice(len(KERNELS), p=(0.3, 0.45, 0.25)))]
    slices = round(height_mm / rng.uniform(*INCREMENT_MM)) if grid == "full" else int(rng.integers(*SMALL_SLICES))
    noise = float(rng.uniform(*kernel.noise_hu))
    return Scanner(
        kernel=kernel,
        noise_hu=noise if grid == "full" else noise * SMALL_NOISE,
        slices=slices,
        kilovolts=int(rng.choice((100, 120, 120, 120))),
        table_gap_mm=float(rng.uniform(3, 22)),
        table_bend=float(rng.uniform(2e-4, 9e-4)),
        table_hu=float(rng.uniform(-250, 350)),
        table_mm=float(rng.uniform(1.5, 3.5)),
        table_depth_mm=float(rng.uniform(18, 45)),
        milligrays=round(MILLIGRAYS * (sum(kernel.noise_hu) / 2 / noise) ** 2, 2),
    )


def table(scanner: Scanner, shape: tuple[int, int], pixel_mm: float, back: int) -> Field:
    """Return what the table adds to every slice (I, J); ``back`` is the body's hindmost column."""
    across = ((np.arange(shape[0]) - shape[0] / 2) * pixel_mm)[:, None]
    deep = (np.arange(shape[1]) * pixel_mm)[None, :]
    top = back * pixel_mm - scanner.table_gap_mm + scanner.table_bend * across * across * (np.abs(across) < 230)
    half = scanner.table_mm / 2
    total = np.zeros(shape)
    middle = top.min() - half
    for sheet in (middle + (top - top.min()), np.broadcast_to(middle - scanner.table_depth_mm, top.shape)):
        total = np.maximum(total, np.clip((half - np.abs(deep - sheet)) / pixel_mm + 0.5, 0, 1))
    return np.asarray(total * (scanner.table_hu + 1000), np.float32)


def noise_levels(hu: NDArray[np.int16], pixel_mm: float) -> tuple[NDArray[np.float64], Field]:
    """Return the noise of each slice and of each place in a slice, relative: thick parts and the middle have more."""
    few = hu[::4, ::4].astype(np.float64)
    water_mm2 = np.clip(few / 1000 + 1, 0, 2).sum((0, 1)) * (4 * pixel_mm) ** 2
    across = 2 * np.sqrt(np.round(water_mm2, 3) / 3.14159265)
    # Half of what thickness adds is made up for by the tube current.
    slices = np.clip(1 + 0.008 * (across - np.median(across)), 0.7, 1.8)
    i, j = (np.linspace(-1, 1, n) for n in hu.shape[:2])
    radius2 = i[:, None] ** 2 + j[None, :] ** 2
    return np.round(slices, 6), np.asarray(np.clip(1.1 - 0.5 * radius2, 0.45, None), np.float32)


def grain(rng: np.random.Generator, shape: tuple[int, int], kernel: Kernel) -> Field:
    """Return noise of spread 1 with the kernel's texture."""
    white = rng.standard_normal(shape)
    fine = ndi.gaussian_filter(white, kernel.grain, truncate=3.5)
    coarse = ndi.gaussian_filter(white, kernel.grain * COARSE, truncate=3)
    return np.asarray((fine - kernel.hollow * coarse) / _spread(kernel), np.float32)


def _spread(kernel: Kernel) -> float:
    """Return the spread of that noise, from the response to a single point."""
    point = np.zeros((65, 65))
    point[32, 32] = 1
    fine = ndi.gaussian_filter(point, kernel.grain, truncate=3.5)
    coarse = ndi.gaussian_filter(point, kernel.grain * COARSE, truncate=3)
    response = fine - kernel.hollow * coarse
    return round(float(np.sqrt((response * response).sum())), 9)
