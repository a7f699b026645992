"""What readers of a slide could measure in its tiles: colour, counts, bytes; and, honestly, the nuclei."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import ndimage as ndi
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.metrics import roc_auc_score

from categories.catalog import load_category
from categories.draw import Draw
from categories.seed import case_key
from categories.tumor_area_selection import reference
from categories.tumor_area_selection.render import Slide, cells_near, draw_window, open_slide
from categories.tumor_area_selection.slide_file import encode, shrink
from categories.tumor_area_selection.slide_map import draw_map
from categories.tumor_area_selection.tissues import FAT

FOLDER = Path(__file__).parents[2] / "categories" / "tumor_area_selection"
SIMPLE = ("mean", "red", "blue", "saturation", "red_od", "sd_red_od", "haematoxylin", "count", "dark", "gradient")
COLOUR, COUNT, EIGHT = slice(0, 7), 7, [1, 2, 3, 4, 5, 7, 8, 9]
SCORE = 8
"""Column of the reference's score among the nuclear statistics."""
PATCH_PX = 384
PER_SIDE = 4


def draw_of(case: str, seed: str, scale: str) -> Draw:
    category = load_category(FOLDER)
    return Draw(case=case, spec=category.cases[case], key=case_key(seed, category.id, case, 0), scale=scale)


@dataclass
class Read:
    """One row per patch, and one per tile."""

    slide: np.ndarray
    tile: np.ndarray
    patch_share: np.ndarray
    simple: np.ndarray
    nuclei: np.ndarray
    bytes: np.ndarray
    tile_share: np.ndarray
    tile_slide: np.ndarray
    layout: np.ndarray
    """Per tile: share of tissue, and of tissue within the tile's rim."""


def simple_statistics(rgb: np.ndarray) -> list[float]:
    """Colour at downsample 16; nuclei counted, dark area and gradient at level 0: the shortcuts."""
    small = shrink(rgb, 16).astype(float)
    od = -np.log(np.clip(small, 1, 243) / 243)
    red = reference.red_density(rgb)
    dark = ndi.binary_opening(red > 0.55, np.ones((5, 5)))
    labels, _ = ndi.label(dark)
    sizes = np.bincount(labels.ravel())[1:]
    return [
        small.mean(), small[..., 0].mean(), small[..., 2].mean(), (small.max(2) - small.min(2)).mean(),
        od[..., 0].mean(), od[..., 0].std(), od[..., 0].mean() - 0.5 * od[..., 1].mean(),
        float((sizes > 120).sum()), dark.mean(), np.abs(np.diff(red, axis=0)).mean(),
    ]  # fmt: skip


def nuclear_statistics(rgb: np.ndarray) -> list[float]:
    """Size, pleomorphism, density and chromatin of the nuclei, by class of size."""
    found = reference.nuclei(rgb)
    d, density, spread = found["diameter_um"], found["density"], found["spread"]
    row = [float(len(d))]
    if len(d) < 5:
        return row + [0.0] * 32
    row += [*np.percentile(d, [10, 25, 50, 75, 90, 97]), d.std() / d.mean(), reference.window_score(rgb)]
    for low, high in ((0, 5.5), (5.5, 7), (7, 8.5), (8.5, 10), (10, 99)):
        inside = (d > low) & (d <= high)
        row += [inside.mean()]
        row += (
            [density[inside].mean(), density[inside].std(), spread[inside].mean(), np.percentile(spread[inside], 90)]
            if inside.any()
            else [0.0] * 4
        )
    return [*row[:33], *[0.0] * (33 - len(row))]


