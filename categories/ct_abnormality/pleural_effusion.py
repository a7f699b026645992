"""Pleural effusion: fluid that lies dependent (posterior, the patient being supine) and climbs the wall in a meniscus.

Look-alikes: thickened pleura and extrapleural fat, which follow the wall and leave the dependent gutter free.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from categories.chest.labels import LEFT_LUNG, LOBES, RIGHT_LUNG, where
from categories.ct_abnormality.canvas import Box, Canvas, Facts, States
from categories.ct_abnormality.heart_shapes import FAR_MM, Coarse, coarse, extent
from categories.ct_abnormality.lung_strokes import AIRLESS_HU
from categories.ct_abnormality.lung_texture import Field, fractal, inside, smooth_step

FLUID_HU = (2.0, 22.0)
PRESENT_MM, GREY_MM = (15.0, 70.0), (4.8, 8.0)
RIM_MM = 2.5
"""The lung's mask ends short of the wall; what is nearly air between them is filled as well."""


@dataclass(frozen=True)
class Cavity:
    """One pleural cavity, coarse."""

    side: str
    view: Coarse
    wall: Field
    """mm from the nearest point outside the lung."""
    fissure: Field
    """mm from the border between two lobes."""
    back: NDArray[np.float64]
    """(1, 1, n): the rearmost point of the lung in each cross-section, mm."""
    height: NDArray[np.float64]
    """(1, 1, n): 0 at the lowest cross-section of the lung, 1 at its apex."""


def cavity(canvas: Canvas, side: str) -> Cavity | None:
    """Return a pleural cavity (``left`` or ``right``); None when the scan shows no such lung."""
    names = LEFT_LUNG if side == "left" else RIGHT_LUNG
    box = extent(canvas, names, 6.0)
    if box is None:
        return None
    view = coarse(canvas, box, 2.8)
    lung = where(view.organs, names)
    lower = where(view.organs, [f"lung_lower_lobe_{side}"])
    edge = lung & (ndimage.binary_dilation(lower) & ~lower)
    fissure = ndimage.distance_transform_edt(~edge, view.spacing_mm) if edge.any() else np.full(lung.shape, 1e3)
    rows, planes = lung.any(0), np.flatnonzero(lung.any((0, 1)))
    j = view.axes[1].ravel()
    back = np.where(rows.any(0), j[rows.argmax(0)], j[-1])
    # The sulcus is narrow at its lowest cross-sections: their rearmost point would lift the whole level.
    back = ndimage.gaussian_filter1d(back, 2.0)
    height = (np.arange(lung.shape[2]) - planes[0]) / max(1, planes[-1] - planes[0])
    return Cavity(side, view, view.depth(lung), fissure.astype(np.float32), back[None, None, :], height[None, None, :])


