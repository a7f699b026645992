"""Enlarged lymph nodes at named stations of the mediastinum, the hila and the armpits.

Look-alikes: nodes of ordinary size, some with a fatty hilum, at the same stations and in the same number.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from categories.chest.labels import LOBES, ORGANS, where
from categories.ct_abnormality.canvas import Box, Canvas, Facts, States
from categories.ct_abnormality.heart_shapes import Coarse, coarse, extent
from categories.ct_abnormality.lung_texture import Field, distance, fractal, inside, smooth_step

PRESENT_MM, GREY_MM, ORDINARY_MM = (13.0, 24.0), (9.0, 10.2), (4.5, 7.4)
LEAST_MM, GREY_WITHIN_MM = 11.8, (8.5, 10.5)
"""What must be left of a node where it yields to its neighbours."""
NODE_HU = (32.0, 48.0)
FAT_PLANE_MM, FAT_HU, PLEURA_MM = 1.8, -95.0, 9.0
STATIONS = ("2R/4R", "4L", "5", "6", "7", "8", "10R", "10L", "axilla right", "axilla left", "3A")


@dataclass(frozen=True)
class Chest:
    """The mediastinum, coarse, and the levels by which stations are named. All lengths in mm of the grid's frame."""

    view: Coarse
    fork: NDArray[np.float64]
    """Where the windpipe divides."""
    arch: float
    """Top of the aortic arch along the body."""
    clear: NDArray[np.float32]
    """Distance to the nearest vessel, airway, gullet or bone; negative in them."""
    lung: NDArray[np.float32]
    """Depth in the lung; negative outside."""


def survey(canvas: Canvas) -> Chest | None:
    """Return the landmarks of a patient; None without a windpipe or an aorta in the scan."""
    box = extent(canvas, ["heart", "superior_vena_cava", "brachiocephalic_trunk"], (26.0, 26.0, 6.0))
    if box is None:
        return None
    view = coarse(canvas, box, 2.0)
    tube = where(view.organs, ["trachea"])
    aorta = where(view.organs, ["aorta"])
    i, j, k = (axis.ravel() for axis in view.axes)
    top = float(k[np.flatnonzero(aorta.any((0, 1)))[-1]]) if aorta.any() else 0.0
    centres: list[NDArray[np.float64]] = []
    fork = None
    for plane in np.flatnonzero(tube.any((0, 1)))[::-1]:
        parts, _ = ndimage.label(tube[:, :, plane])
        sizes = np.bincount(parts.ravel())[1:]
        spots = np.argwhere(tube[:, :, plane])
        here = np.array([i[int(spots[:, 0].mean())], j[int(spots[:, 1].mean())], k[plane]])
        halved = (sizes > 0.25 * sizes.sum()).sum() > 1 or np.ptp(spots[:, 0]) * view.spacing_mm[0] > 32
        if halved and k[plane] < top - 8:
            fork = here
            break
        centres.append(here)
    if not centres or not aorta.any():
        return None
    named = [name for name in ORGANS if name not in ("background", "body", "fat") and not name.startswith("lung")]
    lung = where(view.organs, LOBES)
    clear = -view.depth(where(view.organs, named) | _gas(view.hu, lung) | _bronchi(canvas, view))
    return Chest(view, centres[-1] if fork is None else fork, top, clear, view.depth(lung))


def _bronchi(canvas: Canvas, view: Coarse) -> NDArray[np.bool_]:
    """Return the coarse points on the larger bronchi of the patient's tree: nodes lie beside them, not in them."""
    tree = canvas.patient.airways
    found = np.zeros(view.organs.shape, bool)
    large = np.flatnonzero(tree.radius_start > 1.8)
    if not len(large):
        return found
    steps = np.linspace(0, 1, 8)[None, :, None]
    points = tree.start[large, None] * (1 - steps) + tree.end[large, None] * steps
    origin = np.array([part.start for part in view.box]) * canvas.spacing_mm
    index = np.round((points.reshape(-1, 3) - origin) / view.spacing_mm).astype(int)
    index = index[((index >= 0) & (index < np.array(found.shape))).all(1)]
    found[index[:, 0], index[:, 1], index[:, 2]] = True
    return np.asarray(ndimage.binary_dilation(found, iterations=2))


