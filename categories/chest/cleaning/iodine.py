"""Take the contrast medium out: every enhanced soft voxel comes down to its level without iodine."""

import numpy as np
from scipy import ndimage as ndi

from categories.chest.cleaning.masks import IN_PLANE, Mask, Scan, Volume, grow, local_mean
from categories.chest.labels import GUT, ORGANS, where

BLOOD_HU, MYOCARDIUM_HU, LIVER_HU = 40.0, 46.0, 58.0
ORGAN_HU = {
    "spleen": 48.0,
    "kidney_right": 32.0,
    "kidney_left": 32.0,
    "pancreas": 40.0,
    "adrenal_gland_right": 30.0,
    "adrenal_gland_left": 30.0,
    "thyroid_gland": 95.0,
}
SMOOTHED_ENHANCED_HU, SINGLE_ENHANCED_HU = 95, 130
"""Soft tissue above these, smoothed and voxel by voxel, holds iodine."""
PLAIN_HU = 60
LEFT_OF_LIVER = 340
STAINED_BONE_HU = 400
JUNCTION_GAS = (slice(258, 302), slice(245, 280), slice(42, 50))
"""Gas at the gastro-oesophageal junction, which a reader could take for a hernia."""


def remove_iodine(scan: Scan) -> Volume:
    """Return the scan without contrast; what was enhanced lies flat at its level, edges keep their partial volume."""
    hu, organs, bone = scan.hu, scan.organs, scan.bone
    soft = ~bone & (hu > -250)
    gut = where(organs, GUT)
    liver = where(organs, ("liver",))
    liver[LEFT_OF_LIVER:] = False  # the mask calls the top of the spleen liver
    level = np.full(hu.shape, BLOOD_HU, np.float32)
    heart = organs == ORGANS["heart"]
    filled = np.clip((local_mean(hu, heart, (2.0, 2.0, 0.7)) - 180) / 120, 0, 1)
    level[heart] = (MYOCARDIUM_HU + (BLOOD_HU - MYOCARDIUM_HU) * filled)[heart]
    for name, own in ORGAN_HU.items():
        level[grow(organs == ORGANS[name], 2) & ~scan.vessels] = own
    flat = where(organs, tuple(name for name in ORGAN_HU if name != "pancreas"))
    smooth = local_mean(hu, soft, (1.2, 1.2, 0))
    enhanced = (smooth > SMOOTHED_ENHANCED_HU) | (hu > SINGLE_ENHANCED_HU) | ((scan.vessels | flat) & (hu > 60))
    blood = soft & ~liver & ~gut & enhanced
    core = ndi.binary_erosion(blood, IN_PLANE, 2)
    edge = grow(blood, 2) & soft & ~liver & ~gut & ~core & (blood | (hu > level))
    out = np.where(core, level, hu)
    out[edge] = np.minimum(hu[edge], level[edge])
    inner = grow(liver, 1) & soft & (hu > -20)
    out[inner] = LIVER_HU
    fluid = grow(gut | where(organs, ("esophagus",)), 2) & soft & ~liver & ~flat & ~scan.vessels & (hu > -40)
    mean = local_mean(hu, fluid, (1.5, 1.5, 0))
    excess = (mean[fluid] - 15) / 60
    out[fluid] = 15 + 25 * excess / np.sqrt(1 + excess * excess)  # contents and wall: at most about 40 HU
    return np.asarray(out, np.float32)


def unstain_bone(scan: Scan, hu: Volume) -> None:
    """Cap and smooth the right upper ribs and the clavicle, over which undiluted contrast shone, in place."""
    near = grow(scan.venogram & (scan.hu > 1300), 8, 1)
    box = ndi.find_objects(near.astype(np.uint8))[0]
    stained: Mask = (scan.bone & near)[box]
    flat = ndi.median_filter(np.minimum(hu[box], STAINED_BONE_HU), (5, 5, 3))
    hu[box][stained] = flat[stained]


def level_soft_tissue(scan: Scan, hu: Volume) -> None:
    """Press what still stands out of soft tissue down towards it, in place: rims of organs, small vessels, mucosa."""
    apart = ~grow(scan.bone, 3, 1) & (hu > PLAIN_HU) & ~scan.lung
    hu[apart] = PLAIN_HU + 0.1 * (hu[apart] - PLAIN_HU)


def fill_junction(scan: Scan, hu: Volume) -> None:
    """Fill the gas at the gastro-oesophageal junction, in place."""
    gas = hu[JUNCTION_GAS]
    gas[grow((gas < -80) & where(scan.organs[JUNCTION_GAS], ("stomach", "esophagus")), 1)] = 35
