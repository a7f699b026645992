"""Compiled building blocks of the renderer: hash, noise, cells of a Voronoi mosaic.

Only ``+ - * / sqrt floor`` on IEEE numbers, never fused or re-ordered, so that every machine gives the same bytes:
angles come from a table, exponentials too (see ``stain``).
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
MAP_PX = 32
"""Level-0 pixels per cell of the map (8 um)."""
MICRONS = 0.25
"""Micrometres per level-0 pixel."""
TABLE = 1024
_ANGLES = np.arange(256) * (2 * np.pi / 256)
DIRECTIONS: NDArray[np.float64] = np.round(np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1), 6)
"""256 unit vectors."""


def _compiled() -> bool:
    """Choose where machine code is kept: a folder named by the digest of these sources.

    The compiler notices a change of a function's own file only, not of the functions it calls.
    """
    sources = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    digest = hashlib.sha256(b"".join(source for source in sources if b"@kernel" in source))
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "hab-suite" / "kernels" / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    return os.access(folder, os.W_OK)


_CACHE = _compiled()


def kernel(function: F) -> F:
    """Compile to machine code: strict arithmetic, without the GIL, kept on disk for the next process."""
    return cast("F", numba.njit(nogil=True, cache=_CACHE, error_model="numpy")(function))


@kernel
def hash32(x: int, y: int, salt: int) -> int:
    """Return 32 well-mixed bits for a place."""
    mixed = np.uint32(x) * np.uint32(0x9E3779B1) ^ np.uint32(y) * np.uint32(0x85EBCA77) ^ np.uint32(salt)
    h = np.uint32(mixed)  # products are 64 bits wide here: cut at every step
    h = np.uint32(h ^ (h >> np.uint32(15)))
    h = np.uint32(h * np.uint32(0x2C1B3C6D))
    h = np.uint32(h ^ (h >> np.uint32(12)))
    h = np.uint32(h * np.uint32(0x297A2D39))
    return np.uint32(h ^ (h >> np.uint32(15)))  # type: ignore[return-value]


@kernel
def unit(x: int, y: int, salt: int) -> float:
    """Return a number in [0, 1) for a place."""
    return np.float64(hash32(x, y, salt) & np.uint32(0xFFFFFF)) / 16777216.0


@kernel
def noise(table: NDArray[np.float32], x: float, y: float) -> float:
    """Sample the noise table (mean 0, SD 1, period 1024) between its points."""
    fx = np.floor(x)
    fy = np.floor(y)
    i = int(fy)
    j = int(fx)
    fx = x - fx
    fy = y - fy
    i0 = i & 1023
    j0 = j & 1023
    i1 = (i + 1) & 1023
    j1 = (j + 1) & 1023
    a = table[i0, j0] + (table[i0, j1] - table[i0, j0]) * fx
    b = table[i1, j0] + (table[i1, j1] - table[i1, j0]) * fx
    value: float = a + (b - a) * fy
    return value


@kernel
def between(field: NDArray[Any], x: float, y: float) -> float:
    """Read a map between its cells; x and y in level-0 pixels."""
    u = min(max(x / MAP_PX - 0.5, 0.0), field.shape[1] - 1.001)
    v = min(max(y / MAP_PX - 0.5, 0.0), field.shape[0] - 1.001)
    i = int(v)
    j = int(u)
    u -= j
    v -= i
    above = field[i, j] * (1 - u) + field[i, j + 1] * u
    below = field[i + 1, j] * (1 - u) + field[i + 1, j + 1] * u
    value: float = above * (1 - v) + below * v
    return value


@kernel
def region(regions: NDArray[np.uint16], table: NDArray[np.float32], x: float, y: float) -> Any:
    """Return the region at a level-0 place: the map under an irregular warp, its cells smoothed by a vote of four."""
    wx = x + 45 * noise(table, x * 0.021, y * 0.021) + 9 * noise(table, x * 0.09 + 300, y * 0.11)
    wy = y + 45 * noise(table, x * 0.021 + 511, y * 0.021 + 77) + 9 * noise(table, x * 0.09, y * 0.09 + 411)
    u = min(max(wx / MAP_PX - 0.5, 0.0), regions.shape[1] - 1.001)
    v = min(max(wy / MAP_PX - 0.5, 0.0), regions.shape[0] - 1.001)
    i = int(v)
    j = int(u)
    a = regions[i, j]
    b = regions[i, j + 1]
    c = regions[i + 1, j]
    d = regions[i + 1, j + 1]
    if a == b and a == c and a == d:
        return a
    u -= j
    v -= i
    best = a
    top = -1.0
    for q in (a, b, c, d):
        w = (1 - u) * (1 - v) * (a == q) + u * (1 - v) * (b == q) + (1 - u) * v * (c == q) + u * v * (d == q)
        if w > top:
            top = w
            best = q
    return best


@kernel
def mosaic(x: float, y: float, size: float, salt: int) -> tuple[float, float, float, float, float]:
    """Return how far the nearest and next centres are (in sizes), a number of the nearest, and the way there."""
    cx = x / size
    cy = y / size
    ix = int(np.floor(cx))
    iy = int(np.floor(cy))
    first = second = 9.0
    own = dx = dy = 0.0
    for oy in range(-1, 2):
        for ox in range(-1, 2):
            h = hash32(ix + ox, iy + oy, salt)
            px = ix + ox + np.float64(h & np.uint32(0x3FF)) / 1024.0 - cx
            py = iy + oy + np.float64((h >> np.uint32(10)) & np.uint32(0x3FF)) / 1024.0 - cy
            d = px * px + py * py
            if d < first:
                second = first
                first = d
                own = np.float64(h >> np.uint32(20)) / 4096.0
                dx = px
                dy = py
            elif d < second:
                second = d
    first = np.sqrt(first)
    return first, np.sqrt(second), own, dx / (first + 1e-9), dy / (first + 1e-9)
