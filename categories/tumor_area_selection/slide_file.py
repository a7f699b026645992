"""The slide as a scanner would write it: a pyramid of JPEG tiles in a BigTIFF, streamed row by row."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import tifffile
from numpy.typing import NDArray

from categories.tumor_area_selection.kernels import MICRONS
from categories.tumor_area_selection.render import WINDOW_PX, Slide, cells_near, draw_window, is_empty
from categories.tumor_area_selection.stain import glass

TILE_PX = 512
BLOCK_PX = 4096
"""Cells are placed, and levels reduced, by blocks of this size."""
QUALITY = 75
LEVELS = (1, 4, 16, 64)
WORKERS = 2
AHEAD = 4
"""Blocks in work or waiting beyond the one that is written: what bounds the memory."""
POOL = 64
"""Different tiles of bare glass; each place takes one by its hash."""
Picture = NDArray[np.uint8]


@dataclass
class _Pyramid:
    """What the drawing of level 0 leaves behind for the others."""

    slide: Slide
    glass: list[bytes]
    """Tiles of bare glass for level 0."""
    glass4: list[bytes]
    """The same for the level above, where the noise is averaged."""
    level4: dict[tuple[int, int], bytes] = field(default_factory=dict)
    level16: Picture = field(default_factory=lambda: np.empty((0, 0, 3), np.uint8))


def encode(picture: Picture) -> bytes:
    """Return a baseline JPEG, YCbCr 4:2:0: integer transform, fixed tables, the same bytes everywhere."""
    return bytes(
        imagecodecs.jpeg8_encode(
            np.ascontiguousarray(picture),
            level=QUALITY,
            colorspace="RGB",
            outcolorspace="YCBCR",
            subsampling="420",
            optimize=False,
        )
    )


def shrink(picture: Picture, factor: int) -> Picture:
    """Return the mean over squares of ``factor`` pixels, rounded; sides are multiples of it."""
    height, width = picture.shape[0] // factor, picture.shape[1] // factor
    total = picture.reshape(height, factor, width, factor, 3).sum(axis=(1, 3), dtype=np.uint32)
    return np.asarray((total + factor * factor // 2) // (factor * factor), np.uint8)


def description(width: int, height: int, microns: float) -> str:
    """Return what an Aperio scanner writes into the first page."""
    return (
        f"Aperio Image Library v12.0.15 \r\n{width}x{height} [0,0 {width}x{height}] ({TILE_PX}x{TILE_PX}) "
        f"JPEG/RGB Q={QUALITY}|AppMag = 40|MPP = {microns:.4f}"
    )


def tiff_options(microns: float) -> dict[str, Any]:
    """Return how all levels are written."""
    per_cm = round(10_000 / microns)
    return {
        "tile": (TILE_PX, TILE_PX), "photometric": "ycbcr", "compression": "jpeg", "subsampling": (2, 2),
        "metadata": None, "dtype": np.uint8, "software": False, "resolution": (per_cm, per_cm),
        "resolutionunit": "CENTIMETER",
    }  # fmt: skip


def write_slide(slide: Slide, path: Path) -> None:
    """Render the slide into a BigTIFF that OpenSlide opens as an Aperio file; memory does not grow with its size."""
    height, width = slide.map.height, slide.map.width
    pool = [glass(slide.stain, k, TILE_PX, slide.salts) for k in range(POOL)]
    quarters = [np.tile(shrink(tile, 4), (4, 4, 1)) for tile in pool]
    pyramid = _Pyramid(slide, [encode(tile) for tile in pool], [encode(tile) for tile in quarters])
    blocks = (-(-height // BLOCK_PX), -(-width // BLOCK_PX))
    side = BLOCK_PX // 16
    small = shrink(pool[0], 16)
    pyramid.level16 = np.tile(small, (blocks[0] * side // len(small) + 1, blocks[1] * side // len(small) + 1, 1))
    words, options = description(width, height, MICRONS), tiff_options(MICRONS)
    with tifffile.TiffWriter(path, bigtiff=True) as tiff:
        tiff.write(_level0(pyramid, blocks), shape=(height, width, 3), description=words, **options)
        rows, columns = -(-height // 4 // TILE_PX), -(-width // 4 // TILE_PX)
        tiles = (pyramid.level4.get((y, x), _bare(pyramid.glass4, y, x)) for y in range(rows) for x in range(columns))
        tiff.write(tiles, shape=(height // 4, width // 4, 3), subfiletype=1, **options)
        level16 = pyramid.level16[: height // 16, : width // 16]
        tiff.write(cut_tiles(level16), shape=level16.shape, subfiletype=1, **options)
        level64 = shrink(level16[: height // 64 * 4, : width // 64 * 4], 4)
        tiff.write(cut_tiles(level64), shape=level64.shape, subfiletype=1, **options)


def _bare(pool: list[bytes], row: int, column: int) -> bytes:
    return pool[(row * 29 + column * 13 + (row * column) % 17) % POOL]


def cut_tiles(level: Picture) -> Iterator[bytes]:
    """Yield the encoded tiles of a level held in memory; what hangs over is filled with its last pixels."""
    rows, columns = -(-level.shape[0] // TILE_PX), -(-level.shape[1] // TILE_PX)
    over = ((0, rows * TILE_PX - level.shape[0]), (0, columns * TILE_PX - level.shape[1]), (0, 0))
    padded = np.pad(level, over, mode="edge")
    for y in range(rows):
        for x in range(columns):
            yield encode(padded[y * TILE_PX : (y + 1) * TILE_PX, x * TILE_PX : (x + 1) * TILE_PX])


def _level0(pyramid: _Pyramid, blocks: tuple[int, int]) -> Iterator[bytes]:
    """Yield the tiles of level 0 in the order of the file, drawn by two threads a few blocks ahead."""
    m = pyramid.slide.map
    rows, columns = -(-m.height // TILE_PX), -(-m.width // TILE_PX)
    per = BLOCK_PX // TILE_PX
    waiting: deque[Future[dict[tuple[int, int], bytes]]] = deque()
    order = iter([(y, x) for y in range(blocks[0]) for x in range(blocks[1])])
    with ThreadPoolExecutor(WORKERS) as threads:

        def submit() -> None:
            place = next(order, None)
            if place is not None:
                waiting.append(threads.submit(_block, pyramid, *place))

        for _ in range(AHEAD):
            submit()
        for y in range(blocks[0]):
            drawn: dict[tuple[int, int], bytes] = {}
            for _x in range(blocks[1]):
                drawn |= waiting.popleft().result()
                submit()
            for row in range(y * per, min((y + 1) * per, rows)):
                for column in range(columns):
                    yield drawn.get((row, column)) or _bare(pyramid.glass, row, column)


def _block(pyramid: _Pyramid, row: int, column: int) -> dict[tuple[int, int], bytes]:
    """Draw a block's tiles that are not bare glass, and put its share into the levels above."""
    slide = pyramid.slide
    y0, x0 = row * BLOCK_PX, column * BLOCK_PX
    if is_empty(slide, x0, y0, BLOCK_PX):
        return {}
    cells = cells_near(slide, x0, y0, BLOCK_PX)
    quarter = np.tile(shrink(glass(slide.stain, 0, TILE_PX, slide.salts), 4), (8, 8, 1))
    tiles: dict[tuple[int, int], bytes] = {}
    per = BLOCK_PX // TILE_PX
    for i in range(per):
        for j in range(per):
            y, x = y0 + i * WINDOW_PX, x0 + j * WINDOW_PX
            if y >= slide.map.height or x >= slide.map.width or is_empty(slide, x, y, WINDOW_PX):
                continue
            picture = draw_window(slide, cells, x, y)
            tiles[row * per + i, column * per + j] = encode(picture)
            quarter[i * 128 : (i + 1) * 128, j * 128 : (j + 1) * 128] = shrink(picture, 4)
    if tiles:
        side = BLOCK_PX // 16
        pyramid.level16[row * side : (row + 1) * side, column * side : (column + 1) * side] = shrink(quarter, 4)
        for i in range(2):
            for j in range(2):
                part = quarter[i * TILE_PX : (i + 1) * TILE_PX, j * TILE_PX : (j + 1) * TILE_PX]
                pyramid.level4[row * 2 + i, column * 2 + j] = encode(part)
    return tiles
