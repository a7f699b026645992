"""From regions and cells to optical density: haematoxylin and eosin of a small window."""

import numpy as np
from numpy.typing import NDArray

from categories.tumor_area_selection import cells as c
from categories.tumor_area_selection import tissues as t
from categories.tumor_area_selection.kernels import (
    DIRECTIONS,
    MICRONS,
    between,
    hash32,
    kernel,
    mosaic,
    noise,
    region,
    unit,
)

GRID_PX = 4
"""The ground between the cells is drawn at 1 um and interpolated."""
S_GRAIN, S_SHAPE, S_SHAPE2, S_TURN, S_MARK, S_MARK2 = range(16, 22)


@kernel
def _fibres(
    number: int,
    border: NDArray[np.float32],
    table: NDArray[np.float32],
    x: float,
    y: float,
    grain: float,
) -> float:
    """Return the strength of the collagen texture: along the borders of capsule and walls, else one way per region."""
    if number == t.CAPSULE:
        across = between(border, x, y)
        along = (x + y) * 0.0045
    else:
        d = DIRECTIONS[(number * 37) & 255]
        across = y * d[0] - x * d[1]
        along = (x * d[0] + y * d[1]) * 0.02
    wander = 7 * noise(table, x * 0.012, y * 0.012)
    fine = noise(table, 2 * along + 40, across * 0.55 + 2 * wander)
    return 0.85 * noise(table, along, across * 0.2 + wander + 0.4 * grain) + 0.5 * fine


@kernel
def _ground(
    x: float,
    y: float,
    regions: NDArray[np.uint16],
    rows: NDArray[np.float64],
    border: NDArray[np.float32],
    table: NDArray[np.float32],
    salts: NDArray[np.uint32],
) -> tuple[float, float]:
    """Return haematoxylin and eosin of the ground at a place (level-0 pixels)."""
    number = region(regions, table, x, y)
    if number == t.GLASS:
        return 0.012, 0.012
    row = rows[number]
    speck = unit(int(x), int(y), salts[S_GRAIN]) - 0.5
    grain = noise(table, x * 0.35, y * 0.35) + speck
    if row[t.ADIPOSE] > 0:
        first, second, _own, _dx, _dy = mosaic(x * MICRONS, y * MICRONS, c.ADIPOCYTE_UM, salts[c.S_FAT])
        gap = (second - first) * 26
        wall = max(0.0, 1 - gap * gap * 0.8)
        return 0.01 + 0.05 * wall, 0.02 + 0.40 * wall * (1 + 0.2 * grain)
    z, _ax, _ay = c.zone(row, number, table, x * MICRONS, y * MICRONS, salts)
    if z == c.LUMEN:
        return 0.012, 0.02 + 0.03 * max(grain, 0.0)
    inner = z == c.INNER
    eosin = row[t.EOSIN] if inner else row[t.EOSIN_MATRIX]
    haem = row[t.HAEM] if inner else row[t.HAEM_MATRIX]
    fibre = row[t.FIBRE] if inner else row[t.FIBRE_MATRIX]
    if fibre > 0.05:
        f = _fibres(number, border, table, x, y, grain)
        e = eosin * (1 + 0.2 * grain + 0.36 * fibre * f)
        if fibre > 0.5 and f < -1.2:
            e *= 0.3
    else:
        e = eosin * (1 + 0.24 * grain)
    return max(haem * (1 + 0.35 * grain), 0.01), max(e, 0.015)


