"""Geometry for findings of the mediastinum, the pleura and devices: organ extents, courses, tubes and distances."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import interpolate, ndimage

from categories.chest.labels import LOBES, ORGANS, where
from categories.ct_abnormality.canvas import Box, Canvas
from categories.ct_abnormality.lung_texture import Axes, Field, Fine, fine_axes, pool, to_segment, upsample

Points = NDArray[np.float64]
"""(n, 3), mm in the grid's frame: index times spacing."""
FAR_MM = 1e3


@dataclass(frozen=True)
class Coarse:
    """A box seen through every ``step``-th voxel: enough for distances and wide changes, and quick."""

    box: Box
    step: tuple[int, int, int]
    organs: NDArray[np.uint8]
    hu: NDArray[np.float32]
    spacing_mm: NDArray[np.float64]
    """Of the coarse grid."""

    @property
    def axes(self) -> Axes:
        """Coordinates of the coarse points in mm of the whole grid, shaped to broadcast."""
        i, j, k = (
            (part.start / step + np.arange(n)) * mm
            for part, step, mm, n in zip(self.box, self.step, self.spacing_mm, self.organs.shape, strict=True)
        )
        return i[:, None, None], j[None, :, None], k[None, None, :]

    def depth(self, mask: NDArray[np.bool_]) -> Field:
        """Return mm below the surface of a mask, negative outside; the steps of the mask are smoothed away."""
        if not mask.any() or mask.all():
            return np.full(mask.shape, FAR_MM if mask.all() else -FAR_MM, np.float32)
        sampling = self.spacing_mm
        signed = ndimage.distance_transform_edt(mask, sampling) - ndimage.distance_transform_edt(~mask, sampling)
        return np.asarray(ndimage.gaussian_filter(signed, np.minimum(1.6 / sampling, 1.2)), np.float32)

    def spread(self, field: Field, box: Box) -> Field:
        """Return a coarse field on the voxels of a box inside this one, linear between the coarse points."""
        positions = [
            (np.arange(part.start, part.stop) - whole.start) / step
            for part, whole, step in zip(box, self.box, self.step, strict=True)
        ]
        return upsample(field, positions)

    def bounds(self, mask: NDArray[np.bool_]) -> Box | None:
        """Return the box of voxels that a coarse mask spans, one coarse point wider; None when it is empty."""
        found = ndimage.find_objects(mask.astype(np.uint8))
        if not found:
            return None
        parts = [
            slice(
                whole.start + max(0, part.start - 1) * step,
                min(whole.stop, whole.start + (part.stop + 1) * step),
            )
            for part, whole, step in zip(found[0], self.box, self.step, strict=True)
        ]
        return parts[0], parts[1], parts[2]


def coarse(canvas: Canvas, box: Box, plane_mm: float = 2.2, along_mm: float = 2.6) -> Coarse:
    """Return the coarse view of a box, its points about ``plane_mm`` apart in plane and ``along_mm`` along the body."""
    wanted = np.array([plane_mm, plane_mm, along_mm])
    i, j, k = (int(s) for s in np.maximum(1, np.round(wanted / canvas.spacing_mm)))
    thin = (slice(None, None, i), slice(None, None, j), slice(None, None, k))
    spacing = np.array(canvas.spacing_mm) * (i, j, k)
    return Coarse(box, (i, j, k), canvas.organs[box][thin], canvas.hu[box][thin], spacing)


def extent(canvas: Canvas, names: Sequence[str], margin_mm: float | tuple[float, float, float] = 0.0) -> Box | None:
    """Return the bounding box of the named organs with a margin, cut at the grid; None when none is in the scan."""
    mask = where(canvas.organs[::2, ::2], names)
    if not mask.any():
        return None
    margin = np.ceil(np.broadcast_to(np.asarray(margin_mm, float), 3) / canvas.spacing_mm).astype(int)
    found = ndimage.find_objects(mask.astype(np.uint8))[0]
    i, j, k = (
        slice(max(0, part.start * step - m), min(size, part.stop * step + m))
        for part, step, m, size in zip(found, (2, 2, 1), margin.tolist(), canvas.hu.shape, strict=True)
    )
    return i, j, k


