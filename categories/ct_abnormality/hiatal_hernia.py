"""Hiatal hernia: stomach that lies above the diaphragm, behind the heart, and reaches there through the hiatus.

Look-alikes: fat that has come through the hiatus without stomach, and a wide gullet with gas and a fluid level.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from categories.chest.labels import BONES, LOBES, ORGANS, where
from categories.ct_abnormality.canvas import Box, Canvas, Facts, States
from categories.ct_abnormality.heart_shapes import Points, centroids, curve, tube_distance
from categories.ct_abnormality.lung_texture import Field, fractal, inside, smooth_step

PRESENT_MM, GREY_MM = (32.0, 85.0), (9.0, 16.0)
WALL_HU, GAS_HU, FAT_HU = 40.0, -985.0, -100.0
ABOVE_LOWEST_MM = 9.0
"""The map's gullet reaches down to the stomach; the hiatus is about so far above its lowest point."""
ROUND_MM = 12.0
FIXED = ("heart", "aorta", "inferior_vena_cava", "pulmonary_vein", "liver", "spleen", "spinal_cord", *BONES)
"""What a sac moulds itself round."""


@dataclass(frozen=True)
class Hiatus:
    """Where the gullet passes the diaphragm. All mm."""

    gullet: Points
    """Centres from foot to head."""
    at: NDArray[np.float64]
    stomach: NDArray[np.float64]
    """A point in the upper stomach."""


def find_hiatus(canvas: Canvas) -> Hiatus | None:
    """Return the hiatus; None where the scan shows no gullet."""
    gullet = centroids(canvas, ["esophagus"], 3.0)
    if len(gullet) < 6:
        return None
    level = gullet[0, 2] + ABOVE_LOWEST_MM
    at = np.array([np.interp(level, gullet[:, 2], gullet[:, axis]) for axis in range(3)])
    stomach = centroids(canvas, ["stomach"], 3.0)
    below = at + np.array([14.0, 8.0, -22.0])
    if len(stomach):
        top = stomach[max(0, len(stomach) - 4)]
        below = np.where(np.abs(top - at) < 70, top, below)
    return Hiatus(gullet, at, below)


def _sac_depth(
    canvas: Canvas, rng: np.random.Generator, hiatus: Hiatus, height_mm: float, radius_mm: float
) -> tuple[Box, Field]:
    """Return a box and mm below the surface of a sac that rises from the hiatus in front of aorta and spine."""
    side = 1.0 if rng.random() < 0.6 else -1.0
    reach = radius_mm * 1.5 + 12
    middle = hiatus.at + np.array([0.0, 0.0, height_mm / 2])
    box = canvas.box(middle / canvas.spacing_mm, (reach + 0.6 * radius_mm, reach, height_mm / 2 + 16))
    axes = canvas.mm(box)
    # An egg that stands in the hiatus with its lower end; the way through it is ``_neck``.
    below = min(0.3 * height_mm, 9.0)
    half = (height_mm + below) / 2
    up = (axes[2] - hiatus.at[2] - height_mm + half) / half
    line, rise = hiatus.gullet, np.clip((up + 1) / 2, 0, 1)
    profile = radius_mm * np.sqrt(np.clip(1 - up**2, 0, 1)) * (0.85 + 0.15 * rise)
    lean = side * radius_mm * float(rng.uniform(0.3, 0.6)) * smooth_step(rise, 0.1, 0.6)
    x0 = np.interp(axes[2].ravel(), line[:, 2], line[:, 0])[None, None, :] + lean
    gullet = np.interp(axes[2].ravel(), line[:, 2], line[:, 1])[None, None, :]
    # Its round back rests on aorta and spine.
    behind = _behind(canvas, axes[2].ravel(), gullet)
    y0 = np.maximum(gullet + 2.0 * rise, behind + 1.0 + 0.85 * profile)
    wide, flat = float(rng.uniform(1.05, 1.35)), float(rng.uniform(1.05, 1.25))
    girth = radius_mm * (0.85 + 0.15 * rise)
    away = ((axes[0] - x0) / (wide * girth)) ** 2 + ((axes[1] - y0) * flat / girth) ** 2
    uneven = 0.09 * radius_mm * fractal(rng, axes, 28.0, octaves=2)
    depth = (1 - np.sqrt(away + up**2)) * min(radius_mm, half) + uneven
    fixed = where(canvas.organs[box], FIXED)
    apart = ndimage.distance_transform_edt(~fixed, canvas.spacing_mm) if fixed.any() else np.full(fixed.shape, 1e3)
    depth = _both(_both(depth, 0.9 * apart - 1.2), axes[1] - behind - 1.0)
    blur = np.minimum(1.6 / np.array(canvas.spacing_mm), 2.5)
    return box, ndimage.gaussian_filter(depth, (blur[0], blur[1], 0.5)).astype(np.float32)