def layer(canvas: Canvas, rng: np.random.Generator, space: Cavity, thick_mm: float, collapse_mm: float) -> Facts:
    """Lay fluid of a greatest depth into a cavity and return what was laid."""
    top = float(np.clip(0.32 + 0.009 * thick_mm + rng.uniform(-0.05, 0.08), 0.3, 0.9))
    climb, reach = float(rng.uniform(0.25, 0.45)) * min(thick_mm, 40.0), float(rng.uniform(9.0, 16.0))
    near = 1 / (1 + (np.maximum(space.wall, 0) / reach) ** 2)
    axes = space.view.axes
    # The fluid's upper end is a meniscus too: it reaches higher along the wall.
    height = space.height - 0.09 * near + 0.025 * fractal(rng, axes, 45.0)
    profile = smooth_step(height, top - 0.04, top - float(rng.uniform(0.26, 0.38)))
    level = space.back + (thick_mm - 0.5 * climb) * profile + climb * (near - 0.5 * (1 - near)) * profile
    depth = (level - axes[1] + min(1.5, 0.08 * thick_mm) * fractal(rng, axes, 45.0)).astype(np.float32)
    # Fluid enters the fissure as a wedge that thins out ahead of the level.
    wedge = float(rng.uniform(1.5, 3.5)) * smooth_step(depth, -24.0, -2.0) * smooth_step(profile, 0.0, 0.3)
    level_depth = np.where(profile > 0.02, depth, -FAR_MM).astype(np.float32)
    depth = np.maximum(level_depth, np.where(level_depth < 0, wedge - space.fissure, level_depth)).astype(np.float32)
    lung = space.wall > -4.0
    box = space.view.bounds(lung & (depth > -max(18.0, 2 * collapse_mm)))
    if box is None:
        return {}
    fine = space.view.spread(depth, box)
    room = _room(canvas, box, space)
    hu = float(rng.uniform(*FLUID_HU))
    airless = float(rng.uniform(*AIRLESS_HU))
    _compress(canvas, box, space.view.spread(level_depth, box), room, collapse_mm, airless)
    alpha = inside(fine, 1.2) * room
    canvas.put(box, alpha, hu)
    canvas.occupy(box, alpha > 0.3)
    voxel = float(np.prod(canvas.spacing_mm))
    plane = int(alpha.sum((0, 1)).argmax())
    where_most = np.unravel_index(
        int(np.argmax(np.where(alpha[:, :, plane] > 0.9, fine[:, :, plane], -FAR_MM))), fine.shape[:2]
    )
    centre = np.array([p.start for p in box]) + np.append(where_most, plane)
    return {
        "side": space.side,
        "hu": round(hu, 1),
        "volume_ml": round(float(alpha.sum(dtype=np.float64)) * voxel / 1000, 1),
        "thickness_mm": round(thick_mm, 1),
        "collapse_mm": round(collapse_mm, 1),
        "place": canvas.place(centre, f"{space.side} pleural fluid", thick_mm),
    }


def _room(canvas: Canvas, box: Box, space: Cavity) -> Field:
    """Return 1 in the lung and in what is nearly air between its mask and the wall."""
    names = LEFT_LUNG if space.side == "left" else RIGHT_LUNG
    lung = where(canvas.organs[box], names)
    steps = max(1, round(RIM_MM / canvas.spacing_mm[0]))
    plane = np.ones((2 * steps + 1, 2 * steps + 1, 1), bool)
    wide = ndimage.maximum_filter(lung, footprint=plane) & (canvas.hu[box] < -130)
    # Voxels that lung and wall share: left as they are, they would draw a dotted dark line round the fluid.
    shared = ndimage.maximum_filter(lung, (3, 3, 3)) & (canvas.hu[box] < -15)
    return np.asarray(lung | wide | shared, np.float32)


def _compress(canvas: Canvas, box: Box, depth: Field, room: Field, collapse_mm: float, airless_hu: float) -> None:
    """Make the lung next to the fluid denser, and airless over ``collapse_mm``."""
    here = canvas.hu[box]
    share = 0.16 * smooth_step(depth, -16.0, 0.0)
    if collapse_mm > 0:
        share = np.maximum(share, smooth_step(depth, -1.35 * collapse_mm, -0.85 * collapse_mm))
    canvas.put(box, share * room * (here < airless_hu), airless_hu)


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw fluid on one or both sides; the lung beside it collapses only if the patient is to have atelectasis."""
    both = rng.random() < 0.45
    first = "right" if rng.random() < 0.55 else "left"
    low, high = PRESENT_MM
    thick = float(low * (high / low) ** rng.random())
    laid = []
    for side, share in ((first, 1.0), ("left" if first == "right" else "right", float(rng.uniform(0.5, 0.9)))):
        space = cavity(canvas, side) if share == 1.0 or both else None
        if space is not None:
            deep = max(thick * share, low)
            collapse = (
                float(rng.uniform(0.25, 0.45)) * deep if states["atelectasis"] == "present" and deep > 18 else 0.0
            )
            laid.append(layer(canvas, rng, space, deep, min(collapse, 16.0)))
    return _facts(laid, ["dependent layer", "meniscus", "fluid in the fissure", "denser lung beside it"])


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw a thin layer."""
    del states
    space = cavity(canvas, "right" if rng.random() < 0.5 else "left")
    laid = [layer(canvas, rng, space, float(rng.uniform(*GREY_MM)), 0.0)] if space is not None else []
    return _facts(laid, ["dependent layer"])


