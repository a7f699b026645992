"""The synthetic edition: a generated lymph-node slide, its grid, and the tumour share of every tile as gold."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from categories.draw import Draw
from categories.tumor_area_selection.deposits import TILE_CELLS
from categories.tumor_area_selection.kernels import MAP_PX, MICRONS
from categories.tumor_area_selection.render import open_slide
from categories.tumor_area_selection.slide_file import write_slide
from categories.tumor_area_selection.slide_map import POSITIVE_SHARE, SlideMap, draw_map
from categories.tumor_area_selection.tissues import MORPHOLOGIES

OUTLINE_STEP = 2
"""The gold's outline has one pixel for so many cells of the map (16 um)."""
CELL_MM2 = (MICRONS * MAP_PX / 1000) ** 2
EPOCH_S = 1_600_000_000


def prepare(draw: Draw, *, public: Path, gold: Path, workspace: Path) -> None:  # noqa: ARG001 (nothing is copied in)
    """Write the slide and its manifest for the agent, the tiles and the outline for the verifier."""
    map_ = draw_map(draw)
    rows, columns = map_.shares.shape
    manifest = {
        "slide": "slide.svs",
        "width": map_.width,
        "height": map_.height,
        "microns_per_pixel": MICRONS,
        "grid": {"tile_size": 256, "downsample": 16, "columns": columns, "rows": rows},
    }
    write_slide(open_slide(draw, map_), public / "slide.svs")
    _write_json(public / "manifest.json", manifest)
    for name in ("slide.svs", "manifest.json"):
        os.utime(public / name, (EPOCH_S, EPOCH_S))
    truth = {"columns": columns, "rows": rows, "tiles": tile_list(map_), "foci": foci(map_)}
    truth["tissue_mm2"] = round(float((map_.regions > 0).sum()) * CELL_MM2, 3)
    _write_json(gold / "tiles.json", truth)
    _write_outline(map_, gold / "tumour.pbm")


def tile_list(map_: SlideMap) -> list[dict[str, Any]]:
    """Return every tile that holds any tumour: place, share, whether it is positive, and its main morphology."""
    by_morphology = [_tile_sums(map_, morphology) for morphology in MORPHOLOGIES]
    found = []
    for y, x in zip(*np.nonzero(map_.shares), strict=True):
        main = int(np.argmax([sums[y, x] for sums in by_morphology]))
        share = round(float(map_.shares[y, x]), 5)
        positive = bool(map_.shares[y, x] >= POSITIVE_SHARE)
        found.append({"x": int(x), "y": int(y), "share": share, "tumour": positive, "morphology": MORPHOLOGIES[main]})
    return found


def foci(map_: SlideMap) -> list[dict[str, Any]]:
    """Return every metastasis with what is left of it after later deposits were painted over, by AJCC size class."""
    cells = np.bincount(map_.exact.ravel(), minlength=len(map_.rows))
    found = []
    for deposit in map_.deposits:
        if deposit.kind == "tumour" and cells[deposit.number]:
            area_mm2 = float(cells[deposit.number]) * CELL_MM2
            across_mm = 2 * (area_mm2 / np.pi) ** 0.5
            size = "macro" if across_mm > 2 else "micro" if across_mm > 0.2 else "itc"
            found.append({"morphology": deposit.morphology, "area_mm2": round(area_mm2, 4), "size": size})
    return found


def _tile_sums(map_: SlideMap, morphology: str) -> NDArray[np.int64]:
    numbers = [d.number for d in map_.deposits if d.kind == "tumour" and d.morphology == morphology]
    rows, columns = map_.shares.shape
    padded = np.zeros((rows * TILE_CELLS, columns * TILE_CELLS), bool)
    padded[: map_.exact.shape[0], : map_.exact.shape[1]] = np.isin(map_.exact, numbers)
    return np.asarray(padded.reshape(rows, TILE_CELLS, columns, TILE_CELLS).sum((1, 3)))


def _write_outline(map_: SlideMap, path: Path) -> None:
    mask = map_.tumour()[::OUTLINE_STEP, ::OUTLINE_STEP]
    path.write_bytes(b"P4\n%d %d\n" % (mask.shape[1], mask.shape[0]) + np.packbits(mask, axis=1).tobytes())


def _write_json(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
