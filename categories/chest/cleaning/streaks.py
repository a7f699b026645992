"""Damp the streaks that undiluted contrast threw over the right shoulder."""

import numpy as np
from scipy import ndimage as ndi

from categories.chest.cleaning.masks import Mask, Scan, Volume, grow, local_mean
from categories.chest.labels import where

SCAN_NOISE_HU = 17.0


def body_of(hu: Volume) -> Mask:
    """Return what lies inside the skin: the largest dense piece, lungs and gut filled slice by slice."""
    dense = ndi.binary_opening(hu > -300, np.ones((5, 5, 1)))
    pieces, count = ndi.label(dense)
    if count == 0:
        return np.asarray(dense)
    sizes = np.bincount(pieces.ravel())
    sizes[0] = 0
    largest = pieces == sizes.argmax()
    slices = [ndi.binary_fill_holes(ndi.binary_closing(s, iterations=3)) for s in np.moveaxis(largest, 2, 0)]
    return np.stack(slices, 2)


def airway_of(scan: Scan) -> Mask:
    """Return the pocket of air that holds the trachea: bronchi and lungs."""
    pockets, _ = ndi.label(scan.hu < -600)
    return np.asarray(pockets == np.bincount(pockets[where(scan.organs, ("trachea",))])[1:].argmax() + 1)


def damp_streaks(scan: Scan, hu: Volume) -> Volume:
    """Return the volume with soft tissue near undiluted contrast back between fat and muscle."""
    zone = grow((scan.hu > 800) & ~scan.bone & (scan.venogram | scan.vessels), 40, 1)
    zone &= ~grow(where(scan.organs, ("trachea",)), 2)
    apart = grow(scan.lung, 2) | grow(airway_of(scan) | where(scan.organs, ("esophagus",)), 3, 1)
    soft = zone & body_of(scan.hu) & ~scan.bone & ~apart & ~where(scan.organs, ("liver",))
    box = ndi.find_objects(soft.astype(np.uint8))[0]
    flat = np.zeros_like(hu)
    flat[box] = ndi.median_filter(hu[box], (7, 7, 3))
    weight = ndi.gaussian_filter(zone.astype(np.float32), (4, 4, 0.5))
    rough = np.sqrt(local_mean((hu - flat) ** 2, soft, (4, 4, 0.5)))
    weight = weight * np.clip(rough / SCAN_NOISE_HU - 1.2, 0, 1)
    out = np.where(soft, hu * (1 - weight) + np.clip(flat, -105, 50) * weight, hu)
    return np.asarray(np.where(soft & (out < -130), -105, out), np.float32)
