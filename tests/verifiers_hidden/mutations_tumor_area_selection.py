"""Small changes of the perfect set of tiles, and the reward each must earn."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Change = Callable[[list[list[int]], dict[str, Any]], Any]


def tiles(change: Change) -> Callable[[Path, Path], None]:
    """Return a mutation that edits the list of tiles, knowing the gold."""

    def apply(submission: Path, gold: Path) -> None:
        path = submission / "tumor_tiles.json"
        document = json.loads(path.read_text())
        document["tiles"] = change(document["tiles"], json.loads((gold / "tiles.json").read_text()))
        path.write_text(json.dumps(document))

    return apply


def text(change: Callable[[str], str], encoding: str = "utf-8") -> Callable[[Path, Path], None]:
    def apply(submission: Path, _gold: Path) -> None:
        path = submission / "tumor_tiles.json"
        path.write_bytes(change(path.read_text()).encode(encoding))

    return apply


def others(found: list[list[int]], gold: dict[str, Any]) -> list[list[int]]:
    """Return tiles of the grid that hold no tumour, nearest to the upper left first."""
    grid = [[x, y] for y in range(gold["rows"]) for x in range(gold["columns"])]
    return [tile for tile in grid if tile not in found]


def misses(found: list[list[int]]) -> int:
    """Return the fewest tiles whose absence brings F1 below 0.9."""
    n = len(found)
    return next(k for k in range(1, n + 1) if 2 * (n - k) / (2 * (n - k) + k) < 0.9)


def extras(found: list[list[int]]) -> int:
    """Return the fewest wrong tiles beside all right ones that bring F1 below 0.9."""
    n = len(found)
    return next(k for k in range(1, 10 * n) if 2 * n / (2 * n + k) < 0.9)


MUTATIONS: list[tuple[str, Callable[[Path, Path], None], int]] = [
    ("unchanged", tiles(lambda found, _: found), 1),
    ("reversed order", tiles(lambda found, _: found[::-1]), 1),
    ("every tile twice", tiles(lambda found, _: found + found), 1),
    ("one tile a hundred times", tiles(lambda found, _: found + found[:1] * 100), 1),
    ("as many missing as the rule allows", tiles(lambda found, _: found[misses(found) - 1 :]), 1),
    ("one more missing than the rule allows", tiles(lambda found, _: found[misses(found) :]), 0),
    ("as many extra as the rule allows", tiles(lambda f, g: f + others(f, g)[: extras(f) - 1]), 1),
    ("one more extra than the rule allows", tiles(lambda f, g: f + others(f, g)[: extras(f)]), 0),
    ("half the tiles", tiles(lambda found, _: found[: len(found) // 2]), 0),
    ("empty list", tiles(lambda _found, _gold: []), 0),
    ("only wrong tiles", tiles(others), 0),
    ("whole grid", tiles(lambda found, gold: found + others(found, gold)), 0),
    ("shifted by one column", tiles(lambda f, g: [[(x + 1) % g["columns"], y] for x, y in f]), 0),
    ("a tile beyond the last column", tiles(lambda f, g: [*f, [g["columns"], 0]]), 0),
    ("a tile beyond the last row", tiles(lambda f, g: [*f, [0, g["rows"]]]), 0),
    ("a negative tile", tiles(lambda found, _: [*found, [-1, 0]]), 0),
    ("level-0 pixels", tiles(lambda found, _: [[x * 4096 + 5000, y * 4096] for x, y in found]), 0),
    ("decimals", tiles(lambda found, _: [[float(x), y] for x, y in found]), 0),
    ("booleans", tiles(lambda found, _: [*found, [True, False]]), 0),
    ("texts", tiles(lambda found, _: [[str(x), str(y)] for x, y in found]), 0),
    ("objects", tiles(lambda found, _: [{"x": x, "y": y} for x, y in found]), 0),
    ("triples", tiles(lambda found, _: [[x, y, 1] for x, y in found]), 0),
    ("null", tiles(lambda _found, _gold: None), 0),
    ("bare list", text(lambda old: json.dumps(json.loads(old)["tiles"])), 0),
    ("another key beside", text(lambda old: old.replace("{", '{"note": "by eye", ', 1)), 1),
    ("key in capitals", text(lambda old: old.replace("tiles", "Tiles")), 0),
    ("key twice", text(lambda old: old.replace("{", '{"tiles": [], ', 1)), 0),
    ("trailing comma", text(lambda old: old.replace("]]", "],]", 1)), 0),
    ("byte order mark", text(lambda old: old, "utf-8-sig"), 1),
    ("windows line ends", text(lambda old: json.dumps(json.loads(old), indent=1).replace("\n", "\r\n")), 1),
    ("utf-16", text(lambda old: old, "utf-16"), 0),
    ("two documents", text(lambda old: old + old), 0),
    ("not a number", text(lambda old: old.replace("[[", "[[NaN, 0], [", 1)), 0),
    ("a huge integer", text(lambda old: old.replace("[[", "[[1" + "0" * 30 + ", 0], [", 1)), 0),
]
