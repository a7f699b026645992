"""Reading back the one kind of NIfTI that ``writing`` makes."""

import gzip
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def read_nifti(path: Path) -> tuple[NDArray[np.int16], tuple[float, float, float]]:
    """Return the voxels (I, J, K) of an int16 NIfTI and their size in mm."""
    data = gzip.decompress(path.read_bytes())
    shape = struct.unpack_from("<3h", data, 42)
    i, j, k = struct.unpack_from("<3f", data, 80)
    (start,) = struct.unpack_from("<f", data, 108)
    voxels = np.frombuffer(data, "<i2", offset=int(start)).reshape(shape, order="F")
    return voxels.astype(np.int16), (i, j, k)
