"""Tubes and lines: airway, stomach, great veins, pleura. Their paths follow the patient's own organs."""

import numpy as np
from numpy.typing import NDArray

from categories.xray_report_correction.projection import Eye
from categories.xray_report_correction.render_landmarks import LUNG_OF, Line
from categories.xray_report_correction.render_scene import Scene
from categories.xray_report_correction.render_shapes import add_tube, by, curve
from categories.xray_report_correction.state import Device

Floats = NDArray[np.float64]
PLASTIC, STRIPE, POLYURETHANE, METAL = 0.026, 0.36, 0.19, 1.4
"""Attenuation (1/mm) of tube walls, of a contrast stripe, of a loaded catheter, of steel."""
OUT = {"right": -1.0, "left": 1.0}
"""Direction of a side along the first axis."""


def endotracheal_tube(scene: Scene, device: Device) -> None:
    """Lay a tube down the windpipe, its tip ``extent`` mm above the carina; if negative, in the right bronchus."""
    marks = scene.marks
    carina, rng = marks.carina, np.random.default_rng(device.track)
    tip = max(device.extent, 0.0)
    height = np.arange(carina[2] + tip, carina[2] + 200, 8.0)
    points = [marks.trachea.at(float(z)) + by(rng.uniform(-1, 1), -1.0, 0) for z in height[::-1]]
    if device.extent < 0:
        way = np.array([-0.46, -0.12, -0.88])
        points[-1] = carina + by(-2.0, 0, 5)
        points += [carina - way * device.extent * share for share in (0.5, 1.0)]
    line = curve(np.stack(points), 3)
    stripe = line + by(2.6, 1.5, 0)

    def draw(film: Floats, eye: Eye) -> None:
        add_tube(film, eye, line, 4.9, PLASTIC, core=0.76)
        add_tube(film, eye, stripe[:-3], 0.7, STRIPE)

    scene.thin.append((device.track, draw))


def enteric_tube(scene: Scene, device: Device) -> None:
    """Lay a tube down the gullet, into the stomach or ending above the diaphragm."""
    marks, rng = scene.marks, np.random.default_rng(device.track)
    foot = float(marks.gullet.height[0])
    end = foot + 12 if device.tip == "stomach" else float(marks.carina[2] - rng.uniform(55, 70))
    top = float(marks.carina[2] + 200)
    points = [marks.gullet.at(z) + by(rng.normal(0, 0.8), 0, 0) for z in np.linspace(top, end, 22)]
    if device.tip == "stomach":
        belly = marks.stomach
        points += [
            points[-1] + by(rng.uniform(8, 14), 10, -20),
            (points[-1] + belly) / 2 + by(14, 0, -14),
            belly + by(rng.uniform(0, 14), 0, -12),
            belly + by(-28, 14, -34),
        ]
    elif device.tip != "distal esophagus":
        raise ValueError(f"no path of an enteric tube to {device.tip!r}; known: stomach, distal esophagus")
    line = curve(np.stack(points), 3)
    many = len(line)

    def draw(film: Floats, eye: Eye) -> None:
        add_tube(film, eye, line, 2.4, PLASTIC, core=0.72)
        stripe = line + by(1.3, 0.8, 0)
        add_tube(film, eye, stripe[: many - 14], 0.55, STRIPE)  # a gap marks the side hole
        add_tube(film, eye, stripe[many - 11 :], 0.55, STRIPE)

    scene.thin.append((device.track, draw))


def central_line(scene: Scene, device: Device) -> None:
    """Lay a catheter from the neck or under the collar bone to its tip."""
    rng = np.random.default_rng(device.track)
    if device.side not in OUT:
        raise ValueError("a central line needs a side: left or right")
    out = OUT[device.side]
    line = curve(np.stack([*_entry(scene, out, rng), *_to_heart(scene, out, device.tip or "", rng)]), 3)

    def draw(film: Floats, eye: Eye) -> None:
        add_tube(film, eye, line, 1.15, POLYURETHANE)

    scene.thin.append((device.track, draw))


def _entry(scene: Scene, out: float, rng: np.random.Generator) -> list[Floats]:
    """Return the way from the skin to behind the inner end of the collar bone."""
    notch = scene.marks.notch
    if rng.random() < 0.6:  # internal jugular
        return [
            notch + by(out * 40, -40, 85),
            notch + by(out * 33, -36, 45),
            notch + by(out * 25, -28, 12),
        ]
    return [
        notch + by(out * 118, -18, -32),
        notch + by(out * 88, -20, -8),
        notch + by(out * 58, -26, 2),
        notch + by(out * 30, -26, 0),
    ]


