"""Calcium in the walls of the coronary arteries.

Look-alikes: calcium of the mitral annulus, of the aortic valve and of the pericardium, within a centimetre of the
arteries' courses. Everyone's arteries run in fat, so that fat in the grooves tells nothing.
"""

import numpy as np

from categories.ct_abnormality.calcium import SEEN_HU, SPECK_HU, number_of_plaques, plaque
from categories.ct_abnormality.canvas import Canvas, Facts, States
from categories.ct_abnormality.heart_courses import AORTIC_VALVE, CORONARIES, LEFT_MAIN, MITRAL, PERICARDIUM, course
from categories.ct_abnormality.heart_shapes import Points, length_mm, tube

PEAK_HU = (380.0, 1100.0)
VESSEL_HU, VESSEL_MM, GROOVE_HU = 42.0, 1.6, -85.0


def present(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw plaques along one to three arteries, the left anterior descending one nearly always."""
    del states
    lines = _grooves(canvas, rng)
    load = number_of_plaques(canvas, rng)
    names = [str(name) for name in rng.choice(["LAD", "LCX", "RCA"], load, p=[0.5, 0.22, 0.28])]
    if rng.random() < 0.9:
        names[0] = "LAD"
    if load > 2:
        names[1] = str(rng.choice(["LCX", "RCA"]))
    places: list[Facts] = []
    for number, name in enumerate(names):
        shortest = 5.5 if number == 0 else 2.0
        line = _stretch(rng, _artery(canvas, lines, name), float(shortest + 10.0 * rng.random() ** 2))
        places.append(_lay(canvas, rng, line, name, float(rng.uniform(1.0, 1.9))))
    return _facts(places, ["follows an artery's course", "several plaques"])


def grey(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw one speck on an artery."""
    del states
    lines = _grooves(canvas, rng)
    line = _stretch(rng, _artery(canvas, lines, str(rng.choice(["LAD", "LCX", "RCA"]))), float(rng.uniform(1.2, 2.2)))
    return _facts([_lay(canvas, rng, line, "speck", 0.7, SPECK_HU)], ["one speck"])


def lookalike(canvas: Canvas, rng: np.random.Generator, states: States) -> Facts:
    """Draw calcium of the mitral annulus, the aortic valve or the pericardium; the arteries are free."""
    if states.get("coronary_calcification") != "present":
        _grooves(canvas, rng)
    kinds = [
        str(kind)
        for kind in rng.choice(["mitral", "aortic valve", "pericardium"], int(rng.choice([1, 2])), replace=False)
    ]
    places: list[Facts] = []
    for kind in kinds:
        if kind == "mitral":
            line = course(canvas, MITRAL)
            for _ in range(int(rng.integers(1, 4))):
                part = _stretch(rng, line, float(rng.uniform(4.0, 16.0)))
                places.append(_lay(canvas, rng, part, "mitral annulus", float(rng.uniform(1.6, 2.8))))
        elif kind == "aortic valve":
            places += _valve(canvas, rng)
        else:
            line = _stretch(rng, course(canvas, PERICARDIUM), float(rng.uniform(14.0, 34.0)))
            places.append(_lay(canvas, rng, line, "pericardium", float(rng.uniform(0.9, 1.4))))
    return _facts(places, ["off the arteries' courses"]) | {"measure": 0.0}


def _facts(places: list[Facts], signs: list[str]) -> Facts:
    total = sum(place["length_mm"] for place in places)
    return {"measure": round(total, 1), "unit": "mm", "places": places, "signs": signs}


def _artery(canvas: Canvas, lines: dict[str, Points], name: str) -> Points:
    """Return the part of an artery that calcifies: its first two thirds, for the left ones after the left main."""
    line = lines[name]
    kept = line[: max(4, int(0.68 * len(line)))]
    return np.concatenate([course(canvas, LEFT_MAIN, snap=False), kept]) if name == "LAD" else kept


def _stretch(rng: np.random.Generator, line: Points, wanted_mm: float) -> Points:
    """Return a piece of a course, of about the wanted length, from anywhere on it."""
    gaps = np.sqrt(((line[1:] - line[:-1]) ** 2).sum(1))
    at = np.concatenate([[0.0], np.cumsum(gaps)])
    start = float(rng.uniform(0, max(at[-1] - wanted_mm, 0.1)))
    samples = np.linspace(start, min(start + wanted_mm, at[-1]), max(2, int(wanted_mm) + 1))
    return np.stack([np.interp(samples, at, line[:, axis]) for axis in range(3)], 1)


def _lay(
    canvas: Canvas, rng: np.random.Generator, line: Points, what: str, radius_mm: float, seen_hu: float = SEEN_HU
) -> Facts:
    peak = float(rng.uniform(*PEAK_HU))
    box, _, core = plaque(canvas, rng, line, radius_mm, peak, seen_hu)
    canvas.occupy(box, core)
    long = round(length_mm(line) + 2 * radius_mm, 1)
    return canvas.place(line.mean(0) / canvas.spacing_mm, what, long, length_mm=long, peak_hu=round(peak))


def _valve(canvas: Canvas, rng: np.random.Generator) -> list[Facts]:
    """Draw calcium on the cusps: short spokes about the valve's middle."""
    middle = course(canvas, AORTIC_VALVE, snap=False)[0]
    turn = rng.uniform(0, 2.1)
    places: list[Facts] = []
    for spoke in range(int(rng.integers(2, 4))):
        angle = turn + spoke * 2.094 + rng.uniform(-0.3, 0.3)
        way = np.array([np.cos(angle), 0.85 * np.sin(angle), 0.5 * np.sin(angle + 1.0)])
        inner, outer = rng.uniform(1.0, 4.0), rng.uniform(5.5, 9.0)
        line = middle + np.linspace(inner, outer, 5)[:, None] * way
        places.append(_lay(canvas, rng, np.round(line, 6), "aortic valve", float(rng.uniform(0.9, 1.7))))
    return places


def _grooves(canvas: Canvas, rng: np.random.Generator) -> dict[str, Points]:
    """Draw everyone's arteries, a vessel in a sleeve of fat that thins out along its way, and return their courses."""
    plenty = float(rng.uniform(2.6, 4.6))
    lines = {name: course(canvas, fractions) for name, fractions in CORONARIES.items()}
    for line in lines.values():
        parts = np.array_split(line, 4)
        for number, part in enumerate(parts):
            end = parts[number + 1][:1] if number < 3 else part[-1:]
            piece = np.concatenate([part, end])
            box, fat = tube(canvas, piece, plenty * (1 - 0.13 * number), edge_mm=2.4)
            here = canvas.hu[box]
            canvas.put(box, 0.8 * fat * (here > GROOVE_HU) * (here < 130), GROOVE_HU)
        box, vessel = tube(canvas, line, VESSEL_MM, edge_mm=0.7)
        canvas.put(box, vessel * (canvas.hu[box] < 130), VESSEL_HU)
    return lines
