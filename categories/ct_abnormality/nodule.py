"""Lung nodule: a rounded body off the vessels, with vessels that run to it, spicules or a pleural tag."""

import numpy as np

from categories.ct_abnormality.canvas import Canvas, Facts, States
from categories.ct_abnormality.lung_strokes import (
    Place,
    Point,
    bend,
    body_depth,
    clear_spot,
    direction,
    hilum_mm,
    paint,
    polyline_depth,
    strand,
    to_ijk,
    to_mm,
)
from categories.ct_abnormality.lung_texture import fine_axes, fineness
from categories.ct_abnormality.lungs import Lungs, aerated, survey

YES_MM, GREY_MM = (7.0, 24.0), (3.4, 5.2)


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw one to three nodules of 7 to 24 mm."""
    del states
    lungs = survey(canvas)
    low, high = YES_MM
    sizes = [
        low * (high / low) ** float(rng.beta(1.1, 2.0)) for _ in range(int(rng.choice([1, 2, 3], p=[0.6, 0.25, 0.15])))
    ]
    places, signs = [], []
    for diameter in sizes:
        place, seen = _nodule(canvas, rng, lungs, diameter)
        places.append(place)
        signs += seen
    return {
        "measure": round(max(sizes), 2),
        "unit": "mm",
        "places": places,
        "signs": sorted({"rounded body off the vessels", *signs}),
    }


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw one nodule of 3.4 to 5.2 mm: seen in one or two slices."""
    del states
    diameter = float(rng.uniform(*GREY_MM))
    place, signs = _nodule(canvas, rng, survey(canvas), diameter)
    return {"measure": round(diameter, 2), "unit": "mm", "places": [place], "signs": signs}


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw one to three vessels that turn upright: round in an axial slice, long through the slices."""
    del states
    lungs = survey(canvas)
    places = [_upright_vessel(canvas, rng, lungs) for _ in range(int(rng.integers(1, 4)))]
    return {"measure": 0.0, "unit": "mm", "places": places, "signs": ["tubular through the slices"]}


def _nodule(canvas: Canvas, rng: np.random.Generator, lungs: Lungs, diameter: float) -> tuple[Place, list[str]]:
    radius = diameter / 2
    where = (lungs.depth_mm > radius + 3) & (lungs.depth_mm < radius + 28)
    ijk = clear_spot(canvas, rng, lungs, where, radius + 2.5)
    centre = to_mm(canvas, ijk)
    spiculated = diameter > 9 and rng.random() < 0.4
    box = canvas.box(ijk, radius * (2.0 if spiculated else 1.5) + 2)
    fine = fineness(canvas, 0.8)
    axes = fine_axes(canvas, box, fine)
    stretch = np.clip(1 + 0.12 * rng.standard_normal(3), 0.8, 1.25)
    stretch /= np.prod(stretch) ** (1 / 3)
    rough = rng.uniform(0.09, 0.2)
    depth = body_depth(rng, axes, centre, radius, rough=rough, stretch=stretch, grain=rng.uniform(0.9, 1.6))
    signs = []
    if spiculated:
        for _ in range(int(rng.integers(18, 34))):
            tip = centre + direction(rng) * radius * rng.uniform(1.25, 1.95)
            thick = min(2.6, rng.uniform(0.2, 0.42) * radius)
            depth = np.maximum(depth, polyline_depth(axes, [centre, tip], [thick, -0.2]))
        signs.append("spiculated margin")
    calcified = not spiculated and diameter < 12 and rng.random() < 0.15
    hu = float(rng.uniform(250, 600) if calcified else rng.uniform(15, 65))
    before = float(np.mean(canvas.hu[box][aerated(canvas, box)])) if aerated(canvas, box).any() else -870.0
    weight = paint(canvas, box, fine, depth, hu)
    signs += _attachments(canvas, rng, lungs, ijk, radius)
    volume = float(weight.sum()) * float(np.prod(canvas.spacing_mm))
    contrast = (hu - before) * float(weight.max())
    return canvas.place(
        ijk,
        "calcified nodule" if calcified else "nodule",
        diameter,
        volume_ml=round(volume / 1000, 3),
        contrast_hu=round(contrast, 1),
        lobe=lungs.lobe_name(ijk),
    ), signs


def _attachments(canvas: Canvas, rng: np.random.Generator, lungs: Lungs, ijk: Point, radius: float) -> list[str]:
    """Draw vessels that converge on a nodule, and a tag to a near pleura; return what was drawn."""
    centre, signs = to_mm(canvas, ijk), []
    for start in _vessel_points(canvas, rng, lungs, centre, radius)[: int(rng.integers(1, 4))]:
        way = centre - start
        end = centre - way / np.sqrt(way @ way) * radius * 0.7
        width = float(rng.uniform(0.6, 0.8) + 0.03 * radius)
        strand(canvas, bend(rng, start, end, rng.uniform(0.05, 0.15)), [width * 1.2, width * 1.1, width, width], 30)
        signs = ["vessels run to it"]
    depth = float(lungs.depth_mm[lungs.at(ijk)])
    if radius > 3.5 and depth < radius + 14 and rng.random() < 0.7:
        outward = _outward(lungs, ijk)
        end = centre + outward * (depth + 4)
        strand(canvas, bend(rng, centre + outward * radius * 0.7, end, 0.05), [1.1, 0.7, 0.7, 1.8], 20, strength=0.85)
        signs.append("tag to the pleura")
    return signs


def _vessel_points(canvas: Canvas, rng: np.random.Generator, lungs: Lungs, centre: Point, radius: float) -> list[Point]:
    """Return points of vessels near a nodule, nearest first, not twice from one direction."""
    tree = canvas.patient.vessels
    points = np.asarray(tree.end, float).reshape(-1, 3)
    away = np.sqrt(((points - centre) ** 2).sum(1))
    near = [points[n] for n in np.argsort(away)[:40] if radius + 3 < away[n] < radius + 22]
    if not near:
        way = hilum_mm(canvas, lungs, to_ijk(canvas, centre)) - centre
        return [centre + way / np.sqrt(way @ way) * (radius + rng.uniform(10, 18))]
    chosen: list[Point] = []
    for point in near:
        turn = (point - centre) / np.sqrt((point - centre) @ (point - centre))
        if all(turn @ ((c - centre) / np.sqrt((c - centre) @ (c - centre))) < 0.6 for c in chosen):
            chosen.append(point)
    return chosen


def _outward(lungs: Lungs, ijk: Point) -> Point:
    """Return the unit vector (mm) along which the wall of the lung is nearest."""
    i, j, k = lungs.at(ijk)
    slope = [
        float(lungs.depth_mm[tuple(a)] - lungs.depth_mm[tuple(b)])
        for axis in range(3)
        for a, b in [_neighbours((i, j, k), axis, lungs.depth_mm.shape)]
    ]
    vector = -np.array(slope) / lungs.spacing_mm
    return np.asarray(vector / max(float(np.sqrt(vector @ vector)), 1e-6))


def _neighbours(at: tuple[int, int, int], axis: int, shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
    after, before = list(at), list(at)
    after[axis] = min(after[axis] + 1, shape[axis] - 1)
    before[axis] = max(before[axis] - 1, 0)
    return after, before


def _upright_vessel(canvas: Canvas, rng: np.random.Generator, lungs: Lungs) -> Place:
    """Draw a wide vessel that leaves another, runs 18 to 30 mm from foot to head, and goes on as a thin one."""
    length, radius = float(rng.uniform(18, 30)), float(rng.uniform(2.0, 3.4))
    where = (lungs.depth_mm > 14) & (lungs.height > 0.2) & (lungs.height < 0.8)
    ijk = clear_spot(canvas, rng, lungs, where, radius + 2)
    centre = to_mm(canvas, ijk)
    up = np.array([rng.uniform(-0.4, 0.4), rng.uniform(-0.4, 0.4), 1.0]) * (1 if rng.random() < 0.5 else -1)
    low, high = centre - up * length / 2, centre + up * length / 2
    sources = _vessel_points(canvas, rng, lungs, low, radius)
    line = [*bend(rng, sources[0], low, 0.1, 2), *bend(rng, low, high, 0.05, 4)[1:]]
    line.append(high + (up / np.sqrt(up @ up) + direction(rng)) * rng.uniform(8, 14))
    radii = [radius * 0.8, radius * 0.9, *np.linspace(radius, radius * 0.8, 5)[:5], radius * 0.3]
    hu = float(rng.uniform(25, 50))
    box, weight = strand(canvas, line, [float(r) for r in radii[: len(line)]], hu)
    canvas.occupy(box, weight > 0.3)
    return canvas.place(ijk, "vessel end-on", 2 * radius)
