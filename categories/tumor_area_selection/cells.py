"""Where cells lie: nuclei by kind and density in every region, no two closer than their hard cores, on no grid."""

import numpy as np
from numpy.typing import NDArray

from categories.tumor_area_selection import tissues as t
from categories.tumor_area_selection.kernels import MICRONS, kernel, mosaic, noise, region, unit

CANDIDATE_PX = 18
"""One uniformly placed candidate in each square of 4.5 um."""
HALO_PX = 400
"""Candidates this far outside still decide who stays: five rounds of conflict reach no farther."""
EPITHELIOID, LYMPHOCYTE, FIBROBLAST, RED_CELL, MACROPHAGE, DEBRIS = range(1, 7)
X, Y, DIAMETER_UM, KIND, REGION, HASH_X, HASH_Y, AXIS_X, AXIS_Y, SPACING_UM = range(10)
"""Columns of a cell."""
LUMEN, INNER, MATRIX = range(3)
ADIPOCYTE_UM = 85.0
# Salts: which keyed stream a decision reads.
S_MOSAIC, S_X, S_Y, S_KIND, S_SIZE1, S_SIZE2, S_SIZE3, S_RANK, S_FAT = range(9)


@kernel
def zone(
    row: NDArray[np.float64], number: int, table: NDArray[np.float32], x: float, y: float, salts: NDArray[np.uint32]
) -> tuple[int, float, float]:
    """Return lumen, inner or matrix at a place (um) of a region, and in a gland the way to its centre."""
    pattern = row[t.PATTERN]
    if pattern == 1:
        size = row[t.SCALE]
        wx = x + 9 * noise(table, x * 0.10, y * 0.10) + 16 * noise(table, x * 0.03 + 50, y * 0.03)
        wy = y + 9 * noise(table, x * 0.10 + 99, y * 0.10) + 16 * noise(table, x * 0.03, y * 0.03 + 50)
        first, second, own, dx, dy = mosaic(wx, wy, size, salts[S_MOSAIC] + np.uint32(7919 * number))
        outer = 0.36 + 0.22 * own
        rim = (1.7 + 1.3 * own) * row[t.DIAMETER] / size
        if second - first < 0.06 or first > outer:
            return MATRIX, 0.0, 0.0
        if first < outer - rim:
            return LUMEN, dx, dy
        return INNER, dx, dy
    if pattern == 2:
        s = 5.0 / row[t.SCALE]
        inside = noise(table, x * s + 37 * number, y * s) > row[t.SHARE]
        return (INNER if inside else MATRIX), 0.0, 0.0
    if pattern == 3:
        wx = x + 20 * noise(table, x * 0.05, y * 0.05)
        wy = y + 20 * noise(table, x * 0.05 + 99, y * 0.05)
        first, second, own, dx, dy = mosaic(wx, wy, row[t.SCALE], salts[S_MOSAIC] + np.uint32(7919 * number))
        septum = (6 + 16 * own) / row[t.SCALE]
        return (MATRIX if second - first < septum else INNER), 0.0, 0.0
    return INNER, 0.0, 0.0


@kernel
def _choose(  # noqa: PLR0911 (one return a kind)
    row: NDArray[np.float64], z: int, u: float, g: float, fat_wall: bool
) -> tuple[int, float, float, float]:
    """Return kind, diameter, hard core and spacing (um) of the candidate; kind 0 is none."""
    big = small = spindle = 0.0
    red = row[t.RED_CELLS]
    eater = row[t.MACROPHAGES]
    debris = row[t.DEBRIS]
    if row[t.ADIPOSE] > 0:
        spindle = 1500.0 if fat_wall else 0.0
        eater = debris = 0.0
    elif z == INNER:
        big, small, spindle = row[t.EPITHELIOID], row[t.LYMPHOCYTES], row[t.FIBROBLASTS]
    elif z == MATRIX:
        big, small, spindle = row[t.EPITHELIOID_MATRIX], row[t.LYMPHOCYTES_MATRIX], row[t.FIBROBLASTS_MATRIX]
        eater = debris = 0.0
    else:
        red, small = row[t.RED_CELLS_LUMEN], 60.0
        eater = 0.0
    spacing = 1000 / np.sqrt(big + 1.0)
    core = max(row[t.DIAMETER], 0.6 * spacing)
    small_core = row[t.LYMPHOCYTE_UM] * 0.9
    taken = 0.785e-6 * (
        big * core * core + small * small_core * small_core + spindle * 16 + red * 36 + eater * 200 + debris * 9
    )
    # More candidates than wanted: some fall to the hard cores. 49,383 candidates per mm2.
    f = 1 / (1 - min(taken, 0.47) / 0.56) / 49382.7
    if u < big * f:
        d = row[t.DIAMETER] * (1 + row[t.SPREAD] * g * (1.25 if g > 0 else 0.8))
        d = max(d, 4.5)
        return EPITHELIOID, d, max(d, 0.54 * spacing) * 0.94, spacing
    if u < (big + small) * f:
        d = row[t.LYMPHOCYTE_UM] * (1 + 0.08 * g)
        return LYMPHOCYTE, d, d * 0.88, 0.0
    if u < (big + small + spindle) * f:
        return FIBROBLAST, 6 * (1 + 0.12 * g), 5.0, 0.0
    if u < (big + small + spindle + red) * f:
        return RED_CELL, 6.9 * (1 + 0.05 * g), 5.9, 0.0
    if u < (big + small + spindle + red + eater) * f:
        return MACROPHAGE, 15 * (1 + 0.2 * g), 15.0, 0.0
    if u < (big + small + spindle + red + eater + debris) * f:
        return DEBRIS, 3.4 * (1 + 0.3 * g), 4.0, 0.0
    return 0, 0.0, 0.0, 0.0


