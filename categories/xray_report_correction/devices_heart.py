"""Pacemakers, and the wires that close a breastbone."""

import numpy as np
from numpy.typing import NDArray

from categories.xray_report_correction.devices_tubes import METAL, OUT
from categories.xray_report_correction.projection import Eye
from categories.xray_report_correction.render_scene import Scene
from categories.xray_report_correction.render_shapes import add_plate, add_tube, by, curve
from categories.xray_report_correction.render_shoulders import reach
from categories.xray_report_correction.state import Device

Floats = NDArray[np.float64]
LEAD_MU = 0.45
LEAD_MM = 0.85


def pacemaker(scene: Scene, device: Device) -> None:
    """Put a generator under the collar bone and ``count`` leads: right ventricle, right atrium, coronary sinus."""
    if device.side not in OUT:
        raise ValueError("a pacemaker needs a side: left or right")
    marks, out, rng = scene.marks, OUT[device.side], np.random.default_rng(device.track)
    size = reach(marks)
    box = marks.notch + by(out * rng.uniform(88, 98) * size, -16.0, -rng.uniform(34, 46))
    count = device.count or 1
    order = ("ventricle",) if count == 1 else ("atrium", "ventricle", "sinus")[:count]
    ends = _ends(scene, rng)
    leads = []
    for number, name in enumerate(order):
        shift = np.array([0.0, 0.0, 3.2 * number])
        start = box + by(-out * 12, 0, 17)
        loop = [start, start + by(out * 4, 0, 12 + 4 * number), box + by(-out * 22, -2, 33) + shift]
        vein = [
            marks.notch + by(out * 46 * size, -24.0, 0.5 + 2 * number),
            marks.notch + by(out * 18, -26.0, -10.0 + 2 * number),
        ]
        cava = [marks.cava.at(float(z)) + by(1.6 * number, 0, 0) for z in _cava_heights(scene)]
        leads.append((curve(np.stack([*loop, *vein, *cava, *ends[name]]), 3), name))

    def draw(film: Floats, eye: Eye) -> None:
        for line, name in leads:
            add_tube(film, eye, line, LEAD_MM, LEAD_MU)
            add_tube(film, eye, line[-3:], 1.25, METAL)
            if name == "ventricle":
                add_tube(film, eye, line[-8:-5], 1.2, METAL * 0.6)
        _generator(film, eye, box)

    scene.thin.append((device.track, draw))


def _cava_heights(scene: Scene) -> Floats:
    marks = scene.marks
    return np.linspace(min(marks.cava.height[-1], marks.notch[2] - 26), marks.carina[2] - 44, 4)


def _ends(scene: Scene, rng: np.random.Generator) -> dict[str, list[Floats]]:
    """Return the ways of the leads within the heart."""
    low, high = scene.marks.heart
    size = high - low

    def at(x: float, y: float, z: float) -> Floats:
        return np.asarray(low + size * by(x + rng.normal(0, 0.01), y, z))

    return {
        "atrium": [at(0.17, 0.5, 0.42), at(0.16, 0.62, 0.34), at(0.24, 0.8, 0.36), at(0.30, 0.84, 0.50)],
        "ventricle": [
            at(0.16, 0.5, 0.45),
            at(0.19, 0.55, 0.26),
            at(0.34, 0.68, 0.13),
            at(0.58, 0.8, 0.10),
            at(0.78, 0.82, 0.13),
        ],
        "sinus": [
            at(0.18, 0.45, 0.42),
            at(0.24, 0.36, 0.30),
            at(0.48, 0.22, 0.36),
            at(0.74, 0.18, 0.48),
            at(0.88, 0.32, 0.44),
        ],
    }


def _generator(film: Floats, eye: Eye, box: Floats) -> None:
    """Add the can (rounded, 46 x 40 mm), its battery and circuit, and the header that takes the leads."""
    turn = np.linspace(0, 2 * np.pi, 36, endpoint=False)
    across, up = np.cos(turn), np.sin(turn)
    rim = np.stack([np.sign(across) * np.abs(across) ** 0.75 * 23, 0 * turn, np.sign(up) * np.abs(up) ** 0.8 * 20], 1)
    add_plate(film, eye, box + rim, 1.35, soft_mm=0.7)
    add_plate(film, eye, box + rim * by(0.9, 1, 0.58) + by(1, 0, -6), 0.8, soft_mm=2.5)
    add_plate(film, eye, box + rim * by(0.84, 1, 0.28) + by(0, 0, 10), 0.45, soft_mm=1.5)
    for place in (-13, -6, 2, 9):
        add_tube(film, eye, np.stack([box + by(place, 0, 8), box + by(place + 3, 0, 12)]), 1.3, 0.25)
    add_plate(film, eye, box + rim * by(0.6, 1, 0.3) + by(-2, 0, 22), 0.22, soft_mm=1.2)


def sternal_wires(scene: Scene, device: Device) -> None:
    """Put ``count`` twisted steel loops round the breastbone, at even steps from the notch down."""
    marks, rng = scene.marks, np.random.default_rng(device.track)
    count = device.count or 6
    steps = np.linspace(-14, -128, count) + rng.normal(0, 1.5, count)
    loops, knots = [], []
    for step in steps:
        lean = rng.normal(0, 0.2)
        turn = np.linspace(0, 2 * np.pi, 22)
        wide, deep, high = rng.uniform(8, 12), rng.uniform(6, 8), rng.uniform(0.6, 2.6)
        front = marks.notch + by(rng.normal(0, 1), 2.0 - 0.16 * (step + 14), step)
        ring = np.stack([wide * np.cos(turn), deep * np.sin(turn), high * np.sin(turn) + lean * wide * np.cos(turn)], 1)
        loops.append(front + ring)
        knot = front + by(rng.uniform(-3, 3), deep, high)
        knots.append(np.stack([knot, knot + by(rng.uniform(-3, 3), 1.5, -rng.uniform(5, 8))]))

    def draw(film: Floats, eye: Eye) -> None:
        for loop, knot in zip(loops, knots, strict=True):
            add_tube(film, eye, loop, 0.4, METAL)
            add_tube(film, eye, knot, 0.9, METAL)

    scene.thin.append((device.track, draw))
