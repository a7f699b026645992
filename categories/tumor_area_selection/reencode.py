"""A real slide written anew: another cut, turned, without its maker's words, in the format of the synthetic edition."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import openslide
import tifffile
from numpy.typing import NDArray

from categories.tumor_area_selection.mask import Cut
from categories.tumor_area_selection.slide_file import (
    BLOCK_PX,
    TILE_PX,
    WORKERS,
    Picture,
    cut_tiles,
    description,
    encode,
    shrink,
    tiff_options,
)

PER = BLOCK_PX // TILE_PX


def write_cut(source: openslide.OpenSlide, cut: Cut, microns: float, path: Path) -> None:
    """Write the part of a slide that ``cut`` names as a pyramid; level 0 and 1/4 are streamed, the rest is small."""
    width, height = cut.size
    rows, columns = -(-height // BLOCK_PX), -(-width // BLOCK_PX)
    side = BLOCK_PX // 16
    level4: dict[tuple[int, int], bytes] = {}
    level16 = np.full((rows * side, columns * side, 3), 255, np.uint8)

    def block(y: int, x: int) -> dict[tuple[int, int], bytes]:
        picture = read_block(source, cut, x * BLOCK_PX, y * BLOCK_PX)
        quarter = shrink(picture, 4)
        level16[y * side : (y + 1) * side, x * side : (x + 1) * side] = shrink(quarter, 4)
        level4.update({(y * 2 + i, x * 2 + j): data for (i, j), data in _tiles(quarter).items()})
        return {(y * PER + i, x * PER + j): data for (i, j), data in _tiles(picture).items()}

    def level0() -> Iterator[bytes]:
        with ThreadPoolExecutor(WORKERS) as threads:
            for y in range(rows):
                drawn: dict[tuple[int, int], bytes] = {}
                for made in threads.map(lambda x, y=y: block(y, x), range(columns)):
                    drawn |= made
                for row in range(y * PER, min((y + 1) * PER, -(-height // TILE_PX))):
                    for column in range(-(-width // TILE_PX)):
                        yield drawn[row, column]

    options = tiff_options(microns)
    with tifffile.TiffWriter(path, bigtiff=True) as tiff:
        words = description(width, height, microns)
        tiff.write(level0(), shape=(height, width, 3), description=words, **options)
        wide, high = -(-(width // 4) // TILE_PX), -(-(height // 4) // TILE_PX)
        tiles = (level4[y, x] for y in range(high) for x in range(wide))
        tiff.write(tiles, shape=(height // 4, width // 4, 3), subfiletype=1, **options)
        small = level16[: height // 16, : width // 16]
        tiff.write(cut_tiles(small), shape=small.shape, subfiletype=1, **options)
        least = shrink(small[: height // 64 * 4, : width // 64 * 4], 4)
        tiff.write(cut_tiles(least), shape=least.shape, subfiletype=1, **options)


def read_block(source: openslide.OpenSlide, cut: Cut, x: int, y: int) -> Picture:
    """Return a block as shown; what lies beyond the cut is filled with its last pixels."""
    width, height = (min(BLOCK_PX, cut.size[0] - x), min(BLOCK_PX, cut.size[1] - y))
    left, top, wide, high = cut.source_box(x, y, width, height)
    picture = cut.turned(on_glass(np.asarray(source.read_region((left, top), 0, (wide, high)))))
    over = ((0, BLOCK_PX - height), (0, BLOCK_PX - width), (0, 0))
    return np.ascontiguousarray(
        np.pad(picture, over, mode="edge") if height < BLOCK_PX or width < BLOCK_PX else picture
    )


def on_glass(picture: NDArray[np.uint8]) -> Picture:
    """Return colours without alpha; where the scanner recorded nothing there is white."""
    return np.where(picture[..., 3:] == 0, np.uint8(255), picture[..., :3])


def _tiles(picture: Picture) -> dict[tuple[int, int], bytes]:
    """Encode the tiles of a square picture; equal ones (glass that was not scanned) once."""
    found: dict[tuple[int, int], bytes] = {}
    plain: dict[int, bytes] = {}
    for i in range(picture.shape[0] // TILE_PX):
        for j in range(picture.shape[1] // TILE_PX):
            tile = picture[i * TILE_PX : (i + 1) * TILE_PX, j * TILE_PX : (j + 1) * TILE_PX]
            low = int(tile.min())
            if low == int(tile.max()):
                plain[low] = plain.get(low) or encode(tile)
                found[i, j] = plain[low]
            else:
                found[i, j] = encode(tile)
    return found
