"""Interlobular septal thickening: lines 1 to 2.5 mm wide that meet the pleura and join to polygons."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from categories.ct_abnormality.canvas import Box, Canvas, Facts, States
from categories.ct_abnormality.lung_strokes import Place, Point, bend, direction, strand, to_mm
from categories.ct_abnormality.lung_texture import Axes, Field, fractal, lobule_seeds, lobules, smooth_step
from categories.ct_abnormality.lungs import Lungs, lobe_map, survey

YES_REGIONS, GREY_SEPTA, LOBULE_MM = (2, 4), (5, 8), (11.0, 16.0)
SEPTUM_HU = -60.0
DEPTH_MM = 30.0
"""Septa fade inwards of this depth below the pleura."""
FISSURE_MM = 3.0
"""Reach of the smoothing that turns the steps between the lobes' masks into a surface."""
VISIBLE_MM2 = 60.0
"""Area of a septum that counts: about 10 mm long in two or three slices."""


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Thicken the septa of two to four wide regions under the pleura, on both sides, most of them basal."""
    del states
    lungs = survey(canvas)
    places = []
    for number in range(int(rng.integers(*YES_REGIONS, endpoint=True))):
        side = lungs.side(("left", "right")[number % 2])
        places.append(_region(canvas, rng, lungs, side, radius=float(rng.uniform(34, 48)), limit=None))
    most = max(int(place["septa"]) for place in places)
    signs = ["lines that meet the pleura", "polygons", "thick fissure or pleura"]
    return {"measure": float(most), "unit": "septa", "places": places, "signs": signs}


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Thicken five to eight septa of one region."""
    del states
    lungs = survey(canvas)
    place = _region(
        canvas, rng, lungs, lungs.lobe > 0, radius=32.0, limit=int(rng.integers(*GREY_SEPTA, endpoint=True))
    )
    return {
        "measure": float(place["septa"]),
        "unit": "septa",
        "places": [place],
        "signs": ["few lines"],
    }


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw peripheral veins that branch like twigs and end before the pleura."""
    del states
    lungs = survey(canvas)
    places = []
    for _ in range(int(rng.integers(4, 8))):
        ijk = lungs.pick(rng, (lungs.depth_mm > 12) & (lungs.depth_mm < 22) & (lungs.height < 0.6))
        places.append(_twig(canvas, rng, lungs, ijk))
    return {"measure": 0.0, "unit": "septa", "places": places, "signs": ["taper, end before the pleura"]}


def _twig(canvas: Canvas, rng: np.random.Generator, lungs: Lungs, ijk: Point) -> Place:
    """Draw one vein with side branches towards the pleura, at most to 6 mm below it."""
    root = to_mm(canvas, ijk)
    depth = float(lungs.depth_mm[lungs.at(ijk)])
    slope = np.array(np.gradient(lungs.depth_mm[tuple(slice(max(0, a - 1), a + 2) for a in lungs.at(ijk))]), float)
    away = -slope.reshape(3, -1).mean(1) / lungs.spacing_mm
    away /= max(float(np.sqrt(away @ away)), 1e-6)
    flat = away * np.array([1, 1, 0.4])
    length = max(6.0, depth - 6.0)
    tip = root + flat * length
    trunk = bend(rng, root - flat * 8, tip, rng.uniform(0.04, 0.1), 4)
    hu = float(rng.uniform(-40, 30))
    strand(canvas, trunk, [1.1, 1.0, 0.85, 0.7, 0.35], hu)
    for fork in trunk[1:4]:
        turn = direction(rng) * np.array([1, 1, 0.3])
        end = fork + (0.7 * flat + 0.7 * turn) * length * rng.uniform(0.3, 0.5)
        strand(canvas, bend(rng, fork, end, 0.08, 2), [0.75, 0.6, 0.3], hu)
    return canvas.place(ijk, "peripheral vein", length)


def _region(
    canvas: Canvas, rng: np.random.Generator, lungs: Lungs, side: NDArray[np.bool_], *, radius: float, limit: int | None
) -> Place:
    """Thicken the septa around a place under the pleura (so many at most); count those that can be seen."""
    shallow = side & (lungs.depth_mm > 0) & (lungs.depth_mm < 8)
    basal = shallow & (lungs.height < 0.55) & (lungs.height > 0.06)
    ijk = lungs.pick(rng, basal if rng.random() < 0.75 else shallow)
    box = canvas.box(ijk, radius)
    axes = canvas.mm(box)
    size = float(rng.uniform(*LOBULE_MM))
    low, high = np.array([a.min() for a in axes]), np.array([a.max() for a in axes])
    seeds = lobule_seeds(rng, low - size / 2, high + size / 2, size)
    seeds = seeds[((seeds - to_mm(canvas, ijk)) ** 2).sum(1) < (radius + size) ** 2]
    first, second, pair = lobules(axes, seeds, 1.5 * size)
    # Half the difference of the two distances is about the distance to the septum; noise of either sign curves it.
    side_of = np.where(pair // len(seeds) < pair % len(seeds), np.float32(0.55), np.float32(-0.55))
    gap = np.abs((second - first) * side_of + np.float32(1.1) * fractal(rng, axes, 14.0, octaves=2))
    lobe = lobe_map(canvas, box)
    near = _near(rng, lungs, box, axes, to_mm(canvas, ijk), radius) * (lobe > 0) * ~canvas.occupied[box]
    code = _both_ways(pair, len(seeds))
    half_voxel = max(0.6, max(canvas.spacing_mm) / 2)
    shown = np.bincount(code[(gap < half_voxel) & (near > 0.5)], minlength=len(seeds) ** 2)
    area = shown * (np.prod(canvas.spacing_mm) / (2 * half_voxel))
    kept = rng.random(len(seeds) ** 2) < 0.88
    if limit is not None:
        kept = np.zeros(len(seeds) ** 2, bool)
        kept[np.argsort(-area, kind="stable")[:limit]] = True
    each = rng.uniform(0.55, 1.15, len(seeds) ** 2).astype(np.float32) * np.float32(rng.uniform(0.5, 0.75))
    half = each[code] * (1 + np.float32(0.25) * fractal(rng, axes, 8.0, octaves=2))
    weight = smooth_step(half - gap, -0.6, 0.5) * near * _upright(seeds)[code] * kept[code]
    if limit is None:
        weight = np.maximum(weight, 0.8 * near * _fissures(lobe, canvas.spacing_mm))
    weight = ndimage.gaussian_filter(np.asarray(weight, np.float32), (0.6, 0.6, 0)) * np.float32(rng.uniform(0.6, 0.85))
    canvas.put(box, np.where(canvas.hu[box] < SEPTUM_HU, weight, 0), SEPTUM_HU)
    seen = int(((area > VISIBLE_MM2) & kept).sum())
    return canvas.place(ijk, "thick septa", 2 * radius, septa=seen)


def _near(rng: np.random.Generator, lungs: Lungs, box: Box, axes: Axes, centre: Point, radius: float) -> Field:
    """Return 1 in the shallow part of a region, falling off inwards and towards its rim."""
    i, j, k = axes
    a, b, c = centre
    away = np.sqrt((i - a) ** 2 + (j - b) ** 2 + (k - c) ** 2) + 5 * fractal(rng, axes, 25.0, octaves=1)
    depth = lungs.spread(lungs.depth_mm, box)
    return smooth_step(away, radius * 0.98, radius * 0.7) * smooth_step(depth, DEPTH_MM, DEPTH_MM * 0.45)


def _both_ways(pair: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Return one code for a septum, seen from either of its lobules."""
    one, other = pair // count, pair % count
    return np.asarray(np.minimum(one, other) * np.int32(count) + np.maximum(one, other), np.int32)


def _upright(seeds: Point) -> Field:
    """Return, for the code of every pair of lobules, 1 for a septum that stands across slices, less for one that lies.

    A lying septum fills less than its slice: it gives a haze and no line.
    """
    way = seeds[:, None, :] - seeds[None, :, :]
    share = way[..., 2] ** 2 / np.maximum((way**2).sum(-1), 1e-6)
    return np.asarray(1 - 0.75 * share.ravel(), np.float32)


def _fissures(lobe: NDArray[np.uint8], spacing_mm: tuple[float, float, float]) -> Field:
    """Return the surfaces between two lobes, smoothed over the steps of the mask: fissures thicken with the septa."""
    first = np.zeros(lobe.shape, np.float32)
    second = np.zeros(lobe.shape, np.float32)
    for number in np.unique(lobe[lobe > 0]):
        share = ndimage.gaussian_filter((lobe == number).astype(np.float32), FISSURE_MM / np.array(spacing_mm))
        second = np.maximum(second, np.minimum(first, share))
        first = np.maximum(first, share)
    # Half of the smoothed shares at the border itself, 0.43 half a millimetre beside it.
    return smooth_step(second, 0.4, 0.48)
