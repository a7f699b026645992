"""Wires, clips, valves and stents, each where an operation leaves it."""

import numpy as np
from numpy.typing import NDArray

from categories.chest.labels import LOBES, ORGANS, where
from categories.ct_abnormality.canvas import Canvas, Facts
from categories.ct_abnormality.device_tubes import place
from categories.ct_abnormality.heart_courses import AORTIC_VALVE, CORONARIES, course
from categories.ct_abnormality.heart_shapes import Points, centroids, curve, extent, tube
from categories.ct_abnormality.metal import lay, streaks, wire


def sternal_wires(canvas: Canvas, rng: np.random.Generator) -> list[Facts]:
    """Draw wire loops round the breastbone, with their knots, and at times clips along the mammary artery."""
    bone = extent(canvas, ["sternum"])
    if bone is None:
        return []
    mask = where(canvas.organs[bone], ["sternum"])
    count, places = int(rng.integers(4, 8)), []
    for level in np.linspace(0.15, 0.92, count):
        k = int((level + rng.uniform(-0.03, 0.03)) * (mask.shape[2] - 1))
        spots = np.argwhere(mask[:, :, k])
        if len(spots) < 4:
            continue
        low, high = spots.min(0), spots.max(0)
        centre = np.append((low + high) / 2 + [bone[0].start, bone[1].start], bone[2].start + k) * canvas.spacing_mm
        wide = min((high[0] - low[0]) / 2 * canvas.spacing_mm[0] * float(rng.uniform(0.5, 0.75)), 14.0)
        deep = (high[1] - low[1]) / 2 * canvas.spacing_mm[1] + 1.2
        turns = np.linspace(0, 2 * np.pi, 26)
        tilt = float(rng.uniform(-3.5, 3.5))
        loop = np.stack([wide * np.cos(turns), deep * np.sin(turns), tilt * np.cos(turns)], 1).round(6) + centre
        wire(canvas, loop, 0.55, 5200.0)
        knot = centre + np.array([rng.uniform(-3, 3), deep + 1.0, 0.0])
        box, share = wire(
            canvas, np.stack([knot, knot + np.array([rng.uniform(-1.5, 1.5), 3.5, rng.uniform(-3, 3)])]), 1.0, 6000.0
        )
        streaks(canvas, box, share, rng)
        places.append(place(canvas, loop, "sternal wire"))
    if rng.random() < 0.6:
        places += _mammary_clips(canvas, rng)
    return places


def _clip(canvas: Canvas, rng: np.random.Generator, at: NDArray[np.float64], long_mm: float) -> Facts:
    way = rng.normal(size=3)
    way = np.round(way / max(float(np.sqrt((way**2).sum())), 0.1), 6)
    line = at + np.linspace(-0.5, 0.5, 3)[:, None] * long_mm * way
    box, share = wire(canvas, line, 0.75, 5600.0)
    streaks(canvas, box, share, rng)
    return place(canvas, line, "clip")


def _mammary_clips(canvas: Canvas, rng: np.random.Generator) -> list[Facts]:
    """Draw clips on the bed of the left internal mammary artery, beside the breastbone."""
    line = centroids(canvas, ["sternum"], 5.0)
    if len(line) < 4:
        return []
    chosen = line[rng.choice(len(line), min(len(line), int(rng.integers(3, 8))), replace=False)]
    offsets = np.stack([rng.uniform(15, 22, len(chosen)), rng.uniform(-14, -9, len(chosen)), np.zeros(len(chosen))], 1)
    return [_clip(canvas, rng, spot, float(rng.uniform(5.5, 8.0))) for spot in chosen + offsets]


def clips(canvas: Canvas, rng: np.random.Generator) -> list[Facts]:
    """Draw clips after an operation: in an armpit's fat, or on the mammary artery's bed."""
    side = "left" if rng.random() < 0.5 else "right"
    blade = extent(canvas, [f"scapula_{side}"])
    if blade is None or rng.random() < 0.4:
        return _mammary_clips(canvas, rng)
    i = blade[0].start + (0.3 if side == "left" else 0.7) * (blade[0].stop - blade[0].start)
    middle = np.array([i, blade[1].stop + 6 / canvas.spacing_mm[1], (blade[2].start + 2 * blade[2].stop) / 3])
    middle = middle * canvas.spacing_mm
    places = []
    for _ in range(60):
        spot = middle + rng.normal(0, (12, 9, 16))
        index = np.clip(np.round(spot / canvas.spacing_mm).astype(int), 0, np.array(canvas.hu.shape) - 1)
        if -160 < canvas.hu[tuple(index)] < -40 and not where(canvas.organs[tuple(index)], LOBES):
            places.append(_clip(canvas, rng, np.asarray(spot.round(4)), float(rng.uniform(5.5, 8.0))))
        if len(places) >= 7:
            break
    return places or _mammary_clips(canvas, rng)