def _behind(canvas: Canvas, heights: NDArray[np.float64], gullet: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, at each height, how far back a sac may reach, mm: the middle of the descending aorta."""
    aorta = centroids(canvas, ["aorta"], 3.0)
    behind = gullet - 9.0
    if len(aorta):  # higher up the ascending aorta draws the middle forward
        behind = np.minimum(behind, np.interp(heights, aorta[:, 2], aorta[:, 1])[None, None, :])
    return behind


def _both(first: NDArray[np.floating], second: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the smaller of two depths, rounded where they meet: a sac under tension has no edges."""
    close = np.clip(1 - np.abs(first - second) / ROUND_MM, 0, 1)
    return np.asarray(np.minimum(first, second) - close * close * ROUND_MM / 4)


def _fill_stomach(canvas: Canvas, rng: np.random.Generator, box: Box, depth: Field, wall_mm: float, gas: float) -> None:
    """Paint wall, contents and gas: gas in front of a level (the patient is supine), fluid and food behind."""
    canvas.put(box, inside(depth, 1.2), WALL_HU)
    lumen = inside(depth - wall_mm, 1.0)
    food = float(rng.uniform(8, 30)) + float(rng.uniform(6, 16)) * fractal(rng, canvas.mm(box), 14.0)
    canvas.put(box, lumen, food)
    rows = np.flatnonzero((lumen > 0.5).any((0, 2)))
    if len(rows) > 3:
        y = canvas.mm(box)[1]
        low, high = float(y[0, rows[0], 0]), float(y[0, rows[-1], 0])
        level = high - gas * (high - low)
        canvas.put(box, lumen * inside(y - level, 0.7), GAS_HU)


def _neck(canvas: Canvas, rng: np.random.Generator, hiatus: Hiatus, radius_mm: float) -> None:
    """Paint the stomach's way through the hiatus: it makes sac and stomach one."""
    between = (hiatus.stomach + hiatus.at) / 2 + np.array([2.0, -2.0, 0.0])
    line = curve(np.stack([hiatus.stomach, between, hiatus.at, hiatus.at + np.array([0.0, 0.0, 8.0])]))
    box, nearest = tube_distance(canvas, line, radius_mm + 2, (1, 1, 1))
    keep = ~where(canvas.organs[box], FIXED)
    depth = radius_mm - nearest
    canvas.put(box, inside(depth, 1.2) * keep, WALL_HU)
    canvas.put(box, inside(depth - 4.0, 1.0) * keep, float(rng.uniform(8, 30)))


def _rise(canvas: Canvas, hiatus: Hiatus, box: Box, body: Field) -> float:
    """Return how far a body reaches above the hiatus, mm."""
    planes = np.flatnonzero((body > 0.5).any((0, 1)))
    return float((box[2].start + planes[-1] + 0.5) * canvas.spacing_mm[2] - hiatus.at[2]) if len(planes) else 0.0


def _hernia(canvas: Canvas, rng: np.random.Generator, height_mm: float, signs: list[str]) -> Facts:
    facts: Facts = {"measure": 0.0, "unit": "mm", "places": [], "signs": signs}
    hiatus = find_hiatus(canvas)
    if hiatus is None:
        return facts
    radius = float(np.clip(rng.uniform(0.42, 0.6) * height_mm, 11.0, 36.0))
    box, depth = _sac_depth(canvas, rng, hiatus, height_mm, radius)
    uneven = fractal(rng, canvas.mm(box), 22.0, octaves=2)
    fat = inside(depth + np.clip(2.5 + 2.0 * uneven, 0.3, 7.0), 1.5)
    here = canvas.organs[box]
    level = ndimage.gaussian_filter(canvas.hu[box], (1.2, 1.2, 0))
    loose = np.maximum(where(here, LOBES), smooth_step(level, 15.0, -25.0))
    canvas.put(box, fat * ~where(here, FIXED) * loose, FAT_HU)
    if height_mm > 25:
        _neck(canvas, rng, hiatus, min(13.0, 0.7 * radius))
    _fill_stomach(canvas, rng, box, depth, float(rng.uniform(2.8, 4.5)), float(rng.uniform(0.18, 0.55)))
    body = inside(depth, 1.2)
    canvas.occupy(box, body > 0.3)
    spot = hiatus.at + np.array([0.0, 0.0, height_mm / 2])
    volume = float(body.sum(dtype=np.float64)) * float(np.prod(canvas.spacing_mm)) / 1000
    return facts | {
        "measure": round(_rise(canvas, hiatus, box, body), 1),
        "places": [canvas.place(spot / canvas.spacing_mm, "intrathoracic stomach", 2 * radius)],
        "volume_ml": round(volume, 1),
    }


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw a sac of stomach with its neck, gas level and fat."""
    del states
    low, high = PRESENT_MM
    height = float(low * (high / low) ** rng.random())
    return _hernia(canvas, rng, height, ["stomach behind the heart", "gas level", "neck through the hiatus", "fat"])


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw a junction a little above the hiatus."""
    del states
    return _hernia(canvas, rng, float(rng.uniform(*GREY_MM)), ["junction above the hiatus"])


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw fat above the hiatus, or a wide gullet with gas."""
    del states
    hiatus = find_hiatus(canvas)
    facts: Facts = {"measure": 0.0, "unit": "mm", "places": [], "signs": ["no stomach above the hiatus"]}
    if hiatus is None:
        return facts
    if rng.random() < 0.5:
        height = float(rng.uniform(22, 48))
        box, depth = _sac_depth(canvas, rng, hiatus, height, float(rng.uniform(12, 22)))
        here = canvas.organs[box]
        free = ~where(here, FIXED) & (where(here, LOBES) | (here == 0) | (here >= ORGANS["body"]))
        free &= ~canvas.occupied[box]
        strands = smooth_step(np.abs(fractal(rng, canvas.mm(box), 10.0, octaves=2)), 0.12, 0.0)
        body = inside(depth, 1.4) * free
        canvas.put(box, body, FAT_HU + 55 * strands)
        canvas.occupy(box, body > 0.3)
        spot = hiatus.at + np.array([0.0, 0.0, height / 2])
        return facts | {"kind": "fat", "places": [canvas.place(spot / canvas.spacing_mm, "fat at the hiatus", height)]}
    return facts | {"kind": "wide gullet", "places": [_wide_gullet(canvas, rng, hiatus)]}


def _wide_gullet(canvas: Canvas, rng: np.random.Generator, hiatus: Hiatus) -> Facts:
    length = float(rng.uniform(45, 100))
    low, high = hiatus.at[2] + 6, min(hiatus.at[2] + 6 + length, float(hiatus.gullet[-1, 2]) - 5)
    samples = np.linspace(low, high, 12)
    line = curve(np.stack([np.interp(samples, hiatus.gullet[:, 2], hiatus.gullet[:, axis]) for axis in range(3)], 1))
    radius = float(rng.uniform(7.0, 10.5))
    box, nearest = tube_distance(canvas, line, 1.5 * radius, (1, 1, 1))
    axes = canvas.mm(box)
    depth = radius * (1 + 0.2 * fractal(rng, axes, 30.0, octaves=2)) - nearest
    keep = ~where(canvas.organs[box], FIXED) & ~canvas.occupied[box]
    canvas.put(box, inside(depth, 1.2) * keep, WALL_HU)
    lumen = inside(depth - float(rng.uniform(2.4, 3.4)), 1.0) * keep
    canvas.put(box, lumen, GAS_HU)
    if rng.random() < 0.6:
        y0 = np.interp(axes[2].ravel(), hiatus.gullet[:, 2], hiatus.gullet[:, 1])[None, None, :]
        canvas.put(box, lumen * inside(y0 - float(rng.uniform(0.5, 3.0)) - axes[1], 0.8), float(rng.uniform(5, 25)))
    canvas.occupy(box, lumen > 0.3)
    return canvas.place(line[len(line) // 2] / canvas.spacing_mm, "wide gullet", 2 * radius)