@kernel
def paint_ground(
    x0: int,
    y0: int,
    size: int,
    regions: NDArray[np.uint16],
    rows: NDArray[np.float64],
    border: NDArray[np.float32],
    table: NDArray[np.float32],
    salts: NDArray[np.uint32],
) -> NDArray[np.float32]:
    """Return haematoxylin and eosin (2 x size x size) of a window; its corner lies on multiples of the grid."""
    n = size // GRID_PX + 1
    coarse = np.empty((2, n, n), np.float32)
    for i in range(n):
        for j in range(n):
            h, e = _ground(x0 + j * GRID_PX, y0 + i * GRID_PX, regions, rows, border, table, salts)
            coarse[0, i, j] = h
            coarse[1, i, j] = e
    density = np.empty((2, size, size), np.float32)
    for k in range(2):
        for y in range(size):
            i = y // GRID_PX
            v = np.float32(y % GRID_PX) / np.float32(GRID_PX)
            for x in range(size):
                j = x // GRID_PX
                u = np.float32(x % GRID_PX) / np.float32(GRID_PX)
                above = coarse[k, i, j] + (coarse[k, i, j + 1] - coarse[k, i, j]) * u
                below = coarse[k, i + 1, j] + (coarse[k, i + 1, j + 1] - coarse[k, i + 1, j]) * u
                density[k, y, x] = above + (below - above) * v
    return density


@kernel
def paint_body(
    density: NDArray[np.float32], cell: NDArray[np.float64], row: NDArray[np.float64], x0: int, y0: int, salt: int
) -> None:
    """Paint the body of an epithelioid cell: its own tint, and a border as clear as the tissue is cohesive."""
    size = density.shape[1]
    h = hash32(int(cell[c.HASH_X]), int(cell[c.HASH_Y]), salt)
    tint = 1 + 0.30 * (np.float64(h & np.uint32(0xFF)) / 256 - 0.5)
    long = 1 + 0.25 * float((h >> np.uint32(8)) & np.uint32(0xFF)) / 256
    d = DIRECTIONS[(h >> np.uint32(16)) & np.uint32(0xFF)]
    r = min(0.60 * cell[c.SPACING_UM], 1.15 * cell[c.DIAMETER_UM]) / MICRONS
    px = cell[c.X] + 0.25 * r * cell[c.AXIS_X] - x0
    py = cell[c.Y] + 0.25 * r * cell[c.AXIS_Y] - y0
    if cell[c.AXIS_X] != 0.0 or cell[c.AXIS_Y] != 0.0:
        long = 1.5
    eosin = row[t.EOSIN] * tint
    cohesion = row[t.COHESION]
    reach = r * 1.25
    for y in range(max(0, int(py - reach)), min(size, int(py + reach) + 1)):
        for x in range(max(0, int(px - reach)), min(size, int(px + reach) + 1)):
            dx = x - px
            dy = y - py
            if cell[c.AXIS_X] != 0.0 or cell[c.AXIS_Y] != 0.0:
                u = (dx * cell[c.AXIS_X] + dy * cell[c.AXIS_Y]) / r
                v = (dy * cell[c.AXIS_X] - dx * cell[c.AXIS_Y]) / r * long
            else:
                u = (dx * d[0] + dy * d[1]) / r
                v = (dy * d[0] - dx * d[1]) / r * long
            q = u * u + v * v
            if q < 1:
                e = eosin
                if q > 0.72:
                    e += cohesion * (0.10 if q > 0.80 else -0.03)
                density[1, y, x] += np.float32(0.75) * (np.float32(e) - density[1, y, x])


