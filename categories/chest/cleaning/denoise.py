"""Take the scan's own noise out, so that anatomy and whatever is drawn into it get one noise in the end."""

import numpy as np
from scipy import ndimage as ndi

from categories.chest.cleaning.masks import Mask, Volume

NOISE_HU = 17.0
"""Spread of the scan's noise in homogeneous liver."""
REACH = 6.0
"""Patches whose mean square difference exceeds so many noise variances do not help one another."""
OFFSETS = [(i, j, 0) for i in range(-2, 3) for j in range(-2, 3) if (j, i) > (0, 0)]
OFFSETS += [(i, j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1)]


def denoise(hu: Volume, body: Mask) -> Volume:
    """Return non-local means over a window of 5 x 5 x 3 voxels inside the body; air outside stays as it is."""
    box = ndi.find_objects(body.astype(np.uint8))[0]
    own = np.ascontiguousarray(hu[box])
    total, weight = own.copy(), np.ones_like(own)
    for offset in OFFSETS:
        here = tuple(slice(max(0, -o), n - max(0, o)) for o, n in zip(offset, own.shape, strict=True))
        there = tuple(slice(max(0, o), n + min(0, o)) for o, n in zip(offset, own.shape, strict=True))
        apart = own[here] - own[there]
        apart *= apart
        apart = ndi.uniform_filter(apart, (3, 3, 1))
        alike = np.clip(1 - apart / np.float32(REACH * NOISE_HU * NOISE_HU), 0, 1)
        alike *= alike
        total[here] += alike * own[there]
        total[there] += alike * own[here]
        weight[here] += alike
        weight[there] += alike
    out = hu.copy()
    out[box] = np.where(body[box], total / weight, own)
    return out
