"""The map of a whole slide: its nodes, what marks the glass, and how much tumour each tile holds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.draw import Draw
from categories.spec import Scale
from categories.tumor_area_selection import tissues as t
from categories.tumor_area_selection.anatomy import MM, add_vessels, build_node, smooth_field
from categories.tumor_area_selection.deposits import LOOK_ALIKES, TILE_CELLS, Deposit, fill_node
from categories.tumor_area_selection.kernels import MAP_PX, TABLE, kernel, region

POSITIVE_SHARE = 0.20
GREY = (0.12, 0.30)
"""Tiles in this band are few: an honest reader may take them either way."""
MAX_GREY = 0.10
"""Of the number of positive tiles; one is always allowed."""
LEAST_POSITIVE = {"full": 12, "small": 5}
SIDE_PX = {"full": (95_000, 103_000), "small": (23_552, 25_088)}
NODE_MM = {
    ("full", 1): ((6.0, 6.8), (4.2, 4.9)),
    ("full", 2): ((4.2, 4.8), (3.1, 3.6)),
    ("full", 3): ((3.5, 4.1), (2.6, 3.0)),
    ("small", 1): ((2.00, 2.15), (1.65, 1.80)),
}
"""Half axes of a node, long and short, by scale and number of sections."""
SHIFT_CELLS = 48
STEP_CELLS = 4
"""Each section may move so far, in such steps, to leave few tiles grey."""
INK_BLUE, INK_GREEN, FOLD, FOCUS = range(4)


@dataclass(frozen=True)
class SlideMap:
    """All that decides the pixels, but for the keyed salts."""

    regions: NDArray[np.uint16]
    rows: NDArray[np.float64]
    border: NDArray[np.float32]
    """Distance (level-0 pixels) to the edge within capsule and walls."""
    overlays: NDArray[np.uint8]
    """Blue ink, green ink, fold, defocus; 0 to 255."""
    table: NDArray[np.float32]
    deposits: tuple[Deposit, ...]
    exact: NDArray[np.uint16]
    """The region that is drawn at the middle of each cell."""
    shares: NDArray[np.float64]
    """Tumour share of each tile, by row and column."""

    @property
    def height(self) -> int:
        return int(self.regions.shape[0]) * MAP_PX

    @property
    def width(self) -> int:
        return int(self.regions.shape[1]) * MAP_PX

    def tumour(self) -> NDArray[np.bool_]:
        return np.isin(self.exact, [d.number for d in self.deposits if d.kind == "tumour"])


def draw_map(draw: Draw) -> SlideMap:
    """Return the first layout that has enough positive tiles and few grey ones."""
    for attempt in range(60):
        found = _layout(draw, attempt)
        if found is not None and _acceptable(found.shares, draw.scale):
            return found
    raise RuntimeError(f"{draw.case}: no acceptable layout in 60 attempts")


def _acceptable(shares: NDArray[np.float64], scale: Scale) -> bool:
    positive = int((shares >= POSITIVE_SHARE).sum())
    return positive >= LEAST_POSITIVE[scale] and _grey(shares) <= max(1, MAX_GREY * positive)


def _grey(shares: NDArray[np.float64]) -> int:
    return int(((shares >= GREY[0]) & (shares < GREY[1])).sum())


def noise_table(rng: np.random.Generator) -> NDArray[np.float32]:
    """Return periodic noise of three scales, SD 1."""
    total = np.zeros((TABLE, TABLE))
    for sigma, weight in ((2, 1.0), (5, 1.2), (14, 1.0)):
        layer = ndi.gaussian_filter(np.round(rng.standard_normal((TABLE, TABLE)), 6), sigma, mode="wrap")
        total += weight * layer / layer.std()
    return np.asarray(np.round(total / total.std(), 4), np.float32)


def _layout(draw: Draw, attempt: int) -> SlideMap | None:
    """Lay out a slide; None as soon as its tiles are seen not to do."""
    rng = draw.rng("layout", attempt)
    shape = tuple(int(rng.integers(*SIDE_PX[draw.scale])) // 64 * 64 // MAP_PX for _ in range(2))
    rows = t.base_rows(rng)
    count = int(str(draw.spec.parameters["sections"])) if draw.scale == "full" else 1
    axes = NODE_MM[draw.scale, count]
    nodes = [build_node(rng, rng.uniform(*axes[0]), rng.uniform(*axes[1])) for _ in range(count)]
    boxes = [ndi.find_objects((node.regions > 0).astype(np.uint8))[0] for node in nodes]
    corners = _arrange(rng, boxes, shape)
    deposits: list[Deposit] = []
    for node, box, corner in zip(nodes, boxes, corners, strict=True):
        deposits += fill_node(rng, node, rows, (corner[0] - box[0].start, corner[1] - box[1].start), draw.scale)
        add_vessels(rng, node)
    numbers = [d.number for d in deposits if d.kind == "tumour"]
    corners = _move([np.isin(n.regions[b], numbers) for n, b in zip(nodes, boxes, strict=True)], corners, shape)
    regions, border = np.zeros(shape, np.uint16), np.zeros(shape, np.float32)
    for node, box, (y, x) in zip(nodes, boxes, corners, strict=True):
        there = np.s_[y : y + box[0].stop - box[0].start, x : x + box[1].stop - box[1].start]
        regions[there] = node.regions[box]
        border[there] = ndi.distance_transform_edt(node.regions[box] == t.CAPSULE) * MAP_PX
    if not _acceptable(tile_shares(np.isin(regions, numbers)), draw.scale):
        return None
    table = noise_table(rng)
    exact = exact_regions(regions, table)
    tumour = np.isin(exact, numbers)
    looks = np.isin(exact, [d.number for d in deposits if d.kind in LOOK_ALIKES])
    overlays = _mark(rng, tumour, looks, regions > 0)
    return SlideMap(regions, np.array(rows), border, overlays, table, tuple(deposits), exact, tile_shares(tumour))


def _arrange(
    rng: np.random.Generator, boxes: list[tuple[slice, slice]], shape: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Return the corners of the sections on the glass: apart from one another and from the edge."""
    gap = SHIFT_CELLS + 2
    apart = 2 * SHIFT_CELLS + 4
    sizes = [(b[0].stop - b[0].start, b[1].stop - b[1].start) for b in boxes]
    for _ in range(20_000):
        found: list[tuple[int, int]] = []
        for height, width in sizes:
            y = int(rng.integers(gap, max(gap + 1, shape[0] - height - gap)))
            x = int(rng.integers(gap, max(gap + 1, shape[1] - width - gap)))
            if any(
                y < b + h + apart and b < y + height + apart and x < a + w + apart and a < x + width + apart
                for (b, a), (h, w) in zip(found, sizes, strict=False)
            ):
                break
            found.append((y, x))
        if len(found) == len(sizes):
            return found
    raise RuntimeError(f"sections of {sizes} cells do not fit a slide of {shape}")


