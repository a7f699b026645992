"""Emphysema: holes without walls in the secondary lobules, most in the upper lobes; bullae; lungs too large."""

import numpy as np

from categories.ct_abnormality.canvas import Box, Canvas, Facts, State, States
from categories.ct_abnormality.lung_strokes import Place, Point, body_depth, to_mm
from categories.ct_abnormality.lung_texture import Field, fine_axes, fineness, fractal, inside, pool, smooth_step
from categories.ct_abnormality.lungs import Lungs, aerated, lobe_map, survey

YES_PERCENT, GREY_PERCENT = (15.0, 30.0), (5.2, 7.5)
BORDERS = 1.35
"""Volume that holes take relative to what they hold below ``DESTROYED_HU``: their borders are shared with lung."""
HOLE_HU, MEAN_HU, CYST_HU = (-992.0, -952.0), (-980.0, -966.0), (-992.0, -964.0)
"""Of a hole anywhere, of a patient's holes on average, of a cyst or bulla."""
REMNANTS = 0.4
"""Share of the tissue's texture that is left in a hole: strands too fine to be seen one by one."""
DESTROYED_HU, WALL_HU, AIR_HU = -950.0, -330.0, -1000.0
FAR_MM = 1e4
INFLATION = {"present": (0.55, 1.0), "grey": (0.2, 0.5), "lookalike": (0.3, 0.8)}
"""Hyperinflation alone is no emphysema: the look-alike has it too."""


