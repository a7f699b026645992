"""What stands before the tube: a chest that findings and devices are put into, and how visible each came out."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from categories.xray_report_correction.projection import Eye
from categories.xray_report_correction.render_landmarks import Landmarks
from categories.xray_report_correction.render_torso import Torso
from categories.xray_report_correction.state import Finding

Floats = NDArray[np.float64]
Thin = Callable[[Floats, Eye], None]
WATER = 0.0195
"""Attenuation of water in the beam behind the patient (1/mm)."""


@dataclass
class Scene:
    """A chest under construction. ``torso.hu`` is written to; thin things wait until the film's resolution is known."""

    torso: Torso
    marks: Landmarks
    upright: bool
    boxes: dict[int, tuple[tuple[int, int, int], NDArray[np.float32]]] = field(default_factory=dict)
    """Track -> first voxel and change of attenuation (1/mm)."""
    thin: list[tuple[int, Thin]] = field(default_factory=list)

    def grid(self, low: Floats, high: Floats) -> tuple[tuple[slice, ...], list[Floats]]:
        """Return the box of voxels between two points (mm) and its coordinates (mm, open grid)."""
        step = np.asarray(self.torso.spacing)
        first = np.clip(np.floor(low / step).astype(int), 0, np.array(self.torso.hu.shape) - 1)
        last = np.clip(np.ceil(high / step).astype(int) + 1, first + 1, self.torso.hu.shape)
        box = tuple(slice(int(a), int(b)) for a, b in zip(first, last, strict=True))
        axes = [np.arange(s.start, s.stop) * d for s, d in zip(box, step, strict=True)]
        return box, list(np.ix_(*axes))

    def put(self, finding: Finding, draw: "Drawer") -> None:
        """Draw a finding and note what it changed under its track."""
        before = self.torso.hu.copy("F")
        draw(self, finding)
        changed = self.torso.hu != before
        if not changed.any():
            return
        spans = [np.flatnonzero(changed.any(tuple(a for a in range(3) if a != axis))) for axis in range(3)]
        box = tuple(slice(int(s[0]), int(s[-1]) + 1) for s in spans)
        first = (box[0].start, box[1].start, box[2].start)
        self.boxes[finding.track] = first, attenuation(self.torso.hu[box]) - attenuation(before[box])


Drawer = Callable[[Scene, Finding], None]


def attenuation(hu: NDArray[np.float32], bone: float = 0.0) -> NDArray[np.float32]:
    """Return attenuation (1/mm) of Hounsfield numbers; ``bone`` is the extra share of bone in a softer beam."""
    mu = np.maximum(hu + np.float32(1000), 0)
    mu *= np.float32(WATER / 1000)
    if bone:
        mu += np.maximum(hu - np.float32(120), 0) * np.float32(bone * WATER / 1000)
    return np.asarray(mu)