@kernel
def _candidates(
    x0: int,
    y0: int,
    side: int,
    regions: NDArray[np.uint16],
    rows: NDArray[np.float64],
    table: NDArray[np.float32],
    salts: NDArray[np.uint32],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the candidates of a square of cells, one row each, and their hard cores and ranks."""
    cells = np.zeros((side * side, 10))
    cores = np.zeros((side * side, 2))
    for k in range(side * side):
        cx = x0 + k % side
        cy = y0 + k // side
        px = (cx + unit(cx, cy, salts[S_X])) * CANDIDATE_PX
        py = (cy + unit(cx, cy, salts[S_Y])) * CANDIDATE_PX
        number = region(regions, table, px, py)
        if number == t.GLASS:
            continue
        row = rows[number]
        x = px * MICRONS
        y = py * MICRONS
        wall = False
        z, ax, ay = INNER, 0.0, 0.0
        if row[t.ADIPOSE] > 0:
            first, second, _own, _dx, _dy = mosaic(x, y, ADIPOCYTE_UM, salts[S_FAT])
            wall = second - first < 0.1
        else:
            z, ax, ay = zone(row, number, table, x, y, salts)
        g = unit(cx, cy, salts[S_SIZE1]) + unit(cx, cy, salts[S_SIZE2]) + unit(cx, cy, salts[S_SIZE3]) - 1.5
        kind, diameter, core, spacing = _choose(row, z, unit(cx, cy, salts[S_KIND]), 2 * g, wall)
        if kind == 0:
            continue
        cells[k] = np.array((px, py, diameter, float(kind), float(number), float(cx), float(cy), ax, ay, spacing))
        cores[k, 0] = core / MICRONS
        cores[k, 1] = unit(cx, cy, salts[S_RANK]) + (1 if kind == MACROPHAGE else 0)
    return cells, cores


@kernel
def _loses(
    k: int,
    side: int,
    reach: int,
    cells: NDArray[np.float64],
    cores: NDArray[np.float64],
    state: NDArray[np.uint8],
) -> int:
    """Return 2 if a candidate that stays is too close, 0 if a stronger undecided one is, else 1."""
    i = k // side
    j = k % side
    answer = 1
    for a in range(max(0, i - reach), min(side, i + reach + 1)):
        for b in range(max(0, j - reach), min(side, j + reach + 1)):
            q = a * side + b
            if q == k or cores[q, 0] == 0 or state[q] == 2:
                continue
            far = (cores[k, 0] + cores[q, 0]) * 0.5
            dx = cells[q, X] - cells[k, X]
            dy = cells[q, Y] - cells[k, Y]
            if dx * dx + dy * dy < far * far:
                if state[q] == 1:
                    return 2
                if cores[q, 1] > cores[k, 1]:
                    answer = 0
    return answer


@kernel
def place_cells(
    x0: int,
    y0: int,
    size: int,
    regions: NDArray[np.uint16],
    rows: NDArray[np.float64],
    table: NDArray[np.float32],
    salts: NDArray[np.uint32],
) -> NDArray[np.float64]:
    """Return the cells of a square window (level-0 pixels) and of a margin round it; windows that overlap agree."""
    ix = (x0 - HALO_PX) // CANDIDATE_PX
    iy = (y0 - HALO_PX) // CANDIDATE_PX
    side = (size + 2 * HALO_PX) // CANDIDATE_PX + 2
    cells, cores = _candidates(ix, iy, side, regions, rows, table, salts)
    state = np.zeros(side * side, np.uint8)
    largest = cores[:, 0].max()
    for _round in range(5):
        new = state.copy()
        for k in range(side * side):
            if cores[k, 0] > 0 and state[k] == 0:
                reach = int((cores[k, 0] + largest) * 0.5 / CANDIDATE_PX) + 1
                new[k] = _loses(k, side, reach, cells, cores, state)
        state = new
    placed: NDArray[np.float64] = cells[state == 1]
    return placed
