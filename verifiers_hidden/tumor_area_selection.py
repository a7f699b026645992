"""Tumour area selection: the F1 score of a set of tiles."""

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verifiers_hidden import kit
from verifiers_hidden.kit import GoldError, Reason, Refused, Verdict

FILE = "tumor_tiles.json"
KEY = "tiles"
Tile = tuple[int, int]


@dataclass(frozen=True)
class Gold:
    """The grid, the tumour tiles with their main morphology, and every tile's tumour share."""

    columns: int
    rows: int
    positive: dict[Tile, str]
    shares: dict[Tile, float]


def judge(submission: Path, gold: Path, rule: dict[str, float]) -> Verdict:
    """Judge ``tumor_tiles.json``: tiles named twice count once, a tile outside the grid is refused."""
    truth = read_gold(gold)
    tiles = read_tiles(submission / FILE, truth)
    metrics = measure(truth, tiles)
    passed = metrics["tile_f1"] >= rule["tile_f1"]
    metrics["published_reward"] = float(metrics["tile_f1"] >= rule["published_tile_f1"])
    wrong = sorted(tiles ^ truth.positive.keys())
    details = {
        "wrong_tiles": [
            {
                "tile": list(tile),
                "submitted": tile in tiles,
                "tumour_share": truth.shares.get(tile, 0.0),
                "morphology": truth.positive.get(tile, ""),
            }
            for tile in wrong
        ]
    }
    message = (
        f"F1 {metrics['tile_f1']:.3f}: {int(metrics['tp'])} of {len(truth.positive)} tumour tiles found, "
        f"{int(metrics['fp'])} others named"
    )
    reason = Reason.PASSED if passed else Reason.BELOW_THRESHOLD
    return Verdict(int(passed), reason, metrics["tile_f1"], metrics, message, details)


def missing(gold: Path) -> tuple[float | None, dict[str, float]]:
    """Return the metrics of an empty set."""
    metrics = measure(read_gold(gold), set())
    return metrics["tile_f1"], metrics


def perfect(gold: Path, out: Path) -> None:
    """Name exactly the tumour tiles."""
    tiles = [list(tile) for tile in sorted(read_gold(gold).positive)]
    (out / FILE).write_text(json.dumps({KEY: tiles}) + "\n", encoding="utf-8")


def measure(truth: Gold, tiles: set[Tile]) -> dict[str, float]:
    """Return the flat metrics of a set of tiles within the grid."""
    hit = tiles & truth.positive.keys()
    tp, fp, fn = len(hit), len(tiles) - len(hit), len(truth.positive) - len(hit)
    metrics = {
        "tile_f1": 2 * tp / (2 * tp + fp + fn),
        "precision": tp / (tp + fp) if tp + fp else 0.0,
        "recall": tp / (tp + fn),
        "tp": float(tp),
        "fp": float(fp),
        "fn": float(fn),
    }
    groups: dict[str, list[bool]] = defaultdict(list)
    for tile, morphology in truth.positive.items():
        groups[morphology].append(tile in tiles)
    for morphology, found in sorted(groups.items()):
        metrics[f"recall_{morphology}"] = sum(found) / len(found)
    return metrics


def read_tiles(path: Path, truth: Gold) -> set[Tile]:
    """Read the submission strictly."""
    document = kit.read_json(path)
    if not isinstance(document, dict) or not isinstance(document.get(KEY), list):
        raise Refused(Reason.BAD_SHAPE, f'{path.name} must be an object {{"{KEY}": [[x, y], ...]}}')
    return {_tile(entry, number, truth) for number, entry in enumerate(document[KEY])}


def _tile(entry: Any, number: int, truth: Gold) -> Tile:
    where = f"tile number {number + 1}"
    if not isinstance(entry, list) or len(entry) != 2:
        raise Refused(Reason.BAD_SHAPE, f"{where} is not a pair [x, y]")
    if any(type(value) is not int for value in entry):
        raise Refused(Reason.BAD_TYPE, f"{where}: x and y must be integers")
    x, y = entry
    if not (0 <= x < truth.columns and 0 <= y < truth.rows):
        raise Refused(Reason.OUT_OF_RANGE, f"{where}: [{x}, {y}] is outside {truth.columns} columns, {truth.rows} rows")
    return x, y


def read_gold(gold: Path) -> Gold:
    """Read and check ``tiles.json``."""
    document = kit.gold_json(gold / "tiles.json")
    try:
        columns, rows = int(document["columns"]), int(document["rows"])
        shares = {(int(tile["x"]), int(tile["y"])): float(tile["share"]) for tile in document["tiles"]}
        positive = {(int(t["x"]), int(t["y"])): str(t["morphology"]) for t in document["tiles"] if t["tumour"]}
    except (KeyError, TypeError, ValueError) as error:
        raise GoldError(f"gold tiles.json: {error!r}") from error
    if not positive or any(not (0 <= x < columns and 0 <= y < rows) for x, y in shares):
        raise GoldError("gold tiles.json: no tumour tile, or one outside the grid")
    return Gold(columns, rows, positive, shares)
