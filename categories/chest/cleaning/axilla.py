"""Replace the right axilla, drowned by undiluted contrast, by the mirrored left one."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.chest.cleaning.masks import Mask, Scan, Volume, grow
from categories.chest.cleaning.streaks import body_of

LEVELS = (104, 121)
"""Slices in which the axillary and subclavian vein is full."""
LATERAL_TO = 205
TILT = range(5, 11)
"""The patient lies tilted: the left shoulder's anatomy is found so many slices higher."""
SHIFTS = range(-36, 37, 4)
MIDDLE_SUM = 2 * 245
BONE_HU, MUSCLE_HU = 150, 45


def mirror_axilla(scan: Scan, hu: Volume) -> Volume:
    """Return the volume with the soft tissue round the filled vein taken from the other side.

    Among tilts and shifts that piece is taken which agrees best with the tissue round the zone.
    """
    zone = _zone(scan)
    box = tuple(
        slice(max(0, s.start - 12 * g), s.stop + 12 * g)
        for s, g in zip(ndi.find_objects(zone.astype(np.uint8))[0], (1, 1, 0), strict=True)
    )
    body = body_of(hu)[box]
    shell = grow(zone, 12)[box] & ~zone[box] & body & ~scan.bone[box]
    want = np.clip(hu[box][shell], -150, 80)
    best: tuple[float, NDArray[np.float32]] | None = None
    for tilt in TILT:
        for di in SHIFTS:
            for dj in SHIFTS:
                piece = _donor(hu, box, (di, dj, tilt))
                if piece is None:
                    continue
                cost = float(np.abs(np.clip(piece[shell], -150, 80) - want).mean())
                if best is None or cost < best[0]:
                    best = cost, piece
    assert best is not None
    piece = np.where(best[1] > BONE_HU, MUSCLE_HU, best[1])
    share = ndi.gaussian_filter(zone[box].astype(np.float32), (2.5, 2.5, 0.5)) * ~scan.bone[box]
    out = hu.copy()
    out[box] = hu[box] * (1 - share) + np.clip(piece, -130, 90) * share
    return out


def _zone(scan: Scan) -> Mask:
    zone = grow(scan.venogram & (scan.hu > 700), 26, 1)
    zone[LATERAL_TO:] = False
    zone[:, :, : LEVELS[0]] = False
    zone[:, :, LEVELS[1] :] = False
    return np.asarray(zone & body_of(scan.hu) & ~grow(scan.lung, 4) & ~scan.bone)


def _donor(hu: Volume, box: tuple[slice, ...], move: tuple[int, int, int]) -> NDArray[np.float32] | None:
    i, j, k = box
    low, high = MIDDLE_SUM - i.stop + 1 + move[0], MIDDLE_SUM - i.start + 1 + move[0]
    if low < 0 or high > hu.shape[0] or j.start + move[1] < 0 or j.stop + move[1] > hu.shape[1]:
        return None
    if k.stop + move[2] > hu.shape[2]:
        return None
    return hu[low:high, j.start + move[1] : j.stop + move[1], k.start + move[2] : k.stop + move[2]][::-1]
