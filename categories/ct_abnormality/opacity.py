"""Lung opacity: ground-glass, a haze in which vessels and bronchial walls stay visible."""

from dataclasses import dataclass

import numpy as np

from categories.ct_abnormality.canvas import Box, Canvas, Facts, States
from categories.ct_abnormality.lung_gravity import dependent_density
from categories.ct_abnormality.lung_strokes import Place, Point, body_depth, to_mm, widest_mm
from categories.ct_abnormality.lung_texture import Field, fine_axes, fractal, smooth_step
from categories.ct_abnormality.lungs import DENSE_HU, Lungs, lobe_map, survey

YES_MM, GREY_MM = (26.0, 65.0), (9.0, 14.0)
LEAST_MM, MOST = 22.0, 9
"""What the largest area must come to, and how many are drawn at most to get there."""
YES_HU, FAINT_HU = (150.0, 320.0), (45.0, 65.0)
WATER_HU = 40.0
TRIES, LEAST_SHARE = 6, 0.8
"""How often another place is looked for where an area would be cut below this share of its size."""


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw two to five areas of ground-glass, the largest of 26 to 65 mm."""
    del states
    lungs = survey(canvas)
    largest = float(rng.uniform(*YES_MM))
    sizes = [largest, *(float(s) for s in largest * rng.uniform(0.35, 0.9, int(rng.integers(1, 5))))]
    places = [_haze(canvas, rng, lungs, size, float(rng.uniform(*YES_HU))) for size in sizes]
    while max(place["size_mm"] for place in places) < LEAST_MM and len(places) < MOST:
        places.append(_haze(canvas, rng, lungs, YES_MM[1], float(rng.uniform(*YES_HU))))
    signs = ["vessels visible within", "bronchi darker than the haze", "several areas"]
    return {"measure": max(place["size_mm"] for place in places), "unit": "mm", "places": places, "signs": signs}


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw one area that is too small (9 to 14 mm), or wider and too faint (45 to 65 HU)."""
    del states
    lungs = survey(canvas)
    if rng.random() < 0.5:
        size, contrast = float(rng.uniform(*GREY_MM)), float(rng.uniform(150, 240))
    else:
        size, contrast = float(rng.uniform(20, 32)), float(rng.uniform(*FAINT_HU))
    place = _haze(canvas, rng, lungs, size, contrast)
    return {
        "measure": min(place["size_mm"], 15.0),
        "unit": "mm",
        "places": [place],
        "signs": ["haze"],
    }


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw dependent density: as dense as ground-glass at the back, on both sides, fading forwards without a border."""
    del states
    lungs = survey(canvas)
    peak = dependent_density(canvas, rng, lungs, float(rng.uniform(170, 300)), float(rng.uniform(20, 34)))
    return {
        "measure": 0.0,
        "unit": "mm",
        "places": [],
        "signs": ["dependent density"],
        "contrast_hu": round(peak, 1),
    }


@dataclass(frozen=True)
class _Area:
    """An area that haze may fill."""

    ijk: Point
    box: Box
    filled: Field
    """How much of each voxel's air gives way, about 1 within."""
    size_mm: float


def _haze(canvas: Canvas, rng: np.random.Generator, lungs: Lungs, size: float, contrast: float) -> Place:
    """Fill a share of the air with fluid: lung rises by ``contrast``, vessels stay what they are."""
    area = _area(canvas, rng, lungs, size)
    for _ in range(TRIES):
        if area.size_mm > LEAST_SHARE * size:
            break
        # Chest wall or another finding took too much of it.
        area = max(area, _area(canvas, rng, lungs, size), key=lambda found: found.size_mm)
    box, hu = area.box, canvas.hu[area.box]
    tissue = smooth_step(hu - lungs.spread(lungs.level, box), 90, 650) + smooth_step(hu, -945, -990)
    canvas.add(box, area.filled * np.float32(contrast) * (1 - tissue))
    canvas.occupy(box, (area.filled > 0.5) & (tissue < 0.5))
    volume = float(((area.filled > 0.5) & (hu < DENSE_HU + contrast)).sum() * np.prod(canvas.spacing_mm)) / 1000
    return canvas.place(
        area.ijk,
        "ground-glass",
        area.size_mm,
        volume_ml=round(volume, 2),
        contrast_hu=round(contrast, 1),
        filled=round(contrast / (WATER_HU + 870), 3),
        lobe=lungs.lobe_name(area.ijk),
    )


def _area(canvas: Canvas, rng: np.random.Generator, lungs: Lungs, size: float) -> _Area:
    radius = size / 2
    ijk = lungs.pick(rng, (lungs.depth_mm > 0.3 * radius) & (lungs.depth_mm < radius + 18) & (lungs.height < 0.92))
    box = canvas.box(ijk, radius * 1.7 + 4)
    axes = fine_axes(canvas, box, (1, 1, 1))
    stretch = np.clip(1 + 0.2 * rng.standard_normal(3), 0.7, 1.4)
    depth = body_depth(rng, axes, to_mm(canvas, ijk), radius, rough=0.24, stretch=stretch, grain=1.0)
    depth = depth + np.float32(0.09 * radius + 0.6) * fractal(rng, axes, 11.0, octaves=3)
    border = min(0.5 * radius, float(rng.uniform(4, 9)))
    cover = smooth_step(depth, -border / 2, border / 2) * (1 + np.float32(0.16) * fractal(rng, axes, 6.0, octaves=2))
    found = lobe_map(canvas, box) > 0
    filled: Field = np.clip(cover, 0, 1.4) * found * ~canvas.occupied[box]
    return _Area(ijk, box, filled, widest_mm(canvas, filled))