def around(canvas: Canvas, points: Points, reach_mm: float) -> Box:
    """Return the box of voxels within reach of points, cut at the grid; at least one voxel."""
    size = np.array(canvas.hu.shape)
    low = np.clip(np.floor((points.min(0) - reach_mm) / canvas.spacing_mm).astype(int), 0, size - 1)
    high = np.clip(np.ceil((points.max(0) + reach_mm) / canvas.spacing_mm).astype(int) + 1, low + 1, size)
    i, j, k = (slice(int(a), int(b)) for a, b in zip(low, high, strict=True))
    return i, j, k


def curve(points: Points, step_mm: float = 1.5) -> Points:
    """Return a smooth course through waypoints, sampled about every ``step_mm``."""
    gaps = np.sqrt(((points[1:] - points[:-1]) ** 2).sum(1))
    at = np.concatenate([[0.0], np.cumsum(np.maximum(gaps, 1e-3))])
    samples = np.linspace(0.0, at[-1], max(2, int(at[-1] / step_mm) + 1))
    if len(points) < 3:
        return np.stack([np.interp(samples, at, points[:, axis]) for axis in range(3)], 1)
    return np.asarray(interpolate.PchipInterpolator(at, points)(samples))


def length_mm(points: Points) -> float:
    """Return the length of a course."""
    return float(np.sqrt(((points[1:] - points[:-1]) ** 2).sum(1)).sum())


def tube_distance(canvas: Canvas, points: Points, reach_mm: float, fine: Fine) -> tuple[Box, Field]:
    """Return the box round a course and the distance (mm) of its sub-voxels to it; far ones are ``FAR_MM``."""
    box = around(canvas, points, reach_mm)
    axes = fine_axes(canvas, box, fine)
    flat = [axis.ravel() for axis in axes]
    nearest = np.full(tuple(axis.size for axis in flat), FAR_MM, np.float32)
    for start, end in itertools.pairwise(points):
        low, high = np.minimum(start, end) - reach_mm, np.maximum(start, end) + reach_mm
        part = tuple(slice(*np.searchsorted(axis, (a, b))) for axis, a, b in zip(flat, low, high, strict=True))
        if any(p.start >= p.stop for p in part):
            continue
        i, j, k = part
        local = (axes[0][i], axes[1][:, j], axes[2][:, :, k])
        np.minimum(nearest[part], to_segment(local, start, end)[0], out=nearest[part])
    return box, nearest


def tube(canvas: Canvas, points: Points, radius_mm: float, *, edge_mm: float = 0.5) -> tuple[Box, Field]:
    """Return the box round a round tube and the share of each voxel that it fills."""
    fine = (1, 1, 3) if canvas.spacing_mm[0] < 1 else (3, 3, 3)
    box, nearest = tube_distance(canvas, points, radius_mm + edge_mm, fine)
    return box, pool(np.clip((radius_mm - nearest) / edge_mm + 0.5, 0, 1), fine)


def heart_points(canvas: Canvas, fractions: Sequence[tuple[float, float, float]]) -> Points:
    """Return points given as fractions of the heart's extent (right to left, back to front, foot to head), mm."""
    box = extent(canvas, ["heart"])
    if box is None:
        raise ValueError("the organ map has no heart")
    low = np.array([part.start for part in box]) * canvas.spacing_mm
    size = np.array([part.stop - part.start for part in box]) * canvas.spacing_mm
    return np.asarray(low + np.array(fractions) * size)


def centroids(canvas: Canvas, names: Sequence[str], every_mm: float = 5.0) -> Points:
    """Return the centres of the named organs in cross-sections from foot to head, (n, 3) mm; empty if absent."""
    box = extent(canvas, names)
    if box is None:
        return np.zeros((0, 3))
    step = max(1, round(every_mm / canvas.spacing_mm[2]))
    mask = where(canvas.organs[box][:, :, ::step], names)
    count = mask.sum((0, 1)).astype(float)
    found = np.flatnonzero(count)
    i, j, _ = mask.shape
    mean_i = (mask.sum(1) * np.arange(i)[:, None]).sum(0)[found] / count[found] + box[0].start
    mean_j = (mask.sum(0) * np.arange(j)[:, None]).sum(0)[found] / count[found] + box[1].start
    return np.stack([mean_i, mean_j, box[2].start + found * step], 1) * canvas.spacing_mm


def soft(canvas: Canvas, box: Box) -> NDArray[np.bool_]:
    """Return where a finding of the mediastinum may grow: lung, fat and unnamed soft tissue of a box."""
    organs = canvas.organs[box]
    return np.asarray((organs == 0) | (organs >= ORGANS["body"]) | where(organs, LOBES))
