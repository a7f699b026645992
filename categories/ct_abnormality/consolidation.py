"""Consolidation: air spaces filled so that vessels vanish and bronchi stand out as air; nothing is pulled or lost."""

from dataclasses import dataclass

import numpy as np

from categories.chest.labels import ORGANS
from categories.ct_abnormality.canvas import Box, Canvas, Facts, States
from categories.ct_abnormality.lung_strokes import (
    FILLED_HU,
    Place,
    Point,
    around,
    body_depth,
    bronchogram,
    direction,
    hilum_mm,
    paint,
    polyline_depth,
    soft_lung,
    solid_texture,
    to_mm,
    widest_mm,
)
from categories.ct_abnormality.lung_texture import (
    Field,
    Fine,
    distance,
    fine_axes,
    fineness,
    fractal,
    inside,
    pool,
    smooth_step,
)
from categories.ct_abnormality.lungs import Lungs, survey

YES_MM, GREY_MM = (28.0, 75.0), (9.0, 14.0)
LEAST_MM, MOST = 22.0, 5
"""What the largest must come to, and how many are drawn at most to get there."""
TRIES, LEAST_SHARE = 6, 0.75
"""How often another place is looked for where a patch would be cut below this share of its size."""
AIR_HU = -965.0
HALO_MM = 9.0
BORDER_MM = 2.5
"""The smallest detail of the borders drawn here."""
WIDE_RIM = 12
"""Voxels in plane that slices through the top of the diaphragm share with it."""


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw one or two consolidations of 28 to 75 mm, each within one lobe, with an air bronchogram."""
    lungs = survey(canvas)
    count = 1 + int(rng.random() < 0.3)
    sizes = sorted((float(rng.uniform(*YES_MM)) for _ in range(count)), reverse=True)
    places = [_consolidation(canvas, rng, lungs, size, halo=states.get("opacity") == "present") for size in sizes]
    while max(place["size_mm"] for place in places) < LEAST_MM and len(places) < MOST:
        places.append(_consolidation(canvas, rng, lungs, YES_MM[1], halo=False))
    signs = ["vessels hidden", "air bronchogram"]
    if min(place["pleural_gap_mm"] for place in places) < 3:
        signs.append("reaches the pleura")
    largest = max(place["size_mm"] for place in places)
    return {"measure": largest, "unit": "mm", "places": places, "signs": signs}


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw one patch of 9 to 14 mm."""
    del states
    size = float(rng.uniform(*GREY_MM))
    place = _consolidation(canvas, rng, survey(canvas), size, halo=False)
    return {
        "measure": place["size_mm"],
        "unit": "mm",
        "places": [place],
        "signs": ["vessels hidden"],
    }


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw a large fat pad beside the heart, or a hump of the diaphragm: solid, but no lung."""
    del states
    lungs = survey(canvas)
    place = _fat_pad(canvas, rng, lungs) if rng.random() < 0.5 else _hump(canvas, rng, lungs)
    return {"measure": 0.0, "unit": "mm", "places": [place], "signs": [place["what"]]}


@dataclass(frozen=True)
class _Patch:
    """A part of a lobe that may be filled."""

    ijk: Point
    box: Box
    fine: Fine
    depth: Field
    """mm below its surface, on sub-voxels."""
    lung: Field
    """Where that is allowed, see ``soft_lung``."""
    size_mm: float


def _consolidation(canvas: Canvas, rng: np.random.Generator, lungs: Lungs, size: float, *, halo: bool) -> Place:
    patch = _patch(canvas, rng, lungs, size, halo=halo)
    for _ in range(TRIES):
        if patch.size_mm > LEAST_SHARE * size:
            break
        # A fissure or another finding took too much of it.
        patch = max(patch, _patch(canvas, rng, lungs, size, halo=halo), key=lambda found: found.size_mm)
    box, fine, radius = patch.box, patch.fine, size / 2
    whole = canvas.hu[box]
    before = float(np.mean(whole[whole < -600])) if (whole < -600).any() else -870.0
    hu = float(rng.uniform(*FILLED_HU))
    if halo:
        haze = smooth_step(pool(patch.depth, fine), -HALO_MM, 0) * patch.lung
        canvas.add(box, haze * np.float32(0.28) * np.clip(hu - whole, 0, None))
    texture = solid_texture(rng, fine_axes(canvas, box, fine), fine, hu)
    weight = paint(canvas, box, fine, _ragged(patch.depth, size), texture, lung=patch.lung)
    air = _air(canvas, rng, lungs, patch.ijk, radius) if size > 16 else 0.0
    gap = float(lungs.depth_mm[lungs.at(patch.ijk)]) - radius
    return canvas.place(
        patch.ijk,
        "consolidation",
        patch.size_mm,
        volume_ml=round(float(weight.sum() * np.prod(canvas.spacing_mm)) / 1000, 3),
        air_ml=round(air, 3),
        pleural_gap_mm=round(gap, 1),
        contrast_hu=round(hu - before, 1),
        lobe=lungs.lobe_name(patch.ijk),
    )


def _ragged(depth: Field, size: float) -> Field:
    return depth * np.float32(0.5 if size < 16 else 0.3)


def _patch(canvas: Canvas, rng: np.random.Generator, lungs: Lungs, size: float, *, halo: bool) -> _Patch:
    radius = size / 2
    near = max(4.0, 0.55 * radius)
    ijk = lungs.pick(rng, (lungs.depth_mm > near - 4) & (lungs.depth_mm < near + 8) & (lungs.height < 0.85))
    centre = to_mm(canvas, ijk)
    lobe = int(lungs.lobe[lungs.at(ijk)]) or None
    box = canvas.box(ijk, radius * 1.75 + (HALO_MM if halo else 0))
    fine = fineness(canvas, BORDER_MM)
    axes = fine_axes(canvas, box, fine)
    stretch = np.clip(1 + 0.15 * rng.standard_normal(3), 0.75, 1.35)
    depth = body_depth(rng, axes, centre, radius, rough=0.2, stretch=stretch, grain=1.0)
    # Acini at the border: it is ill-defined, but for the fissures.
    depth = depth + min(2.5, 0.12 * radius) * fractal(rng, axes, 8.0, octaves=3)
    lung = soft_lung(canvas, box, lobe)
    found = pool(inside(_ragged(depth, size)), fine) * lung
    return _Patch(ijk, box, fine, depth, lung, widest_mm(canvas, found))


def _air(canvas: Canvas, rng: np.random.Generator, lungs: Lungs, ijk: Point, radius: float) -> float:
    """Draw air-filled bronchi where the lung has been replaced, those of the patient's tree too; return their mL."""
    centre = to_mm(canvas, ijk)
    lines, radii = bronchogram(rng, centre, hilum_mm(canvas, lungs, ijk), radius, int(rng.integers(4, 8)), crowd=1.0)
    tree = canvas.patient.airways
    middle = (tree.start + tree.end) / 2
    for n in np.flatnonzero(((middle - centre) ** 2).sum(1) < (1.4 * radius) ** 2):
        lines.append([tree.start[n], tree.end[n]])
        radii.append([max(0.7, float(tree.radius_start[n])), max(0.6, float(tree.radius_end[n]))])
    volume = 0.0
    for points, widths in zip(lines, radii, strict=True):
        box = around(canvas, points, max(widths) + 1)
        fine = fineness(canvas, 0.8)
        weight = pool(inside(polyline_depth(fine_axes(canvas, box, fine), points, widths)), fine)
        weight = weight * (canvas.occupied[box] & (canvas.hu[box] > -960))
        canvas.put(box, weight, AIR_HU)
        volume += float(weight.sum() * np.prod(canvas.spacing_mm)) / 1000
    return volume


