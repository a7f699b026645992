"""The scanned body, made ready to stand: cut out, lengthened by stumps, its spine upright."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.chest.labels import BONES, where

Floats = NDArray[np.float64]
Places = tuple[NDArray[np.int64], NDArray[np.int64]]
AIR = -1000.0
MARGIN_MM = 24.0
"""Of air at either side."""
STRAIGHTENED = 0.8
"""Share of the spine's sideways bend that is taken out."""
NECK_MM, BELLY_MM = 32.0, 30.0
"""Heights of the stumps put on above and below what was scanned."""


@dataclass(frozen=True)
class Torso:
    """A chest in the frame of the film: axes right to left, back to front, foot to head."""

    hu: NDArray[np.float32]
    organs: NDArray[np.uint8]
    spacing: tuple[float, float, float]

    def mask(self, *names: str) -> NDArray[np.bool_]:
        return where(self.organs, names)


def crop(hu: NDArray[np.int16], organs: NDArray[np.uint8], spacing: tuple[float, float, float]) -> Torso:
    """Return the body without table and margin, in air, with stumps of neck and belly; slices are contiguous."""
    body = organs > 0
    across = np.flatnonzero(body.any((1, 2)))
    deep = np.flatnonzero(body.any((0, 2)))
    part = np.s_[across[0] : across[-1] + 1, deep[0] : deep[-1] + 1]
    margin = round(MARGIN_MM / spacing[0])
    over, under = round(NECK_MM / spacing[2]), round(BELLY_MM / spacing[2])
    wide = int(across[-1] + 1 - across[0])
    size = (wide + 2 * margin, deep[-1] + 1 - deep[0], under + hu.shape[2] + over)
    values, labels = np.full(size, AIR, np.float32, order="F"), np.zeros(size, np.uint8, order="F")
    scan = np.s_[margin : margin + wide, :, under : under + hu.shape[2]]
    values[scan] = np.where(body[part], hu[part], AIR)
    labels[scan] = organs[part]
    for first, way, last in ((under, -1, -1), (under + hu.shape[2] - 1, 1, size[2])):
        flat = np.minimum(values[:, :, first], 300)
        for k in range(first + way, last, way):
            flat = ndi.gaussian_filter(flat, 1.5 / spacing[0], mode="nearest")
            values[:, :, k] = flat
    return _straight(Torso(values, labels, spacing))


def _straight(torso: Torso) -> Torso:
    """Return the body with its spine upright: who lies bent in the scanner stands straight before the film."""
    spine = torso.mask(*(name for name in BONES if name.startswith("vertebrae")))
    size = torso.hu.shape
    middle = np.full(size[2], np.nan)
    for k in range(size[2]):
        x = places(spine[:, :, k])[0]
        if len(x) > 50:
            middle[k] = x.mean()
    middle = ndi.gaussian_filter1d(filled_in(middle), 20 / torso.spacing[2], mode="nearest")
    shift = STRAIGHTENED * (middle - middle.mean())
    rows = np.arange(size[0])
    for k in range(size[2]):
        low = rows + int(np.floor(shift[k]))
        rest = np.float32(shift[k] - np.floor(shift[k]))
        under, over = np.clip(low, 0, size[0] - 1), np.clip(low + 1, 0, size[0] - 1)
        values = torso.hu[:, :, k]
        torso.hu[:, :, k] = values[under] * (1 - rest) + values[over] * rest
        torso.organs[:, :, k] = torso.organs[over if rest >= 0.5 else under, :, k]
    return torso


def grown(mask: NDArray[np.bool_], voxels: int) -> NDArray[np.bool_]:
    """Return a mask (or a slice of one) grown in plane by so many voxels, city-block steps."""
    for _ in range(voxels):
        wider = mask.copy("K")
        wider[1:] |= mask[:-1]
        wider[:-1] |= mask[1:]
        wider[:, 1:] |= mask[:, :-1]
        wider[:, :-1] |= mask[:, 1:]
        mask = wider
    return mask


def places(mask: NDArray[np.bool_]) -> Places:
    """Return the first and second index of a slice's voxels, read in the order of memory."""
    y, x = np.nonzero(mask.T)
    return x, y


def filled_in(values: Floats) -> Floats:
    """Return the values with gaps filled from their neighbours."""
    known = np.flatnonzero(~np.isnan(values))
    return np.asarray(np.interp(np.arange(len(values)), known, values[known]))
