"""A pathologist's mask of a real slide on the grid of a new one: cut, turned, counted tile by tile."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.sources.spec import not_as_published

SOURCE = "camelyon16"
TUMOUR = 2
"""Value of the CAMELYON16 masks; 1 is other tissue, 0 the rest."""
STEP = 16
"""Level-0 pixels along one pixel of the grid on which tumour is counted."""
TILE = 256
"""Pixels of that grid along a tile."""
POSITIVE_SHARE = 0.20
Mask = NDArray[np.uint8]


@dataclass(frozen=True)
class Cut:
    """Which part of a slide is shown, and how it is turned. Level-0 pixels of the source, multiples of 64."""

    x: int
    y: int
    width: int
    height: int
    turn: int
    """0 to 7: a quarter turn for each of the lower two bits, mirrored where the third is set."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height as shown."""
        return (self.height, self.width) if self.turn % 2 else (self.width, self.height)

    def turned(self, picture: NDArray[Any]) -> NDArray[Any]:
        """Return a picture of the cut as shown."""
        made = np.rot90(picture, self.turn % 4)
        return np.asarray(made[:, ::-1] if self.turn >= 4 else made)

    def source_box(self, x: int, y: int, width: int, height: int) -> tuple[int, int, int, int]:
        """Return (x, y, width, height) in the source of a box as shown."""
        shown_width, _ = self.size
        if self.turn >= 4:
            x = shown_width - x - width
        if self.turn % 4 == 1:
            x, y, width, height = self.width - y - height, x, height, width
        elif self.turn % 4 == 2:
            x, y = self.width - x - width, self.height - y - height
        elif self.turn % 4 == 3:
            x, y, width, height = y, self.height - x - width, height, width
        return self.x + x, self.y + y, width, height


def read_mask(path: Path, width: int, height: int) -> Mask:
    """Return the mask of a whole slide, one pixel for 16 x 16 of level 0, rows down.

    The file's level whose size comes nearest is taken; a pixel is the nearest one of that level.

    Raises:
        SourceError: the file holds no mask.
    """
    try:
        with tifffile.TiffFile(path) as file:
            pages = [page for page in file.pages if isinstance(page, tifffile.TiffPage) and page.samplesperpixel == 1]
            best = min(pages, key=lambda page: abs(page.imagewidth - width / STEP))
            level = best.asarray()
    except (tifffile.TiffFileError, ValueError) as error:
        raise not_as_published(SOURCE, path, f"is no mask that can be read ({type(error).__name__})") from None
    rows = _nearest(-(-height // STEP), height, level.shape[0])
    columns = _nearest(-(-width // STEP), width, level.shape[1])
    return np.asarray(level[np.ix_(rows, columns)], np.uint8)


def _nearest(count: int, length: int, have: int) -> NDArray[np.int64]:
    middles = (np.arange(count) + 0.5) * STEP * have / length
    return np.asarray(np.minimum(middles.astype(np.int64), have - 1))


def cut_mask(mask: Mask, cut: Cut) -> Mask:
    """Return the part of the mask that is shown, as shown."""
    x, y = cut.x // STEP, cut.y // STEP
    return np.asarray(cut.turned(mask[y : y + cut.height // STEP, x : x + cut.width // STEP]))


def tile_list(mask: Mask) -> list[dict[str, Any]]:
    """Return every tile that holds any tumour, with its share of the tile's area within the slide."""
    rows, columns = -(-mask.shape[0] // TILE), -(-mask.shape[1] // TILE)
    found = []
    for y in range(rows):
        for x in range(columns):
            tile = mask[y * TILE : (y + 1) * TILE, x * TILE : (x + 1) * TILE]
            share = float((tile == TUMOUR).mean())
            if share:
                place = {"x": x, "y": y, "share": round(share, 5)}
                found.append({**place, "tumour": share >= POSITIVE_SHARE, "morphology": "metastasis"})
    return found


def foci(mask: Mask, microns: float) -> list[dict[str, Any]]:
    """Return every connected metastasis by AJCC size class, from its area as a disc."""
    labels, count = ndi.label(mask == TUMOUR)
    cell_mm2 = (microns * STEP / 1000) ** 2
    found = []
    for cells in np.bincount(labels.ravel(), minlength=count + 1)[1:]:
        area_mm2 = float(cells) * cell_mm2
        across_mm = 2 * (area_mm2 / np.pi) ** 0.5
        size = "macro" if across_mm > 2 else "micro" if across_mm > 0.2 else "itc"
        found.append({"morphology": "metastasis", "area_mm2": round(area_mm2, 4), "size": size})
    return found
