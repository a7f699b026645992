"""Smooth deformations that make another body of the template: build, fat, breasts, heart size, depth of breath.

A warp is a displacement (mm) on a coarse grid that leads from a place in the patient to the place in the template.
Both live in one frame, index times the template's spacing; the patient's true size comes from the spacing alone.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.chest.template import Form, Template

Field = NDArray[np.float64]
LEVELS = ((7.5, 75.0), (2.5, 28.0))
"""Random deformation: spread (mm) and reach (mm)."""
FREE_ENDS_MM = 30.0
"""Displacement along the body fades so far from the first and last slice: nothing beyond them is known."""
INFLATION_MM = 15.0
HEART_REACH_MM = 48.0
HEART_ASPECT = (1.0, 0.75, 0.5)
"""Growth of the heart to the side, to the front and along the body."""
BREASTS = ((105, 385, 76), (400, 385, 76))
"""Voxels of the template."""
BREAST_REACH_MM = (48.0, 42.0, 34.0)
SHOULDERS_MM = (270.0, 310.0)
"""Subcutaneous fat grows and shrinks below the first height only: above the second lie the arms."""


@dataclass(frozen=True)
class Build:
    """What a warp is asked for."""

    fat: float
    """Thickness of what lies outside the rib cage, relative to the template's."""
    breasts: float
    """Further thickness at the breasts, relative."""
    depth: float
    """Front-to-back diameter relative to the side-to-side one."""
    inflation: float
    cardiothoracic_ratio: float


@dataclass(frozen=True)
class Warp:
    """A displacement at the nodes of the form's coarse grid."""

    nodes_mm: tuple[float, float, float]
    shift: Field
    """(3, nodes of i, j, k), mm."""

    def back(self, places: Field) -> Field:
        """Return where in the template (n, 3) places in the patient come from."""
        at = (places / self.nodes_mm).T
        moved = [ndi.map_coordinates(axis, at, order=1, mode="nearest") for axis in self.shift]
        return np.asarray(places + np.stack(moved, 1))

    def forth(self, places: NDArray[np.floating]) -> Field:
        """Return where (n, 3) places of the template have gone."""
        found = places.astype(np.float64)
        for _ in range(12):
            found = found - (self.back(found) - places)
        return np.asarray(np.round(found, 6))


def draw_warp(rng: np.random.Generator, form: Form, build: Build) -> Warp:
    """Draw a deformation of this build; the heart is then scaled until the cardiothoracic ratio is the wanted one."""
    grid = np.stack(
        np.meshgrid(*[np.arange(n) * m for n, m in zip(form.shape, form.nodes_mm, strict=True)], indexing="ij")
    )
    base = _random(rng, form) + _stretch(grid, form, build.depth) + _fat(grid, form, build) + _breath(grid, form, build)
    ends = np.minimum(grid[2], form.height_mm - grid[2]) / FREE_ENDS_MM
    base[2] *= np.clip(ends, 0, 1)
    low, high = 0.55, 1.9
    for _ in range(14):
        scale = (low + high) / 2
        warp = Warp(form.nodes_mm, np.round(base + _heart(grid, form, scale), 6))
        if cardiothoracic_ratio(warp, form) < build.cardiothoracic_ratio:
            low = scale
        else:
            high = scale
    return warp


def cardiothoracic_ratio(warp: Warp, form: Form) -> float:
    """Return the heart's reach over all slices by the widest lung-to-lung width of one slice."""
    heart, flanks = warp.forth(form.heart_surface)[:, 0], warp.forth(form.lung_surface)[:, 0]
    return float((heart.max() - heart.min()) / (flanks[1::2] - flanks[::2]).max())


def _random(rng: np.random.Generator, form: Form) -> Field:
    total = np.zeros((3, *form.shape))
    for spread, reach in LEVELS:
        for axis in range(3):
            field = ndi.gaussian_filter(rng.standard_normal(form.shape), [reach / m for m in form.nodes_mm])
            total[axis] += spread * field / np.round(field.std(), 9)
    total[2] *= 0.6
    return total


