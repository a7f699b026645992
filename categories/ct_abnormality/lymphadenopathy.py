"""Enlarged lymph nodes at named stations of the mediastinum, the hila and the armpits.

Look-alikes: nodes of ordinary size, some with a fatty hilum, at the same stations and in the same number.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from categories.chest.labels import LOBES, ORGANS, where
from categories.ct_abnormality.canvas import Box, Canvas, Facts, States
from categories.ct_abnormality.lung_texture import Field, fractal, inside, smooth_step
from categories.ct_abnormality.lymph_stations import STATIONS, find_site, gas, survey

PRESENT_MM, GREY_MM, ORDINARY_MM = (13.0, 24.0), (9.0, 10.2), (4.5, 7.4)
LEAST_MM, GREY_WITHIN_MM = 11.8, (8.5, 10.5)
"""What must be left of a node where it yields to its neighbours."""
NODE_HU = (32.0, 48.0)
FAT_PLANE_MM, FAT_HU, PLEURA_MM = 1.8, -95.0, 9.0


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
    solid = ((organs > 0) & (organs < ORGANS["body"]) & ~lung) | (canvas.hu[box] > 160) | gas(canvas.hu[box], lung)
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
            centre = find_site(canvas, chest, rng, station, short) if chest is not None else None
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