def body(rng: np.random.Generator, state: State) -> dict[str, float]:
    """Return how far the diaphragm is lowered and flattened, 0 to 1."""
    return {"inflation": round(float(rng.uniform(*INFLATION[state])), 3)}


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Destroy 15 to 30 % of the lung, with bullae under the pleura."""
    del states
    facts = _destroy(canvas, rng, float(rng.uniform(*YES_PERCENT)))
    lungs = survey(canvas)
    facts["places"] = [_bulla(canvas, rng, lungs) for _ in range(int(rng.integers(2, 6)))]
    facts["signs"] = ["holes without walls", "bullae", "low flat diaphragm"]
    return facts


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Destroy 5.2 to 7.5 % of the lung."""
    del states
    return _destroy(canvas, rng, float(rng.uniform(*GREY_PERCENT)))


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw one or two cysts with a wall; the lungs are large, nothing is destroyed."""
    del states
    lungs = survey(canvas)
    places = [_cyst(canvas, rng, lungs) for _ in range(int(rng.integers(1, 3)))]
    volume = sum(float(place["volume_ml"]) for place in places)
    percent = 100 * volume / _volume_ml(canvas, lungs)
    return {
        "measure": round(percent, 3),
        "unit": "% of lung volume",
        "places": places,
        "signs": ["thin-walled cyst", "low diaphragm without holes"],
    }


def _volume_ml(canvas: Canvas, lungs: Lungs) -> float:
    return float((lungs.lobe > 0).sum() * np.prod(lungs.step) * np.prod(canvas.spacing_mm)) / 1000


def _destroy(canvas: Canvas, rng: np.random.Generator, percent: float) -> Facts:
    """Draw centrilobular holes until they make up a share of the lung; more above than below, patchy."""
    lungs = survey(canvas)
    box = lungs.box
    free = aerated(canvas, box)
    share = 0.0
    damage: Field = np.zeros(free.shape, np.float32)
    gradient = 0.25 + lungs.height * (1 + rng.uniform(-0.3, 0.5) * (lungs.height - 1))
    patch = np.clip(1 + 0.8 * fractal(rng, lungs.axes, 80.0, octaves=2), 0.05, 3)
    chance = gradient * patch * lungs.free * (lungs.depth_mm > 2.5)
    wanted = BORDERS * percent / 100 * float(free.mean())
    points = np.argwhere(chance > 0)
    weights = chance[chance > 0]
    larger = float(rng.uniform(0.85, 1.25)) * (0.75 + percent / 60)
    for _ in range(12):
        chosen = points[rng.choice(len(points), 260, p=weights / weights.sum())]
        for spot in chosen:
            place = np.array([b.start for b in box]) + (spot + rng.uniform(0, 1, 3)) * lungs.step
            _hole(canvas, rng, damage, box, place, float(np.clip(larger * rng.gamma(6.0, 0.65), 1.6, 9.0)))
        share = float((damage * free).mean())
        if share >= wanted:
            break
    grain = 1 + 0.25 * fractal(rng, lungs.axes, 12.0, octaves=1)
    hole = np.minimum(damage, 1) * free * np.clip(lungs.spread(np.asarray(grain, np.float32), box), 0.5, 1.15)
    level = lungs.spread(lungs.level, box)
    # Vessels and walls within the rest of a lobule keep their excess over the lung around them.
    excess = canvas.hu[box] - level
    soft = smooth_step(excess, 220, 60)
    mean = float(rng.uniform(*MEAN_HU))
    air = np.clip(mean + 9 * fractal(rng, lungs.axes, 16.0, octaves=2), *HOLE_HU)
    rest = lungs.spread(np.asarray(air, np.float32), box) - level - np.float32(1 - REMNANTS) * excess
    deeper = hole * soft * np.minimum(rest, 0)
    canvas.add(box, np.maximum(deeper, np.minimum(np.float32(AIR_HU) - canvas.hu[box], 0)))
    canvas.hollow[box] |= hole > 0.3
    destroyed = (damage * free > 0.5) & (canvas.hu[box] < DESTROYED_HU)
    measured = 100 * float(destroyed.sum()) / max(1, int(free.sum()))
    return {
        "measure": round(measured, 2),
        "unit": "% of lung volume",
        "places": [],
        "signs": ["holes without walls"],
        "hole_hu": round(mean, 1),
        "upper_share": round(_upper_share(damage), 3),
    }


def _upper_share(damage: Field) -> float:
    half = damage.shape[2] // 2
    return float(damage[:, :, half:].sum() / max(float(damage.sum()), 1e-6))


def _hole(canvas: Canvas, rng: np.random.Generator, damage: Field, box: Box, ijk: Point, radius: float) -> None:
    """Add one hole (its weight, 0 to 1) to the damage of a box."""
    near = canvas.box(ijk, 1.5 * radius + 1.5)
    part = tuple(slice(max(0, n.start - b.start), max(0, n.stop - b.start)) for n, b in zip(near, box, strict=True))
    there = damage[part]
    if not there.size:
        return
    axes = tuple(
        np.arange(p.start, p.start + size) * step + b.start * step - c
        for p, size, b, step, c in zip(part, there.shape, box, canvas.spacing_mm, to_mm(canvas, ijk), strict=True)
    )
    # Three bodies that overlap: lobed, of no one shape.
    depth = np.full(there.shape, -FAR_MM)
    for _ in range(3):
        a, b, c = (axis - shift for axis, shift in zip(axes, rng.uniform(-0.55, 0.55, 3) * radius, strict=True))
        s = rng.uniform(0.8, 1.25, 3)
        tilt = rng.uniform(-0.4, 0.4)
        level = ((a / s[0])[:, None, None] + tilt * b[None, :, None]) ** 2 + ((b / s[1]) ** 2)[None, :, None]
        part_depth = rng.uniform(0.6, 0.95) * radius - np.sqrt(level + ((c / s[2]) ** 2)[None, None, :])
        np.maximum(depth, part_depth, out=depth)
    np.maximum(there, smooth_step(depth, -1.2, 1.2), out=there)


def _bulla(canvas: Canvas, rng: np.random.Generator, lungs: Lungs) -> Place:
    """Draw a bulla under the pleura of the upper half: air behind a hairline wall."""
    radius = float(rng.uniform(5.5, 14))
    outward = np.abs(np.linspace(-1, 1, lungs.lobe.shape[0]))[:, None, None]
    where = (lungs.height > 0.55) & (lungs.depth_mm > 0) & (lungs.depth_mm < 0.6 * radius + 4) & (outward > 0.5)
    return _air_space(canvas, rng, lungs.pick(rng, where), radius, wall_mm=0.45, what="bulla")


def _cyst(canvas: Canvas, rng: np.random.Generator, lungs: Lungs) -> Place:
    """Draw a cyst amid the lung: air behind a wall that is plainly seen."""
    radius = float(rng.uniform(7, 13))
    ijk = lungs.pick(rng, (lungs.depth_mm > radius + 2) & (lungs.height > 0.2))
    return _air_space(canvas, rng, ijk, radius, wall_mm=float(rng.uniform(1.0, 1.6)), what="thin-walled cyst")


def _air_space(
    canvas: Canvas, rng: np.random.Generator, ijk: Point, radius: float, *, wall_mm: float, what: str
) -> Place:
    box = canvas.box(ijk, radius * 1.3 + 2)
    fine = fineness(canvas, 0.8)
    axes = fine_axes(canvas, box, fine)
    stretch = rng.uniform(0.85, 1.2, 3)
    depth = body_depth(rng, axes, to_mm(canvas, ijk), radius, rough=0.08, stretch=stretch, grain=1.5)
    # Small vessels are displaced, large ones stay.
    found = (lobe_map(canvas, box) > 0) & ~canvas.occupied[box] & (canvas.hu[box] < -150)
    air = pool(inside(depth - wall_mm, 1.0), fine) * found
    wall = np.clip(pool(inside(depth, 1.0), fine) * found - air, 0, 1)
    canvas.put(box, air, float(rng.uniform(*CYST_HU)))
    canvas.hollow[box] |= air > 0.3
    canvas.put(box, np.where(canvas.hu[box] < WALL_HU, wall, 0), WALL_HU)
    canvas.occupy(box, (air + wall) > 0.3)
    volume = float(air.sum() * np.prod(canvas.spacing_mm)) / 1000
    return canvas.place(ijk, what, 2 * radius, volume_ml=round(volume, 3))