def _sampled(lungs: Lungs) -> Box:
    """Return the voxels at the points of the coarse map."""
    i, j, k = (slice(b.start + s // 2, b.stop, s) for b, s in zip(lungs.box, lungs.step, strict=True))
    return i, j, k


def _fat_pad(canvas: Canvas, rng: np.random.Generator, lungs: Lungs) -> Place:
    """Draw fat in the angle between heart and diaphragm."""
    heart = canvas.organs[_sampled(lungs)] == ORGANS["heart"]
    low = np.flatnonzero(heart.any((0, 1)))
    floor = int(low[0]) if len(low) else 0
    rows = np.flatnonzero(heart.any((0, 2)))
    ahead = int(np.median(rows)) if len(rows) else 0
    index = np.indices(heart.shape)
    beside = (lungs.depth_mm > 0) & (lungs.depth_mm < 6) & (abs(index[2] - floor - 1) <= 2) & (index[1] >= ahead)
    columns = np.flatnonzero(heart.any((1, 2)))
    if len(columns):
        beside &= (index[0] > columns[0] - 5) & (index[0] < columns[-1] + 5)
    ijk = lungs.pick(rng, beside)
    radius = float(rng.uniform(14, 22))
    box = canvas.box(ijk, radius * 1.6)
    fine = fineness(canvas, BORDER_MM)
    axes = fine_axes(canvas, box, fine)
    stretch = np.array([1.0, 1.2, 0.8])
    depth = body_depth(rng, axes, to_mm(canvas, ijk), radius, rough=0.1, stretch=stretch, grain=1.4)
    hu = float(rng.uniform(-112, -92))
    texture = pool(np.asarray(hu + 9 * fractal(rng, axes, 8.0), np.float32), fine)
    weight = paint(canvas, box, fine, depth, texture, lung=soft_lung(canvas, box, rim_steps=WIDE_RIM, rim_hu=hu))
    canvas.organs[box][weight > 0.5] = ORGANS["fat"]
    return canvas.place(ijk, "fat pad at the heart", 2 * radius, hu=round(hu, 1))


def _hump(canvas: Canvas, rng: np.random.Generator, lungs: Lungs) -> Place:
    """Draw a hump of the diaphragm: smooth, continuous with what lies beneath."""
    abdomen = np.isin(canvas.organs[_sampled(lungs)], [ORGANS["liver"], ORGANS["spleen"]])
    below = np.zeros(lungs.lobe.shape, bool)
    below[:, :, 2:] = (lungs.lobe[:, :, 2:] > 0) & (abdomen[:, :, 1:-1] | abdomen[:, :, :-2])
    open_above = np.zeros(below.shape, bool)
    open_above[:, :, :-4] = lungs.depth_mm[:, :, 4:] > 14
    base = below & open_above & (lungs.front > 0.25) & (lungs.front < 0.8)
    ijk = lungs.pick(rng, base)
    radius, rise = float(rng.uniform(20, 32)), float(rng.uniform(12, 18))
    centre = to_mm(canvas, ijk) + np.array([0, 0, rise - radius])
    box = canvas.box(ijk + np.array([0, 0, (rise - radius) / canvas.spacing_mm[2]]), radius * 1.4)
    fine = fineness(canvas, BORDER_MM)
    axes = fine_axes(canvas, box, fine)
    wave = 2.0 * fractal(rng, axes, 26.0, octaves=2)
    tilt = 1 + 0.12 * direction(rng)
    depth = np.asarray(radius + wave - distance(axes, centre, tilt), np.float32)
    under = lungs.side("right")[lungs.at(ijk)]
    hu = float(rng.uniform(50, 60) if under else rng.uniform(42, 52))
    weight = paint(canvas, box, fine, depth, hu, lung=soft_lung(canvas, box, rim_steps=WIDE_RIM, rim_hu=hu - 8))
    canvas.organs[box][weight > 0.5] = ORGANS["liver" if under else "spleen"]
    return canvas.place(
        ijk,
        "hump of the diaphragm",
        2 * np.sqrt(rise * (2 * radius - rise)),
        hu=round(hu, 1),
    )
