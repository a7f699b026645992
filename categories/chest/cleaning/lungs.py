"""Empty the lungs: lesions and all vessels go, what stays is the parenchyma that every patient's own trees fill."""

from dataclasses import replace

import numpy as np
from scipy import ndimage as ndi

from categories.chest.cleaning.masks import Scan, Volume, local_mean
from categories.chest.labels import BONES, LOBES, ORGANS, where

PARENCHYMA_HU = (-960, -780)
SOFT_HU = 60
EVEN = np.float32(0.6)
"""Share kept of the differences between regions: the scan's middle lobe is nearly emphysematous."""
LINGULA = (slice(384, 428), slice(284, 328), slice(51, 64))
"""Where the lingular band leaves a stub outside the mask's lung."""


def widen_lingula(scan: Scan) -> Scan:
    """Return the scan with the stub of the lingular band called lung, as far as the chest wall's line goes."""
    across, deep, along = LINGULA
    organs = scan.organs.copy()
    for k in range(along.start, along.stop):
        lung = where(organs[across.start - 24 : across.stop + 24, deep.start - 24 : deep.stop + 24, k], LOBES)
        closed = ndi.binary_closing(lung, iterations=14)[24:-24, 24:-24]
        here = organs[across, deep, k]
        here[closed & (here == 0) & ~where(here, BONES)] = ORGANS["lung_upper_lobe_left"]
    return replace(scan, organs=organs)


def empty_lungs(scan: Scan, hu: Volume) -> Volume:
    """Return the volume with smooth parenchyma in the lungs; the partial volume of the pleura stays.

    What is denser than parenchyma is kept only as far as the distance to the nearest wall explains it.
    """
    aerated = scan.lung & (scan.hu > PARENCHYMA_HU[0]) & (scan.hu < PARENCHYMA_HU[1])
    parenchyma = local_mean(hu, aerated, (14, 14, 4))
    usual = round(float(parenchyma[scan.lung].mean(dtype=np.float64)), 3)
    parenchyma = np.float32(usual) + EVEN * (parenchyma - np.float32(usual))
    wall = ndi.gaussian_filter((~scan.lung).astype(np.float32), (1.0, 1.0, 0.7), truncate=3)
    explained = (SOFT_HU - parenchyma) * np.clip(2 * wall, 0, 1)
    emptied = parenchyma + np.clip(hu - parenchyma, 0, explained)
    return np.where(scan.lung, emptied, hu).astype(np.float32)
