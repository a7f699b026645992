"""Fields that look like tissue: fractal noise, soft edges, irregular bodies, tubes and secondary lobules.

Weights are polynomials, square roots and quotients: equal on every processor, unlike exponentials in single precision.
"""

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from categories.ct_abnormality.canvas import Box, Canvas

Field = NDArray[np.float32]
Fine = tuple[int, int, int]
Axes = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
EDGE_MM = 1.5
"""Width over which a sharp border rises in the scan's soft-tissue kernel."""
BLUR_CELLS = 1.4
"""Smoothing of noise on its own lattice: less shows the lattice, more costs time."""


def smooth_step(values: NDArray[np.floating], low: float, high: float) -> Field:
    """Return 0 below ``low``, 1 above ``high`` and a smooth rise between; falls if ``high`` is below ``low``."""
    t = np.clip((np.asarray(values, np.float32) - np.float32(low)) / np.float32(high - low), 0, 1)
    return np.asarray(t * t * (3 - 2 * t), np.float32)


def upsample(coarse: Field, positions: Sequence[NDArray[np.float64]]) -> Field:
    """Return a coarse field at fractional index positions along each axis, linear between its points."""
    out = np.asarray(coarse, np.float32)
    for axis, position in enumerate(positions):
        low = np.clip(np.floor(position).astype(int), 0, max(0, out.shape[axis] - 2))
        high = np.minimum(low + 1, out.shape[axis] - 1)
        shape = [1, 1, 1]
        shape[axis] = len(position)
        weight = np.clip(position - low, 0, 1).astype(np.float32).reshape(shape)
        first = np.take(out, low, axis)
        out = first + weight * (np.take(out, high, axis) - first)
    return out


def fractal(
    rng: np.random.Generator,
    axes: Axes,
    scale_mm: float,
    *,
    octaves: int = 3,
    gain: float = 0.6,
) -> Field:
    """Return noise of mean 0 and standard deviation about 1 on a grid of mm axes.

    Args:
        rng: draws the noise.
        axes: three broadcastable coordinate arrays, mm.
        scale_mm: the largest feature; every octave halves it.
        octaves: how many scales; those that the grid cannot show are left out.
        gain: amplitude of an octave relative to the one before.
    """
    total: Field = np.zeros((1, 1, 1), np.float32)
    power = 0.0
    finest = min(float(np.diff(axis.ravel()[:2])[0]) if axis.size > 1 else scale_mm for axis in axes)
    for octave in range(octaves):
        step = scale_mm / 2**octave / 3
        if octave and 3 * step < 1.5 * finest:
            break
        positions = [(axis.ravel() - axis.min()) / step + 2 for axis in axes]
        grid = rng.standard_normal([int(position[-1]) + 4 for position in positions])
        grid = ndimage.gaussian_filter(grid, BLUR_CELLS, mode="wrap")
        # A Gaussian blur leaves a known share of white noise's spread: (4 pi s^2)^(-3/4) in three dimensions.
        amplitude = gain**octave * (4 * np.pi * BLUR_CELLS**2) ** 0.75
        total = total + upsample((grid * amplitude).astype(np.float32), positions)
        power += gain ** (2 * octave)
    return total / np.float32(power**0.5)


def fine_axes(canvas: Canvas, box: Box, fine: Fine = (1, 1, 3)) -> Axes:
    """Return mm coordinates of sub-voxels of a box, ``fine`` of them along each axis, shaped to broadcast."""
    axes = []
    for part, step, times in zip(box, canvas.spacing_mm, fine, strict=True):
        offsets = (np.arange(times) - (times - 1) / 2) / times
        axes.append(((np.arange(part.start, part.stop)[:, None] + offsets) * step).ravel())
    i, j, k = axes
    return i[:, None, None], j[None, :, None], k[None, None, :]


