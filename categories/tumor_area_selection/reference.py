"""Honest solver: find the tissue, read it at full resolution in a grid of windows, call windows by their nuclei.

Carcinoma nuclei are 1.5 to 3 times as wide as lymphocytes, vary in size and have coarse chromatin. A window is tumour
where enough such nuclei lie; the map of windows is smoothed; a tile is tumour where a fifth of it is.
"""

import json
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import openslide
from numpy.typing import NDArray
from scipy import ndimage as ndi

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
OUT = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
TILE_PX = 4096
PER_SIDE = 4
"""Windows along a tile."""
WINDOW_PX = 608
MICRONS = 0.25
WIDE_UM = 9.8
"""Inscribed diameter from which a nucleus is no lymphocyte, endothelium or histiocyte."""
WIDE_PER_MM2 = 100
"""Density of wide nuclei from which the smoothed map is called tumour."""
TYPICAL_PER_MM2 = 300
"""What tumour reaches nearly everywhere: more counts no more."""


def red_density(rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the optical density in red, where haematoxylin absorbs and eosin hardly does."""
    return -np.log(np.clip(rgb[..., 0].astype(np.float32), 1, 243) / 243)


def otsu(values: NDArray[Any]) -> float:
    """Return the threshold that best splits a histogram of 128 bins in two."""
    counts, edges = np.histogram(values, 128)
    middle = (edges[1:] + edges[:-1]) / 2
    below = np.cumsum(counts)
    above = counts.sum() - below
    mean = np.cumsum(counts * middle)
    ok = (below > 0) & (above > 0)
    between = np.zeros(len(counts))
    low, high = mean[ok] / below[ok], (mean[-1] - mean[ok]) / above[ok]
    between[ok] = below[ok] * above[ok] * (low - high) ** 2
    return float(middle[between.argmax()])


def nuclei(rgb: NDArray[np.uint8]) -> dict[str, NDArray[np.float64]]:
    """Return the nuclei of a window: inscribed diameter (um), mean density, spread of the density within."""
    density = ndi.gaussian_filter(red_density(rgb), 1.8)
    mask = ndi.binary_closing(density > np.clip(otsu(np.clip(density, 0, 2)), 0.25, 0.45), np.ones((3, 3)))
    mask = ndi.binary_fill_holes(ndi.binary_opening(mask, np.ones((3, 3)), iterations=2))
    inside = ndi.distance_transform_edt(mask)
    smooth = ndi.gaussian_filter(inside, 3)
    peaks = np.argwhere((smooth == ndi.maximum_filter(smooth, 15)) & (smooth > 5))
    peaks = peaks[(peaks > 12).all(1) & (peaks < rgb.shape[0] - 12).all(1)]
    y, x = peaks[:, 0], peaks[:, 1]
    mean = ndi.uniform_filter(density, 13)
    spread = np.sqrt(np.maximum(ndi.uniform_filter(density * density, 13) - mean * mean, 0))
    return {"diameter_um": 2 * inside[y, x] * MICRONS, "density": mean[y, x], "spread": spread[y, x]}


def window_score(rgb: NDArray[np.uint8]) -> float:
    """Return the density (per mm2) of nuclei that are wide and no blot."""
    found = nuclei(rgb)
    wide = (found["diameter_um"] > WIDE_UM) & (found["diameter_um"] < 22) & (found["spread"] > 0.03)
    return float(wide.sum() / (WINDOW_PX * MICRONS / 1000) ** 2)


def tissue_share(slide: openslide.OpenSlide, columns: int, rows: int) -> NDArray[np.float64]:
    """Return the share of coloured pixels in each window's square, from the third level."""
    level = slide.level_count - 1
    small = np.asarray(slide.read_region((0, 0), level, slide.level_dimensions[level]).convert("RGB")).astype(int)
    coloured = (small.max(2) - small.min(2) > 24).astype(float)
    step = TILE_PX / PER_SIDE / slide.level_downsamples[level]
    shares = np.zeros((rows * PER_SIDE, columns * PER_SIDE))
    for i, j in np.ndindex(shares.shape):
        part = coloured[int(i * step) : int((i + 1) * step), int(j * step) : int((j + 1) * step)]
        shares[i, j] = part.mean() if part.size else 0
    return shares


def score_row(job: tuple[str, int, list[int]]) -> list[tuple[int, int, float]]:
    """Score the windows of one row."""
    path, row, places = job
    inset = (TILE_PX // PER_SIDE - WINDOW_PX) // 2
    y = row * TILE_PX // PER_SIDE + inset
    found = []
    with openslide.OpenSlide(path) as slide:
        for column in places:
            x = column * TILE_PX // PER_SIDE + inset
            rgb = np.asarray(slide.read_region((x, y), 0, (WINDOW_PX, WINDOW_PX)).convert("RGB"))
            found.append((row, column, window_score(rgb)))
    return found


def score_map(path: Path, columns: int, rows: int) -> NDArray[np.float64]:
    """Return the score of every window with tissue, 0 elsewhere."""
    with openslide.OpenSlide(path) as slide:
        shares = tissue_share(slide, columns, rows)
    jobs = [(str(path), i, [int(j) for j in np.flatnonzero(shares[i] > 0.25)]) for i in range(len(shares))]
    scores = np.zeros(shares.shape)
    with ProcessPoolExecutor(int(os.environ.get("HAB_WORKERS", os.cpu_count() or 1))) as workers:
        for row in workers.map(score_row, jobs):
            for i, j, score in row:
                scores[i, j] = score
    return scores


def tumour_tiles(scores: NDArray[np.float64], width: int, height: int) -> list[list[int]]:
    """Return the tiles of which a fifth is tumour, from the smoothed scores of windows."""
    smooth = ndi.gaussian_filter(np.minimum(scores, TYPICAL_PER_MM2), 0.8)
    called = smooth > WIDE_PER_MM2
    tiles = []
    for y, x in np.ndindex(scores.shape[0] // PER_SIDE, scores.shape[1] // PER_SIDE):
        part = called[y * PER_SIDE : (y + 1) * PER_SIDE, x * PER_SIDE : (x + 1) * PER_SIDE]
        inside = min(1.0, width / TILE_PX - x) * min(1.0, height / TILE_PX - y)
        if part.mean() / inside >= 0.2:
            tiles.append([x, y])
    return tiles


def main() -> None:
    """Read the slide, write the tiles."""
    manifest = json.loads((DATA / "manifest.json").read_text(encoding="utf-8"))
    columns, rows = manifest["grid"]["columns"], manifest["grid"]["rows"]
    scores = score_map(DATA / manifest["slide"], columns, rows)
    tiles = tumour_tiles(scores, manifest["width"], manifest["height"])
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "tumor_tiles.json").write_text(json.dumps({"tiles": tiles}), encoding="utf-8")


if __name__ == "__main__":
    main()
