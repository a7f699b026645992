"""Masks that the steps of cleaning share: smoothing over a mask, growing, bone, and undiluted contrast."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.chest.labels import BONES, LOBES, VESSELS, where

Volume = NDArray[np.float32]
Mask = NDArray[np.bool_]
IN_PLANE: Mask = ndi.generate_binary_structure(3, 1) & np.array([False, True, False])
UNDILUTED_HU = 1650
"""Denser than any bone of the scan."""
MIDDLE = 256


def grow(mask: Mask, in_plane: int, slices: int = 0) -> Mask:
    """Return the dilation with separate reach in plane (city-block steps) and across slices."""
    if in_plane:
        mask = ndi.binary_dilation(mask, IN_PLANE, in_plane)
    if slices:
        mask = ndi.binary_dilation(mask, np.ones((1, 1, 2 * slices + 1), bool))
    return mask


def local_mean(values: Volume, weight: Mask, sigma: tuple[float, float, float]) -> Volume:
    """Return the Gaussian mean of the values over the voxels of the mask."""
    total = ndi.gaussian_filter(weight.astype(np.float32), sigma, truncate=3)
    held = ndi.gaussian_filter(np.where(weight, values, 0).astype(np.float32), sigma, truncate=3)
    return np.asarray(held / np.maximum(total, 1e-3), np.float32)


@dataclass(frozen=True)
class Scan:
    """The scan as it came, in HU, with its organ mask; both (I, J, K)."""

    hu: Volume
    organs: NDArray[np.uint8]

    @cached_property
    def lung(self) -> Mask:
        return where(self.organs, LOBES)

    @cached_property
    def vessels(self) -> Mask:
        return where(self.organs, VESSELS)

    @cached_property
    def venogram(self) -> Mask:
        """Undiluted contrast: right arm, axillary, subclavian and brachiocephalic veins, superior vena cava."""
        ribs_aside = where(self.organs, tuple(name for name in BONES if not name.startswith("vertebrae_")))
        seed = (self.hu > UNDILUTED_HU) & ~ribs_aside
        seed[MIDDLE:] = False  # bone of the left side may be as dense
        seed |= where(self.organs, ("brachiocephalic_vein_right", "superior_vena_cava")) & (self.hu > 300)
        near = grow(seed, 5, 1) & (self.hu > 150) & ~where(self.organs, BONES)
        return np.asarray(near | (grow(seed, 3) & (self.hu > 900)) | seed)

    @cached_property
    def bone(self) -> Mask:
        """Labelled bone, a rim for partial volume, and dense voxels that touch it; never vessel or venogram."""
        labelled = where(self.organs, BONES)
        vessels = grow(self.vessels, 2)
        rim = grow(labelled, 3, 1) & ((self.hu > 120) | grow(labelled, 1)) & ~vessels
        return np.asarray((labelled | rim) & ~self.venogram & ~(vessels & ~labelled))
