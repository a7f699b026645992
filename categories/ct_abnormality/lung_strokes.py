"""Bodies and strands: the shapes that focal findings of the lung are made of."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from categories.ct_abnormality.canvas import Box, Canvas
from categories.ct_abnormality.lung_texture import (
    Axes,
    Field,
    Fine,
    distance,
    fine_axes,
    fineness,
    fractal,
    inside,
    pool,
    smooth_step,
    to_segment,
)
from categories.ct_abnormality.lungs import Lungs, lobe_map

Point = NDArray[np.float64]
Place = dict[str, Any]
"""An entry of ``Facts["places"]``, see ``Canvas.place``."""
AIRLESS_HU, FILLED_HU = (20.0, 60.0), (10.0, 60.0)
"""Of collapsed and of consolidated lung without contrast medium: density tells neither from the other."""
FAR_MM = 1e4
RIM = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], bool)[:, :, None]
RIM_HU = -90.0


def direction(rng: np.random.Generator) -> Point:
    """Return a random unit vector."""
    vector = rng.standard_normal(3)
    return np.asarray(vector / np.sqrt(vector @ vector))


def to_mm(canvas: Canvas, ijk: Point) -> Point:
    """Return the position of a voxel in mm of the grid."""
    return np.asarray(np.asarray(ijk, float) * canvas.spacing_mm)


def to_ijk(canvas: Canvas, mm: Point) -> Point:
    """Return the voxel (fractional) at a position in mm of the grid."""
    return np.asarray(np.asarray(mm, float) / canvas.spacing_mm)


def body_depth(
    rng: np.random.Generator, axes: Axes, centre: Point, radius_mm: float, *, rough: float, stretch: Point, grain: float
) -> Field:
    """Return how deep points lie below the surface of an irregular body, mm (negative outside).

    ``rough`` is the spread of the surface relative to the radius, ``grain`` the size of its bumps relative to it.
    """
    bumps = fractal(rng, axes, max(2.0, grain * radius_mm))
    return radius_mm * (1 + np.float32(rough) * np.clip(bumps, -2.2, 2.2)) - distance(axes, centre, stretch)


def polyline_depth(axes: Axes, points: list[Point], radii: list[float], reach_mm: float = 4.0) -> Field:
    """Return how deep points lie inside a tube along a polyline whose radius changes linearly, mm.

    Points further than ``reach_mm`` outside the tube count as far away.
    """
    depth: Field = np.full(tuple(axis.size for axis in axes), -FAR_MM, np.float32)
    flat = [axis.ravel() for axis in axes]
    for start, end, first, last in zip(points, points[1:], radii, radii[1:], strict=False):
        margin = max(first, last) + reach_mm
        low, high = np.minimum(start, end) - margin, np.maximum(start, end) + margin
        i, j, k = (slice(*np.searchsorted(a, ends)) for a, ends in zip(flat, zip(low, high, strict=True), strict=True))
        part = depth[i, j, k]
        if part.size:
            near = (flat[0][i][:, None, None], flat[1][j][None, :, None], flat[2][k][None, None, :])
            away, along = to_segment(near, start, end)
            np.maximum(part, first + np.float32(last - first) * along - away, out=part)
    return depth


def bend(rng: np.random.Generator, start: Point, end: Point, sag: float, steps: int = 3) -> list[Point]:
    """Return a smooth curve between two points whose middle leaves the chord by ``sag`` of its length."""
    chord = end - start
    side = np.cross(chord, direction(rng))
    side *= sag * np.sqrt(chord @ chord) / max(float(np.sqrt(side @ side)), 1e-6)
    places = np.linspace(0, 1, steps + 1)
    return [start + t * chord + 4 * t * (1 - t) * side for t in places]


def around(canvas: Canvas, points: list[Point], margin_mm: float) -> Box:
    """Return the box of voxels around points in mm."""
    stack = np.array(points)
    middle, half = (stack.min(0) + stack.max(0)) / 2, np.ptp(stack, axis=0) / 2 + margin_mm
    return canvas.box(to_ijk(canvas, middle), (float(half[0]), float(half[1]), float(half[2])))


def strand(
    canvas: Canvas, points: list[Point], radii: list[float], hu: float, *, only_lung: bool = True, strength: float = 1.0
) -> tuple[Box, Field]:
    """Draw a tapering tube along points (mm) at partial volume; return its box and weight."""
    box = around(canvas, points, max(radii) + 1.5)
    fine = fineness(canvas, 0.8)
    weight = pool(inside(polyline_depth(fine_axes(canvas, box, fine), points, radii)), fine) * np.float32(strength)
    if only_lung:
        weight = weight * ((lobe_map(canvas, box) > 0) & ~canvas.occupied[box])
    # Only ever denser: a strand that meets a vessel joins it.
    weight = np.where(canvas.hu[box] < hu, weight, 0).astype(np.float32)
    canvas.put(box, weight, hu)
    return box, weight


def bronchogram(
    rng: np.random.Generator, centre: Point, hilum: Point, reach_mm: float, count: int, crowd: float
) -> tuple[list[list[Point]], list[list[float]]]:
    """Return branching air-filled bronchi that run from the hilar side of a body to its far side: (points, radii)."""
    way = centre - hilum
    way /= max(float(np.sqrt(way @ way)), 1e-6)
    root = centre - way * reach_mm * 0.95
    points, radii = [], []
    for _ in range(count):
        spread = direction(rng) * rng.uniform(0.15, 0.75) * reach_mm * crowd
        spread[2] *= 0.5
        tip = centre + way * rng.uniform(0.1, 0.7) * reach_mm + spread
        radius = rng.uniform(1.2, 2.2)
        line = bend(rng, root + direction(rng) * rng.uniform(0, 3.0), tip, rng.uniform(0.04, 0.12), 4)
        points.append(line)
        radii.append(list(np.linspace(radius, radius * 0.55, len(line))))
        fork = line[int(rng.integers(1, 4))]
        twig = bend(rng, fork, fork + (way + 0.9 * direction(rng)) * rng.uniform(0.25, 0.5) * reach_mm, 0.06, 2)
        points.append(twig)
        radii.append([radius * 0.65, radius * 0.5, radius * 0.35])
    return points, radii


def hilum_mm(canvas: Canvas, lungs: Lungs, ijk: Point) -> Point:
    """Return a point at the middle of the lung's inner side: bronchi and vessels come from there. In mm."""
    middle = np.array([part.start + (part.stop - part.start) / 2 for part in lungs.box])
    inward = 0.35 if ijk[0] < middle[0] else -0.35
    width = lungs.box[0].stop - lungs.box[0].start
    target = middle + np.array([-inward * width * 0.45, 0, 0.05 * (lungs.box[2].stop - lungs.box[2].start)])
    return to_mm(canvas, target)


