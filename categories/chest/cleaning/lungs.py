"""Empty the lungs: lesions and all vessels go, what stays is the parenchyma that every patient's own trees fill."""

import numpy as np

from categories.chest.cleaning.masks import Scan, Volume, local_mean

PARENCHYMA_HU = (-960, -760)


def empty_lungs(scan: Scan, hu: Volume) -> Volume:
    """Return the volume with smooth parenchyma in the lungs, edges kept."""
    aerated = scan.lung & (scan.hu > PARENCHYMA_HU[0]) & (scan.hu < PARENCHYMA_HU[1])
    background = local_mean(hu, aerated, (12, 12, 4))
    return np.where(scan.lung, background, hu).astype(np.float32)
