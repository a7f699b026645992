"""A lymph node in section as a map of regions: capsule, sinuses, trabeculae, cortex, medulla, hilum, fat."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.tumor_area_selection import tissues as t
from categories.tumor_area_selection.kernels import MAP_PX, MICRONS

MM = 1000 / MICRONS / MAP_PX
"""Map cells per millimetre."""
Field = NDArray[np.float64]


@dataclass
class Node:
    """One section of a node in a window of its own. Lengths in mm."""

    regions: NDArray[np.uint16]
    inside: NDArray[np.bool_]
    depth: Field
    """Below the outer face of the capsule."""
    capsule: Field
    """Thickness of the capsule."""
    waves: tuple[Field, Field, Field]
    """Smooth noise of 0.9, 0.35 and 0.11 mm, SD 1."""


def smooth_field(rng: np.random.Generator, side: int, millimetres: float) -> Field:
    """Return noise of one wavelength, SD 1, rounded so that it is the same on every machine."""
    sigma = millimetres * MM
    step = max(1, int(sigma / 4))
    few = side // step + 4
    noise = ndi.gaussian_filter(np.round(rng.standard_normal((few, few)), 6), sigma / step)
    noise = np.round(noise / noise.std(), 6)
    if step > 1:
        noise = ndi.zoom(noise, step, order=3)
    return np.asarray(np.round(noise[:side, :side], 5), np.float64)


def build_node(rng: np.random.Generator, long_mm: float, short_mm: float) -> Node:
    """Return a bean-shaped node with its hilum, fat and trabeculae; vessels and deposits come later."""
    side = int(2 * (long_mm + 1.0) * MM)
    waves = (smooth_field(rng, side, 0.9), smooth_field(rng, side, 0.35), smooth_field(rng, side, 0.11))
    wide, middle, fine = waves
    yy, xx = np.mgrid[0:side, 0:side] - side / 2
    turn = rng.uniform(0, 2 * np.pi)
    cos, sin = round(float(np.cos(turn)), 9), round(float(np.sin(turn)), 9)
    u = (xx * cos + yy * sin) / (long_mm * MM)
    v = (-xx * sin + yy * cos) / (short_mm * MM)
    bend = rng.uniform(0.0, 0.18)
    v = v + bend * (u * u - 0.4)
    hilum = np.sqrt((u / 0.36) ** 2 + ((v - 1.04) / 0.42) ** 2) + 0.1 * middle
    oval = 1 - np.sqrt(u * u + v * v) - 0.05 * wide - 0.015 * middle
    notch = 0.4 * (hilum - 1)
    inside = oval + notch - np.sqrt((oval - notch) ** 2 + 0.04) > 0  # both, their corner rounded off
    inside = _largest(ndi.binary_fill_holes(inside))
    depth = ndi.distance_transform_edt(inside) / MM
    outside = ndi.distance_transform_edt(~inside) / MM
    regions = np.zeros((side, side), np.uint16)
    fat = (outside < np.clip(0.25 + 0.2 * wide, 0.04, 0.8)) | ((outside < 0.9) & (hilum < 1.2))
    fat = np.round(ndi.gaussian_filter(fat.astype(np.float64), 0.2 * MM), 6) + 0.08 * middle > 0.5
    regions[fat] = t.FAT
    regions[fat & (np.abs(middle) < 0.09)] = t.CAPSULE  # septa of the fat
    capsule = np.clip(0.09 + 0.035 * middle, 0.05, 0.2)
    sinus = capsule + np.clip(0.035 + 0.012 * fine, 0.015, 0.06)
    regions[inside] = t.CORTEX
    regions[inside & (depth > 0.9 + 0.25 * wide)] = t.PARACORTEX
    reach = rng.uniform(1.9, 2.6)
    regions[inside & (hilum < reach + 0.3 * middle)] = t.MEDULLA
    _trabeculae(rng, regions, inside, depth, fine)
    regions[inside & (depth < sinus)] = t.SINUS
    regions[inside & (depth < capsule)] = t.CAPSULE
    return Node(regions, inside, depth, capsule, waves)


def _largest(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    labels, count = ndi.label(mask)
    if count < 2:
        return mask
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    return np.asarray(labels == sizes.argmax())


def _trabeculae(
    rng: np.random.Generator, regions: NDArray[np.uint16], inside: NDArray[np.bool_], depth: Field, fine: Field
) -> None:
    """Draw strands of collagen that walk inwards from the capsule, each in its sinus."""
    gy, gx = np.gradient(np.round(ndi.gaussian_filter(depth, 12), 6))
    rim = np.argwhere(inside & (depth < 0.06))
    path = np.zeros(inside.shape, bool)
    for y, x in rim[rng.integers(0, len(rim), max(6, int(inside.sum() / MM**2 / 2.2)))].astype(float):
        way = np.array([gy[int(y), int(x)], gx[int(y), int(x)]]) + 1e-9
        way = way / np.sqrt((way**2).sum())
        place = np.array([y, x])
        for _ in range(int(rng.uniform(0.4, 1.8) * MM)):
            way = way + rng.uniform(-0.2, 0.2, 2)
            way = way / np.sqrt((way**2).sum())
            place = place + way
            i, j = int(place[0]), int(place[1])
            if not (0 < i < len(path) and 0 < j < len(path) and inside[i, j]):
                break
            path[i, j] = True
    away = ndi.distance_transform_edt(~path) / MM + 0.006 * fine
    regions[inside & (away < 0.07)] = t.SINUS
    regions[inside & (away < 0.03)] = t.CAPSULE


def add_vessels(rng: np.random.Generator, node: Node) -> None:
    """Put vessels with walls and blood in fat, paracortex and medulla."""
    places = np.argwhere(np.isin(node.regions, [t.FAT, t.PARACORTEX, t.MEDULLA]))
    fine = node.waves[2]
    for y, x in places[rng.integers(0, len(places), max(4, len(places) // 130_000 + 14))]:
        radius = rng.uniform(0.03, 0.09) * MM
        box = np.s_[max(0, y - 40) : y + 41, max(0, x - 40) : x + 41]
        yy, xx = np.mgrid[box]
        away = np.sqrt((xx - x) ** 2 + ((yy - y) * rng.uniform(0.6, 1.4)) ** 2) + 0.8 * fine[box]
        view = node.regions[box]
        view[away < radius * 1.5] = t.CAPSULE
        view[away < radius] = t.BLOOD
