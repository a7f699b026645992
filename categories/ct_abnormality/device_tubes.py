"""Tubes and leads, each on the course that it has in a patient, with what they hang on: port and generator."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from categories.chest.labels import LEFT_LUNG, RIGHT_LUNG, where
from categories.ct_abnormality.canvas import Canvas, Facts
from categories.ct_abnormality.heart_shapes import Points, centroids, curve, extent, heart_points, length_mm, tube
from categories.ct_abnormality.lung_texture import inside
from categories.ct_abnormality.metal import lay, streaks, wire

Device = Callable[[Canvas, np.random.Generator], list[Facts]]
RIGHT_ATRIUM = ((0.2, 0.72, 0.36), (0.16, 0.66, 0.24))
"""Fractions of the heart's extent, as in ``heart_courses``."""
RIGHT_VENTRICLE = ((0.3, 0.62, 0.2), (0.55, 0.7, 0.14), (0.8, 0.78, 0.1))


UNDER_SKIN_MM = 14.0
"""Of the middle of a port or a generator."""


def skin(canvas: Canvas, i: int, k: int) -> int | None:
    """Return the foremost voxel inside the body in a column; None where the column misses it."""
    column = np.flatnonzero(canvas.organs[i, :, k] > 0)
    return int(column[-1]) if len(column) else None


