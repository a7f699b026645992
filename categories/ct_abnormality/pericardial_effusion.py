"""Pericardial effusion: fluid round the heart, deepest where it is dependent (behind and to the left of the ventricle).

Look-alikes: pericardial fat of the same shape, and the fluid that everyone has (a film, the superior aortic recess).
"""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from categories.chest.labels import BONES, ORGANS, VESSELS, where
from categories.ct_abnormality.canvas import Box, Canvas, Facts, States
from categories.ct_abnormality.heart_shapes import FAR_MM, Coarse, centroids, coarse, extent, soft
from categories.ct_abnormality.lung_texture import Field, fractal, inside, smooth_step

FLUID_HU = (2.0, 23.0)
PRESENT_MM, GREY_MM, FILM_MM = (10.0, 26.0), (5.0, 7.0), (1.5, 2.8)
FAT_MM = (9.0, 18.0)
DEPENDENT = (0.42, -0.85, -0.32)
"""Where fluid gathers, seen from the middle of the heart: left, back and down."""
BAG_MM, BAG_HU = 1.3, 38.0


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw an effusion and the pericardium outside it."""
    del states
    low, high = PRESENT_MM
    facts = _shell(canvas, rng, float(low * (high / low) ** rng.random()), float(rng.uniform(*FLUID_HU)))
    return facts | {"signs": ["dependent layer of uneven depth", "pericardium outside it"]}


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw a trace of fluid."""
    del states
    return _shell(canvas, rng, float(rng.uniform(*GREY_MM)), float(rng.uniform(*FLUID_HU)))


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw abundant pericardial fat, or a recess that is easily seen, and a physiological film if there is no more."""
    if rng.random() < 0.55:
        facts = _shell(canvas, rng, float(rng.uniform(*FAT_MM)), float(rng.uniform(-108, -92)))
        return facts | {"measure": 0.0, "kind": "fat", "signs": ["shell of fat"]}
    film = float(rng.uniform(*FILM_MM)), float(rng.uniform(*FLUID_HU))
    facts = {"measure": 0.0, "unit": "mm", "places": []}
    if states.get("pericardial_effusion") != "present":
        facts = _shell(canvas, rng, *film)
    recess = _recess(canvas, rng, float(rng.uniform(8.0, 13.0)), float(rng.uniform(4, 16)))
    return facts | {"places": facts["places"] + recess, "kind": "recess", "signs": ["film", "superior aortic recess"]}


def _shell(canvas: Canvas, rng: np.random.Generator, thick_mm: float, hu: float) -> Facts:
    """Lay material round the heart: fat gathers in front and below, fluid where it is dependent."""
    facts: Facts = {"measure": 0.0, "unit": "mm", "places": [], "signs": ["shell round the heart"], "hu": round(hu, 1)}
    heart_box = extent(canvas, ["heart"], thick_mm + 12.0)
    if heart_box is None:
        return facts
    view = coarse(canvas, heart_box, 2.2)
    outside = -view.depth(where(view.organs, ["heart"]))
    # Gaps between heart and great vessels are inside the silhouette: no shell there.
    whole = ndimage.binary_closing(where(view.organs, VESSELS), iterations=3)
    beyond = np.minimum(-view.depth(np.asarray(whole)), outside)
    thickness = _thickness(rng, view, thick_mm, fat=hu < 0)
    walls = np.minimum(-view.depth(where(view.organs, BONES)) - 4.0, _clear_of(view) + 1.0)
    depth = np.minimum(thickness - outside, walls).astype(np.float32)
    box = view.bounds((depth > -BAG_MM - 2) & (outside > -5))
    if box is None:
        return facts
    # Muscle of the wall and the diaphragm stays: judged on smoothed HU, or noise would leave a ragged border.
    fatty = view.spread(ndimage.gaussian_filter(view.hu, (1.0, 1.0, 0.4)), box)
    heart = canvas.organs[box] == ORGANS["heart"]  # its mask has steps: the border is where the smoothed distance is 0
    free = np.maximum(smooth_step(fatty, 18.0, -22.0), heart | _is_lung(canvas, box))
    room = (heart | soft(canvas, box)) * free * ~canvas.occupied[box]
    fine, apart = view.spread(depth, box), view.spread(beyond, box)
    alpha = inside(fine, 1.0) * np.maximum(smooth_step(apart, -0.9, 0.9), _is_lung(canvas, box)) * room
    if hu > 0:
        shell = smooth_step(fine, -BAG_MM - 0.8, -BAG_MM) * room * (apart > 1) * (fine > -BAG_MM - 1)
        canvas.put(box, 0.85 * shell, BAG_HU)
        # A film of epicardial fat, here and there, parts the fluid from the muscle.
        stripe = smooth_step(fractal(rng, canvas.mm(box), 35.0, octaves=2), -0.4, 0.6)
        stripe *= inside(1.0 - np.abs(apart - 0.6), 0.8) * (alpha > 0.5)
    else:
        stripe = np.zeros_like(alpha)
    canvas.put(box, alpha, hu)
    canvas.put(box, 0.75 * stripe, -80.0)
    canvas.occupy(box, alpha > 0.3)
    deepest = np.unravel_index(int(np.argmax(np.where(alpha > 0.6, np.minimum(fine, 1e3), -FAR_MM))), fine.shape)
    centre = np.array([part.start for part in box]) + np.array(deepest)
    reached = float(apart[alpha > 0.5].max()) if (alpha > 0.5).any() else 0.0
    volume = float(alpha.sum(dtype=np.float64)) * float(np.prod(canvas.spacing_mm)) / 1000
    return facts | {
        "measure": round(min(thick_mm, reached), 1),
        "volume_ml": round(volume, 1),
        "places": [canvas.place(centre, "behind the heart" if hu > 0 else "round the heart", thick_mm)],
    }


def _thickness(rng: np.random.Generator, view: Coarse, thick_mm: float, *, fat: bool) -> Field:
    axes = view.axes
    heart = np.argwhere(where(view.organs, ["heart"]))
    low, high = heart.min(0), heart.max(0)
    origin = [axis.ravel()[0] for axis in axes]
    middle = [o + (a + b) / 2 * mm for o, a, b, mm in zip(origin, low, high, view.spacing_mm, strict=True)]
    half = [(b - a) / 2 * mm + 1 for a, b, mm in zip(low, high, view.spacing_mm, strict=True)]
    i, j, k = ((axis - m) / h for axis, m, h in zip(axes, middle, half, strict=True))
    toward = (0.25, 0.75, -0.6) if fat else DEPENDENT
    facing = (i * toward[0] + j * toward[1] + k * toward[2]) / np.sqrt(i * i + j * j + k * k + 1e-3)
    share = 0.22 + 0.78 * smooth_step(facing, -0.55, 0.75)
    if not fat and thick_mm < 12:
        share = smooth_step(facing, -0.25, 0.8)
    top = smooth_step(k, 0.55, 0.0) if fat else smooth_step(k, 0.35, -0.2)
    uneven = 1 + 0.22 * fractal(rng, axes, 60.0)
    return np.asarray(np.clip(thick_mm * share * top * uneven, 0, thick_mm), np.float32)


def _clear_of(view: Coarse) -> NDArray[np.float32]:
    """Return the distance (mm) to organs that the shell must not enter."""
    names = [name for name in ORGANS if name not in ("background", "body", "fat", "heart") and "lung" not in name]
    return np.asarray(-view.depth(where(view.organs, names)), np.float32)


def _is_lung(canvas: Canvas, box: Box) -> NDArray[np.bool_]:
    return where(canvas.organs[box], [name for name in ORGANS if name.startswith("lung")])


def _recess(canvas: Canvas, rng: np.random.Generator, wide_mm: float, hu: float) -> list[Facts]:
    """Draw the crescent of fluid behind the ascending aorta, as wide as a small node."""
    course = centroids(canvas, ["aorta"], 2.5)
    heart = extent(canvas, ["heart"])
    if heart is None or len(course) == 0:
        return []
    top = heart[2].stop * canvas.spacing_mm[2]
    level = top - float(rng.uniform(6.0, 14.0))
    plane = int(np.clip(round(level / canvas.spacing_mm[2]), 0, canvas.hu.shape[2] - 1))
    aorta = canvas.organs[:, :, plane] == ORGANS["aorta"]
    middle = (heart[1].start + heart[1].stop) / 2
    j = np.arange(aorta.shape[1])
    ascending = aorta & (j[None, :] > middle - 10 / canvas.spacing_mm[1])
    if ascending.sum() < 12:
        return []
    i_at, j_at = np.argwhere(ascending).mean(0)
    radius = float(np.sqrt(ascending.sum() * canvas.spacing_mm[0] * canvas.spacing_mm[1] / np.pi))
    centre = np.array([i_at * canvas.spacing_mm[0], j_at * canvas.spacing_mm[1], level])
    reach = radius + wide_mm + 4
    box = canvas.box(centre / canvas.spacing_mm, (reach, reach, 12.0))
    x, y, z = (axis - c for axis, c in zip(canvas.mm(box), centre, strict=True))
    around = np.sqrt(x * x + y * y) - radius
    facing = -y / np.sqrt(x * x + y * y + 1)
    thick = 0.55 * wide_mm * smooth_step(facing, 0.35, 0.95) * np.sqrt(np.clip(1 - (z / 9.0) ** 2, 0, 1))
    depth = np.minimum(thick - around, around + 1.5)
    alpha = inside(depth, 1.0) * soft(canvas, box) * ~_is_lung(canvas, box)
    canvas.put(box, alpha, hu)
    canvas.occupy(box, alpha > 0.5)
    spot = (centre - np.array([0.0, radius + 0.2 * wide_mm, 0.0])) / canvas.spacing_mm
    return [canvas.place(spot, "superior aortic recess", wide_mm)]