def _to_heart(scene: Scene, out: float, tip: str, rng: np.random.Generator) -> list[Floats]:
    """Return the way on to the tip: the brachiocephalic vein, the superior vena cava, the right atrium."""
    marks = scene.marks
    cava = marks.cava
    upper = float(min(cava.height[-1], marks.notch[2] - 22))
    mouth = float(marks.carina[2] - 52)  # cavoatrial junction: about two vertebrae below the carina
    meeting = cava.at(upper)
    if out > 0:
        half = marks.notch + by(16.0, -24, -12)
        way = [half, (half + meeting) / 2 + by(0, 0, -3)]
        if tip == "brachiocephalic vein":
            return [half]
    else:
        way = [(marks.notch + by(-24.0, -28, -6) + meeting) / 2]
        if tip == "brachiocephalic vein":
            return [(marks.notch + by(-24.0, -28, -4))]
    if tip == "superior vena cava":
        end = float(marks.carina[2] - rng.uniform(8, 26))
        return [*way, *_down(cava, upper - 8, end)]
    if tip == "right atrium":
        low = mouth - rng.uniform(28, 40)
        heart = marks.heart[0, 0] + 17
        return [
            *way,
            *_down(cava, upper - 8, mouth),
            np.array([heart, cava.at(mouth)[1] + 8, low]),
        ]
    raise ValueError(
        f"no path of a central line to {tip!r}; known: brachiocephalic vein, superior vena cava, right atrium"
    )


def _down(cava: Line, start: float, end: float) -> list[Floats]:
    """Return the way down the great vein, kept straight: its lower end widens towards the heart."""
    way = np.stack([cava.at(z) for z in np.linspace(start, end, 4)])
    usual = float(np.median(cava.place[len(cava.place) // 2 :, 0]))
    way[:, 0] = np.clip(way[:, 0], usual - 4, usual + 4)
    return list(way)


def chest_tube(scene: Scene, device: Device) -> None:
    """Lay ``count`` drains from the side of the chest to the apex, or down to the base."""
    if device.side not in OUT:
        raise ValueError("a chest tube needs a side: left or right")
    marks, out = scene.marks, OUT[device.side]
    low, high = marks.lungs[device.side]
    inner = high[0] if out < 0 else low[0]
    height = high[2] - low[2]
    for number in range(device.count or 1):
        rng = np.random.default_rng([device.track, number])
        deep = low[1] + (high[1] - low[1]) * rng.uniform(0.35, 0.6)
        level = low[2] + height * (rng.uniform(0.36, 0.44) + 0.12 * number)
        enter = np.array([_outer(scene, device.side, level), deep, level])
        first = [enter + by(out * 45, 8, -16 - 8 * number), enter + by(out * 12, 4, -4)]
        if device.tip == "apex":
            rest = [
                _inside(
                    scene, device.side, deep - 12 * share, level + (high[2] - 26 - 22 * number - level) * share, share
                )
                for share in (0.3, 0.65, 1.0)
            ]
        elif device.tip == "base":
            across = inner - enter[0]
            rest = [
                enter + by(across * 0.14, -14, -height * 0.03),
                np.array(
                    [
                        enter[0] + across * (rng.uniform(0.30, 0.38) + 0.2 * number),
                        low[1] + 32,
                        low[2] + height * rng.uniform(0.16, 0.2),
                    ]
                ),
            ]
        else:
            raise ValueError(f"no path of a chest tube to {device.tip!r}; known: apex, base")
        _drain(scene, device.track, curve(np.stack([*first, *rest]), 3))


def _inside(scene: Scene, side: str, deep: float, level: float, share: float) -> Floats:
    """Return a place near the wall at a height, further from it the nearer the apex."""
    return np.array([_outer(scene, side, level) - OUT[side] * (9 + 12 * share), deep, level])


def _outer(scene: Scene, side: str, level: float) -> float:
    """Return where the lung ends at its side, at a height."""
    torso = scene.torso
    slice_ = torso.mask(*LUNG_OF[side])[:, :, round(level / torso.spacing[2])]
    across = np.flatnonzero(slice_.any(1))
    return float(across[0 if side == "right" else -1] * torso.spacing[0])


def _drain(scene: Scene, track: int, line: Floats) -> None:
    many = len(line)

    def draw(film: Floats, eye: Eye) -> None:
        add_tube(film, eye, line, 4.4, PLASTIC * 0.9, core=0.72)
        stripe = line + by(0, 0, 2.2)
        add_tube(film, eye, stripe[: many * 3 // 4], 0.75, STRIPE)
        add_tube(film, eye, stripe[many * 3 // 4 + 3 :], 0.75, STRIPE)  # the sentinel hole interrupts the stripe

    scene.thin.append((track, draw))
