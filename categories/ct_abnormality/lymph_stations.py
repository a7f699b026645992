"""Where lymph nodes lie: the stations of the mediastinum and the hila, and the fat of the armpits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from categories.chest.labels import LOBES, ORGANS, where
from categories.ct_abnormality.canvas import Canvas
from categories.ct_abnormality.heart_shapes import Coarse, coarse, extent
from categories.ct_abnormality.lung_texture import fractal

STATIONS = ("2R/4R", "4L", "5", "6", "7", "8", "10R", "10L", "axilla right", "axilla left", "3A")
STANDARD_CM = 168
"""Body height that the stations' borders are given for."""


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


def _bounds(canvas: Canvas, chest: Chest, station: str) -> list[tuple[float, float]]:
    """Return the ends of a mediastinal or hilar station along i, j and k, mm of the grid's frame.

    They are the borders of the IASLC's map, seen from where the windpipe divides, in a person of 168 cm.
    """
    grown = (canvas.patient.height_cm / STANDARD_CM) ** 0.7
    arch = max(chest.arch - chest.fork[2], 14.0) / grown  # an arch that is found low leaves its stations some height
    across, ahead, (low, high) = {
        "2R/4R": ((-28, -2), (-4, 24), (4, arch + 12)),
        "4L": ((8, 26), (-12, 10), (0, min(arch, 22))),
        "5": ((20, 44), (6, 36), (-6, 16)),
        "6": ((0, 40), (40, 78), (0, arch)),
        "7": ((-16, 20), (-14, 10), (-40, -8)),
        "8": ((-14, 20), (-38, -12), (-85, -40)),
        "10R": ((-50, -24), (-14, 20), (-36, 2)),
        "10L": ((32, 60), (-16, 14), (-36, 2)),
        "3A": ((-20, 30), (44, 78), (8, arch + 12)),
    }[station]
    x, y, z = chest.fork
    ends = ((x, across), (y, ahead), (z, (low, high)))
    return [(float(at + grown * first), float(at + grown * last)) for at, (first, last) in ends]


def find_site(
    canvas: Canvas, chest: Chest, rng: np.random.Generator, station: str, short_mm: float
) -> NDArray[np.float64] | None:
    """Return the middle of a node (mm): anywhere free in its station, where there is room; None where nothing is."""
    if station.startswith("axilla"):
        return _armpit(canvas, rng, station, short_mm)
    axes = [axis.ravel() for axis in chest.view.axes]
    ends = _bounds(canvas, chest, station)
    part = tuple(slice(*np.searchsorted(axis, pair)) for axis, pair in zip(axes, ends, strict=True))
    if any(p.start >= p.stop for p in part):
        return None
    near = [axis[p] for axis, p in zip(axes, part, strict=True)]
    # A node may bulge into the lung, but its middle lies on the mediastinum's side.
    into, clear = chest.lung[part], chest.clear[part]
    least = 0.36 * short_mm + 0.5
    taken = canvas.occupied[chest.view.box][tuple(slice(None, None, step) for step in chest.view.step)]
    free = np.argwhere((clear > least) & (into < 0.12 * short_mm) & ~taken[part])
    if not len(free):
        return None
    room = np.clip(clear[tuple(free.T)].astype(np.float64) - least, 0, 4) + 0.3
    index = free[rng.choice(len(free), p=room / room.sum())]
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