def _target(chest: Chest, rng: np.random.Generator, station: str) -> tuple[NDArray[np.float64], float]:
    """Return about where a mediastinal or hilar station is, and how far from there a node may lie."""
    x, y, z = chest.fork
    arch = max(chest.arch, z + 12)  # where the arch is found low, stations above the fork keep some height
    at = {
        "2R/4R": (x - 17, y + 10, rng.uniform(z + 8, arch + 4)),
        "4L": (x + 19, y - 2, rng.uniform(z + 4, z + 16)),
        "5": (x + 32, y + 22, rng.uniform(z - 2, z + 12)),
        "6": (x + 16, y + 62, rng.uniform(z + 4, arch)),
        "7": (x + 4, y - 4, rng.uniform(z - 28, z - 12)),
        "8": (x + 4, y - 26, rng.uniform(z - 70, z - 40)),
        "10R": (x - 36, y + 4, rng.uniform(z - 26, z - 6)),
        "10L": (x + 46, y - 2, rng.uniform(z - 26, z - 6)),
        "3A": (x + 6, y + 60, rng.uniform(z + 10, arch + 6)),
    }
    return np.array(at[station]), 20.0


def _site(
    canvas: Canvas, chest: Chest, rng: np.random.Generator, station: str, short_mm: float
) -> NDArray[np.float64] | None:
    """Return the middle of a node (mm): the roomiest free place near its station; None where nothing is free."""
    if station.startswith("axilla"):
        return _armpit(canvas, rng, station, short_mm)
    target, reach = _target(chest, rng, station)
    axes = [axis.ravel() for axis in chest.view.axes]
    part = tuple(slice(*np.searchsorted(axis, (t - reach, t + reach))) for axis, t in zip(axes, target, strict=True))
    if any(p.start >= p.stop for p in part):
        return None
    near = [axis[p] for axis, p in zip(axes, part, strict=True)]
    grid = (near[0][:, None, None], near[1][None, :, None], near[2][None, None, :])
    away = distance(grid, target)
    # A node may bulge into the lung, but its middle lies on the mediastinum's side.
    into, clear = chest.lung[part], chest.clear[part]
    room = clear - 0.25 * away - 0.6 * np.maximum(into, -3) + 0.8 * fractal(rng, grid, 9.0, octaves=1)
    free = (away < reach) & (clear > 0.36 * short_mm + 0.5) & (into < 0.12 * short_mm)
    taken = canvas.occupied[chest.view.box][tuple(slice(None, None, step) for step in chest.view.step)]
    free &= ~taken[part]
    if not free.any():
        return None
    index = np.unravel_index(int(np.argmax(np.where(free, room, -np.inf))), room.shape)
    return np.array([axis[n] for axis, n in zip(near, index, strict=True)])


