"""A plain thorax for tests: two lungs with lobes, a heart, a diaphragm, bronchi with arteries, no noise."""

import itertools

import numpy as np
from scipy import ndimage

from categories.chest.labels import ORGANS
from categories.chest.patient import Patient, Tree

SPACING = (1.0, 1.0, 2.5)
SHAPE = (280, 200, 92)
LUNG_HU = -870.0
ROOTS = np.array([[122.0, 95.0, 112.0], [168.0, 95.0, 112.0]])
"""Where the bronchi of either lung come from, mm."""


def _ellipsoid(axes, centre, radii):
    return sum(((a - c) / r) ** 2 for a, c, r in zip(axes, centre, radii, strict=True)) < 1


def anatomy():
    """Return (hu, organs): right lung at low i, back at low j, feet at low k."""
    axes = np.meshgrid(*(np.arange(n) * s for n, s in zip(SHAPE, SPACING, strict=True)), indexing="ij", sparse=True)
    _, j, k = axes
    organs = np.zeros(SHAPE, np.uint8)
    organs[_ellipsoid(axes, (140, 100, 115), (138, 98, 900))] = ORGANS["body"]
    for side, x in (("right", 78), ("left", 202)):
        lung = _ellipsoid(axes, (x, 98, 60), (54, 84, 165)) & (k > 18)
        below = _ellipsoid(axes, (x, 105, 5), (56, 78, 52))
        fissure = k > 75 + 0.6 * (j - 90)
        organs[lung] = ORGANS[f"lung_lower_lobe_{side}"]
        organs[lung & fissure] = ORGANS[f"lung_upper_lobe_{side}"]
        if side == "right":
            organs[lung & fissure & (k < 110)] = ORGANS["lung_middle_lobe_right"]
        organs[below & (organs > 0)] = ORGANS["liver" if side == "right" else "spleen"]
    organs[_ellipsoid(axes, (148, 120, 85), (44, 40, 42))] = ORGANS["heart"]
    hu = np.full(SHAPE, -1000.0)
    hu[organs > 0] = 40.0
    lung = np.isin(organs, [n for name, n in ORGANS.items() if name.startswith("lung_")])
    texture = ndimage.gaussian_filter(np.random.default_rng(5).standard_normal(SHAPE), (1, 1, 0.4))
    hu[lung] = LUNG_HU + 12 * texture[lung] / texture.std()
    return hu, organs, lung


def _tube(hu, lung, start, end, first, last, value):
    low = np.maximum(0, np.floor((np.minimum(start, end) - 4) / SPACING).astype(int))
    high = np.ceil((np.maximum(start, end) + 4) / SPACING).astype(int) + 1
    part = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
    axes = np.meshgrid(*(np.arange(n)[p] * s for n, p, s in zip(SHAPE, part, SPACING, strict=True)), indexing="ij")
    way = end - start
    t = np.clip(sum((a - s) * w for a, s, w in zip(axes, start, way, strict=True)) / (way @ way), 0, 1)
    away = np.sqrt(sum((a - s - t * w) ** 2 for a, s, w in zip(axes, start, way, strict=True)))
    weight = np.clip(0.5 + first + (last - first) * t - away, 0, 1) * lung[part]
    hu[part] += weight * (value - hu[part])


def _branches(rng, lung):
    """Return rows (start, end, radius_start, radius_end, parent, generation) of bronchi, each with three segments."""
    rows = []
    inner = ndimage.binary_erosion(lung[::4, ::4, ::2], iterations=4)
    for side in (0, 1):
        half = np.zeros_like(inner)
        half[slice(0, 35) if side == 0 else slice(35, None)] = True
        ends = np.argwhere(inner & half) * np.array([4, 4, 2]) * SPACING
        root = ROOTS[side]
        for tip in ends[rng.choice(len(ends), 26, replace=False)]:
            places = [root + t * (tip - root) + rng.normal(0, 2, 3) * (t < 1) for t in (0.25, 0.5, 0.75, 1.0)]
            for n, (a, b) in enumerate(itertools.pairwise(places)):
                rows.append((a, b, 2.4 - 0.5 * n, 1.9 - 0.5 * n, len(rows) - 1 if n else -1, n + 3))
    return rows


def thorax() -> Patient:
    """Return the patient; the same one each time."""
    hu, organs, lung = anatomy()
    rng = np.random.default_rng(11)
    rows = _branches(rng, lung)
    start, end = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    first, last = np.array([r[2] for r in rows]), np.array([r[3] for r in rows])
    wall = 0.35 * first
    way = (end - start) / np.linalg.norm(end - start, axis=1)[:, None]
    side = np.cross(way, [0, 0, 1.0])
    side /= np.maximum(np.linalg.norm(side, axis=1), 1e-6)[:, None]
    shift = side * (2.3 * first + 0.4)[:, None]
    for n in range(len(rows)):
        _tube(hu, lung, start[n] + shift[n], end[n] + shift[n], first[n] * 1.1, last[n] * 1.1, 40)
        _tube(hu, lung, start[n], end[n], first[n] + wall[n], last[n] + wall[n], 0)
        _tube(hu, lung, start[n], end[n], first[n], last[n], -985)
    common = {"parent": np.array([r[4] for r in rows]), "generation": np.array([r[5] for r in rows])}
    lobe = np.array([organs[tuple(np.rint(p / SPACING).astype(int))] for p in (start + end) / 2], np.uint8)
    number = np.arange(len(rows))
    airways = Tree(
        start=start, end=end, radius_start=first, radius_end=last, wall=wall, lobe=lobe, partner=number,
        kind=np.full(len(rows), "airway"), **common,
    )  # fmt: skip
    vessels = Tree(
        start=start + shift, end=end + shift, radius_start=first * 1.1, radius_end=last * 1.1, wall=0 * wall, lobe=lobe,
        partner=np.full(len(rows), -1), kind=np.full(len(rows), "artery"), **common,
    )  # fmt: skip
    affine = np.diag([-SPACING[0], SPACING[1], SPACING[2], 1.0])
    affine[:3, 3] = (140.0, -100.0, -300.0)
    return Patient(
        variant="phantom", sex="M", age=60, height_cm=176.0, bmi=26.0, hu=hu.astype(np.int16), organs=organs,
        affine=affine, airways=airways, vessels=vessels,
    )  # fmt: skip
