"""What stands before the tube: a chest that findings and devices are put into, and how visible each came out."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.xray_report_correction.anatomy_upright import Torso
from categories.xray_report_correction.projection import Eye
from categories.xray_report_correction.render_landmarks import Landmarks
from categories.xray_report_correction.state import Finding

Floats = NDArray[np.float64]
Thin = Callable[[Floats, Eye], None]
WATER = 0.0195
"""Attenuation of water in the beam behind the patient (1/mm)."""
BANDS_MM = ((0.7, 3.0), (1.5, 6.0), (3.0, 12.0), (6.0, 24.0), (12.0, 48.0))
"""Fixed bands (differences of Gaussians, sigma in mm) in which a finding is looked for."""
NEAR_MM = 20.0
"""Reach (sigma) of the chest around a finding that is its noise."""
FLOOR = 0.004
"""Noise of the detector in such bands (of line integrals)."""


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


def visibility(change: Floats, film: Floats, pixel_mm: float) -> float:
    """Return the contrast-to-noise ratio of a finding on a view.

    Change and film are line integrals. In each fixed band the response of the change, where the film is neither bare
    nor black, is set against the root mean square of the film's own response around: the chest is the noise.
    The best band counts.
    """
    step = max(1, round(0.7 / pixel_mm))
    scale = pixel_mm * step
    small_change, rest = _shrunk(change, step), _shrunk(film - change, step)
    seen = ndi.binary_erosion((rest > 0.7) & (rest < 6.5), iterations=6)
    if not seen.any():
        return 0.0
    best = 0.0
    for fine, rough in BANDS_MM:
        signal, chest = (
            ndi.gaussian_filter(x, fine / scale) - ndi.gaussian_filter(x, rough / scale) for x in (small_change, rest)
        )
        energy = ndi.gaussian_filter(np.where(seen, chest**2, 0), NEAR_MM / scale)
        noise = np.sqrt(energy / np.maximum(ndi.gaussian_filter(seen.astype(float), NEAR_MM / scale), 1e-3)) + FLOOR
        best = max(best, float((np.abs(signal) / noise)[seen].max()))
    return best


def _shrunk(picture: Floats, step: int) -> Floats:
    rows, columns = (n // step * step for n in picture.shape)
    return np.asarray(picture[:rows, :columns].reshape(rows // step, step, columns // step, step).mean((1, 3)))
