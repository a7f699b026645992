"""Draw any window of a slide: every pixel depends only on the map, the keyed salts and its own coordinates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from categories.draw import Draw
from categories.tumor_area_selection import cells as c
from categories.tumor_area_selection.kernels import MAP_PX
from categories.tumor_area_selection.nuclei import paint_cells
from categories.tumor_area_selection.paint import paint_ground
from categories.tumor_area_selection.slide_map import FOCUS, SlideMap
from categories.tumor_area_selection.stain import INK, Stain, develop, draw_stain, scan, soften

WINDOW_PX = 512
MARGIN_PX = 32
"""Drawn round a window, so that blur and noise know no borders."""
_NONE = np.empty((0, 0, 3), np.uint16)


@dataclass(frozen=True)
class Slide:
    """A map with its colours and salts: all that ``draw_window`` needs."""

    map: SlideMap
    stain: Stain
    salts: NDArray[np.uint32]


def open_slide(draw: Draw, map_: SlideMap) -> Slide:
    """Return the slide of a draw; each salt is a keyed stream of its own."""
    salts = np.frombuffer(b"".join(draw.digest("salts", k) for k in range(4)), np.uint32).copy()
    return Slide(map_, draw_stain(draw.rng("stain")), salts)


def cells_near(slide: Slide, x0: int, y0: int, size: int) -> NDArray[np.float64]:
    """Return the cells of a square window (level-0 pixels) and of its margin."""
    m = slide.map
    return c.place_cells(x0, y0, size, m.regions, m.rows, m.table, slide.salts)


def is_empty(slide: Slide, x0: int, y0: int, size: int) -> bool:
    """Tell whether a window shows bare glass; the borders' warp is allowed for."""
    spread = 8
    box = np.s_[
        max(0, y0 // MAP_PX - spread) : (y0 + size) // MAP_PX + spread,
        max(0, x0 // MAP_PX - spread) : (x0 + size) // MAP_PX + spread,
    ]
    return not slide.map.regions[box].any() and not slide.map.overlays[(slice(None), *box)].any()


def draw_window(slide: Slide, cells: NDArray[np.float64], x0: int, y0: int, size: int = WINDOW_PX) -> NDArray[np.uint8]:
    """Return the picture (size x size x 3) of a window whose corner lies on a multiple of 32; ``cells`` cover it."""
    m = slide.map
    x, y, side = x0 - MARGIN_PX, y0 - MARGIN_PX, size + 2 * MARGIN_PX
    density = paint_ground(x, y, side, m.regions, m.rows, m.border, m.table, slide.salts)
    paint_cells(density, cells, m.rows, m.border, m.table, x, y, slide.salts)
    light = develop(density, x, y, m.overlays, m.table, slide.stain.vectors, slide.stain.light, INK)
    box = np.s_[max(0, y // MAP_PX) : (y + side) // MAP_PX + 2, max(0, x // MAP_PX) : (x + side) // MAP_PX + 2]
    sharp = soften(light, 1)
    blurred = soften(sharp, 20) if m.overlays[FOCUS][box].any() else _NONE
    return scan(sharp, blurred, x, y, MARGIN_PX, m.overlays[FOCUS], slide.salts)
