"""Read a volume of a compressed NIfTI-1 file: Hounsfield units, axes turned to the patient's left, front and head."""

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from categories.sources.spec import not_as_published

SOURCE = "ct_rate"
KINDS = {2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2", 768: "u4"}
SIGNS = np.array([-1.0, 1.0, 1.0])
"""Right, front and head grow as the index does; the first axis is handed out towards the left."""


def read_volume(path: Path) -> tuple[NDArray[np.int16], NDArray[np.float64]]:
    """Return (I, J, K) HU and the affine (voxel -> RAS+ mm, only its diagonal and origin are filled).

    Raises:
        SourceError: the file is no volume, or its axes are oblique to the patient's.
    """
    try:
        data = gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path.read_bytes()
        if struct.unpack_from("<i", data)[0] != 348 or data[344:347] not in (b"n+1", b"ni1"):
            raise ValueError("not NIfTI-1")
        shape = struct.unpack_from("<8h", data, 40)[1:4]
        kind = np.dtype(f"<{KINDS[struct.unpack_from('<h', data, 70)[0]]}")
        start, slope, intercept = (float(value) for value in struct.unpack_from("<3f", data, 108))
        voxels = np.frombuffer(data, kind, int(np.prod(shape)), int(start)).reshape(shape, order="F")
        affine = _affine(data)
    except (OSError, EOFError, zlib.error, struct.error, KeyError, ValueError) as error:
        raise not_as_published(SOURCE, path, f"is no volume that can be read ({type(error).__name__})") from None
    scaled = voxels * slope + intercept if slope not in (0.0, 1.0) or (slope and intercept) else voxels
    hu = np.clip(np.rint(scaled), -32768, 32767).astype(np.int16)
    return _turned(hu, affine, path)


def _affine(data: bytes) -> NDArray[np.float64]:
    """Return the transform of the header: ``sform`` where it is set, else ``qform``."""
    qform, sform = struct.unpack_from("<2h", data, 252)
    affine = np.eye(4)
    if sform > 0:
        affine[:3] = np.array(struct.unpack_from("<12f", data, 280)).reshape(3, 4)
        return affine
    if qform <= 0:
        raise ValueError("no orientation")
    sign, *steps = struct.unpack_from("<4f", data, 76)
    b, c, d, *origin = struct.unpack_from("<6f", data, 256)
    a = max(0.0, 1.0 - b * b - c * c - d * d) ** 0.5
    turn = np.array(
        [
            [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - c * c - b * b],
        ]
    )
    affine[:3, :3] = turn * np.array([*steps[:2], steps[2] * (-1.0 if sign < 0 else 1.0)])
    affine[:3, 3] = origin
    return affine


def _turned(
    hu: NDArray[np.int16], affine: NDArray[np.float64], path: Path
) -> tuple[NDArray[np.int16], NDArray[np.float64]]:
    """Bring the axes into the order left, front, head."""
    matrix = affine[:3, :3]
    order = [int(np.argmax(np.abs(matrix[axis]))) for axis in range(3)]
    main = np.array([matrix[axis, order[axis]] for axis in range(3)])
    spacing = np.sqrt((matrix**2).sum(0))[order]
    if sorted(order) != [0, 1, 2] or (np.abs(main) < 0.9 * spacing).any():
        raise not_as_published(SOURCE, path, "has axes that are oblique to the patient's")
    turned = hu.transpose(order)
    origin = affine[:3, 3].copy()
    for axis in range(3):
        if np.sign(main[axis]) != SIGNS[axis]:
            turned = np.flip(turned, axis)
            origin[axis] += main[axis] * (hu.shape[order[axis]] - 1)
    made = np.eye(4)
    made[:3, :3] = np.diag(SIGNS * spacing)
    made[:3, 3] = origin
    return np.ascontiguousarray(turned), made
