"""Metal on CT: its own density, far over the scale, and the streaks that beam hardening and starved detectors add."""

import numpy as np
from numpy.typing import NDArray
from scipy import fft, ndimage

from categories.ct_abnormality.canvas import Box, Canvas
from categories.ct_abnormality.heart_shapes import Points, tube
from categories.ct_abnormality.lung_texture import Field

ANGLES = 60
RAY_MM = 1.0
GRID_MM = 1.5
REACH_MM = 85.0
STREAK_AREA_MM2 = 4.0
"""Metal of less cross-section leaves no streak worth drawing."""
HARDENING = 210.0
"""Set by eye and measure: beside a pacemaker (40 mm of metal along a ray) bands of several hundred HU, beside a valve's
ring some tens."""


def wire(canvas: Canvas, points: Points, radius_mm: float, hu: float) -> tuple[Box, Field]:
    """Lay a wire or rod of a density (HU, may be over the scale) and return its box and the share of each voxel."""
    box, share = tube(canvas, points, radius_mm, edge_mm=0.45)
    lay(canvas, box, share, hu)
    return box, share


def lay(canvas: Canvas, box: Box, share: NDArray[np.float32], hu: float) -> None:
    """Replace a share of each voxel by material of a density and mark it as used; nothing denser is thinned out."""
    canvas.put(box, share, np.maximum(canvas.hu[box], hu))
    canvas.occupy(box, share > 0.2)


def streaks(canvas: Canvas, box: Box, share: Field, rng: np.random.Generator) -> None:
    """Add the streaks that metal (``share`` of each voxel of a box) leaves in its cross-sections."""
    area = share.sum((0, 1), dtype=np.float64) * canvas.spacing_mm[0] * canvas.spacing_mm[1]
    for plane in np.flatnonzero(area > STREAK_AREA_MM2):
        _plane(canvas, box, share[:, :, plane], box[2].start + int(plane), rng)


def _plane(canvas: Canvas, box: Box, share: Field, k: int, rng: np.random.Generator) -> None:
    di, dj, _ = canvas.spacing_mm
    where = np.argwhere(share > 0.25)
    if not len(where):
        return
    weight = share[where[:, 0], where[:, 1]] * di * dj
    x, y = (where[:, 0] + box[0].start) * di, (where[:, 1] + box[1].start) * dj
    x0, y0 = float(x.mean()), float(y.mean())
    half = REACH_MM + float(max(np.ptp(x), np.ptp(y))) / 2
    grid = np.arange(-half, half + GRID_MM, GRID_MM)
    rays = int(2 * 1.5 * half / RAY_MM) + 2
    middle = rays / 2
    ramp = np.abs(fft.fftfreq(2 * rays))
    total = np.zeros((len(grid), len(grid)))
    for step in range(ANGLES):
        angle = np.pi * (step + float(rng.uniform(0.2, 0.8))) / ANGLES
        cos, sin = round(float(np.cos(angle)), 9), round(float(np.sin(angle)), 9)
        at = np.clip(np.round(((x - x0) * cos + (y - y0) * sin) / RAY_MM + middle).astype(int), 0, rays - 1)
        path = np.bincount(at, weight, rays) / RAY_MM
        # Beam hardening: rays through much metal read too low; photon starvation: a chance factor per view.
        error = path * np.sqrt(path) * (1 + 0.5 * float(rng.standard_normal()))
        filtered = fft.ifft(fft.fft(error, 2 * rays) * ramp).real[:rays]
        ray = (grid[:, None] * cos + grid[None, :] * sin) / RAY_MM + middle
        total -= np.interp(ray.ravel(), np.arange(rays), filtered).reshape(ray.shape)
    total *= HARDENING * np.pi / ANGLES
    _add(canvas, total, (x0, y0), half, k, share, box)


def _add(
    canvas: Canvas, total: NDArray[np.float64], centre: tuple[float, float], half: float, k: int, share: Field, box: Box
) -> None:
    """Add a coarse picture of streaks to one cross-section, inside the body, fading out and sparing the metal."""
    di, dj, _ = canvas.spacing_mm
    low = [max(0, int((c - half) / d)) for c, d in zip(centre, (di, dj), strict=True)]
    high = [min(n, int((c + half) / d)) for c, d, n in zip(centre, (di, dj), canvas.hu.shape[:2], strict=True)]
    i = np.arange(low[0], high[0]) * di - centre[0]
    j = np.arange(low[1], high[1]) * dj - centre[1]
    at = np.meshgrid((i + half) / GRID_MM, (j + half) / GRID_MM, indexing="ij")
    fine = ndimage.map_coordinates(total, at, order=1)
    away = np.sqrt(i[:, None] ** 2 + j[None, :] ** 2)
    fine = np.clip(fine, -650, 650) * np.clip((half - away) / (0.6 * half), 0, 1)
    metal = np.zeros(fine.shape)
    inner = (slice(box[0].start - low[0], box[0].stop - low[0]), slice(box[1].start - low[1], box[1].stop - low[1]))
    if all(part.start >= 0 and part.stop <= size for part, size in zip(inner, fine.shape, strict=True)):
        metal[inner] = share
    here = canvas.hu[low[0] : high[0], low[1] : high[1], k]
    here += (fine * (1 - np.clip(2 * metal, 0, 1)) * (here > -1100)).astype(np.float32)
