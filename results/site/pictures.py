"""Pictures that a trial's own folder is enough for, drawn as SVG from submission and verdict.

With gold: what was hit, missed and wrongly named. Without it: what was submitted, and nothing else.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from results.records import Verdict
from results.site.criteria import criteria_trees
from results.site.curves import roc_and_calibration
from results.site.detail import Painter, Picture
from results.site.svg import drawing, text
from results.trial_folder import TrialFolder

MOST_TILES = 20_000
LARGEST = 2_000
"""Largest tile coordinate that is drawn."""
MARKS = {
    # state: (fill, stroke, word, mark); told apart by the mark as well as by the colour
    "hit": ("#74a7cf", "#1b4f7a", "tumour, named", ""),
    "wrong": ("#f3c88c", "#8a5200", "named, no tumour", "x"),
    "missed": ("#ffffff", "#9b1c1c", "tumour, missed", "o"),
    "named": ("#b9d5ea", "#1b4f7a", "named", ""),
}


def tile_grid(trial: TrialFolder, with_gold: bool) -> Sequence[Picture]:
    """Draw the tiles of a tumour area, one square each."""
    named = _named_tiles(trial)
    wrong = _wrong_tiles(trial) if with_gold else {}
    states = dict.fromkeys(named, "hit" if with_gold else "named")
    states |= {tile: "wrong" if submitted else "missed" for tile, submitted in wrong.items()}
    drawn = {tile: state for tile, state in states.items() if all(0 <= part <= LARGEST for part in tile)}
    if not drawn or len(drawn) > MOST_TILES:
        return []
    used = [state for state in MARKS if state in drawn.values()]
    words = ", ".join(f"{sum(s == state for s in drawn.values())} {MARKS[state][2]}" for state in used)
    return [Picture(f"Tiles: {words}", "image/svg+xml", _grid(drawn, used), f"Grid of tiles: {words}.")]


def _named_tiles(trial: TrialFolder) -> set[tuple[int, int]]:
    """Tiles of the submission; nothing where it does not hold well-formed ones."""
    try:
        tiles = json.loads((trial.submission / "tumor_tiles.json").read_bytes())["tiles"]
        return {(x, y) for x, y in tiles if type(x) is int and type(y) is int}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return set()


def _wrong_tiles(trial: TrialFolder) -> dict[tuple[int, int], bool]:
    return {(t["tile"][0], t["tile"][1]): t["submitted"] for t in _details(trial).get("wrong_tiles", ())}


def _verdict(trial: TrialFolder) -> Verdict | None:
    try:
        return trial.read_verdict()
    except (OSError, ValueError):
        return None


def _details(trial: TrialFolder) -> dict[str, Any]:
    verdict = _verdict(trial)
    return verdict.details if verdict else {}


def _grid(tiles: Mapping[tuple[int, int], str], used: Sequence[str]) -> bytes:
    left, top = min(x for x, _ in tiles), min(y for _, y in tiles)
    columns, rows = max(x for x, _ in tiles) - left + 1, max(y for _, y in tiles) - top + 1
    size = max(3, min(16, 700 // max(columns, rows)))
    parts = [_square((x - left) * size, (y - top) * size, size, state) for (x, y), state in tiles.items()]
    for line, state in enumerate(used):
        y = rows * size + 8 + 18 * line
        parts += [_square(0, y, 14, state), text(20, y + 12, MARKS[state][2])]
    return drawing(max(columns * size, 200), rows * size + 18 * len(used) + 8, parts)


def _square(x: int, y: int, size: int, state: str) -> str:
    fill, stroke, _, mark = MARKS[state]
    square = (
        f'<rect x="{x}" y="{y}" width="{size}" height="{size}" fill="{fill}" stroke="{stroke}" stroke-width="0.7"/>'
    )
    if mark == "x":
        square += f'<path d="M{x} {y}l{size} {size}m0 {-size}l{-size} {size}" stroke="{stroke}" stroke-width="0.7"/>'
    if mark == "o":
        square += f'<circle cx="{x + size / 2}" cy="{y + size / 2}" r="{size / 4}" fill="none" stroke="{stroke}"/>'
    return square


def cluster_bars(trial: TrialFolder, with_gold: bool) -> Sequence[Picture]:
    """Draw the injected errors hit and missed, by family."""
    clusters = _details(trial).get("clusters", ()) if with_gold else ()
    families: dict[str, list[bool]] = {}
    for cluster in clusters:
        families.setdefault(f"{cluster['family']}: {cluster['subtype']}", []).append(bool(cluster["hit"]))
    if not families:
        return []
    unit = 300 / max(len(hits) for hits in families.values())
    parts = []
    for line, (name, hits) in enumerate(sorted(families.items())):
        y, share = 24 * line, sum(hits) * unit
        bar = f'y="{y + 4}" height="16"'
        missed = (len(hits) - sum(hits)) * unit
        parts += [text(4, y + 16, name), f'<rect x="300" {bar} width="{share:.1f}" fill="#74a7cf"/>']
        parts.append(f'<rect x="{300 + share:.1f}" {bar} width="{missed:.1f}" fill="#fff" stroke="#9b1c1c"/>')
        parts.append(text(610, y + 16, f"{sum(hits)} of {len(hits)} hit"))
    svg = drawing(720, 24 * len(families) + 4, parts)
    words = "; ".join(f"{name}: {sum(hits)} of {len(hits)} hit" for name, hits in sorted(families.items()))
    return [Picture("Injected errors hit and missed, by family", "image/svg+xml", svg, words)]


def event_curves(trial: TrialFolder, with_gold: bool) -> Sequence[Picture]:
    """Draw ROC curve and calibration: both are made of labels, so only with gold."""
    verdict = _verdict(trial) if with_gold else None
    return roc_and_calibration(verdict.details, verdict.metrics) if verdict else []


def matching_trees(trial: TrialFolder, with_gold: bool) -> Sequence[Picture]:
    """Draw why trials were missed or listed wrongly."""
    return criteria_trees(_details(trial)) if with_gold else []


PICTURES: dict[str, Painter] = {
    "tumor_area_selection": tile_grid,
    "ehr_data_quality": cluster_bars,
    "ehr_event_modelling": event_curves,
    "clinical_trial_matching": matching_trees,
}
"""Category -> what draws its trials. Pictures that need a task's data are handed to the site by its caller."""
