"""Atelectasis: lung without air that has lost volume: a plate or a wedge, and the lung around it drawn towards it."""

import numpy as np
from scipy import ndimage

from categories.ct_abnormality.canvas import Box, Canvas, Facts, States
from categories.ct_abnormality.consolidation import AIR_HU
from categories.ct_abnormality.lung_gravity import back_mm, dependent_density
from categories.ct_abnormality.lung_strokes import (
    AIRLESS_HU,
    Place,
    Point,
    around,
    bend,
    bronchogram,
    hilum_mm,
    paint,
    polyline_depth,
    soft_lung,
    solid_texture,
    to_mm,
)
from categories.ct_abnormality.lung_texture import Axes, Field, fine_axes, fineness, fractal, inside, pool, smooth_step
from categories.ct_abnormality.lungs import Lungs, lobe_map, survey

YES_MM, GREY_MM = (32.0, 80.0), (9.0, 17.0)
LEAST_MM, MOST = 27.0, 5
"""What the longest plate must come to where the pleura cuts it, and how many are drawn at most to get there."""
PULL_MM, WEDGE_PULL_MM = (4.0, 8.0), (9.0, 14.0)
PULL_REACH_MM = 32.0


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw one to three plates, or a collapsed wedge at the back, of 32 to 80 mm, with the pull of lost volume."""
    del states
    lungs = survey(canvas)
    if rng.random() < 0.4:
        places = [_wedge(canvas, rng, lungs, float(rng.uniform(40, 62)))]
    else:
        count = int(rng.choice([1, 2, 3], p=[0.5, 0.3, 0.2]))
        places = [
            _plate(canvas, rng, lungs, float(rng.uniform(*YES_MM)), pull=float(rng.uniform(*PULL_MM)))
            for _ in range(count)
        ]
        while max(float(place["size_mm"]) for place in places) < LEAST_MM and len(places) < MOST:
            places.append(_plate(canvas, rng, lungs, YES_MM[1], pull=PULL_MM[1]))
    longest = max(float(place["size_mm"]) for place in places)
    signs = ["lung drawn towards it", "crowded vessels or bronchi"]
    return {"measure": round(longest, 2), "unit": "mm", "places": places, "signs": signs}


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw one short plate of 9 to 17 mm."""
    del states
    place = _plate(canvas, rng, survey(canvas), float(rng.uniform(*GREY_MM)), pull=1.5)
    return {"measure": place["size_mm"], "unit": "mm", "places": [place], "signs": ["short band"]}


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw an accessory fissure (thin, long, nothing is drawn to it), and dependent density if none will be there."""
    lungs = survey(canvas)
    place = _fissure(canvas, rng, lungs, float(rng.uniform(40, 75)))
    signs = ["hairline surface without pull"]
    if states.get("opacity", "grey") == "grey":
        dependent_density(canvas, rng, lungs, float(rng.uniform(110, 180)), float(rng.uniform(14, 22)))
        signs.append("dependent density")
    return {"measure": 0.0, "unit": "mm", "places": [place], "signs": signs}


def _site(rng: np.random.Generator, lungs: Lungs, depth: tuple[float, float], height: tuple[float, float]) -> Point:
    where = (lungs.depth_mm > depth[0]) & (lungs.depth_mm < depth[1])
    return lungs.pick(rng, where & (lungs.height > height[0]) & (lungs.height < height[1]))


def _frame(rng: np.random.Generator, lean: tuple[float, float]) -> tuple[Point, Point, Point]:
    """Return three unit vectors: the normal of a surface that leans from the horizontal, and two within it."""
    turn, slope = rng.uniform(0, 2 * np.pi), rng.uniform(*lean)
    normal = np.array([np.sin(slope) * np.cos(turn), np.sin(slope) * np.sin(turn), np.cos(slope)])
    along = np.cross(normal, np.array([-np.sin(turn), np.cos(turn), 0.3]))
    along /= np.sqrt(along @ along)
    return normal, along, np.cross(normal, along)


def _surface(
    rng: np.random.Generator, axes: Axes, centre: Point, frame: tuple[Point, Point, Point], length: float, width: float
) -> tuple[Field, Field]:
    """Return the signed distance to a slightly curved surface, and 1 at its middle falling to 0 at its outline."""
    normal, along, across = frame
    i, j, k = (axis - c for axis, c in zip(axes, centre, strict=True))
    up, u, v = (i * n[0] + j * n[1] + k * n[2] for n in (normal, along, across))
    arch = rng.uniform(-1, 1, 2) / np.array([2.2 * length, 2.2 * length])
    bumpy = 1.3 * fractal(rng, axes, 22.0, octaves=2)
    outline = 1 - np.sqrt((2 * u / length) ** 2 + (2 * v / width) ** 2) + 0.16 * fractal(rng, axes, 16.0, octaves=2)
    return (up - arch[0] * u**2 - arch[1] * v**2 + bumpy).astype(np.float32), np.asarray(outline, np.float32)


def _pull(
    canvas: Canvas, lungs: Lungs, centre: Point, frame: tuple[Point, Point, Point], length: float, pull: float
) -> None:
    """Move the lung on either side of a plane towards it by up to ``pull`` mm, with its vessels and fissures."""
    if pull <= 0:
        return
    reach = length / 2 + PULL_REACH_MM * 0.6
    box = canvas.box(centre / canvas.spacing_mm, (reach, reach, PULL_REACH_MM + 6))
    normal = frame[0]
    axes = canvas.mm(box)
    i, j, k = (axis - c for axis, c in zip(axes, centre, strict=True))
    up = i * normal[0] + j * normal[1] + k * normal[2]
    lateral = np.sqrt(np.maximum(i**2 + j**2 + k**2 - up**2, 0))
    far = smooth_step(lateral, reach, length / 3) * smooth_step(np.abs(up), PULL_REACH_MM, 2.0)
    near = ndimage.uniform_filter((lungs.lobe > 0).astype(np.float32), 3)
    # Beyond the map its outermost values go on: they must be 0.
    rim = np.pad(np.ones([n - 2 for n in near.shape], np.float32), 1)
    wall = lungs.spread(near * rim, box)
    shift = np.float32(pull) * far * smooth_step(wall, 0.25, 0.9) * smooth_step(np.abs(up), 0, 2.5) * np.sign(up)
    _move(canvas, box, [shift * np.float32(n / mm) for n, mm in zip(normal, canvas.spacing_mm, strict=True)])


def _move(canvas: Canvas, box: Box, shift: list[Field]) -> None:
    """Take every voxel of a box from a place that lies ``shift`` voxels away, anatomy and organ names alike."""
    grid = np.meshgrid(
        *(np.arange(part.stop - part.start, dtype=np.float32) for part in box), indexing="ij", sparse=True
    )
    places = np.stack([np.broadcast_to(g, shift[0].shape) + s for g, s in zip(grid, shift, strict=True)])
    canvas.hu[box] = ndimage.map_coordinates(canvas.hu[box], places, order=1, mode="nearest")
    canvas.organs[box] = ndimage.map_coordinates(canvas.organs[box], places, order=0, mode="nearest")
    canvas.occupied[box] = ndimage.map_coordinates(canvas.occupied[box].astype(np.uint8), places, order=0) > 0


def _plate(canvas: Canvas, rng: np.random.Generator, lungs: Lungs, length: float, *, pull: float) -> Place:
    """Draw a plate of airless lung in the lower half, near the pleura."""
    ijk = _site(rng, lungs, (0.15 * length, 0.15 * length + 14), (0.12, 0.5))
    centre = to_mm(canvas, ijk)
    frame = _frame(rng, (0.45, 1.3))
    width = length * rng.uniform(0.5, 0.9)
    thickness = float(np.clip(rng.uniform(3.2, 5.0) + 0.05 * length * rng.uniform(0, 1), 3.0, 9.0))
    if length < 20:
        thickness = 2.6
    _pull(canvas, lungs, centre, frame, length, pull)
    box = canvas.box(ijk, (0.65 * length, 0.65 * length, 0.6 * length + 4))
    fine = fineness(canvas, 1.0)
    axes = fine_axes(canvas, box, fine)
    away, outline = _surface(rng, axes, centre, frame, length, width)
    half = (
        thickness / 2 * (0.45 + 0.55 * np.clip(2.2 * outline, 0, 1)) * (1 + 0.22 * fractal(rng, axes, 9.0, octaves=2))
    )
    depth = np.minimum(half - np.abs(away), 14 * outline)
    hu = float(rng.uniform(*AIRLESS_HU))
    weight = paint(canvas, box, fine, np.asarray(depth, np.float32), solid_texture(rng, axes, fine, hu))
    return canvas.place(
        ijk,
        "plate",
        _reach(canvas, weight, frame[1:]),
        thickness_mm=round(thickness, 2),
        pull_mm=round(pull, 2),
        volume_ml=round(float(weight.sum() * np.prod(canvas.spacing_mm)) / 1000, 3),
        lobe=lungs.lobe_name(ijk),
    )


def _reach(canvas: Canvas, weight: Field, ways: tuple[Point, Point]) -> float:
    """Return the longer extent (mm) of what was painted, along two directions within its surface."""
    painted = np.argwhere(weight > 0.5) * np.array(canvas.spacing_mm)
    return max(float(np.ptp(painted @ way)) for way in ways) if len(painted) else 0.0


def _fissure(canvas: Canvas, rng: np.random.Generator, lungs: Lungs, length: float) -> Place:
    """Draw a hairline surface through the lung, upright as an accessory fissure is."""
    ijk = _site(rng, lungs, (6, 30), (0.12, 0.6))
    centre = to_mm(canvas, ijk)
    frame = _frame(rng, (1.2, 1.57))
    box = canvas.box(ijk, 0.6 * length)
    fine = fineness(canvas, 1.0)
    axes = fine_axes(canvas, box, fine)
    away, outline = _surface(rng, axes, centre, frame, length, 0.8 * length)
    depth = np.minimum(0.35 - np.abs(away), 20 * outline)
    found = lobe_map(canvas, box) > 0
    weight = 0.55 * pool(inside(np.asarray(depth, np.float32)), fine) * found * ~canvas.occupied[box]
    canvas.put(box, np.where(canvas.hu[box] < -200, weight, 0), 0.0)
    return canvas.place(ijk, "accessory fissure", length)


def _wedge(canvas: Canvas, rng: np.random.Generator, lungs: Lungs, length: float) -> Place:
    """Draw a collapsed segment at the back: its base on the pleura, its tip towards the hilum, bronchi crowded."""
    rear = (back_mm(lungs) < 14) & (lungs.depth_mm < 12)
    ijk = lungs.pick(rng, rear & (lungs.height > 0.15) & (lungs.height < 0.45))
    base = to_mm(canvas, ijk)
    hilum = hilum_mm(canvas, lungs, ijk)
    way = (hilum - base) * np.array([1, 1, 0.4])
    way /= np.sqrt(way @ way)
    centre, tip = base + way * length * 0.35, base + way * length
    lobe = int(lungs.lobe[lungs.at(ijk)]) or None
    pull = float(rng.uniform(*WEDGE_PULL_MM))
    side = np.cross(way, np.array([0.0, 0.0, 1.0]))
    normal = np.cross(side / np.sqrt(side @ side), way)
    _pull(canvas, lungs, centre, (normal, way, side), length, pull)
    box = around(canvas, [base - way * 8, tip], 0.36 * length + 3)
    fine = fineness(canvas, 1.2)
    axes = fine_axes(canvas, box, fine)
    line = bend(rng, base - way * 8, tip, 0.04, 3)
    radius = length * rng.uniform(0.24, 0.32)
    cone = polyline_depth(axes, line, [radius * 1.25, radius * 0.9, radius * 0.45, 0.5], reach_mm=radius)
    depth = cone + np.float32(0.1 * radius) * fractal(rng, axes, 18.0)
    hu = float(rng.uniform(*AIRLESS_HU))
    texture = solid_texture(rng, axes, fine, hu)
    depth = np.asarray(depth, np.float32) * np.float32(0.75)
    weight = paint(canvas, box, fine, depth, texture, lung=soft_lung(canvas, box, lobe))
    lines, radii = bronchogram(rng, base + way * length * 0.45, tip, length * 0.42, int(rng.integers(3, 6)), crowd=0.35)
    for points, widths in zip(lines, radii, strict=True):
        part = around(canvas, points, max(widths) + 1)
        small = fineness(canvas, 0.8)
        air = pool(inside(polyline_depth(fine_axes(canvas, part, small), points, [0.8 * w for w in widths])), small)
        canvas.put(part, air * (canvas.occupied[part] & (canvas.hu[part] > -960)), AIR_HU)
    return canvas.place(
        ijk,
        "collapsed wedge",
        length,
        pull_mm=round(pull, 2),
        volume_ml=round(float(weight.sum() * np.prod(canvas.spacing_mm)) / 1000, 3),
        lobe=lungs.lobe_name(ijk),
    )
