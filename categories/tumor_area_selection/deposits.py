"""Metastases, their look-alikes and follicles: one law of shape, one of place, random order of painting."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from categories.spec import Scale
from categories.tumor_area_selection import tissues as t
from categories.tumor_area_selection.anatomy import MM, Node

TILE_CELLS = 128
"""Map cells along a tile of 4,096 px."""
BORDERLINE = (0.10, 0.34)
"""Shares of a tile that a single large deposit avoids, whatever its kind."""
LOOK_ALIKES = ("vessels", "histiocytes", "blasts")
"""Kinds that are as large as metastases."""
LARGE = {"full": (0.55, 1.25), "small": (0.55, 0.80)}
"""Radii of metastases and of their look-alikes, mm."""


@dataclass(frozen=True)
class Deposit:
    """One region that was put into the node."""

    number: int
    kind: str
    morphology: str
    radius_mm: float


@dataclass(frozen=True)
class _Shape:
    box: tuple[slice, slice]
    distance: NDArray[np.float64]
    """1 on the outline."""


def plan(rng: np.random.Generator, area_mm2: float, scale: Scale) -> list[tuple[str, str, float]]:
    """Return kind, morphology and radius (mm) of everything a node of this area holds, in random order."""

    def count(per_mm2: float, least: int) -> int:
        return max(least, round(area_mm2 * per_mm2 * rng.uniform(0.85, 1.15)))

    large = LARGE[scale]
    first = int(rng.integers(3))
    found = [("tumour", t.MORPHOLOGIES[(first + i) % 3], rng.uniform(*large)) for i in range(count(0.145, 4))]
    found += [("tumour", str(rng.choice(t.MORPHOLOGIES)), rng.uniform(0.08, 0.28)) for _ in range(count(0.06, 1))]
    for i in range(count(0.17, 3)):
        found.append((LOOK_ALIKES[(first + i) % 3], str(rng.choice(["solid", "infiltrating"])), rng.uniform(*large)))
    found += [("follicle", "solid", rng.uniform(0.42, 0.5)) for _ in range(count(0.05, 1))]
    for _ in range(count(0.07, 1)):
        found.append((str(rng.choice(["necrosis", "blood", "scar"])), "solid", rng.uniform(0.15, 0.8)))
    found += [("follicle", "solid", rng.uniform(0.12, 0.42)) for _ in range(count(0.5, 4))]
    for _ in range(count(0.15, 1)):
        found.append((str(rng.choice(["histiocytes", "blood"])), "solid", rng.uniform(0.08, 0.3)))
    return [found[i] for i in rng.permutation(len(found))]


def fill_node(
    rng: np.random.Generator, node: Node, rows: list[NDArray[np.float64]], corner: tuple[int, int], scale: Scale
) -> list[Deposit]:
    """Put the deposits into the node's map; ``corner`` is where its window will lie on the slide's map."""
    done: list[Deposit] = []
    for kind, morphology, radius in plan(rng, float(node.inside.sum()) / MM**2, scale):
        beyond = rng.random() < 0.15  # crosses the capsule: extranodal growth, of whatever kind
        shape = _settle(rng, node, radius, corner)
        view = node.regions[shape.box]
        may = (view > 0) if beyond else (node.depth > node.capsule)[shape.box]
        if kind == "follicle" or rng.random() < 0.45:
            rim = 1 + rng.uniform(0.04, 0.09) / radius
            lymphoid = np.isin(view, [t.CORTEX, t.PARACORTEX, t.MEDULLA])
            view[(shape.distance < rim) & may & lymphoid] = t.MANTLE
        here = (shape.distance < 1) & may
        done.append(_put(rng, view, here, rows, kind, morphology, radius))
        if kind in ("tumour", "histiocytes", "blasts", "scar") and radius > 0.5 and rng.random() < 0.4:
            core = here & (shape.distance < rng.uniform(0.2, 0.45))
            done.append(_put(rng, view, core, rows, str(rng.choice(["necrosis", "scar"])), "solid", radius / 3))
    return done


def _put(
    rng: np.random.Generator,
    view: NDArray[np.uint16],
    here: NDArray[np.bool_],
    rows: list[NDArray[np.float64]],
    kind: str,
    morphology: str,
    radius: float,
) -> Deposit:
    rows.append(t.deposit_row(rng, kind, morphology))
    view[here] = len(rows) - 1
    return Deposit(len(rows) - 1, kind, morphology if kind in t.PATTERNED else "", round(radius, 4))


def _settle(rng: np.random.Generator, node: Node, radius: float, corner: tuple[int, int]) -> _Shape:
    """Draw places and outlines; of a large deposit's, keep the one with the fewest borderline tiles."""
    best: tuple[int, _Shape] | None = None
    for _ in range(8 if radius > 0.5 else 1):
        shape = _draw_shape(rng, node, radius)
        score = _borderline(shape, corner) if radius > 0.5 else 0
        if best is None or score < best[0]:
            best = score, shape
        if score == 0:
            break
    assert best is not None
    return best[1]


