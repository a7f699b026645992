"""Bronchi as routes with an artery beside them, and how they are drawn: wall, lumen, and open branches."""

from dataclasses import dataclass

import numpy as np

from categories.ct_abnormality.canvas import Canvas
from categories.ct_abnormality.lung_strokes import (
    FAR_MM,
    Point,
    around,
    bend,
    direction,
    hilum_mm,
    polyline_depth,
    strand,
    to_ijk,
    to_mm,
)
from categories.ct_abnormality.lung_texture import Axes, Field, fine_axes, fineness, inside, pool
from categories.ct_abnormality.lungs import Lungs, lobe_map

WALL_HU, LUMEN_HU, ARTERY_HU = 10.0, -975.0, 42.0
SEGMENTAL_MM = (0.9, 3.2)
"""Lumen radius of segmental and subsegmental bronchi."""
SHORTEST_MM = 9.0
OPEN_BRANCHES = 24


@dataclass(frozen=True)
class Route:
    """A bronchus from its inner to its outer end: points (mm), lumen radii, the radius of its artery (0: unknown)."""

    points: list[Point]
    radii: list[float]
    artery_mm: float
    lobe: str

    @property
    def length_mm(self) -> float:
        steps = np.diff(np.array(self.points), axis=0)
        return float(np.sqrt((steps**2).sum(1)).sum())

    @property
    def middle(self) -> Point:
        return self.points[len(self.points) // 2]


def routes(
    canvas: Canvas,
    rng: np.random.Generator,
    lungs: Lungs,
    count: int,
    *,
    reach_mm: float,
    lobes: set[str] | None = None,
) -> list[Route]:
    """Return ``count`` bronchi of the patient in random order, none along another; made-up ones if too few are found.

    ``reach_mm`` is how long a route is followed through its widest branches.
    """
    tree = canvas.patient.airways
    heads = np.flatnonzero((tree.radius_start <= SEGMENTAL_MM[1]) & (tree.radius_end >= SEGMENTAL_MM[0]))
    found: list[Route] = []
    used: set[int] = set()
    for head in rng.permutation(heads):
        chain = _follow(canvas, int(head), reach_mm)
        if used & set(chain):
            continue
        route = _route(canvas, lungs, chain)
        if route.length_mm < SHORTEST_MM or not _free(canvas, route) or (lobes and route.lobe not in lobes):
            continue
        used |= set(chain)
        found.append(route)
        if len(found) == count:
            return found
    for _ in range(20 * count):
        route = _invented(canvas, rng, lungs, reach_mm)
        if not lobes or route.lobe in lobes:
            found.append(route)
        if len(found) == count:
            break
    return found


def _follow(canvas: Canvas, head: int, reach_mm: float) -> list[int]:
    """Return segments from ``head`` outwards through the widest branches."""
    tree = canvas.patient.airways
    chain, length = [head], 0.0
    while length < reach_mm:
        here = chain[-1]
        way = tree.end[here] - tree.start[here]
        length += float(np.sqrt(way @ way))
        branches = np.flatnonzero(tree.parent == here)
        if not len(branches):
            break
        chain.append(int(branches[np.argmax(tree.radius_start[branches])]))
    return chain


def _route(canvas: Canvas, lungs: Lungs, chain: list[int]) -> Route:
    tree, vessels = canvas.patient.airways, canvas.patient.vessels
    points = [np.asarray(tree.start[chain[0]], float), *(np.asarray(tree.end[n], float) for n in chain)]
    radii = [float(tree.radius_start[chain[0]]), *(float(tree.radius_end[n]) for n in chain)]
    partner = int(tree.partner[chain[len(chain) // 2]])
    artery = float((vessels.radius_start[partner] + vessels.radius_end[partner]) / 2) if partner >= 0 else 0.0
    middle = (points[0] + points[-1]) / 2
    return Route(points, radii, artery, lungs.lobe_name(to_ijk(canvas, middle)))


def _free(canvas: Canvas, route: Route) -> bool:
    """Return whether a route lies in lung that no finding uses."""
    size = np.array(canvas.hu.shape) - 1
    for point in route.points:
        i, j, k = np.clip(np.rint(to_ijk(canvas, point)).astype(int), 0, size)
        if canvas.occupied[i, j, k]:
            return False
    return route.lobe != "outside"


def _invented(canvas: Canvas, rng: np.random.Generator, lungs: Lungs, reach_mm: float) -> Route:
    """Return a bronchus on a line from the hilum to a random place of the middle lung."""
    ijk = lungs.pick(rng, (lungs.depth_mm > 16) & (lungs.height > 0.1) & (lungs.height < 0.9))
    tip = to_mm(canvas, ijk)
    way = hilum_mm(canvas, lungs, ijk) - tip
    start = tip + way * min(0.7, reach_mm / max(float(np.sqrt(way @ way)), 1.0))
    radius = float(rng.uniform(1.3, 2.2))
    points = bend(rng, start, tip, 0.06, 4)
    return Route(points, [float(r) for r in np.linspace(radius, 0.6 * radius, 5)], 0.0, lungs.lobe_name(ijk))


def smooth(points: list[Point], step_mm: float) -> list[Point]:
    """Return points about every ``step_mm`` along a curve through the given ones."""
    corners = np.array(points)
    lengths = np.concatenate([[0.0], np.cumsum(np.sqrt((np.diff(corners, axis=0) ** 2).sum(1)))])
    places = np.linspace(0, lengths[-1], max(2, int(lengths[-1] / step_mm) + 1))
    line = np.stack([np.interp(places, lengths, corners[:, axis]) for axis in range(3)], axis=1)
    for _ in range(2 if len(line) > 4 else 0):
        line[1:-1] = (line[:-2] + 2 * line[1:-1] + line[2:]) / 4
    return [np.asarray(point) for point in line]


def draw_bronchus(canvas: Canvas, points: list[Point], lumen: list[float], walls: list[float]) -> None:
    """Draw the wall and lumen of a bronchus; lumens of the patient's airways that open into it stay open.

    Wall and lumen run out at both ends: a bronchus goes on, and does not end in a cap.
    """
    points = [points[0] - 0.8 * (points[1] - points[0]), *points, points[-1] + 0.8 * (points[-1] - points[-2])]
    lumen = [0.75 * lumen[0], *lumen, 0.3 * lumen[-1]]
    walls = [0.1, *walls, 0.1]
    outer = [r + w for r, w in zip(lumen, walls, strict=True)]
    box = around(canvas, points, max(outer) + 1.5)
    fine = fineness(canvas, 0.75)
    axes = fine_axes(canvas, box, fine)
    shell = polyline_depth(axes, points, outer)
    hollow = np.maximum(
        polyline_depth(axes, points, lumen), np.minimum(_openings(canvas, axes, points, max(outer)), shell)
    )
    inner = lobe_map(canvas, box) > 0
    cover = pool(inside(shell), fine) * inner
    air = pool(inside(hollow), fine) * inner
    canvas.put(box, cover, WALL_HU)
    canvas.put(box, air, LUMEN_HU)


def _openings(canvas: Canvas, axes: Axes, points: list[Point], radius: float) -> Field:
    """Return how deep points lie in the lumens of the patient's airways near a route, mm."""
    tree = canvas.patient.airways
    low, high = np.min(points, axis=0) - radius, np.max(points, axis=0) + radius
    near = (np.maximum(tree.start, tree.end) > low).all(1) & (np.minimum(tree.start, tree.end) < high).all(1)
    depth: Field = np.full((1, 1, 1), -FAR_MM, np.float32)
    for n in np.flatnonzero(near)[:OPEN_BRANCHES]:
        ends = [np.asarray(tree.start[n]), np.asarray(tree.end[n])]
        radii = [float(tree.radius_start[n]), float(tree.radius_end[n])]
        depth = np.maximum(depth, polyline_depth(axes, ends, radii, reach_mm=1.0))
    return depth


def beside(rng: np.random.Generator, points: list[Point], gaps: list[float]) -> list[Point]:
    """Return a line that runs along another at the given distances from it, on one side, mostly in plane."""
    way = points[-1] - points[0]
    side = np.cross(way, direction(rng))
    side /= max(float(np.sqrt(side @ side)), 1e-6)
    return [point + side * gap for point, gap in zip(points, gaps, strict=True)]


def draw_artery(canvas: Canvas, points: list[Point], radii: list[float]) -> None:
    """Draw an artery along a line."""
    strand(canvas, points, radii, ARTERY_HU)


def mark(canvas: Canvas, points: list[Point], radius: float) -> None:
    """Mark the surroundings of a route as used."""
    box = around(canvas, points, radius)
    near = polyline_depth(canvas.mm(box), points, [radius] * len(points)) > 0
    canvas.occupy(box, near & (lobe_map(canvas, box) > 0))