def soft_lung(
    canvas: Canvas, box: Box, lobe: int | None = None, *, rim_steps: int = 3, rim_hu: float = RIM_HU
) -> Field:
    """Return 1 in the lung (of one lobe, if given) that no finding uses, and in its blurred rim along the chest wall.

    The mask of the lung leaves out voxels that it shares with the wall: without them (up to ``rim_steps`` in plane,
    below ``rim_hu``) a dark line would remain there.
    """
    found = lobe_map(canvas, box)
    mask = (found == lobe) if lobe else (found > 0)
    rim = ndimage.binary_dilation(mask, RIM, iterations=rim_steps) & (found == 0) & (canvas.hu[box] < rim_hu)
    if not lobe:
        return np.asarray((mask | rim) & ~canvas.occupied[box], np.float32)
    # The mask of a lobe ends in steps of a voxel; a fissure is smooth. At the chest wall nothing is softened.
    own, all_lobes = (ndimage.gaussian_filter(m.astype(np.float32), (1.1, 1.1, 0.5)) for m in (mask, found > 0))
    soft = smooth_step(own / np.maximum(all_lobes, 0.01), 0.25, 0.75)
    return np.asarray(np.where(found > 0, soft, rim) * ~canvas.occupied[box], np.float32)


def clear_spot(
    canvas: Canvas, rng: np.random.Generator, lungs: Lungs, where: NDArray[np.bool_], radius_mm: float, tries: int = 40
) -> Point:
    """Return a voxel whose surroundings hold the fewest vessels among random places of the coarse map."""
    best, least = None, 2.0
    for _ in range(tries):
        ijk = lungs.pick(rng, where)
        box = canvas.box(ijk, radius_mm)
        busy = float(np.mean((canvas.hu[box] > -650) | canvas.occupied[box] | (lobe_map(canvas, box) == 0)))
        if busy < least:
            best, least = ijk, busy
        if busy < 0.005:
            break
    assert best is not None
    return best


def paint(canvas: Canvas, box: Box, fine: Fine, depth: Field, hu: float | Field, *, lung: Field | None = None) -> Field:
    """Replace the lung of a box by tissue where ``depth`` (on sub-voxels) is positive; return the weight per voxel.

    ``lung`` says where that is allowed, see ``soft_lung``.
    """
    weight = pool(inside(depth), fine) * (soft_lung(canvas, box) if lung is None else lung)
    canvas.put(box, weight, hu)
    canvas.occupy(box, weight > 0.3)
    return weight


def solid_texture(rng: np.random.Generator, axes: Axes, fine: Fine, hu: float) -> Field:
    """Return airless lung of about this density, uneven as blood and secretions make it, per voxel."""
    return pool(np.asarray(hu + 7 * fractal(rng, axes, 9.0), np.float32), fine)


def widest_mm(canvas: Canvas, weight: NDArray[np.floating]) -> float:
    """Return the diameter of a disc as large as the largest axial section of a finding, by its weight per voxel."""
    largest = int((weight > 0.5).sum((0, 1)).max(initial=0))
    return 2 * float(np.sqrt(largest * canvas.spacing_mm[0] * canvas.spacing_mm[1] / np.pi))