def pool(values: NDArray[np.floating], fine: Fine = (1, 1, 3)) -> Field:
    """Return means over the sub-voxels of each voxel: partial volume."""
    a, b, c = fine
    i, j, k = values.shape
    blocks = np.asarray(values, np.float32).reshape(i // a, a, j // b, b, k // c, c)
    return np.asarray(blocks.mean((1, 3, 5)), np.float32)


def fineness(canvas: Canvas, detail_mm: float) -> Fine:
    """Return how many sub-voxels along each axis show a detail of this size, at most four."""
    a, b, c = (int(np.clip(np.ceil(step / detail_mm), 1, 4)) for step in canvas.spacing_mm)
    return a, b, c


def distance(axes: Axes, centre_mm: NDArray[np.float64], stretch: NDArray[np.float64] | float = 1.0) -> Field:
    """Return the distance to a point, mm, after dividing each axis by ``stretch``."""
    scale = np.broadcast_to(np.asarray(stretch, float), 3)
    squares = [((axis - c) / s) ** 2 for axis, c, s in zip(axes, centre_mm, scale, strict=True)]
    return np.asarray(np.sqrt(squares[0] + squares[1] + squares[2]), np.float32)


def to_segment(axes: Axes, start: NDArray[np.float64], end: NDArray[np.float64]) -> tuple[Field, Field]:
    """Return the distance to a line segment, mm, and the place (0 at its start, 1 at its end) of the nearest point."""
    way = end - start
    along = sum((axis - s) * w for axis, s, w in zip(axes, start, way, strict=True)) / max(float(way @ way), 1e-9)
    t = np.clip(along, 0, 1)
    squares = [(axis - s - t * w) ** 2 for axis, s, w in zip(axes, start, way, strict=True)]
    return np.sqrt(squares[0] + squares[1] + squares[2]).astype(np.float32), t.astype(np.float32)


def inside(depth: NDArray[np.floating], edge_mm: float = EDGE_MM) -> Field:
    """Return the share of tissue where ``depth`` mm below a surface (negative: outside), over an edge of this width."""
    return smooth_step(depth, -edge_mm / 2, edge_mm / 2)


def lobule_seeds(
    rng: np.random.Generator, low: NDArray[np.float64], high: NDArray[np.float64], size_mm: float
) -> NDArray[np.float64]:
    """Return (n, 3) mm centres of secondary lobules: a jittered lattice of this pitch that covers a box."""
    counts = np.maximum(1, np.ceil((high - low) / size_mm).astype(int) + 1)
    cells = np.array(list(itertools.product(*map(range, counts))), float)
    return np.asarray(low + (cells + rng.uniform(-0.42, 0.42, cells.shape)) * size_mm)


def lobules(axes: Axes, seeds: NDArray[np.float64], reach_mm: float) -> tuple[Field, Field, NDArray[np.int32]]:
    """Return distances to the nearest and second nearest seed (mm), and codes of both: (first, second, pair).

    ``pair`` is ``nearest * len(seeds) + second``. Only seeds within ``reach_mm`` count; elsewhere distances are large.
    """
    shape = tuple(axis.size for axis in axes)
    first = np.full(shape, 1e6, np.float32)
    second = np.full(shape, 1e6, np.float32)
    owner = np.zeros(shape, np.int32)
    other = np.zeros(shape, np.int32)
    flat = [axis.ravel() for axis in axes]
    for number, seed in enumerate(seeds):
        part = tuple(
            slice(*np.searchsorted(axis, (s - reach_mm, s + reach_mm))) for axis, s in zip(flat, seed, strict=True)
        )
        if any(p.start >= p.stop for p in part):
            continue
        i, j, k = (axis[p] - s for axis, p, s in zip(flat, part, seed, strict=True))
        here = ((i**2)[:, None, None] + (j**2)[None, :, None] + (k**2)[None, None, :]).astype(np.float32)
        a, b, own, oth = first[part], second[part], owner[part], other[part]
        nearer = here < a
        closer = ~nearer & (here < b)
        oth[...] = np.where(nearer, own, np.where(closer, number, oth))
        b[...] = np.where(nearer, a, np.where(closer, here, b))
        np.copyto(a, here, where=nearer)
        np.copyto(own, number, where=nearer)
    return np.sqrt(first), np.sqrt(second), owner * np.int32(len(seeds)) + other
