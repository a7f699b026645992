"""Draw tubes into a volume: how much of each voxel they fill."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FINE = 3
"""Sub-slices of a voxel: slices are far thicker than the thinnest vessels."""
BATCH = 4_000_000
"""Sub-voxels worked on at once."""


def coverage(
    shape: tuple[int, int, int], spacing: Array, start: Array, end: Array, begin: Array, finish: Array
) -> NDArray[np.uint8]:
    """Return how much of each voxel tapered tubes fill, 0 to 255.

    ``start`` and ``end`` are (n, 3) in mm (index times spacing), ``begin`` and ``finish`` the radii in mm.
    """
    filled = np.zeros(shape, np.uint8)
    reach = np.maximum(begin, finish)[:, None] + spacing
    low = np.floor((np.minimum(start, end) - reach) / spacing).astype(np.int64)
    size = np.ceil((np.maximum(start, end) + reach) / spacing).astype(np.int64) + 1 - low
    size = -(-size // (4, 4, 2)) * (4, 4, 2)
    order = np.lexsort((size[:, 2], size[:, 1], size[:, 0]))
    edges = np.nonzero(np.any(np.diff(size[order], axis=0), axis=1))[0] + 1
    for group in np.split(order, edges):
        if len(group) == 0:
            continue
        box = size[group[0]]
        many = max(1, BATCH // int(box.prod() * FINE))
        for first in range(0, len(group), many):
            some = group[first : first + many]
            _fill(filled, spacing, low[some], box, start[some], end[some], begin[some], finish[some])
    return filled


def _fill(
    filled: NDArray[np.uint8],
    spacing: Array,
    low: NDArray[np.int64],
    box: NDArray[np.int64],
    start: Array,
    end: Array,
    begin: Array,
    finish: Array,
) -> None:
    """Draw tubes whose boxes have one size."""
    sub = [np.arange(box[0]), np.arange(box[1]), (np.arange(box[2] * FINE) + 0.5) / FINE - 0.5]
    away = []
    for axis in range(3):
        shape = [len(start), 1, 1, 1]
        shape[axis + 1] = len(sub[axis])
        places = (low[:, axis, None] + sub[axis]) * spacing[axis] - start[:, axis, None]
        away.append(places.reshape(shape).astype(np.float32))
    along = (end - start).astype(np.float32)
    length2 = np.maximum((along * along).sum(1), 1e-4)

    def each(values: NDArray[np.floating]) -> NDArray[np.float32]:
        return values.astype(np.float32).reshape(-1, 1, 1, 1)

    part = sum(away[axis] * each(along[:, axis]) for axis in range(3)) / each(length2)
    part = np.clip(part, 0, 1)
    distance2 = sum((away[axis] - part * each(along[:, axis])) ** 2 for axis in range(3))
    radius = each(begin) + part * each(finish - begin)
    width = np.float32(spacing[0])
    inside = np.clip((radius - np.sqrt(distance2)) / width + np.float32(0.5), 0, 1)
    inside *= np.minimum(1, radius * 2 / width)  # thinner than a voxel: never fills one
    inside = inside.reshape(*inside.shape[:3], -1, FINE).mean(4)
    values = np.rint(inside * 255).astype(np.uint8)
    at = [low[:, axis, None] + np.arange(box[axis]) for axis in range(3)]
    good = [(a >= 0) & (a < n) for a, n in zip(at, filled.shape, strict=True)]
    flat = (
        at[0][:, :, None, None] * (filled.shape[1] * filled.shape[2])
        + at[1][:, None, :, None] * filled.shape[2]
        + at[2][:, None, None, :]
    )
    held = good[0][:, :, None, None] & good[1][:, None, :, None] & good[2][:, None, None, :] & (values > 0)
    np.maximum.at(filled.reshape(-1), flat[held], values[held])