def _armpit(canvas: Canvas, rng: np.random.Generator, station: str, short_mm: float) -> NDArray[np.float64] | None:
    """Return a place in the fat of an armpit: between the upper ribs and the shoulder blade, in front of it."""
    side = station.split()[1]
    ribs = extent(canvas, [f"rib_{side}_{n}" for n in (2, 3, 4)])
    blade = extent(canvas, [f"scapula_{side}"])
    if ribs is None or blade is None:
        return None
    outer = slice(ribs[0].start, blade[0].start + (blade[0].stop - blade[0].start) // 2 + 1)
    if side == "right":
        outer = slice(blade[0].start + (blade[0].stop - blade[0].start) // 2, ribs[0].stop)
    front = slice(
        (blade[1].start + blade[1].stop) // 2, min(canvas.hu.shape[1], blade[1].stop + int(30 / canvas.spacing_mm[1]))
    )
    height = slice(
        (ribs[2].start + ribs[2].stop) // 2 - int(20 / canvas.spacing_mm[2]), (ribs[2].start + ribs[2].stop) // 2 + 1
    )
    if outer.start >= outer.stop or front.start >= front.stop or height.start >= height.stop or height.start < 0:
        return None
    view = coarse(canvas, (outer, front, height), 1.5)
    chestwall = where(view.organs, [name for name in ORGANS if name.startswith(("rib", "lung"))])
    level = ndimage.gaussian_filter(view.hu, (1, 1, 0))
    fat = (level > -135) & (level < -60) & (np.abs(view.depth(chestwall)) > 8)
    depth = view.depth(fat) + 0.8 * fractal(rng, view.axes, 9.0, octaves=1)
    if float(depth.max()) < 0.3 * short_mm:
        return None
    good = np.argwhere(depth > max(0.3 * short_mm, 0.7 * float(depth.max())))
    index = good[rng.integers(len(good))]
    return np.array([axis.ravel()[n] for axis, n in zip(view.axes, index, strict=True)])


@dataclass(frozen=True)
class Node:
    """A node about to be drawn."""

    box: Box
    centre: NDArray[np.float64]
    half: NDArray[np.float64]
    body: Field
    sleeve: Field
    hilum: Field


def _node(canvas: Canvas, rng: np.random.Generator, centre: NDArray[np.float64], short_mm: float) -> Node:
    """Shape a node: a smooth bean in a plane of fat; it yields to vessels and airways, and lung yields to it."""
    half = 0.5 * short_mm * np.array([1.0, float(rng.uniform(1.15, 1.75)), float(rng.uniform(1.0, 1.5))])
    box = canvas.box(centre / canvas.spacing_mm, float(half.max()) + 8)
    axes = canvas.mm(box)
    turn = float(rng.uniform(0, np.pi))
    cos, sin = round(float(np.cos(turn)), 9), round(float(np.sin(turn)), 9)
    x, y, z = (axis - c for axis, c in zip(axes, centre, strict=True))
    u, v = x * cos + y * sin, -x * sin + y * cos
    along = np.sqrt((u / half[0]) ** 2 + (v / half[1]) ** 2 + (z / half[2]) ** 2)
    depth = ((1 - along) * half[0] + 0.05 * short_mm * fractal(rng, axes, short_mm, octaves=2)).astype(np.float32)
    lung = where(canvas.organs[box], LOBES)
    organs = canvas.organs[box]
    solid = ((organs > 0) & (organs < ORGANS["body"]) & ~lung) | (canvas.hu[box] > 160) | _gas(canvas.hu[box], lung)
    apart = ndimage.distance_transform_edt(~solid, canvas.spacing_mm) if solid.any() else np.full(lung.shape, 1e3)
    apart = apart.astype(np.float32)
    # The pleura runs smoothly from the mediastinum over the node; fat fills the corner between them.
    border = np.full(lung.shape, -1e3, np.float32)
    if lung.any() and not lung.all():
        border = -ndimage.distance_transform_edt(lung, canvas.spacing_mm).astype(np.float32)
    blend = np.clip(1 - np.abs(border - depth - 1.0) / PLEURA_MM, 0, 1)
    cover = np.maximum(border, depth + 1.0) + blend * blend * PLEURA_MM / 4
    over_lung = inside(cover - 0.5, 1.2) * lung * (depth > -PLEURA_MM)
    plane = np.clip(FAT_PLANE_MM * (0.8 + 0.7 * fractal(rng, axes, 12.0, octaves=1)), 0.2, 3.0)
    in_fat = inside(depth + plane, 1.6) * ~lung * (canvas.hu[box] > FAT_HU)
    sleeve = np.maximum(over_lung, 0.9 * in_fat * smooth_step(apart, 0.0, 1.2))
    body = inside(np.minimum(depth, apart - 0.8), 0.9)
    hilum = ((u - 0.35 * half[0]) / (0.42 * half[0])) ** 2 + (v / (0.5 * half[1])) ** 2 + (z / (0.6 * half[2])) ** 2
    return Node(box, centre, half, body, sleeve.astype(np.float32), smooth_step(hilum, 1.3, 0.5))


def _gas(hu: NDArray[np.float32], lung: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the lumens of bronchi: gas that is not in the lung's mask and does not border on it."""
    return np.asarray((hu < -350) & ~ndimage.binary_dilation(lung, iterations=2))


def _paint(canvas: Canvas, rng: np.random.Generator, node: Node, station: str, *, fatty: bool) -> Facts:
    hu = float(rng.uniform(*NODE_HU))
    canvas.put(node.box, node.sleeve, FAT_HU)
    canvas.put(node.box, node.body, hu)
    if fatty:
        canvas.put(node.box, node.body * node.hilum, -70.0)
    canvas.occupy(node.box, node.body > 0.3)
    volume = float(node.body.sum(dtype=np.float64)) * float(np.prod(canvas.spacing_mm)) / 1000
    return canvas.place(
        node.centre / canvas.spacing_mm,
        f"station {station}" if station[0].isdigit() else station,
        _short_axis(canvas, node.body),
        long_mm=round(float(2 * node.half.max()), 1),
        hu=round(hu, 1),
        fatty_hilum=fatty,
        volume_ml=round(volume, 2),
    )


def _short_axis(canvas: Canvas, body: Field) -> float:
    """Return the short axis (mm) of the ellipse with the spread of a node's largest cross-section."""
    plane = body[:, :, int(body.sum((0, 1)).argmax())].astype(np.float64)
    total = float(plane.sum())
    if total < 0.5:
        return 0.0
    x = np.arange(plane.shape[0])[:, None] * canvas.spacing_mm[0]
    y = np.arange(plane.shape[1])[None, :] * canvas.spacing_mm[1]
    dx, dy = x - float((plane * x).sum()) / total, y - float((plane * y).sum()) / total
    xx, yy, xy = (float((plane * part).sum()) / total for part in (dx * dx, dy * dy, dx * dy))
    xx, yy = xx - canvas.spacing_mm[0] ** 2 / 12, yy - canvas.spacing_mm[1] ** 2 / 12
    least = (xx + yy) / 2 - float(np.sqrt(((xx - yy) / 2) ** 2 + xy * xy))
    return 4 * float(np.sqrt(max(least, 0.0)))


def _draw(
    canvas: Canvas, rng: np.random.Generator, sizes: list[float], fatty: float, within: tuple[float, float]
) -> list[Facts]:
    """Draw nodes of these sizes; the first has a short axis between the two numbers, none has a longer one (mm)."""
    chest = survey(canvas)
    places: list[Facts] = []
    order = [str(name) for name in rng.permutation(np.array(STATIONS))]
    # Subcarinal and right paratracheal nodes are the common ones.
    first = [name for name in ("7", "2R/4R") if rng.random() < 0.6]
    order = first + [name for name in order if name not in first]
    for short in sizes if chest is not None else []:
        for station in list(order):
            centre = _site(canvas, chest, rng, station, short) if chest is not None else None
            if centre is None:
                continue
            node = _node(canvas, rng, centre, short)
            # Next to a vessel too little of a node may be left: another station then.
            size = _short_axis(canvas, node.body)
            if (places or size > within[0]) and 0.8 * short < size < within[1]:
                places.append(_paint(canvas, rng, node, station, fatty=bool(rng.random() < fatty)))
                order.remove(station)
                break
    return places


def _facts(places: list[Facts], signs: list[str]) -> Facts:
    largest = max((place["size_mm"] for place in places), default=0.0)
    return {"measure": largest, "unit": "mm", "places": places, "signs": signs}


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw one to five nodes, the largest well over the threshold."""
    del states
    low, high = PRESENT_MM
    count = int(rng.choice([1, 2, 3, 4, 5], p=[0.12, 0.28, 0.28, 0.2, 0.12]))
    largest = float(low * (high / low) ** (rng.random() ** 1.3))
    sizes = [largest] + [float(rng.uniform(0.55, 0.95)) * largest for _ in range(count - 1)]
    places = _draw(canvas, rng, sizes, 0.0, (LEAST_MM, 40.0))
    for larger in (low * 1.1, low * 1.25, low * 1.4):
        if not places:
            places = _draw(canvas, rng, [larger], 0.0, (LEAST_MM, 40.0))
    return _facts(places, ["short axis over the threshold", "no fatty hilum", "rounded, in a plane of fat"])


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw nodes about the threshold."""
    del states
    sizes = [float(rng.uniform(*GREY_MM)), *(float(rng.uniform(*ORDINARY_MM)) for _ in range(int(rng.integers(0, 3))))]
    places = _draw(canvas, rng, sizes, 0.1, GREY_WITHIN_MM)
    for other in (9.2, 9.8, 10.4):
        if not places:
            places = _draw(canvas, rng, [other], 0.1, GREY_WITHIN_MM)
    return _facts(places, ["about the threshold"])


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw as many nodes of ordinary size."""
    del states
    sizes = [float(rng.uniform(*ORDINARY_MM)) for _ in range(int(rng.integers(2, 6)))]
    return _facts(_draw(canvas, rng, sizes, 0.35, (2.0, 7.6)), ["ordinary size"])
