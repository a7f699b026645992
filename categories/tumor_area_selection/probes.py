"""Dumb readers: none looks at a nucleus, all must earn 0. ``python probes.py NAME`` | ``--list``."""

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import openslide
from numpy.typing import NDArray

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
SUBMISSION = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
TUMOUR_SHARE = 0.22
"""Mean share of tissue tiles that hold tumour: a reader may know that much."""
Thumbnail = NDArray[np.float64]


def manifest() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "manifest.json").read_text(encoding="utf-8"))
    return found


def tiles_of(words: dict[str, Any]) -> list[list[int]]:
    return [[x, y] for y in range(words["grid"]["rows"]) for x in range(words["grid"]["columns"])]


def pictures(words: dict[str, Any]) -> dict[tuple[int, int], Thumbnail]:
    """Return every tile at downsample 16, as RGB."""
    found = {}
    with openslide.OpenSlide(str(DATA / words["slide"])) as slide:
        level = slide.get_best_level_for_downsample(16.5)
        for x, y in tiles_of(words):
            region = slide.read_region((x * 4096, y * 4096), level, (256, 256))
            rgba = np.asarray(region).astype(np.float64)
            rgba[rgba[..., 3] == 0] = 255
            found[x, y] = rgba[..., :3]
    return found


def otsu(values: NDArray[np.float64]) -> float:
    """Return the threshold that best splits a histogram in two."""
    counts, edges = np.histogram(values, 256, (0, 255))
    middle = (edges[1:] + edges[:-1]) / 2
    below, mean = np.cumsum(counts), np.cumsum(counts * middle)
    above = counts.sum() - below
    ok = (below > 0) & (above > 0)
    split = np.zeros(256)
    split[ok] = below[ok] * above[ok] * (mean[ok] / below[ok] - (mean[-1] - mean[ok]) / above[ok]) ** 2
    return float(middle[split.argmax()])


def saturation(picture: Thumbnail) -> NDArray[np.float64]:
    return np.asarray(picture.max(2) - picture.min(2))


def tissue(found: dict[tuple[int, int], Thumbnail], least: float) -> list[tuple[int, int]]:
    """Return the tiles with at least that share of saturated pixels (Otsu)."""
    limit = otsu(np.concatenate([saturation(p)[::8, ::8].ravel() for p in found.values()]))
    return [tile for tile, picture in found.items() if (saturation(picture) > limit).mean() >= least]


def entropy(picture: Thumbnail) -> float:
    share = np.bincount(picture.mean(2).astype(int).ravel(), minlength=256) / picture[..., 0].size
    share = share[share > 0]
    return float(-(share * np.log(share)).sum())


RULES: dict[str, Callable[[Thumbnail], float]] = {
    "darkest": lambda p: -float(p.mean()),
    "lightest": lambda p: float(p.mean()),
    "bluest": lambda p: float((p[..., 2] - p[..., 0]).mean()),
    "reddest": lambda p: float((p[..., 0] - p[..., 2]).mean()),
    "most_saturated": lambda p: float(saturation(p).mean()),
    "most_entropy": entropy,
    "least_entropy": lambda p: -entropy(p),
    "most_varied": lambda p: float(p[..., 0].std()),
    "least_varied": lambda p: -float(p[..., 0].std()),
}
"""One statistic at downsample 16: the tissue tiles with the highest are named, as many as hold tumour on average."""


def by_rule(name: str) -> list[list[int]]:
    found = pictures(manifest())
    inside = tissue(found, 0.3) or tissue(found, 0.01)
    ranked = sorted(inside, key=lambda tile: -RULES[name](found[tile]))
    return [list(tile) for tile in ranked[: max(1, round(TUMOUR_SHARE * len(ranked)))]]


def many_colours() -> list[list[int]]:
    """Name the tiles with most different colours: what compresses badly."""
    found = pictures(manifest())
    inside = tissue(found, 0.3) or tissue(found, 0.01)
    size = {tile: len(np.unique(found[tile].astype(np.uint8).reshape(-1, 3), axis=0)) for tile in inside}
    ranked = sorted(inside, key=lambda tile: -size[tile])
    return [list(tile) for tile in ranked[: max(1, round(TUMOUR_SHARE * len(ranked)))]]


def centre() -> list[list[int]]:
    """Name the tiles nearest to the middle of the tissue."""
    inside = np.array(tissue(pictures(manifest()), 0.3))
    away = ((inside - inside.mean(0)) ** 2).sum(1)
    order = np.argsort(away, kind="stable")[: max(1, round(TUMOUR_SHARE * len(inside)))]
    return [[int(x), int(y)] for x, y in inside[order]]


PROBES: dict[str, tuple[Callable[[], list[list[int]]], str]] = {
    "empty_list": (list, "an empty list is no answer"),
    "all_tiles": (lambda: tiles_of(manifest()), "the whole grid: precision is the share of tumour"),
    "all_tissue": (lambda: [list(t) for t in tissue(pictures(manifest()), 0.1)], "Otsu on saturation finds tissue"),
    "all_dense_tissue": (lambda: [list(t) for t in tissue(pictures(manifest()), 0.6)], "full tiles are not tumour"),
    "many_colours": (many_colours, "what compresses badly is not tumour"),
    "centre": (centre, "the middle of the tissue is no more tumour than its rim"),
    **{name: (partial(by_rule, name), "a statistic of colour at downsample 16 does not tell tumour") for name in RULES},
}


def main() -> None:
    """Run the probe that was named."""
    if sys.argv[1:] == ["--list"]:
        listing = [
            {"name": name, "expects": "zero", "bound": None, "of": None, "why": why}
            for name, (_, why) in PROBES.items()
        ]
        print(json.dumps(listing))  # noqa: T201 (the contract)
        return
    tiles = PROBES[sys.argv[1]][0]()
    SUBMISSION.mkdir(parents=True, exist_ok=True)
    (SUBMISSION / "tumor_tiles.json").write_text(json.dumps({"tiles": tiles}), encoding="utf-8")


if __name__ == "__main__":
    main()