def _facts(laid: list[Facts], signs: list[str]) -> Facts:
    laid = [entry for entry in laid if entry]
    return {
        "measure": max((entry["thickness_mm"] for entry in laid), default=0.0),
        "unit": "mm",
        "places": [entry.pop("place") for entry in laid],
        "layers": laid,
        "volume_ml": round(sum(entry["volume_ml"] for entry in laid), 1),
        "signs": signs,
    }


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw thickened pleura, calcified in part, or extrapleural fat on the wall beside the dependent gutter."""
    del states
    fat = bool(rng.random() < 0.45)
    places: list[Facts] = []
    sides = ["left", "right"] if fat or rng.random() < 0.4 else [str(rng.choice(["left", "right"]))]
    for side in sides:
        space = cavity(canvas, side)
        if space is not None:
            places += _plaques(canvas, rng, space, fat=fat)
    signs = ["follows the wall", "fat" if fat else "soft tissue or calcium"]
    return {"measure": 0.0, "unit": "mm", "places": places, "signs": signs, "kind": "fat" if fat else "thickening"}


def _plaques(canvas: Canvas, rng: np.random.Generator, space: Cavity, *, fat: bool) -> list[Facts]:
    axes = space.view.axes
    taken = canvas.occupied[space.view.box][tuple(slice(None, None, step) for step in space.view.step)]
    outer = _lateral_wall(space) & ~taken
    spots = np.argwhere(outer & (space.height > 0.15) & (space.height < 0.62))
    places: list[Facts] = []
    for _ in range(1 if fat else int(rng.integers(1, 4))):
        if not len(spots):
            break
        spot = spots[rng.integers(len(spots))]
        centre = np.array([axis.ravel()[n] for axis, n in zip(axes, spot, strict=True)])
        thick = float(rng.uniform(6.0, 11.0) if fat else rng.uniform(4.5, 9.0))
        half = rng.uniform(30.0, 55.0) if fat else rng.uniform(16.0, 34.0)
        away = sum(((axis - c) / (half * s)) ** 2 for axis, c, s in zip(axes, centre, (1.0, 1.0, 1.4), strict=True))
        lens = thick * np.sqrt(np.clip(1 - away, 0, 1)) + 0.5 * fractal(rng, axes, 20.0) - 0.3
        depth = (lens - np.abs(space.wall + 1.0)).astype(np.float32)
        box = space.view.bounds((away < 1.1) & (space.wall > -4) & (space.wall < thick + 4))
        if box is None:
            continue
        alpha = inside(space.view.spread(depth, box), 1.2) * _room(canvas, box, space) * ~canvas.occupied[box]
        hu = float(rng.uniform(-108, -92) if fat else rng.uniform(42, 62))
        canvas.put(box, alpha, hu)
        if not fat and rng.random() < 0.5:
            shell = inside(space.view.spread((0.28 * depth - np.abs(space.wall - 1.5)).astype(np.float32), box), 1.0)
            canvas.put(box, shell * alpha, float(rng.uniform(250, 700)))
        canvas.occupy(box, alpha > 0.3)
        what = "extrapleural fat" if fat else "pleural thickening"
        places.append(canvas.place(centre / canvas.spacing_mm, what, thick, hu=round(hu, 1)))
    return places


def _lateral_wall(space: Cavity) -> NDArray[np.bool_]:
    """Return the lung's outermost layer on its lateral side, behind the middle and in front of the gutter."""
    lung = where(space.view.organs, LOBES) & (space.wall > 0)
    i = np.arange(lung.shape[0])[:, None, None]
    lateral = i > 0.62 * lung.shape[0] if space.side == "left" else i < 0.38 * lung.shape[0]
    j = space.view.axes[1]
    return np.asarray(lung & (space.wall < 5.0) & lateral & (j > space.back + 25.0) & (j < space.back + 90.0))
