"""Mosaic attenuation: a patchwork of lobules; where it is dark, the vessels are thin."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from categories.ct_abnormality.canvas import Canvas, Facts, States
from categories.ct_abnormality.lung_gravity import back_mm
from categories.ct_abnormality.lung_texture import Field, fractal, lobule_seeds, lobules, smooth_step, upsample
from categories.ct_abnormality.lungs import Lungs, airy, lobe_map, survey

YES_PERCENT, GREY_PERCENT = (27.0, 50.0), (8.0, 15.0)
YES_HU, GREY_HU = (92.0, 120.0), (60.0, 80.0)
MAP_MM = 2.2
"""Pitch of the map of lobules."""
LOBULE_MM = 17.0
THINNING = 0.55
"""Share of a thin vessel's excess over the lung that is lost where it is dark."""


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Leave 27 to 50 % of the lung dark in a patchwork, 92 to 120 HU below the rest."""
    del states
    facts = _patchwork(canvas, rng, float(rng.uniform(*YES_PERCENT)), float(rng.uniform(*YES_HU)))
    facts["signs"] = ["lobular borders", "thin vessels where it is dark"]
    return facts


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Leave 8 to 15 % of the lung dark."""
    del states
    return _patchwork(canvas, rng, float(rng.uniform(*GREY_PERCENT)), float(rng.uniform(*GREY_HU)))


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw a scan in expiration: a wide gradient from the back, and up to three dark lobules, as in the healthy."""
    del states
    lungs = survey(canvas)
    contrast = float(rng.uniform(75, 120))
    back = back_mm(lungs)
    wave = 0.16 * fractal(rng, lungs.axes, 120.0, octaves=1)
    rise = np.clip(1 - back / max(float(back[lungs.lobe > 0].max()), 1.0) + wave, 0, 1) * contrast
    chart = _chart(canvas, rng, lungs)
    within = np.unique(chart.owner[chart.inside])
    few = np.zeros(chart.count, bool)
    few[rng.choice(within, int(rng.integers(1, 4)))] = True
    dark = few[chart.owner]
    change = lungs.spread(np.asarray(rise, np.float32), lungs.box) - np.float32(45) * _soft(chart, dark)
    canvas.add(lungs.box, airy(canvas, lungs.box) * change)
    return {
        "measure": round(100 * float(dark[chart.inside].mean()), 2),
        "unit": "% of lung",
        "places": [],
        "signs": ["gradient without borders", "single dark lobules"],
        "contrast_hu": round(contrast, 1),
    }


@dataclass(frozen=True)
class _Chart:
    """Which lobule each point of a map at ``MAP_MM`` belongs to."""

    owner: NDArray[np.int32]
    inside: NDArray[np.bool_]
    seeds: NDArray[np.float64]
    positions: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
    """Of the voxels of the lungs' box on the map, along each axis."""

    @property
    def count(self) -> int:
        return len(self.seeds)


def _chart(canvas: Canvas, rng: np.random.Generator, lungs: Lungs) -> _Chart:
    voxels = canvas.mm(lungs.box)
    pitch = [max(MAP_MM, step) for step in canvas.spacing_mm]
    i, j, k = (np.arange(a.min(), a.max() + p, p) for a, p in zip(voxels, pitch, strict=True))
    axes = (i[:, None, None], j[None, :, None], k[None, None, :])
    seeds = lobule_seeds(rng, np.array([a[0] for a in (i, j, k)]), np.array([a[-1] for a in (i, j, k)]), LOBULE_MM)
    near = ndimage.binary_dilation(lungs.lobe > 0, iterations=3)
    seeds = seeds[[bool(near[lungs.at(seed / canvas.spacing_mm)]) for seed in seeds]]
    first, second, pair = lobules(axes, seeds, 1.35 * LOBULE_MM)
    del first, second
    start = [part.start for part in lungs.box]
    index = [
        np.clip(((a / mm - s + 0.5) / step).astype(int), 0, n - 1)
        for a, mm, s, step, n in zip((i, j, k), canvas.spacing_mm, start, lungs.step, lungs.lobe.shape, strict=True)
    ]
    x, y, z = ((v.ravel() - v.min()) / p for v, p in zip(voxels, pitch, strict=True))
    return _Chart(pair // np.int32(len(seeds)), lungs.lobe[np.ix_(*index)] > 0, seeds, (x, y, z))


def _soft(chart: _Chart, dark: NDArray[np.bool_]) -> Field:
    """Return a map of lobules on the voxels of the lungs' box, its borders softened by partial volume."""
    return upsample(ndimage.gaussian_filter(dark.astype(np.float32), 0.45), chart.positions)


def _patchwork(canvas: Canvas, rng: np.random.Generator, percent: float, contrast: float) -> Facts:
    lungs = survey(canvas)
    chart = _chart(canvas, rng, lungs)
    # Dark lobules lie in groups: a wide noise at the lobule decides, and some chance of its own.
    wide = fractal(rng, lungs.axes, 75.0, octaves=2)
    score = np.array([wide[lungs.at(seed / canvas.spacing_mm)] for seed in chart.seeds])
    score = score + 0.55 * rng.standard_normal(chart.count)
    shares = np.bincount(chart.owner[chart.inside], minlength=chart.count) / max(1, int(chart.inside.sum()))
    order = np.argsort(-score)
    chosen = np.zeros(chart.count, bool)
    chosen[order[: int(np.searchsorted(np.cumsum(shares[order]), percent / 100)) + 1]] = True
    dark = chosen[chart.owner]
    field = _soft(chart, dark)
    box = lungs.box
    excess = canvas.hu[box] - lungs.spread(lungs.level, box)
    # A vessel of half the bore fills less of its voxels: small ones fade, large ones only shrink at their rim.
    thinner = np.float32(-THINNING) * excess * smooth_step(excess, 70, 170) * smooth_step(excess, 850, 500)
    within = (lobe_map(canvas, box) > 0) & ~canvas.occupied[box]
    canvas.add(
        box, np.float32(contrast) * (np.float32(0.8) - field) * airy(canvas, lungs.box) + thinner * field * within
    )
    return {
        "measure": round(100 * float(dark[chart.inside].mean()), 2),
        "unit": "% of lung",
        "places": [],
        "signs": ["lobular borders"],
        "contrast_hu": round(contrast, 1),
    }
