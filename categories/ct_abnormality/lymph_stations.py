"""Where lymph nodes lie: the stations of the mediastinum and the hila, and the fat of the armpits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from categories.chest.labels import LOBES, ORGANS, where
from categories.ct_abnormality.canvas import Canvas
from categories.ct_abnormality.heart_shapes import Coarse, coarse, extent
from categories.ct_abnormality.lung_texture import distance, fractal

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
    clear = -view.depth(where(view.organs, named) | gas(view.hu, lung) | _bronchi(canvas, view))
    return Chest(view, centres[-1] if fork is None else fork, top, clear, view.depth(lung))


def gas(hu: NDArray[np.float32], lung: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the lumens of bronchi: gas that is not in the lung's mask and does not border on it."""
    return np.asarray((hu < -350) & ~ndimage.binary_dilation(lung, iterations=2))


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


def find_site(
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