def _draw_shape(rng: np.random.Generator, node: Node, radius: float) -> _Shape:
    """Draw a centre (three of four in a band under the capsule) and a lobed ellipse round it."""
    cy, cx = _centre(rng, node, radius)
    aspect, turn, irregular = np.sqrt(rng.uniform(1, 1.6)), rng.uniform(0, np.pi), rng.uniform(0.1, 0.4)
    reach = int(radius * MM * 2.4) + 8
    y0, y1 = max(0, cy - reach), min(node.inside.shape[0], cy + reach + 1)
    x0, x1 = max(0, cx - reach), min(node.inside.shape[1], cx + reach + 1)
    box = (slice(y0, y1), slice(x0, x1))
    yy, xx = np.mgrid[y0:y1, x0:x1]
    cos, sin = round(float(np.cos(turn)), 9), round(float(np.sin(turn)), 9)
    p = ((xx - cx) * cos + (yy - cy) * sin) / aspect
    q = (-(xx - cx) * sin + (yy - cy) * cos) * aspect
    wide, middle, fine = (wave[box] for wave in node.waves)
    lobes = 0.5 * middle + 0.3 * fine + (0.5 * wide if radius > 0.4 else 0)
    distance = np.sqrt(p * p + q * q) / (radius * MM) + irregular * lobes * min(1.0, radius / 0.4)
    return _Shape(box, distance)


def _centre(rng: np.random.Generator, node: Node, radius: float) -> tuple[int, int]:
    """Draw a cell of the node: in the band that fits the radius, or anywhere below 0.4 mm."""
    low, high = (0.25 * radius + 0.1, 0.75 * radius + 0.25) if rng.random() < 0.75 else (0.4, np.inf)
    side = node.inside.shape[0]
    while True:
        tried = rng.integers(0, side, (4096, 2))
        depth = node.depth[tried[:, 0], tried[:, 1]]
        fit = tried[node.inside[tried[:, 0], tried[:, 1]] & (depth > low) & (depth < high)]
        if len(fit):
            return int(fit[0, 0]), int(fit[0, 1])
        low, high = 0.8 * low, 1.25 * high  # a node too small for the radius


def _borderline(shape: _Shape, corner: tuple[int, int]) -> int:
    """Count the tiles of which the shape covers a borderline share."""
    mask = shape.distance < 1
    rows = (np.arange(mask.shape[0]) + shape.box[0].start + corner[0]) // TILE_CELLS
    columns = (np.arange(mask.shape[1]) + shape.box[1].start + corner[1]) // TILE_CELLS
    tiles = (rows - rows[0])[:, None] * 64 + (columns - columns[0])[None, :]
    share = np.bincount(tiles.ravel(), mask.ravel()) / TILE_CELLS**2
    return int(((share > BORDERLINE[0]) & (share < BORDERLINE[1])).sum())