def _move(
    tumours: list[NDArray[np.bool_]], corners: list[tuple[int, int]], shape: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Return the corners after each section has moved to where the fewest tiles are grey."""
    k, reach = TILE_CELLS // STEP_CELLS, SHIFT_CELLS // STEP_CELLS
    rows, columns = (-(-side // TILE_CELLS) * k for side in shape)
    before = np.zeros((rows, columns))
    moved = []
    for mask, (y, x) in zip(tumours, corners, strict=True):
        ys, xs = np.nonzero(mask)
        best = (10_000, 0, 0)
        own = np.zeros_like(before)
        np.add.at(own, ((ys + y) // STEP_CELLS, (xs + x) // STEP_CELLS), 1 / TILE_CELLS**2)
        for dy in range(-reach, reach + 1):
            for dx in range(-reach, reach + 1):
                both = before + np.roll(own, (dy, dx), (0, 1))
                share = both.reshape(rows // k, k, columns // k, k).sum((1, 3))
                best = min(best, (_grey(share), dy, dx))
        before += np.roll(own, best[1:], (0, 1))
        moved.append((y + best[1] * STEP_CELLS, x + best[2] * STEP_CELLS))
    return moved


def tile_shares(tumour: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the share of each tile's in-slide area that is tumour."""
    rows, columns = (-(-side // TILE_CELLS) for side in tumour.shape)
    shares = np.zeros((rows, columns))
    for y, x in np.ndindex(rows, columns):
        tile = np.s_[y * TILE_CELLS : (y + 1) * TILE_CELLS, x * TILE_CELLS : (x + 1) * TILE_CELLS]
        shares[y, x] = tumour[tile].mean()
    return shares


@kernel
def exact_regions(regions: NDArray[np.uint16], table: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return the region that is drawn at the middle of each cell: the map as warped by the renderer."""
    out = np.zeros_like(regions)
    for i in range(regions.shape[0]):
        for j in range(regions.shape[1]):
            out[i, j] = region(regions, table, (j + 0.5) * MAP_PX, (i + 0.5) * MAP_PX)
    return out


def _mark(
    rng: np.random.Generator, tumour: NDArray[np.bool_], looks: NDArray[np.bool_], tissue: NDArray[np.bool_]
) -> NDArray[np.uint8]:
    """Return ink, folds and defocus: each crosses tumour, a look-alike and any tissue."""
    overlays = np.zeros((4, *tumour.shape), np.uint8)
    places = {name: np.argwhere(mask) for name, mask in (("t", tumour), ("l", looks), ("a", tissue)) if mask.any()}
    jobs = [(INK_BLUE, "t"), (INK_BLUE, "l"), (INK_GREEN, "a")]
    jobs += [(what, where) for what in (FOLD, FOCUS) for where in "tla"]
    for what, where in jobs:
        cells = places.get(where, places["a"])
        _stroke(rng, overlays[what], what, cells[rng.integers(len(cells))], tissue)
    return overlays


def _stroke(
    rng: np.random.Generator, overlay: NDArray[np.uint8], what: int, at: NDArray[np.int64], tissue: NDArray[np.bool_]
) -> None:
    """Draw one mark round a place of the map."""
    reach = int(2.6 * MM)
    y0, x0 = max(0, int(at[0]) - reach), max(0, int(at[1]) - reach)
    view = overlay[y0 : int(at[0]) + reach + 1, x0 : int(at[1]) + reach + 1]
    yy, xx = np.mgrid[y0 : y0 + view.shape[0], x0 : x0 + view.shape[1]] - at[:, None, None]
    turn = rng.uniform(0, 2 * np.pi)
    cos, sin = round(float(np.cos(turn)), 9), round(float(np.sin(turn)), 9)
    p, q = (xx * cos + yy * sin) / MM, (-xx * sin + yy * cos) / MM
    bend = 0.15 * smooth_field(rng, int(max(view.shape)), 0.9)[: view.shape[0], : view.shape[1]]
    fine = 0.02 * smooth_field(rng, int(max(view.shape)), 0.11)[: view.shape[0], : view.shape[1]]
    if what == FOCUS:
        mark = np.sqrt(p * p + 2 * q * q) + 3 * fine < rng.uniform(0.2, 0.45)
        soft = 4.0
    elif what == FOLD:
        mark = (np.abs(q + bend) < rng.uniform(0.025, 0.05) + fine) & (np.abs(p) < rng.uniform(0.6, 1.4))
        mark &= tissue[y0 : y0 + view.shape[0], x0 : x0 + view.shape[1]]
        soft = 0.9
    else:
        beyond = np.maximum(np.abs(p) - rng.uniform(0.8, 2), 0)
        mark = np.sqrt((q + bend) ** 2 + beyond**2) < rng.uniform(0.06, 0.12) + 0.3 * fine
        soft = 0.8
    drawn = np.round(ndi.gaussian_filter(mark.astype(np.float64), soft), 6) * 255
    np.maximum(view, drawn.astype(np.uint8), out=view)
