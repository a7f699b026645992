"""The clinical edition: a CAMELYON16 slide, cut and turned anew, with gold from the public mask by the 20 % rule."""

import json
from pathlib import Path

import numpy as np
import openslide
from numpy.typing import NDArray

from categories.draw import Draw
from categories.sources.shelf import Shelf
from categories.sources.spec import not_as_published
from categories.tumor_area_selection.mask import SOURCE, STEP, TILE, Cut, Mask, cut_mask, foci, read_mask, tile_list
from categories.tumor_area_selection.reencode import on_glass, write_cut

MICRONS = 0.25
"""Where a slide does not say its own."""
COLOUR = 24
"""Difference between the channels from which a pixel is stained tissue, not glass."""
MARGIN_PX = (512, 6144)
"""Glass kept round the tissue, drawn for each side: the grid then lies otherwise than in the source."""
ALIGN = 64
OUTLINE_STEP = 4


def prepare(draw: Draw, *, public: Path, gold: Path, workspace: Path, sources: Shelf) -> str | None:  # noqa: ARG001
    """Write the same files as the synthetic edition, from the slide that the case names.

    Raises:
        SourceError: slide or mask cannot be had or read, or no tile is positive.
    """
    name = str(draw.spec.clinical["slide"])
    slide_path, mask_path = sources.files(SOURCE, [f"images/{name}.tif", f"masks/{name}_mask.tif"])
    try:
        source = openslide.OpenSlide(str(slide_path))
    except openslide.OpenSlideError as error:
        raise not_as_published(SOURCE, slide_path, f"is no slide that can be read ({error})") from None
    with source:
        width, height = source.dimensions
        mask = read_mask(mask_path, width, height)
        cut = choose_cut(draw, source, mask)
        microns = round(float(source.properties.get(openslide.PROPERTY_NAME_MPP_X, MICRONS)), 4)
        write_cut(source, cut, microns, public / "slide.svs")
    shown = cut_mask(mask, cut)
    tiles = tile_list(shown)
    if not any(tile["tumour"] for tile in tiles):
        raise not_as_published(SOURCE, mask_path, "marks no tile with enough tumour: it is not the slide's own mask")
    rows, columns = -(-shown.shape[0] // TILE), -(-shown.shape[1] // TILE)
    manifest = {
        "slide": "slide.svs",
        "width": cut.size[0],
        "height": cut.size[1],
        "microns_per_pixel": microns,
        "grid": {"tile_size": TILE, "downsample": STEP, "columns": columns, "rows": rows},
    }
    _write_json(public / "manifest.json", manifest)
    truth = {"columns": columns, "rows": rows, "tiles": tiles, "foci": foci(shown, microns)}
    truth["tissue_mm2"] = round(float((shown > 0).sum()) * (microns * STEP / 1000) ** 2, 3)
    _write_json(gold / "tiles.json", truth)
    _write_outline(shown, gold / "tumour.pbm")
    return None


def choose_cut(draw: Draw, source: openslide.OpenSlide, mask: Mask) -> Cut:
    """Return a cut that holds all tissue, with a margin of glass drawn for each side, and a turn."""
    width, height = source.dimensions
    left, top, right, bottom = tissue_box(source, mask)
    rng = draw.rng("cut")
    margins = [int(rng.integers(*MARGIN_PX)) for _ in range(4)]
    x0, y0 = max(0, left - margins[0]) // ALIGN * ALIGN, max(0, top - margins[1]) // ALIGN * ALIGN
    x1, y1 = min(width, right + margins[2]) // ALIGN * ALIGN, min(height, bottom + margins[3]) // ALIGN * ALIGN
    return Cut(x0, y0, x1 - x0, y1 - y0, int(rng.integers(8)))


def tissue_box(source: openslide.OpenSlide, mask: Mask) -> tuple[int, int, int, int]:
    """Return left, top, right, bottom (level-0 pixels) of all stained tissue and of all that the mask marks."""
    level = source.level_count - 1
    picture = on_glass(np.asarray(source.read_region((0, 0), level, source.level_dimensions[level]))).astype(np.int16)
    stained = np.asarray(picture.max(axis=2) - picture.min(axis=2) > COLOUR)
    factor = source.dimensions[0] / source.level_dimensions[level][0]
    boxes = [box for box in (_box(stained, factor), _box(mask > 0, STEP)) if box is not None]
    if not boxes:
        return 0, 0, *source.dimensions
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _box(marked: NDArray[np.bool_], factor: float) -> tuple[int, int, int, int] | None:
    rows, columns = np.flatnonzero(marked.any(axis=1)), np.flatnonzero(marked.any(axis=0))
    if not len(rows):
        return None
    edges = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
    left, top, right, bottom = (int(edge * factor) for edge in edges)
    return left, top, right, bottom


def _write_outline(mask: Mask, path: Path) -> None:
    """Write the tumour as a bitmap, one pixel for 64 x 64 of level 0."""
    marked = (mask == 2)[::OUTLINE_STEP, ::OUTLINE_STEP]
    path.write_bytes(b"P4\n%d %d\n" % (marked.shape[1], marked.shape[0]) + np.packbits(marked, axis=1).tobytes())


def _write_json(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