def single_clip(canvas: Canvas, rng: np.random.Generator) -> list[Facts]:
    """Draw one short clip beside the breastbone."""
    line = centroids(canvas, ["sternum"], 5.0)
    if len(line) == 0:
        return []
    spot = line[int(rng.integers(len(line)))] + np.array([rng.uniform(15, 22), rng.uniform(-14, -9), 0.0])
    return [_clip(canvas, rng, spot, float(rng.uniform(1.5, 3.2)))]


def _cage(
    canvas: Canvas,
    rng: np.random.Generator,
    axis: Points,
    radius: NDArray[np.float64],
    waves: int,
    pitch_mm: float,
    thick: float,
) -> Points:
    """Draw zig-zag wire rings along an axis; return the axis."""
    turns = np.linspace(0, 2 * np.pi, 8 * waves + 1)
    along = curve(axis, pitch_mm)
    for number, centre in enumerate(along):
        ahead = along[min(number + 1, len(along) - 1)] - along[max(number - 1, 0)]
        ahead = ahead / max(float(np.sqrt((ahead**2).sum())), 1e-6)
        first = np.cross(ahead, [0.0, 1.0, 0.2])
        first = first / max(float(np.sqrt((first**2).sum())), 1e-6)
        second = np.cross(ahead, first)
        size = float(np.interp(number / max(1, len(along) - 1), np.linspace(0, 1, len(radius)), radius))
        zigzag = 0.42 * pitch_mm * np.cos(waves * turns + number * np.pi)
        ring = (
            centre + size * (np.cos(turns)[:, None] * first + np.sin(turns)[:, None] * second) + zigzag[:, None] * ahead
        )
        box, share = wire(canvas, np.round(ring, 5), thick, 5000.0)
        streaks(canvas, box, share, rng)
    return axis


def valve(canvas: Canvas, rng: np.random.Generator) -> list[Facts]:
    """Draw a valve in the aortic position: the cage of a catheter valve, or the ring and struts of a sewn one."""
    centre = course(canvas, AORTIC_VALVE, snap=False)[0]
    up = np.array([-0.45, 0.35, 0.82])
    size = float(rng.uniform(10.5, 13.0))
    if rng.random() < 0.5:
        axis = centre + np.linspace(-9, 11, 6)[:, None] * up
        _cage(canvas, rng, axis, np.array([size * 0.95, size, size * 1.1]), 8, 5.0, 0.45)
    else:
        _cage(canvas, rng, centre + np.array([[0, 0, 0], 0.5 * up]), np.array([size, size]), 1, 3.0, 1.0)
        for turn in np.arange(3) * 2.094 + rng.uniform(0, 2):
            foot = centre + size * np.array([np.cos(turn), np.sin(turn), 0.0]).round(6)
            wire(canvas, np.stack([foot, foot + 11 * up]), 0.9, 3800.0)
    return [canvas.place(centre / canvas.spacing_mm, "aortic valve prosthesis", 2 * size)]


def stent(canvas: Canvas, rng: np.random.Generator) -> list[Facts]:
    """Draw a stent graft in the descending aorta, or a stent in a coronary artery."""
    if rng.random() < 0.5:
        line = course(canvas, CORONARIES[str(rng.choice(["LAD", "RCA", "LCX"]))])
        first = int(rng.integers(2, max(3, len(line) // 3)))
        line = line[first : first + int(rng.integers(11, 20))]
        radius = float(rng.uniform(1.5, 1.9))
        box, shell = tube(canvas, line, radius)
        _, bore = tube(canvas, line, radius - 0.8)
        same = bore.shape == shell.shape
        lay(canvas, box, shell - 0.6 * bore if same else shell, float(rng.uniform(1100, 1900)))
        return [place(canvas, line, "coronary stent")]
    aorta = centroids(canvas, ["aorta"], 5.0)
    heart, arch = extent(canvas, ["heart"]), extent(canvas, ["aorta"])
    if heart is None or arch is None:
        return []
    low = heart[2].start * canvas.spacing_mm[2]
    high = (arch[2].stop * canvas.spacing_mm[2] + low) / 2
    points, radii = [], []
    for spot in aorta[(aorta[:, 2] > low) & (aorta[:, 2] < high)]:
        plane = (
            canvas.organs[:, : (heart[1].start + heart[1].stop) // 2, int(spot[2] / canvas.spacing_mm[2])]
            == ORGANS["aorta"]
        )
        if plane.sum() > 8:
            points.append(np.append(np.argwhere(plane).mean(0) * canvas.spacing_mm[:2], spot[2]))
            radii.append(np.sqrt(plane.sum() * canvas.spacing_mm[0] * canvas.spacing_mm[1] / np.pi) - 0.6)
    if len(points) < 4:
        return []
    _cage(canvas, rng, np.array(points), np.array(radii), 6, 11.0, 0.5)
    return [place(canvas, np.array(points), "aortic stent graft")]
