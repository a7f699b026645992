"""Lung trees of one patient: airways with their arteries beside them, and veins between.

Each lobe's tree is grown into points scattered through the lobe: the points are halved again and again, and a branch
goes part of the way to the middle of each half (after Tawhai and others, Ann Biomed Eng 2000;28:793). A branch is as
wide as the number of points it serves allows (Murray's law, with exponents as lungs have them).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.chest.labels import LOBES, ORGANS, where
from categories.chest.template import Kind, Root
from categories.chest.tree import Tree, join
from categories.spec import Scale

Array = NDArray[np.float64]
TERMINALS_MM: dict[Scale, float] = {"full": 10.0, "small": 15.0}
"""Mean distance between the points that a tree serves."""
PLEURA_MM = 4.0
LOOK_MM = 3.4
"""Lobes are looked at on a grid so fine."""
EXPONENTS = {"airway": 2.35, "artery": 2.7, "vein": 2.7}
"""A tube's width is the root's times the share of points it serves to the power of 1 by this: airways lose more."""
REACH = (0.36, 0.46)
"""Share of the way to the middle of a half that a branch goes."""
SPLIT = (0.34, 0.66)
KEPT_COURSE = 0.55
"""How much of its parent's direction a branch keeps."""
AIRWAY_SIZE, VESSEL_SIZE = (0.86, 0.97), (0.95, 1.10)
"""Relative to the template's roots, drawn for each patient; a bronchus stays narrower than its artery."""
WALL_BY_OUTER_DIAMETER = (0.11, 0.15)
LEAST_LUMEN_MM = 0.6
"""Radius below which an airway is not seen and not drawn."""


@dataclass(frozen=True)
class Sprout:
    """A tree without width: segments in the order they grew."""

    start: Array
    end: Array
    served: NDArray[np.int64]
    """How many points lie beyond."""
    parent: NDArray[np.int64]
    generation: NDArray[np.int64]


def grow(rng: np.random.Generator, root: Array, points: Array) -> Sprout:
    """Grow one tree from its root into the points (n, 3), mm."""
    number = 2 * len(points)
    start, end = np.zeros((number, 3)), np.zeros((number, 3))
    counts = np.zeros((3, number), np.int64)
    lean, reach, cut_at = rng.standard_normal((number, 3)), rng.uniform(*REACH, number), rng.uniform(*SPLIT, number)
    heading = points.mean(0) - root
    stack = [(root, heading / np.sqrt(heading @ heading), points, -1, 0)]
    own = -1
    while stack:
        at, along, served, parent, generation = stack.pop()
        own += 1
        counts[:, own] = len(served), parent, generation
        start[own] = at
        if len(served) == 1:
            end[own] = served[0]
            continue
        way = served.mean(0) - at
        far = float(np.sqrt(way @ way)) + 1e-6
        toward = way / far + KEPT_COURSE * along
        toward /= np.sqrt(toward @ toward)
        end[own] = at + toward * max(far * reach[own], 1.0)
        # The halves lie apart along the longest spread across the branch's course.
        spread = served.max(0) - served.min(0)
        axis = spread * spread * (1 + 0.3 * lean[own])
        axis -= toward * (axis @ toward) * 0.7
        rank = np.argsort(np.round(served @ axis, 6), kind="stable")
        cut = min(len(served) - 1, max(1, round(len(served) * cut_at[own])))
        stack += [(end[own], toward, served[part], own, generation + 1) for part in (rank[:cut], rank[cut:])]
    used = np.s_[: own + 1]
    return Sprout(start[used], end[used], counts[0, used], counts[1, used], counts[2, used])


