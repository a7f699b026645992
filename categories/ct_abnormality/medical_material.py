"""Man-made material in the body: devices of several kinds.

Look-alikes: electrodes and their wires on the skin, buttons, and bone islands.
"""

import numpy as np

from categories.chest.labels import BONES, where
from categories.ct_abnormality import device_implants, device_tubes
from categories.ct_abnormality.canvas import Canvas, Facts, States
from categories.ct_abnormality.heart_shapes import Points, coarse, curve, extent
from categories.ct_abnormality.lung_texture import distance, fine_axes, fractal, inside, pool
from categories.ct_abnormality.metal import lay, streaks, wire

KINDS: tuple[tuple[device_tubes.Device, float], ...] = (
    (device_tubes.central_line, 0.2),
    (device_tubes.pacemaker, 0.17),
    (device_implants.sternal_wires, 0.17),
    (device_tubes.chest_drain, 0.1),
    (device_tubes.gastric_tube, 0.11),
    (device_implants.clips, 0.1),
    (device_implants.valve, 0.07),
    (device_implants.stent, 0.08),
)
SIGNS = ["denser than bone or a straight dense line", "course of a device", "streaks or a lumen"]


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw one device, at times two."""
    del states
    weights = np.array([weight for _, weight in KINDS])
    order = rng.choice(len(KINDS), len(KINDS), replace=False, p=weights / weights.sum())
    wanted = 2 if rng.random() < 0.25 else 1
    places: list[Facts] = []
    drawn = 0
    for number in order:
        found = KINDS[number][0](canvas, rng)
        places += found
        drawn += bool(found)
        if drawn == wanted:
            break
    return _facts(places, SIGNS)


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw one short clip."""
    del states
    return _facts(device_implants.single_clip(canvas, rng), ["one short clip"])


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw electrodes on the skin, a bone island, or both."""
    del states
    on_skin = rng.random() < 0.7
    places = _electrodes(canvas, rng) if on_skin else []
    if not places or rng.random() < 0.5:
        places += _bone_island(canvas, rng)
    return _facts(places, ["outside the skin, or bone"]) | {"measure": 0.0}


def _facts(places: list[Facts], signs: list[str]) -> Facts:
    largest = max((place["size_mm"] for place in places), default=0.0)
    return {"measure": round(largest, 1), "unit": "mm", "places": places, "signs": signs}


def _electrodes(canvas: Canvas, rng: np.random.Generator) -> list[Facts]:
    """Draw snaps of metal on the skin of the chest's front, with the wires that leave them."""
    lungs, bone = extent(canvas, ["lung_upper_lobe_left", "lung_upper_lobe_right"]), extent(canvas, ["sternum"])
    if lungs is None or bone is None:
        return []
    places: list[Facts] = []
    middle = (bone[0].start + bone[0].stop) / 2
    for _ in range(int(rng.integers(2, 5))):
        i = int(middle + rng.choice([-1.0, 1.0]) * rng.uniform(35, 95) / canvas.spacing_mm[0])
        k = int(rng.uniform(lungs[2].start, lungs[2].stop - 20 / canvas.spacing_mm[2]))
        j = device_tubes.skin(canvas, i, k) if 0 <= i < canvas.hu.shape[0] else None
        if j is None or j > canvas.hu.shape[1] - 12:
            continue
        at = np.array([i, j, k]) * canvas.spacing_mm + np.array([0.0, 1.2, 0.0])
        box, share = wire(canvas, np.stack([at, at + np.array([0.0, 3.0, 0.0])]), float(rng.uniform(2.0, 3.0)), 3600.0)
        streaks(canvas, box, share, rng)
        wire(canvas, _cord(canvas, rng, at), 0.7, float(rng.uniform(1800, 2800)))
        places.append(canvas.place(at / canvas.spacing_mm, "electrode on the skin", 6.0))
    return places


def _cord(canvas: Canvas, rng: np.random.Generator, at: Points) -> Points:
    """Return the course of a cord that leaves an electrode and follows the skin."""
    points, here = [at + np.array([0.0, 3.0, 0.0])], at.copy()
    way = rng.choice([-1.0, 1.0])
    for _ in range(int(rng.integers(3, 9))):
        here = here + np.array([way * rng.uniform(4, 12), 0.0, rng.uniform(6, 14)])
        i, _, k = np.round(here / canvas.spacing_mm).astype(int)
        j = (
            device_tubes.skin(canvas, int(i), int(k))
            if 0 <= i < canvas.hu.shape[0] and 0 <= k < canvas.hu.shape[2]
            else None
        )
        if j is None:
            break
        points.append(np.array([here[0], (j + 1) * canvas.spacing_mm[1] + rng.uniform(2.5, 6), here[2]]))
    points.append(points[-1] + np.array([way * 3.0, 3.0, 3.0]))
    return curve(np.array(points), 2.0)


def _bone_island(canvas: Canvas, rng: np.random.Generator) -> list[Facts]:
    """Draw dense islands with a brush border in the marrow of vertebrae, ribs or breastbone."""
    box = extent(canvas, ["heart", "trachea"], (0.0, 0.0, 10.0))
    if box is None:
        return []
    whole = (slice(0, canvas.hu.shape[0]), slice(0, canvas.hu.shape[1]), box[2])
    view = coarse(canvas, whole, 2.2)
    names = [name for name in BONES if name.startswith("vertebrae") or name == "sternum"]
    depth = view.depth(where(view.organs, names))
    spots = np.argwhere(depth > 5.0)
    places: list[Facts] = []
    for _ in range(int(rng.integers(1, 4)) if len(spots) else 0):
        centre = np.array([axis.ravel()[n] for axis, n in zip(view.axes, spots[rng.integers(len(spots))], strict=True)])
        radius = float(rng.uniform(3.0, 6.0))
        near = canvas.box(centre / canvas.spacing_mm, radius * 1.6 + 2)
        fine = (2, 2, 3)
        axes = fine_axes(canvas, near, fine)
        away = distance(axes, centre, np.array([1.0, 1.0, float(rng.uniform(1.0, 1.6))]))
        brush = 0.28 * radius * fractal(rng, axes, 3.0, octaves=2)
        share = pool(inside(radius + brush - away, 1.0), fine)
        lay(canvas, near, share, float(rng.uniform(900, 1500)))
        places.append(canvas.place(centre / canvas.spacing_mm, "bone island", 2 * radius))
    return places
