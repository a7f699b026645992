"""A picture of a slide: its thumbnail under the grid of tiles, and the gold where it is given."""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import openslide
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

DETAIL_PX = 1024
"""Level-0 pixels along each of the four details beside the thumbnail."""


MARKS = {"hit": ("#1b4f7a", "/"), "wrong": ("#8a5200", "x"), "missed": ("#9b1c1c", "o"), "named": ("#1b4f7a", "/")}
"""State of a tile -> colour and hatching: told apart without colour too."""


def draw_figure(public: Path, gold: Path | None, out: Path, submission: Path | None = None) -> None:
    """Write the thumbnail with the grid and four details at full resolution.

    ``gold`` adds outline and shares; ``submission`` the tiles that were named, with gold as hit, wrong and missed.
    """
    manifest = json.loads((public / "manifest.json").read_text(encoding="utf-8"))
    tiles = json.loads((gold / "tiles.json").read_text(encoding="utf-8"))["tiles"] if gold else []
    with openslide.OpenSlide(str(public / manifest["slide"])) as slide, mpl.rc_context({"font.size": 7}):
        level = slide.level_count - 1
        thumbnail = np.asarray(slide.read_region((0, 0), level, slide.level_dimensions[level]).convert("RGB"))
        figure = Figure(figsize=(15, 9.5), layout="constrained")
        grid = figure.add_gridspec(2, 4)
        axes = figure.add_subplot(grid[:, :2])
        _overview(axes, thumbnail, manifest)
        if gold:
            _overlay(axes, gold, tiles, manifest)
        if submission:
            _answer(axes, _named(submission, manifest), {(t["x"], t["y"]) for t in tiles if t["tumour"]}, bool(gold))
        for number, (x, y) in enumerate(_places(thumbnail, tiles, manifest)):
            corner = (int(x) - DETAIL_PX // 2, int(y) - DETAIL_PX // 2)
            detail = figure.add_subplot(grid[number // 2, 2 + number % 2])
            detail.imshow(slide.read_region(corner, 0, (DETAIL_PX, DETAIL_PX)).convert("RGB"))
            detail.set_title(f"tile [{int(x) // 4096}, {int(y) // 4096}], {DETAIL_PX * 0.25:.0f} um across")
            detail.axis("off")
            axes.plot(x, y, "+", color="black", markersize=8)
        figure.savefig(out, dpi=90)


def _overview(axes: Axes, thumbnail: np.ndarray, manifest: dict) -> None:  # type: ignore[type-arg]
    """Show the thumbnail in level-0 pixels, columns and rows numbered as in the submission."""
    width, height, grid = manifest["width"], manifest["height"], manifest["grid"]
    axes.imshow(thumbnail, extent=(0, width, height, 0), interpolation="antialiased")
    axes.set_xticks([4096 * k for k in range(grid["columns"])], [str(k) for k in range(grid["columns"])])
    axes.set_yticks([4096 * k for k in range(grid["rows"])], [str(k) for k in range(grid["rows"])])
    axes.grid(color="0.6", linewidth=0.4)
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)


def _overlay(axes: Axes, gold: Path, tiles: list, manifest: dict) -> None:  # type: ignore[type-arg]
    """Draw the outline of the tumour and the share of every tile that holds some."""
    with Image.open(gold / "tumour.pbm") as image:
        mask = ~np.asarray(image)  # ones are black in this format
    axes.contour(
        mask.astype(float), [0.5], colors="red", linewidths=0.8, extent=(0, manifest["width"], 0, manifest["height"])
    )
    for tile in tiles:
        colour = "red" if tile["tumour"] else "0.35"
        axes.text(tile["x"] * 4096 + 200, tile["y"] * 4096 + 1000, f"{tile['share']:.0%}", color=colour, fontsize=5)


def _named(submission: Path, manifest: dict) -> set[tuple[int, int]]:  # type: ignore[type-arg]
    """Return the tiles of a submission within the grid; none where it does not hold well-formed ones."""
    grid = manifest["grid"]
    try:
        tiles = json.loads((submission / "tumor_tiles.json").read_bytes())["tiles"]
        found = {(x, y) for x, y in tiles if type(x) is int and type(y) is int}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return set()
    return {(x, y) for x, y in found if 0 <= x < grid["columns"] and 0 <= y < grid["rows"]}


def _answer(axes: Axes, named: set[tuple[int, int]], tumour: set[tuple[int, int]], judged: bool) -> None:
    """Hatch the tiles by their state, and say what each hatching means."""
    states = {"named": named}
    if judged:
        states = {"hit": named & tumour, "wrong": named - tumour, "missed": tumour - named}
    for state, tiles in states.items():
        colour, hatch = MARKS[state]
        style: dict[str, Any] = {"edgecolor": colour, "hatch": hatch, "fill": False, "linewidth": 1.2}
        for x, y in tiles:
            axes.add_patch(Rectangle((x * 4096, y * 4096), 4096, 4096, **style))
        axes.add_patch(Rectangle((0, 0), 0, 0, label=f"{state}: {len(tiles)}", **style))
    axes.legend(loc="upper right", framealpha=0.9)


def _places(thumbnail: np.ndarray, tiles: list, manifest: dict) -> np.ndarray:  # type: ignore[type-arg]
    """Return four places (level-0 x, y): spread over the tissue, or with gold the fullest tile of each morphology."""
    if tiles:
        best = sorted(tiles, key=lambda tile: -tile["share"])
        chosen: dict[str, dict] = {}  # type: ignore[type-arg]
        for tile in best:
            chosen.setdefault(tile["morphology"], tile)
        rest = [tile for tile in best if tile not in chosen.values()]
        return np.array([[t["x"] * 4096 + 2048, t["y"] * 4096 + 2048] for t in [*chosen.values(), *rest][:4]])
    coloured = np.argwhere(np.ptp(thumbnail.astype(int), axis=2) > 50)
    picks = coloured[(np.linspace(0.2, 0.8, 4) * len(coloured)).astype(int)]
    return np.asarray(picks[:, ::-1] * (manifest["width"] / thumbnail.shape[1]))
