"""What a warped template still lacks: this patient's tissue densities, and lungs with texture, fissures and trees."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.chest.labels import BONES, LOBES, ORGANS, VESSELS, where
from categories.chest.paint import coverage
from categories.chest.tree import Tree
from categories.draw import Draw

Array = NDArray[np.float64]
BLOOD_HU = 40.0
"""Level of blood in the template."""
TONES = {
    ("liver",): (58.0, (51.0, 64.0)),
    ("spleen",): (48.0, (48.0, 55.0)),
    ("kidney_right", "kidney_left"): (32.0, (29.0, 36.0)),
    ("autochthon_right", "autochthon_left", "body"): (44.0, (52.0, 62.0)),
}
"""Level in the template, and the range of levels drawn; the ``body`` that is soft is muscle."""
BLOOD_RANGE_HU = (34.0, 48.0)
LUNG_MEAN_HU = (-852.0, -808.0)
WALL_HU, AIR_HU = 10.0, -1000.0
FISSURE_HU, FISSURE_BLUR = 80.0, 0.9
GRAIN = ((0.9, 11.0), (3.2, 7.0))
"""Texture of parenchyma: reach (voxels) and spread (HU)."""
HILUM_MM = 16.0
"""Trees are drawn so far from their roots outside the lung's label."""


def retone(rng: np.random.Generator, hu: NDArray[np.int16], organs: NDArray[np.uint8], age: int) -> float:
    """Bring blood, organs and spongy bone to this patient's density, in place; return the blood's HU."""
    shift = np.zeros(256, np.int16)
    blood = rng.uniform(*BLOOD_RANGE_HU)
    for name in VESSELS:
        shift[ORGANS[name]] = round(blood - BLOOD_HU)
    for names, (level, bounds) in TONES.items():
        drawn = round(rng.uniform(*bounds) - level)
        for name in names:
            shift[ORGANS[name]] = drawn
    soft = hu > -20
    hu += np.where(soft, shift[organs], 0).astype(np.int16)
    dense = 1.30 - 0.006 * (age - 20) + rng.uniform(-0.08, 0.08)  # the template's spine is that of an old person
    bone = where(organs, BONES) & (hu > 60) & (hu < 700)
    hu[bone] = np.rint(60 + (hu[bone] - 60) * dense).astype(np.int16)
    return blood


def fill_lungs(
    draw: Draw, hu: NDArray[np.int16], organs: NDArray[np.uint8], spacing: Array, airways: Tree, vessels: Tree
) -> None:
    """Give the empty lungs texture, fissures, vessels and airways, in place."""
    lungs = where(organs, LOBES)
    box = ndi.find_objects(lungs.astype(np.uint8))[0]
    inside, here = lungs[box], hu[box]
    blood = float(np.median(hu[where(organs, ("aorta",))]))
    open_ = inside | _hilum(inside.shape, spacing, box, airways, vessels)
    corner = np.array([s.start for s in box]) * spacing

    def tubes(tree: Tree, more: Array | float) -> NDArray[np.float32]:
        start, end = tree.start - corner, tree.end - corner
        filled = coverage(here.shape, spacing, start, end, tree.radius_start + more, tree.radius_end + more)
        return np.where(open_, filled, 0).astype(np.float32) / np.float32(255)

    full, wall, lumen = tubes(vessels, 0.0), tubes(airways, airways.wall), tubes(airways, 0.0)
    # What trees will add to the mean is taken off the parenchyma beforehand.
    added = round(float(full[inside].mean(dtype=np.float64)), 5) * (blood - sum(LUNG_MEAN_HU) / 2)
    out = _grained(draw, here, organs[box], inside, added).astype(np.float32)
    out += np.maximum(full * (np.float32(blood) - out), 0)
    out += np.maximum(wall * (np.float32(WALL_HU) - out), 0)
    out += lumen * (np.float32(AIR_HU) - out)
    here[...] = np.rint(out)


def _hilum(
    shape: tuple[int, int, int], spacing: Array, box: tuple[slice, ...], airways: Tree, vessels: Tree
) -> NDArray[np.bool_]:
    """Return where trees may be drawn outside the lung's label: near where they begin."""
    near = np.zeros(shape, bool)
    axes = [(np.arange(n) + s.start) * mm for n, s, mm in zip(shape, box, spacing, strict=True)]
    for tree in (airways, vessels):
        for place in tree.start[tree.parent < 0]:
            x, y, z = ((axis - p) ** 2 for axis, p in zip(axes, place, strict=True))
            near |= x[:, None, None] + y[None, :, None] + z[None, None, :] < HILUM_MM**2
    return near


def _grained(
    draw: Draw, hu: NDArray[np.int16], organs: NDArray[np.uint8], lungs: NDArray[np.bool_], added: float
) -> NDArray[np.int16]:
    """Return the lungs with lobular texture and fissures; with ``added`` HU their mean is the patient's."""
    target = draw.rng("parenchyma").uniform(*LUNG_MEAN_HU)
    shift = target - added - round(float(hu[lungs].mean(dtype=np.float64)), 3)
    fissure = _fissures(organs)
    out = hu.copy()

    def one(k: int) -> None:
        rng = draw.rng("grain", k)
        grain = np.zeros(hu.shape[:2])
        for reach, spread in GRAIN:
            # A white field blurred by s keeps 1 / (2 s sqrt(pi)) of its spread.
            white = ndi.gaussian_filter(rng.standard_normal(hu.shape[:2]), reach, truncate=3)
            grain += white * (spread * 2 * reach * 1.7724539)
        soft = np.clip((-600 - hu[:, :, k]) / 200, 0, 1) * lungs[:, :, k]
        line = ndi.gaussian_filter(fissure[:, :, k], FISSURE_BLUR)
        out[:, :, k] = np.rint(hu[:, :, k] + soft * (grain + shift + FISSURE_HU * line))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(one, range(hu.shape[2])))
    return out


def _fissures(organs: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return 1 where one lobe of a lung borders on another in plane, less where it does across slices."""
    lobe = where(organs, LOBES)
    out = np.zeros(organs.shape, np.float32)
    for axis, share in ((0, 1.0), (1, 1.0), (2, 0.2)):
        low, high = (np.moveaxis(organs, axis, 0)[part] for part in (slice(None, -1), slice(1, None)))
        both = np.moveaxis(lobe, axis, 0)
        differ = (low != high) & both[:-1] & both[1:]
        view = np.moveaxis(out, axis, 0)
        view[:-1] = np.maximum(view[:-1], differ * np.float32(share))
    return out
