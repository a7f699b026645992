"""Dependent density: lung that its own weight has deflated, along the back of a patient who lies on it."""

import numpy as np

from categories.ct_abnormality.canvas import Canvas
from categories.ct_abnormality.lung_texture import Field, fractal, smooth_step
from categories.ct_abnormality.lungs import Lungs, airy


def back_mm(lungs: Lungs) -> Field:
    """Return, on the coarse map, the distance to the rearmost lung of the same column (j runs from back to front)."""
    shape = lungs.lobe.shape
    rear = np.where((lungs.lobe > 0).any(1), np.argmax(lungs.lobe > 0, axis=1), shape[1])
    return np.asarray((np.arange(shape[1])[None, :, None] - rear[:, None, :]) * lungs.spacing_mm[1], np.float32)


def dependent_density(
    canvas: Canvas, rng: np.random.Generator, lungs: Lungs, strength_hu: float, reach_mm: float
) -> float:
    """Add a density on both sides that fades from the posterior pleura forwards; return its peak, HU."""
    i, j, k = lungs.axes
    wave = fractal(rng, (i, j, k), 70.0, octaves=2)
    reach = reach_mm * np.clip(1 + 0.25 * wave, 0.5, 1.5)
    fall = np.clip(1 - (back_mm(lungs) + 2) / reach, 0, 1)
    low = smooth_step(lungs.height, 0.72, 0.5) * smooth_step(lungs.front, 0.5, 0.3)
    where = fall * np.sqrt(fall) * low * (lungs.lobe > 0)
    touched = np.flatnonzero(where.any((0, 2)))
    box_i, box_j, box_k = lungs.box
    stop = min(box_j.stop, box_j.start + (int(touched[-1]) + 2) * lungs.step[1]) if len(touched) else box_j.start + 1
    box = (box_i, slice(box_j.start, stop), box_k)
    axes = canvas.mm(box)
    grain = 1 + 0.15 * fractal(rng, axes, 10.0, octaves=1)
    # Denser tissue (vessels, the wall) keeps its own; only air gives way.
    canvas.add(box, lungs.spread(np.asarray(where * strength_hu, np.float32), box) * grain * airy(canvas, box))
    return float(strength_hu * where.max())