def place(canvas: Canvas, line: Points, what: str, **more: float | str) -> Facts:
    middle = line[len(line) // 2] / canvas.spacing_mm
    return canvas.place(middle, what, length_mm(line), **more)


def _pocket(canvas: Canvas, side: str) -> NDArray[np.float64] | None:
    """Return a point under the skin below the outer half of a collar bone, mm."""
    bone = extent(canvas, [f"clavicula_{side}"])
    if bone is None:
        return None
    share = 0.62 if side == "left" else 0.38
    i = int(bone[0].start + share * (bone[0].stop - bone[0].start))
    k = max(0, int(bone[2].start - 30 / canvas.spacing_mm[2]))
    j = skin(canvas, i, k)
    return None if j is None else np.array([i, j, k]) * canvas.spacing_mm - np.array([0.0, UNDER_SKIN_MM, 0.0])


def _through_veins(canvas: Canvas, side: str) -> Points:
    """Return the course from the brachiocephalic vein's outer end to the lower end of the superior vena cava."""
    cava = centroids(canvas, ["superior_vena_cava"], 4.0)[::-1]
    vein = centroids(canvas, [f"brachiocephalic_vein_{side}"], 3.0)[::-1]
    if len(vein) == 0 or len(cava) == 0:
        return cava
    # The left vein crosses the midline within few cross-sections: follow it by its ends.
    if side == "left":
        box = extent(canvas, ["brachiocephalic_vein_left"])
        if box is not None:
            mask = where(canvas.organs[box], ["brachiocephalic_vein_left"])
            parts = []
            for block in np.array_split(np.arange(mask.shape[0]), 5)[::-1]:
                spots = np.argwhere(mask[block[0] : block[-1] + 1])
                if len(spots):
                    parts.append(
                        (spots.mean(0) + np.array([box[0].start + block[0], box[1].start, box[2].start]))
                        * canvas.spacing_mm
                    )
            vein = np.array(parts)
    above = cava[cava[:, 2] < vein[-1, 2] - 4]
    return np.concatenate([vein, above if len(above) else cava[-1:]])


def central_line(canvas: Canvas, rng: np.random.Generator) -> list[Facts]:
    """Draw a line from the neck or from a port's reservoir through the veins to the superior vena cava."""
    side = "right" if rng.random() < 0.72 else "left"
    veins = _through_veins(canvas, side)
    if len(veins) < 2:
        return []
    keep = max(2, int(len(veins) * rng.uniform(0.88, 1.0)))
    veins = veins[:keep]
    top = (canvas.hu.shape[2] - 1) * canvas.spacing_mm[2]
    start = veins[0]
    outward = -1.0 if side == "right" else 1.0
    neck = np.array([start[0] + outward * 6, start[1] + 2, min(top, start[2] + 28)])
    pocket = _pocket(canvas, side) if rng.random() < 0.55 else None
    if pocket is None:
        lead_in = [np.array([neck[0] + outward * 3, neck[1], top]), neck]
    else:
        lead_in = [pocket, pocket + np.array([-outward * 12, -2, 24]), neck + np.array([outward * 10, 12, -6]), neck]
    line = curve(np.concatenate([np.array(lead_in), veins]), 2.0)
    wire(canvas, line, float(rng.uniform(0.95, 1.4)), float(rng.uniform(900, 1900)))
    places = [
        place(
            canvas,
            line,
            "central line" if pocket is None else "port's line",
            tip=str(canvas.ras(line[-1] / canvas.spacing_mm)),
        )
    ]
    if pocket is not None:
        places.append(_disc(canvas, rng, pocket, (12.0, 12.0, 5.5), "port", float(rng.uniform(1200, 2600))))
    return places


def _disc(
    canvas: Canvas,
    rng: np.random.Generator,
    centre: NDArray[np.float64],
    half: tuple[float, float, float],
    what: str,
    hu: float,
) -> Facts:
    """Draw a flat body under the skin of the front: half width, half height, half thickness, mm."""
    wide, tall, thick = half
    side, up = _slopes(canvas, centre)
    reach = np.array([wide + 6, (abs(side) + abs(up)) * wide + thick + 8, tall + 6])
    box = canvas.box(centre / canvas.spacing_mm, (float(reach[0]), float(reach[1]), float(reach[2])))
    x, y, z = (axis - c for axis, c in zip(canvas.mm(box), centre, strict=True))
    deep = (y - side * x - up * z) / float(np.sqrt(1 + side * side + up * up))
    rim = ((x / wide) ** 4 + (z / tall) ** 4) ** 0.25
    # Rounded edges: far from the rim the faces are flat.
    depth = (1 - (np.clip(rim, 0, None) ** 6 + (deep / thick) ** 4) ** 0.25) * thick
    # Pocket: a rim of fat and scar that keeps skin and muscle off.
    canvas.put(box, 0.8 * inside(depth + 2.5, 2.0) * (canvas.hu[box] < 130), -60.0)
    share = np.asarray(inside(depth, 0.7), np.float32)
    lay(canvas, box, share, hu)
    streaks(canvas, box, share, rng)
    return canvas.place(centre / canvas.spacing_mm, what, 2 * wide)


def _slopes(canvas: Canvas, at: NDArray[np.float64]) -> tuple[float, float]:
    """Return how the skin of the front rises to the left and to the head (mm per mm) near a point."""
    i, _, k = np.round(at / canvas.spacing_mm).astype(int)
    out = []
    for axis, reach_mm in ((0, 20.0), (2, 20.0)):
        step = np.zeros(3, int)
        step[axis] = max(1, round(reach_mm / canvas.spacing_mm[axis]))
        ends = []
        for way in (-1, 1):
            a, c = np.clip(np.array([i, k]) + way * step[[0, 2]], 0, [canvas.hu.shape[0] - 1, canvas.hu.shape[2] - 1])
            found = skin(canvas, int(a), int(c))
            ends.append(float(found) if found is not None else float("nan"))
        rise = (ends[1] - ends[0]) * canvas.spacing_mm[1] / (2 * step[axis] * canvas.spacing_mm[axis])
        out.append(round(float(np.clip(np.nan_to_num(rise), -0.9, 0.9)), 4))
    return out[0], out[1]


def pacemaker(canvas: Canvas, rng: np.random.Generator) -> list[Facts]:
    """Draw a generator below the left collar bone and one or two leads into the right heart."""
    pocket, veins = _pocket(canvas, "left"), _through_veins(canvas, "left")
    if pocket is None or len(veins) < 2:
        return []
    places = []
    entry = veins[0] + np.array([26.0, 4.0, 8.0])
    ends = [RIGHT_VENTRICLE] if rng.random() < 0.35 else [RIGHT_VENTRICLE, RIGHT_ATRIUM]
    for number, end in enumerate(ends):
        shift = np.array([0.0, 2.2 * number, 0.0])
        inner = np.concatenate([heart_points(canvas, (RIGHT_ATRIUM[0],)), heart_points(canvas, end)])
        loop = pocket + np.array([6.0 - 18 * number, -6.0, 20.0])
        line = curve(np.concatenate([np.array([pocket, loop, entry]), veins, inner]) + shift, 2.0)
        wire(canvas, line, float(rng.uniform(0.8, 1.1)), 3400.0)
        box, tip = wire(canvas, line[-6:], 1.5, 5200.0)
        streaks(canvas, box, tip, rng)
        places.append(place(canvas, line, "pacemaker lead"))
    size = (float(rng.uniform(21, 26)), float(rng.uniform(19, 23)), float(rng.uniform(3.2, 4.6)))
    return [*places, _disc(canvas, rng, pocket, size, "generator", 9000.0)]


def chest_drain(canvas: Canvas, rng: np.random.Generator) -> list[Facts]:
    """Draw a drain through the side of the chest that runs up the pleural space to the back of the apex."""
    side = "left" if rng.random() < 0.5 else "right"
    names = LEFT_LUNG if side == "left" else RIGHT_LUNG
    lung = extent(canvas, names)
    if lung is None:
        return []
    mask = where(canvas.organs[lung], names)
    outward = 1.0 if side == "left" else -1.0
    points = []
    for level in np.linspace(0.42, 0.88, 7):
        spots = np.argwhere(mask[:, :, int(level * (mask.shape[2] - 1))]).astype(float)
        if not len(spots):
            continue
        back = -0.4 + 1.5 * (level - 0.42) / 0.46
        reach = outward * spots[:, 0] * canvas.spacing_mm[0] - back * spots[:, 1] * canvas.spacing_mm[1]
        wall, middle = spots[reach.argmax()], spots.mean(0)
        at = wall + (middle - wall) * 8.0 / max(
            float(np.sqrt((((middle - wall) * canvas.spacing_mm[:2]) ** 2).sum())), 9.0
        )
        points.append([at[0] + lung[0].start, at[1] + lung[1].start, lung[2].start + level * (mask.shape[2] - 1)])
    if len(points) < 3:
        return []
    inner = np.array(points) * canvas.spacing_mm
    outer = inner[0] + np.array([[outward * 75.0, 8.0, -30.0], [outward * 26.0, 4.0, -14.0]])
    line = curve(np.concatenate([outer, inner]), 2.0)
    index = np.clip(np.round(line / canvas.spacing_mm).astype(int), 0, np.array(canvas.hu.shape) - 1)
    line = line[max(0, int((canvas.organs[index[:, 0], index[:, 1], index[:, 2]] > 0).argmax()) - 4) :]
    radius = float(rng.uniform(3.6, 4.8))
    _hollow(canvas, rng, line, radius, 0.68 * radius, float(rng.uniform(160, 320)), -990.0)
    return [place(canvas, line, "chest drain", side=side)]


def _hollow(
    canvas: Canvas, rng: np.random.Generator, line: Points, radius: float, bore: float, hu: float, content: float
) -> None:
    """Draw a soft tube with a lumen and the dense stripe that shows it on radiographs."""
    box, share = tube(canvas, line, radius)
    lay(canvas, box, share, hu)
    box, lumen = tube(canvas, line, bore)
    canvas.put(box, lumen, content)
    shift = (radius + bore) / 2 * np.array([np.cos(1.2), np.sin(1.2), 0.0]).round(6) * rng.choice([-1.0, 1.0])
    wire(canvas, line + shift, 0.5 * (radius - bore), float(rng.uniform(900, 1700)))


def gastric_tube(canvas: Canvas, rng: np.random.Generator) -> list[Facts]:
    """Draw a tube down the gullet into the stomach."""
    gullet = centroids(canvas, ["esophagus"], 6.0)[::-1]
    stomach = centroids(canvas, ["stomach"], 6.0)[::-1]
    if len(gullet) < 4:
        return []
    below = stomach[stomach[:, 2] < gullet[-1, 2] - 4][:5] if len(stomach) else np.zeros((0, 3))
    line = curve(np.concatenate([gullet, below]), 2.0)
    radius = float(rng.uniform(2.1, 2.9))
    content = -950.0 if rng.random() < 0.7 else 15.0
    _hollow(canvas, rng, line, radius, 0.6 * radius, float(rng.uniform(200, 420)), content)
    return [place(canvas, line, "gastric tube")]
