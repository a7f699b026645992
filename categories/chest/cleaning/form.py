"""Measure the template for the warp: distances on a coarse grid, surfaces, and where the lung trees begin."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.chest.labels import BONES, LOBES, ORGANS, where
from categories.chest.template import Form, Kind, Root

STEP = (8, 8, 4)
"""Voxels from node to node of the coarse grid."""
OUTSIDE_CAGE = ("background", "body", "fat", "scapula", "humerus", "clavicula", "gluteus", "brain", "skull")
ROOTS: tuple[tuple[Kind, str, tuple[int, int, int], float], ...] = (
    # kind, lobe, voxel of the template, outer radius (mm): read off the scan, see the data card
    ("airway", "lung_upper_lobe_right", (203, 249, 87), 3.9),
    ("airway", "lung_middle_lobe_right", (201, 250, 73), 2.9),
    ("airway", "lung_lower_lobe_right", (201, 231, 69), 3.9),
    ("airway", "lung_upper_lobe_left", (295, 230, 85), 3.8),
    ("airway", "lung_lower_lobe_left", (303, 205, 76), 3.8),
    ("artery", "lung_upper_lobe_right", (196, 259, 86), 4.4),
    ("artery", "lung_middle_lobe_right", (193, 252, 74), 3.2),
    ("artery", "lung_lower_lobe_right", (189, 231, 70), 4.8),
    ("artery", "lung_upper_lobe_left", (303, 243, 89), 4.6),
    ("artery", "lung_lower_lobe_left", (307, 201, 78), 4.6),
    ("vein", "lung_upper_lobe_right", (196, 267, 78), 4.2),
    ("vein", "lung_middle_lobe_right", (206, 259, 71), 3.0),
    ("vein", "lung_lower_lobe_right", (212, 228, 65), 4.6),
    ("vein", "lung_upper_lobe_left", (296, 252, 86), 4.4),
    ("vein", "lung_lower_lobe_left", (300, 209, 72), 4.6),
)
"""Where the trees of each lobe leave the hilum: lobar bronchi, branches of the pulmonary arteries, veins."""


def template_roots(spacing: tuple[float, float, float]) -> tuple[Root, ...]:
    """Return the roots of the real scan's lung trees."""
    return tuple(
        Root(kind, lobe, (i * spacing[0], j * spacing[1], k * spacing[2]), radius)
        for kind, lobe, (i, j, k), radius in ROOTS
    )


def take_form(organs: NDArray[np.uint8], spacing: tuple[float, float, float], roots: tuple[Root, ...]) -> Form:
    """Measure the template on every second voxel in plane."""
    mm = np.array(spacing) * (2, 2, 1)
    few = organs[::2, ::2]
    lungs, bones = where(few, LOBES), where(few, _cage_bones())
    cage = _cage(few)
    heart = where(few, ("heart",))
    base = int(np.percentile(np.nonzero(where(few, ("lung_lower_lobe_right",)).any((0, 1)))[0], 55))
    top = int(np.nonzero(where(few, ("liver",)).sum((0, 1)) > 40)[0].max())
    nodes = np.s_[:: STEP[0] // 2, :: STEP[1] // 2, :: STEP[2]]

    def distance(mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        return _coarse(ndi.distance_transform_edt(~mask, sampling=mm), nodes)

    return Form(
        cage_mm=distance(cage),
        heart_mm=distance(heart),
        bone_mm=distance(bones),
        inner_mm=_coarse(ndi.distance_transform_edt(cage[:, :, base], sampling=mm[:2]), nodes[:2]),
        heart_surface=_surface(heart, mm),
        lung_surface=_flanks(lungs, mm),
        domes_mm=top * float(spacing[2]),
        nodes_mm=(STEP[0] * spacing[0], STEP[1] * spacing[1], STEP[2] * spacing[2]),
        voxel_mm=spacing,
        height_mm=(organs.shape[2] - 1) * spacing[2],
        roots=roots,
    )


def _coarse(field: NDArray[Any], nodes: tuple[slice, ...]) -> NDArray[np.float32]:
    """Sample a field at the nodes, one more node than fits so that the last voxels lie between two."""
    smooth = ndi.gaussian_filter(field, 2.0)[nodes]
    return np.asarray(np.pad(smooth, [(0, 1)] * smooth.ndim, mode="edge"), np.float32)


def _cage_bones() -> tuple[str, ...]:
    return tuple(n for n in BONES if n.startswith(("rib_", "vertebrae_")) or n in ("sternum", "costal_cartilages"))


def _cage(organs: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return ribs, spine and all that they hold, without gaps between the ribs."""
    names = [n for n in ORGANS if not n.startswith(OUTSIDE_CAGE)]
    held = where(organs, names)
    out = np.empty_like(held)
    for k in range(held.shape[2]):
        around = held[:, :, max(0, k - 2) : k + 3].any(2)
        out[:, :, k] = ndi.binary_fill_holes(ndi.binary_closing(np.pad(around, 30), iterations=25)[30:-30, 30:-30])
    return out


def _surface(mask: NDArray[np.bool_], mm: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return a thinned surface of the heart: its reach to both sides, row by row."""
    found = []
    for k in np.nonzero(mask.any((0, 1)))[0]:
        for j in np.nonzero(mask[:, :, k].any(0))[0][::3]:
            i = np.nonzero(mask[:, j, k])[0]
            found += [(2 * i[0], j, k), (2 * i[-1] + 1, j, k)]
    return np.asarray(np.array(found) * (mm / (2, 1, 1)), np.float32)


def _flanks(mask: NDArray[np.bool_], mm: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return (slices x 2 sides x some, 3): the outermost lung of both sides in every slice."""
    found = []
    for k in np.nonzero(mask.any((0, 1)))[0][::2]:
        across = np.nonzero(mask[:, :, k].any(1))[0]
        for i, wide in ((across[0], 0), (across[-1], 1)):
            j = int(np.nonzero(mask[i, :, k])[0].mean())
            found.append((2 * i + wide, j, k))
    return np.asarray(np.array(found) * (mm / (2, 1, 1)), np.float32)