@kernel
def paint_round(
    density: NDArray[np.float32], cell: NDArray[np.float64], x0: int, y0: int, salts: NDArray[np.uint32]
) -> None:
    """Paint a red cell, a macrophage with its debris, or a piece of debris."""
    size = density.shape[1]
    kind = int(cell[c.KIND])
    r = cell[c.DIAMETER_UM] / 2 / MICRONS
    px = cell[c.X] - x0
    py = cell[c.Y] - y0
    hx = int(cell[c.HASH_X])
    hy = int(cell[c.HASH_Y])
    for y in range(max(0, int(py - r)), min(size, int(py + r) + 1)):
        for x in range(max(0, int(px - r)), min(size, int(px + r) + 1)):
            dx = x - px
            dy = y - py
            q = (dx * dx + dy * dy) / (r * r)
            if q > 1:
                continue
            edge = min(1.0, (1 - q) * r * 0.35)
            if kind == c.RED_CELL:
                density[1, y, x] += edge * (0.5 + 0.25 * q - density[1, y, x])
            elif kind == c.DEBRIS:
                density[0, y, x] += edge * (1.1 - density[0, y, x])
                density[1, y, x] += edge * (0.3 - density[1, y, x])
            else:
                density[1, y, x] += edge * (0.19 - density[1, y, x])
                density[0, y, x] += edge * (0.03 - density[0, y, x])
                for s in range(3):
                    bx = (unit(hx, hy + s, salts[S_MARK]) - 0.5) * 1.1 * r
                    by = (unit(hx, hy + s, salts[S_MARK2]) - 0.5) * 1.1 * r
                    small = r * (0.08 + 0.16 * unit(hx, hy + s, salts[S_TURN]))
                    if (dx - bx) * (dx - bx) + (dy - by) * (dy - by) < small * small:
                        density[0, y, x] = 1.25
                        density[1, y, x] = 0.35


@kernel
def look(
    cell: NDArray[np.float64], row: NDArray[np.float64], salts: NDArray[np.uint32]
) -> tuple[float, float, float, float, bool, int]:
    """Return elongation, density, clumping, irregularity, whether a nucleolus shows, and the mitosis (0: none)."""
    hx = int(cell[c.HASH_X])
    hy = int(cell[c.HASH_Y])
    a = unit(hx, hy, salts[S_SHAPE])
    b = unit(hx, hy, salts[S_SHAPE2])
    if cell[c.KIND] == c.LYMPHOCYTE:
        return 1.02 + 0.14 * a, 1.0 + 0.1 * b, 0.3, 0.05, False, 0
    if cell[c.KIND] == c.FIBROBLAST:
        return 3.0 + 1.2 * a, 0.95, 0.2, 0.05, False, 0
    mark = unit(hx, hy, salts[S_MARK])
    if mark < row[t.MITOSIS]:
        return 2.4, 1.5, 0.2, 0.2, False, 1 + int(3 * b)
    elongation = row[t.ELONGATION] * (0.85 + 0.3 * a)
    return (
        elongation,
        row[t.OD] * (0.75 + 0.5 * b),
        row[t.CLUMPING],
        row[t.IRREGULARITY],
        mark > 1 - row[t.NUCLEOLUS],
        0,
    )


@kernel
def axis(cell: NDArray[np.float64], border: NDArray[np.float32], salts: NDArray[np.uint32]) -> tuple[float, float]:
    """Return the long axis of a nucleus: to the lumen in glands, along the collagen for fibroblasts, else any."""
    h = hash32(int(cell[c.HASH_X]), int(cell[c.HASH_Y]), salts[S_TURN])
    d = DIRECTIONS[h & np.uint32(0xFF)]
    ax = ay = 0.0
    if cell[c.KIND] == c.FIBROBLAST:
        if cell[c.REGION] == t.CAPSULE:
            ax = between(border, cell[c.X], cell[c.Y] - 40) - between(border, cell[c.X], cell[c.Y] + 40)
            ay = between(border, cell[c.X] + 40, cell[c.Y]) - between(border, cell[c.X] - 40, cell[c.Y])
        else:
            e = DIRECTIONS[(int(cell[c.REGION]) * 37) & 255]
            ax = e[0]
            ay = e[1]
    elif cell[c.KIND] == c.EPITHELIOID:
        ax = cell[c.AXIS_X]
        ay = cell[c.AXIS_Y]
    length = np.sqrt(ax * ax + ay * ay)
    if length < 1e-6:
        return d[0], d[1]
    ax = ax / length + 0.45 * d[0]
    ay = ay / length + 0.45 * d[1]
    length = np.sqrt(ax * ax + ay * ay)
    return ax / length, ay / length