def _stretch(grid: Field, form: Form, depth: float) -> Field:
    """Return a flatter or deeper chest about the body's axis."""
    out = np.zeros_like(grid)
    out[0] = (grid[0] - form.centre_mm[0]) * (np.sqrt(depth) - 1)
    out[1] = (grid[1] - form.centre_mm[1]) * (1 / np.sqrt(depth) - 1)
    return out


def _fat(grid: Field, form: Form, build: Build) -> Field:
    """Return the shift along the distance to the rib cage that makes its cover thicker."""
    breast = np.zeros(form.shape)
    for centre in BREASTS:
        away = [((g - c * m) / r) ** 2 for g, c, m, r in zip(grid, centre, form.voxel_mm, BREAST_REACH_MM, strict=True)]
        breast = np.maximum(breast, 1 / (1 + sum(away)) ** 2)
    trunk = np.clip((SHOULDERS_MM[1] - grid[2]) / (SHOULDERS_MM[1] - SHOULDERS_MM[0]), 0, 1)
    factor = 1 + trunk * ((build.fat - 1) + build.breasts * breast)
    slope = np.array(np.gradient(form.cage_mm.astype(np.float64), *form.nodes_mm))
    slope[2] *= 0.3
    return np.asarray(-form.cage_mm * (1 - 1 / np.maximum(factor, 0.45)) * slope)


def _breath(grid: Field, form: Form, build: Build) -> Field:
    """Return the domes' way down: most in the middle of each half of the chest, none at its wall."""
    middle = np.clip(form.inner_mm / 40.0, 0, 1)
    middle = middle * middle * (3 - 2 * middle)
    above = np.clip((form.domes_mm + 85 - grid[2]) / 85, 0, 1)
    below = np.clip((grid[2] - 15) / 85, 0, 1)
    out = np.zeros_like(grid)
    out[2] = INFLATION_MM * build.inflation * middle[:, :, None] * np.minimum(above, below)
    return out


def _heart(grid: Field, form: Form, scale: float) -> Field:
    """Return growth about the heart's centre that fades towards ribs, spine and sternum."""
    fade = np.clip(1 - form.heart_mm / HEART_REACH_MM, 0, 1) * np.clip(form.bone_mm / 14.0, 0, 1)
    out = np.zeros_like(grid)
    for axis, share in enumerate(HEART_ASPECT):
        own = 1 + (scale - 1) * share
        out[axis] = -(grid[axis] - form.heart_mm_centre[axis]) * (1 - 1 / own) * fade
    return out


def apply_warp(warp: Warp, template: Template) -> tuple[NDArray[np.int16], NDArray[np.uint8]]:
    """Return the template's HU (linear) and organs (nearest) as the warp has them, on the template's grid."""
    spacing, shape = template.spacing_mm, template.hu.shape
    source, labels = np.ascontiguousarray(template.hu), np.ascontiguousarray(template.organs)
    hu, organs = np.empty(shape, np.int16), np.empty(shape, np.uint8)
    at_i, at_j = (np.arange(n) * s / m for n, s, m in zip(shape[:2], spacing[:2], warp.nodes_mm[:2], strict=True))

    def one(k: int) -> None:
        at = np.empty((3, *shape[:2]))
        for axis, shift in enumerate(warp.shift):
            level: Field = _between(shift, np.array([k * spacing[2] / warp.nodes_mm[2]]), 2)[:, :, 0]
            full: Field = _between(_between(level, at_i, 0), at_j, 1) / spacing[axis]
            full += (np.arange(shape[0])[:, None], np.arange(shape[1])[None, :], k)[axis]
            at[axis] = np.clip(full, 0, shape[axis] - 1)
        hu[:, :, k] = np.rint(ndi.map_coordinates(source, at, output=np.float32, order=1, mode="nearest"))
        near = np.rint(at).astype(np.intp)
        organs[:, :, k] = labels[near[0], near[1], near[2]]

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(one, range(shape[2])))
    return hu, organs


def _between(field: Field, at: Field, axis: int) -> Field:
    """Return linear interpolation of a field along one axis."""
    low = np.minimum(at.astype(np.intp), field.shape[axis] - 2)
    share = np.expand_dims(at - low, tuple(a for a in range(field.ndim) if a != axis))
    return np.asarray(np.take(field, low, axis) * (1 - share) + np.take(field, low + 1, axis) * share)
