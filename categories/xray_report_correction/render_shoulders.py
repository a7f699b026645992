"""The shoulder girdle as it stands in a frontal film: the scan's raised arms are taken off, hanging ones put on."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from categories.chest.labels import BONES
from categories.xray_report_correction.projection import Eye
from categories.xray_report_correction.render_landmarks import Landmarks
from categories.xray_report_correction.render_shapes import add_ball, add_plate, add_tube, curve
from categories.xray_report_correction.render_torso import AIR, Torso, grown

Floats = NDArray[np.float64]
Place = Callable[[float, float, float], tuple[float, float, float]]
RAISED = tuple(f"{bone}_{side}" for bone in ("scapula", "humerus", "clavicula") for side in ("left", "right"))
SLOPE = ((0, 62, 100, 128, 150, 166, 180, 230), (90, 60, 26, 10, -2, -18, -45, -330))
"""Distance from the midline and height of the skin over the lungs' top (mm), for a chest 250 mm wide."""
CORTEX, SPONGE = 0.021, 0.0045
"""Attenuation of compact and spongy bone above that of the soft tissue it replaces (1/mm)."""


def lower_arms(torso: Torso, marks: Landmarks) -> Torso:
    """Return the chest with sloping shoulders and without the raised arms' bones (to be drawn by ``add_girdle``)."""
    hu = torso.hu.copy("F")
    raised = grown(torso.mask(*RAISED), 3)
    kept = grown(torso.mask(*(name for name in BONES if name not in RAISED)), 1)
    bone = raised & ~kept & (hu > 60)
    hu[bone] = 45
    step = torso.spacing
    away = np.abs(np.arange(hu.shape[0]) * step[0] - marks.middle) / reach(marks)
    skin = top(marks) + np.interp(away, *SLOPE)
    height = np.arange(hu.shape[2]) * step[2]
    air = np.clip((height[None, :] - skin[:, None]) / 5 + 0.5, 0, 1)[:, None, :].astype(np.float32)
    return replace(torso, hu=hu + (np.float32(AIR) - hu) * air)


def reach(marks: Landmarks) -> float:
    """Return the chest's width against the standard one."""
    return float(marks.lungs["left"][1, 0] - marks.lungs["right"][0, 0]) / 250


def top(marks: Landmarks) -> float:
    """Return the height of the lungs' tops."""
    return float((marks.lungs["left"][1, 2] + marks.lungs["right"][1, 2]) / 2)


def add_girdle(film: Floats, eye: Eye, marks: Landmarks, rng: np.random.Generator, *, rolled: bool) -> None:
    """Add collar bones, shoulder blades and upper arms; blades are ``rolled`` off the lungs, or lie over them."""
    size = reach(marks)
    for side in (-1, 1):
        lift, spread = rng.normal(0, 4), rng.normal(0, 3)
        if not rolled:
            lift += 12

        def at(x: float, y: float, z: float, side: int = side, lift: float = lift) -> tuple[float, float, float]:
            rise = lift * min(x / 150, 1)
            return marks.middle + side * x * size, marks.notch[1] + y, marks.notch[2] + z + rise

        _collar_bone(film, eye, at)
        _blade(film, eye, at, (118 if rolled else 92) + spread, (132 if rolled else 112) + spread)
        _arm(film, eye, at)


def _collar_bone(film: Floats, eye: Eye, at: Place) -> None:
    line = curve([at(13, -6, -2), at(38, 2, 7), at(70, -6, 17), at(102, -32, 22), at(140, -58, 27), at(152, -62, 28)])
    share = np.linspace(0, 1, len(line))
    radius = 5.0 + 2.0 * np.exp(-((share / 0.15) ** 2)) + 1.8 * np.clip((share - 0.75) / 0.25, 0, 1)
    add_tube(film, eye, line, radius, 0.8 * CORTEX, core=0.72)
    add_tube(film, eye, line, radius * 0.7, SPONGE)


def _blade(film: Floats, eye: Eye, at: Place, inner: float, tip: float) -> None:
    lateral = [at(148, -75, -4), at(150, -75, -28)]
    corners = np.array([*lateral, at(tip, -110, -132), at(inner, -112, -60), at(inner + 4, -100, 8)])
    add_plate(film, eye, corners, 0.05, soft_mm=2)
    edge = curve([at(150, -75, -24), at((tip + 150) / 2 + 2, -95, -80), at(tip, -110, -130)])
    add_tube(film, eye, edge, np.linspace(5, 3, len(edge)), CORTEX * 0.55, core=0.5)
    rim = curve([at(tip, -110, -130), at(inner - 1, -112, -60), at(inner + 4, -100, 8)])
    add_tube(film, eye, rim, 1.6, CORTEX * 0.7)
    ridge = curve([at(inner + 2, -112, -18), at(135, -100, 2), at(165, -75, 22)])
    add_tube(film, eye, ridge, np.linspace(3, 6, len(ridge)), CORTEX * 0.45, core=0.6)
    add_tube(film, eye, curve([at(148, -70, -2), at(140, -52, 8), at(130, -45, 4)]), 5.5, CORTEX * 0.5, core=0.65)
    add_tube(film, eye, curve([at(152, -74, -30), at(151, -74, -12), at(153, -74, 4)]), 6, CORTEX * 0.4, core=0.7)


def _arm(film: Floats, eye: Eye, at: Place) -> None:
    head = np.array(at(174, -70, -12))
    add_ball(film, eye, head, 23, SPONGE * 1.4)
    add_tube(film, eye, np.stack([head, head + 0.01]), 23, CORTEX * 0.5, core=0.93)
    shaft = curve([at(180, -70, -22), at(189, -70, -70), at(200, -70, -190)])
    add_tube(film, eye, shaft, np.linspace(16, 11, len(shaft)), CORTEX, core=0.68)