def scatter(
    rng: np.random.Generator, organs: NDArray[np.uint8], spacing: Array, apart_mm: float
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return two independent sets of points (n, 3) of each lobe, mm: one in every cube, none near the pleura."""
    step = np.maximum(1, np.rint(LOOK_MM / spacing)).astype(int)
    few = organs[:: step[0], :: step[1], :: step[2]]
    mm = spacing * step
    inner = ndi.distance_transform_edt(where(few, LOBES), sampling=mm) > PLEURA_MM
    found: tuple[dict[str, Array], dict[str, Array]] = {}, {}
    for lobe in LOBES:
        every = np.argwhere(inner & (few == ORGANS[lobe]))
        for points in found:
            places = every[rng.permutation(len(every))] * mm
            cells = np.floor((places + rng.uniform(0, apart_mm, 3)) / apart_mm).astype(np.int64)
            _, first = np.unique(cells @ (1_000_000, 1_000, 1), return_index=True)
            points[lobe] = places[first] + rng.uniform(-0.5, 0.5, (len(first), 3)) * mm
    return found


def widths(sprout: Sprout, kind: Kind, root_mm: float) -> tuple[Array, Array]:
    """Return the radii (mm) at both ends of each segment."""
    begin = root_mm * np.round((sprout.served / sprout.served[0]) ** (1 / EXPONENTS[kind]), 9)
    finish = 0.8 * begin
    inner = sprout.parent >= 0
    np.maximum.at(finish, sprout.parent[inner], begin[inner])
    return begin, finish


def as_tree(sprout: Sprout, kind: Kind, lobe: str, radius_mm: float, wall: float = 0.0) -> Tree:
    """Give a sprout its widths; ``wall`` is the wall's share of the outer diameter."""
    begin, finish = widths(sprout, kind, radius_mm)
    number = len(begin)
    return Tree(
        start=sprout.start,
        end=sprout.end,
        radius_start=begin,
        radius_end=finish,
        wall=begin * (2 * wall / (1 - 2 * wall)),
        parent=sprout.parent,
        generation=sprout.generation,
        lobe=np.full(number, ORGANS[lobe], np.uint8),
        kind=np.full(number, kind),
        partner=np.full(number, -1),
    )


def beside(rng: np.random.Generator, sprout: Sprout, gap: Array, root: Array) -> Sprout:
    """Return the sprout moved sideways by ``gap`` (mm, per segment), always to the same side of a branch."""
    side = np.zeros_like(sprout.start)
    first = rng.standard_normal(3)
    along = sprout.end - sprout.start
    length = np.sqrt((along * along).sum(1, keepdims=True))
    along = along / np.maximum(length, 1e-6)
    for own, parent in enumerate(sprout.parent):
        before = first if parent < 0 else side[parent]
        across = before - along[own] * (before @ along[own])
        side[own] = across / max(float(np.sqrt(across @ across)), 1e-6)
    end = sprout.end + side * gap[:, None]
    start = np.where(sprout.parent[:, None] < 0, root, end[sprout.parent])
    return replace(sprout, start=start, end=end)


def draw_trees(
    rng: np.random.Generator,
    organs: NDArray[np.uint8],
    spacing: Array,
    roots: Sequence[tuple[Root, Array]],
    grid: Scale,
) -> tuple[Tree, Tree]:
    """Return the airways and the vessels of a patient; ``roots`` come with their places (mm, index times spacing)."""
    by_kind: dict[str, dict[str, tuple[Root, Array]]] = {"airway": {}, "artery": {}, "vein": {}}
    for root, place in roots:
        by_kind[root.kind][root.lobe] = root, place
    airway_size, vessel_size = rng.uniform(*AIRWAY_SIZE), rng.uniform(*VESSEL_SIZE)
    wall = rng.uniform(*WALL_BY_OUTER_DIAMETER)
    shared, apart = scatter(rng, organs, spacing, TERMINALS_MM[grid])
    airways, arteries, veins = [], [], []
    for lobe in LOBES:
        root, place = by_kind["airway"][lobe]
        sprout = grow(rng, place, shared[lobe])
        airway = as_tree(sprout, "airway", lobe, root.radius_mm * airway_size, wall)
        root, place = by_kind["artery"][lobe]
        width = root.radius_mm * vessel_size
        gap = airway.radius_start + airway.wall + widths(sprout, "artery", width)[0] + 0.3
        airways.append(airway)
        arteries.append(as_tree(beside(rng, sprout, gap, place), "artery", lobe, width))
        root, place = by_kind["vein"][lobe]
        veins.append(as_tree(grow(rng, place, apart[lobe]), "vein", lobe, root.radius_mm * vessel_size))
    every = join(airways)
    every = replace(every, partner=np.arange(len(every)))  # arteries stand first among the vessels, one for each
    return every.only(every.radius_start >= LEAST_LUMEN_MM), join([*arteries, *veins])
