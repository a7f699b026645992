"""From line integrals to the picture on the reading station: scatter, quanta, detector, processing, display curve."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

Floats = NDArray[np.float64]
DEPTH = 4095
"""Largest pixel value (12 bits)."""


@dataclass(frozen=True)
class Exposure:
    """How one picture was taken and processed; drawn apart from what it shows."""

    scatter: float
    """Share of scattered quanta behind the mean body: less with a grid."""
    quanta: float
    """Quanta per mm2 on the bare detector."""
    contrast: float
    """Slope of the characteristic curve."""
    level: float
    """Where its middle lies between lung and mediastinum, 0.35-0.6."""
    detail: float
    """Gain of structures finer than 15 mm."""
    sharpening: float
    """Gain of structures finer than 1 mm."""


def develop(lengths: Floats, pixel_mm: float, exposure: Exposure, rng: np.random.Generator) -> NDArray[np.uint16]:
    """Return the picture (0..DEPTH, bone white) of line integrals (rows, columns)."""
    signal = np.exp(-lengths)
    halo = wide(signal, 35 / pixel_mm)
    signal = signal * (1 - exposure.scatter) + exposure.scatter * halo
    quanta = exposure.quanta * pixel_mm**2
    grain = rng.standard_normal(signal.shape) * np.sqrt(signal / quanta)
    signal = np.maximum(signal + ndi.gaussian_filter(grain, 0.55) * 1.6, 1e-5)
    optical = -np.log(signal)
    low, high = _anchors(optical)
    toned = (optical - low) / (high - low)
    base = wide(toned, 15 / pixel_mm)
    fine = ndi.gaussian_filter(toned, 1.0 / pixel_mm)
    toned = 0.7 * base + exposure.detail * (fine - base) + exposure.sharpening * (toned - fine)
    value = 1 / (1 + np.exp(-exposure.contrast * (toned - exposure.level)))
    floor, ceiling = (1 / (1 + np.exp(-exposure.contrast * (x - exposure.level))) for x in (-0.25, 1.05))
    whole = np.rint((value - floor) / (ceiling - floor) * DEPTH)
    return np.asarray(np.clip(whole, 0, DEPTH).astype(np.uint16))


def texture(shape: tuple[int, int], pixel_mm: float, rng: np.random.Generator, size_mm: tuple[float, float]) -> Floats:
    """Return a band-limited random field of spread 1, its grain between two sizes."""
    step = max(1, round(size_mm[0] / pixel_mm / 1.2))
    coarse = rng.standard_normal(tuple(-(-n // step) + 2 for n in shape))
    fine, rough = (max(s / pixel_mm / step / 2, 0.4) for s in size_mm)
    field = ndi.gaussian_filter(coarse, fine) - ndi.gaussian_filter(coarse, rough)
    field /= field.std()
    if step > 1:
        field = ndi.zoom(field, step, order=1, grid_mode=True, mode="nearest")
    return np.asarray(field[: shape[0], : shape[1]])


def _anchors(optical: Floats) -> tuple[float, float]:
    """Return the optical paths of well-aired lung and of the mediastinum, from the middle of the field."""
    rows, columns = optical.shape
    part = optical[rows // 6 : rows * 5 // 6 : 7, columns // 8 : columns * 7 // 8 : 7]
    low, high = np.percentile(part, (4, 97))
    return float(low), float(max(high, low + 0.5))


def wide(picture: Floats, sigma: float) -> Floats:
    """Return a wide Gaussian blur, on a coarse copy."""
    step = max(1, int(sigma / 6))
    rows, columns = picture.shape
    pad = np.pad(picture, ((0, -rows % step), (0, -columns % step)), mode="edge")
    coarse = pad.reshape(pad.shape[0] // step, step, pad.shape[1] // step, step).mean((1, 3))
    blurred = ndi.gaussian_filter(coarse, sigma / step, mode="nearest")
    return np.asarray(ndi.zoom(blurred, step, order=1, grid_mode=True, mode="nearest")[:rows, :columns])