def read_slide(job: tuple[str, str, str]) -> Read:
    """Draw and measure a grid of patches in every tissue tile (a quarter of it neither glass nor fat) of one slide."""
    map_ = draw_map(draw_of(*job))
    slide = open_slide(draw_of(*job), map_)
    tumour = map_.tumour()
    rows: list[tuple] = []
    tiles: list[tuple] = []
    for y, x in np.ndindex(map_.shares.shape):
        box = np.s_[y * 128 : (y + 1) * 128, x * 128 : (x + 1) * 128]
        solid = map_.regions[box] > FAT
        if solid.mean() < 0.25:
            continue
        tiles.append((map_.shares[y, x], (map_.regions[box] > 0).mean(), solid[8:-8, 8:-8].mean()))
        for i, j in np.ndindex(PER_SIDE, PER_SIDE):
            py, px = (
                k * 4096 + ((2 * m + 1) * 4096 // (2 * PER_SIDE) - PATCH_PX // 2) // 32 * 32
                for k, m in ((y, i), (x, j))
            )
            here = np.s_[py // 32 : (py + PATCH_PX) // 32, px // 32 : (px + PATCH_PX) // 32]
            if (
                map_.regions[here].size < 100
                or (map_.regions[here] > 0).mean() < 0.3
                or map_.overlays[(slice(0, 2), *here)].mean() > 60
            ):
                continue
            rgb = patch(slide, px, py)
            rows.append(
                (len(tiles) - 1, tumour[here].mean(), simple_statistics(rgb), nuclear_statistics(rgb), len(encode(rgb)))
            )
    t, share, simple, nuclei, size = zip(*rows, strict=True)
    tile = np.array(tiles)
    return Read(
        np.array([hash(job)] * len(t)),
        np.array(t),
        np.array(share),
        np.array(simple),
        np.array(nuclei),
        np.array(size, float),
        tile[:, 0],
        np.array([hash(job)] * len(tile)),
        tile[:, 1:],
    )


def patch(slide: Slide, x: int, y: int) -> np.ndarray:
    return draw_window(slide, cells_near(slide, x, y, PATCH_PX), x, y, PATCH_PX)


def read_slides(jobs: list[tuple[str, str, str]], workers: int = 2) -> Read:
    """Read several slides; simple statistics are divided by the slide's median, as a tuned shortcut would."""
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(read_slide, jobs))
    offset = 0
    for k, read in enumerate(found):
        read.slide[:] = k
        read.tile_slide[:] = k
        read.tile += offset
        offset += len(read.tile_share)
        read.simple /= np.median(np.abs(read.simple), axis=0) + 1e-6
        read.bytes /= np.median(read.bytes)
    names = Read.__dataclass_fields__
    return Read(**{name: np.concatenate([getattr(read, name) for read in found]) for name in names})


def by_tile(read: Read, values: np.ndarray) -> np.ndarray:
    """Return the mean over the patches of each tile."""
    return np.array(
        [
            values[read.tile == k].mean(axis=0) if (read.tile == k).any() else np.zeros(values.shape[1:])
            for k in range(len(read.tile_share))
        ]
    )


def held_out(make, features: np.ndarray, labels: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the probability of each row from a model trained on the other slides."""
    out = np.zeros(len(features))
    for group in np.unique(groups):
        test = groups == group
        out[test] = make().fit(features[~test], labels[~test]).predict_proba(features[test])[:, 1]
    return out


def forest():
    return RandomForestClassifier(300, min_samples_leaf=3, random_state=0, n_jobs=1)


def trees():
    return ExtraTreesClassifier(300, min_samples_leaf=4, max_features=0.4, random_state=0, n_jobs=1)


def limits(labels: np.ndarray, score: np.ndarray, groups: np.ndarray, seed: int = 0) -> tuple[float, float, float]:
    """Return the AUROC and its 95 % limits from 1,000 draws of slides with replacement."""
    rng = np.random.default_rng(seed)
    names = np.unique(groups)
    members = [np.flatnonzero(groups == name) for name in names]
    drawn = []
    for _ in range(1000):
        rows = np.concatenate([members[k] for k in rng.integers(len(names), size=len(names))])
        if 0 < labels[rows].sum() < len(rows):
            drawn.append(roc_auc_score(labels[rows], score[rows]))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(roc_auc_score(labels, score)), float(low), float(high)


def bounds(read: Read) -> dict[str, tuple[float, float, float]]:
    """Return AUROC and limits of every shortcut (turned the way that serves it) and of the nuclei."""
    labels = read.tile_share >= 0.2
    simple = by_tile(read, read.simple)
    out = {}
    for k, name in enumerate(SIMPLE):
        found = limits(labels, simple[:, k], read.tile_slide)
        out[name] = found if found[0] >= 0.5 else (1 - found[0], 1 - found[2], 1 - found[1])
    found = limits(labels, by_tile(read, read.bytes), read.tile_slide)
    out["bytes"] = found if found[0] >= 0.5 else (1 - found[0], 1 - found[2], 1 - found[1])
    out["forest_tiles"] = limits(labels, held_out(forest, simple[:, EIGHT], labels, read.tile_slide), read.tile_slide)
    patches = held_out(trees, read.simple[:, EIGHT], read.patch_share > 0.5, read.slide)
    out["forest_patches"] = limits(labels, by_tile(read, patches), read.tile_slide)
    patches = held_out(trees, read.nuclei, read.patch_share > 0.5, read.slide)
    out["nuclei"] = limits(labels, by_tile(read, patches), read.tile_slide)
    counted = np.minimum(read.nuclei[:, SCORE], reference.TYPICAL_PER_MM2)
    out["wide_nuclei"] = limits(labels, by_tile(read, counted), read.tile_slide)
    out["nuclei_squared"] = limits(labels, by_tile(read, patches**2), read.tile_slide)
    return out
