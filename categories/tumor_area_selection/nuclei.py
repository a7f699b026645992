"""Nuclei: outline, chromatin, nucleolus, mitosis."""

import numpy as np
from numpy.typing import NDArray

from categories.tumor_area_selection import cells as c
from categories.tumor_area_selection.kernels import DIRECTIONS, MICRONS, hash32, kernel, noise
from categories.tumor_area_selection.paint import S_MARK2, axis, look, paint_body, paint_round


@kernel
def _swell(u: float, v: float, q: float, irregularity: float, h: int) -> float:
    """Return how much farther out than an ellipse a place of the nucleus counts: waves of two, three and five."""
    if q < 0.2:
        return 1.0
    c2 = (u * u - v * v) / q
    s2 = 2 * u * v / q
    root = np.sqrt(q)
    c1 = u / root
    s1 = v / root
    c3 = c2 * c1 - s2 * s1
    s3 = s2 * c1 + c2 * s1
    c5 = c3 * c2 - s3 * s2
    s5 = s3 * c2 + c3 * s2
    a = DIRECTIONS[h & np.uint32(0xFF)]
    b = DIRECTIONS[(h >> np.uint32(8)) & np.uint32(0xFF)]
    d = DIRECTIONS[(h >> np.uint32(16)) & np.uint32(0xFF)]
    wave = 0.9 * (s2 * a[0] + c2 * a[1]) + 0.7 * (s3 * b[0] + c3 * b[1]) + 0.3 * (s5 * d[0] + c5 * d[1])
    factor: float = 1 + irregularity * wave
    return factor


@kernel
def _nucleus(
    density: NDArray[np.float32],
    cell: NDArray[np.float64],
    row: NDArray[np.float64],
    border: NDArray[np.float32],
    table: NDArray[np.float32],
    x0: int,
    y0: int,
    salts: NDArray[np.uint32],
) -> None:
    """Paint one nucleus: vesicular towards its middle, chromatin clumped, or a plate or two of a mitosis."""
    size = density.shape[1]
    elongation, od, clumping, irregularity, nucleolus, mitosis = look(cell, row, salts)
    ax, ay = axis(cell, border, salts)
    r = cell[c.DIAMETER_UM] / 2 / MICRONS
    if mitosis:
        r *= 0.7
    long = r * np.sqrt(elongation)
    short = r / np.sqrt(elongation)
    h = hash32(int(cell[c.HASH_X]), int(cell[c.HASH_Y]), salts[S_MARK2])
    px = cell[c.X] - x0
    py = cell[c.Y] - y0
    tx = np.float64(h & np.uint32(0x3FF))
    ty = np.float64((h >> np.uint32(10)) & np.uint32(0x3FF))
    nx = (np.float64((h >> np.uint32(20)) & np.uint32(0x3F)) / 64 - 0.5) * 0.8 * short
    ny = (np.float64((h >> np.uint32(26)) & np.uint32(0x3F)) / 64 - 0.5) * 0.8 * short
    reach = long * 1.2 + 2
    for y in range(max(0, int(py - reach)), min(size, int(py + reach) + 1)):
        for x in range(max(0, int(px - reach)), min(size, int(px + reach) + 1)):
            dx = x - px
            dy = y - py
            u = (dx * ax + dy * ay) / long
            v = (dy * ax - dx * ay) / short
            if mitosis == 1:  # anaphase: two plates
                v = (abs(v) - 1.1) * 1.9
            q = u * u + v * v
            if q > 1.8:
                continue
            q *= _swell(u, v, q, irregularity, h)
            if q > 1:
                continue
            edge = np.float32(min(1.0, (1 - q) * r * 0.35))
            chromatin = noise(table, dx * 0.9 + tx, dy * 0.9 + ty)
            value = od * (1 + clumping * max(-1.6, min(1.6, chromatin))) * (0.72 + 0.40 * q * q)
            if nucleolus and (dx - nx) * (dx - nx) + (dy - ny) * (dy - ny) < 0.04 * r * r:
                value = od * 1.25 + 0.3
            density[0, y, x] += edge * (np.float32(max(value, 0.12)) - density[0, y, x])
            density[1, y, x] += edge * (np.float32(0.22) - density[1, y, x])


@kernel
def paint_cells(
    density: NDArray[np.float32],
    cells: NDArray[np.float64],
    rows: NDArray[np.float64],
    border: NDArray[np.float32],
    table: NDArray[np.float32],
    x0: int,
    y0: int,
    salts: NDArray[np.uint32],
) -> None:
    """Paint bodies first, then nuclei, over the ground of a window whose corner is (x0, y0)."""
    size = density.shape[1]
    near = np.zeros(cells.shape[0], np.bool_)
    for k in range(cells.shape[0]):
        reach = 1.6 * cells[k, c.DIAMETER_UM] / MICRONS
        x = cells[k, c.X] - x0
        y = cells[k, c.Y] - y0
        near[k] = -reach < x < size + reach and -reach < y < size + reach
        if near[k] and cells[k, c.KIND] == c.EPITHELIOID:
            paint_body(density, cells[k], rows[int(cells[k, c.REGION])], x0, y0, salts[S_MARK2])
    for k in range(cells.shape[0]):
        if not near[k]:
            continue
        if cells[k, c.KIND] >= c.RED_CELL:
            paint_round(density, cells[k], x0, y0, salts)
        else:
            _nucleus(density, cells[k], rows[int(cells[k, c.REGION])], border, table, x0, y0, salts)
