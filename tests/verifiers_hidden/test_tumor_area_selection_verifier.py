"""The verifier of tumour area selection on a gold of its own."""

import json
from pathlib import Path

import pytest

from verifiers_hidden import tumor_area_selection as verifier
from verifiers_hidden.kit import GoldError, Reason, Refused

RULE = {"tile_f1": 0.9, "published_tile_f1": 0.9}
MORPHOLOGIES = ("solid", "glandular", "infiltrating")


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    """Twelve tumour tiles in three morphologies, one grey tile below the threshold, in a grid of 25 x 24."""
    tiles = [{"x": k, "y": k // 3, "share": 0.5, "tumour": True, "morphology": MORPHOLOGIES[k % 3]} for k in range(12)]
    tiles.append({"x": 20, "y": 20, "share": 0.19, "tumour": False, "morphology": "solid"})
    folder = tmp_path / "gold"
    folder.mkdir()
    (folder / "tiles.json").write_text(json.dumps({"columns": 25, "rows": 24, "tiles": tiles, "foci": []}))
    return folder


@pytest.fixture
def submit(tmp_path: Path, gold: Path):
    folder = tmp_path / "submission"
    folder.mkdir()

    def of(content) -> object:
        data = content if isinstance(content, str) else json.dumps(content)
        (folder / "tumor_tiles.json").write_text(data)
        return verifier.judge(folder, gold, RULE)

    return of


RIGHT = [[k, k // 3] for k in range(12)]


def test_counts_by_hand(submit) -> None:
    verdict = submit({"tiles": [*RIGHT[:9], [20, 20], [24, 23]]})
    assert {name: verdict.metrics[name] for name in ("tp", "fp", "fn")} == {"tp": 9, "fp": 2, "fn": 3}
    assert verdict.metrics["precision"] == pytest.approx(9 / 11)
    assert verdict.metrics["recall"] == pytest.approx(0.75)
    assert verdict.headline == pytest.approx(18 / 23)
    assert [verdict.metrics[f"recall_{name}"] for name in MORPHOLOGIES] == [0.75, 0.75, 0.75]
    assert (verdict.reward, verdict.reason) == (0, Reason.BELOW_THRESHOLD)
    wrong = {tuple(row["tile"]): (row["submitted"], row["tumour_share"]) for row in verdict.details["wrong_tiles"]}
    assert wrong == {
        (9, 3): (False, 0.5),
        (10, 3): (False, 0.5),
        (11, 3): (False, 0.5),
        (20, 20): (True, 0.19),
        (24, 23): (True, 0.0),
    }


@pytest.mark.parametrize(
    ("found", "extra", "reward"), [(12, 0, 1), (12, 2, 1), (12, 3, 0), (10, 0, 1), (9, 0, 0), (11, 1, 1), (10, 1, 0)]
)
def test_threshold(submit, found: int, extra: int, reward: int) -> None:
    verdict = submit({"tiles": RIGHT[:found] + [[24, k] for k in range(extra)]})
    assert verdict.reward == reward
    assert verdict.metrics["published_reward"] == reward


def test_f1_of_exactly_nine_tenths_passes(submit, gold: Path) -> None:
    document = json.loads((gold / "tiles.json").read_text())
    document["tiles"] = [{"x": k, "y": 0, "share": 1, "tumour": True, "morphology": "solid"} for k in range(10)]
    (gold / "tiles.json").write_text(json.dumps(document))
    verdict = submit({"tiles": [[k, 0] for k in range(9)] + [[0, 1]]})
    assert verdict.metrics["tile_f1"] == 0.9
    assert verdict.reward == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"tiles": [[25, 0]]}, Reason.OUT_OF_RANGE),
        ({"tiles": [[0, 24]]}, Reason.OUT_OF_RANGE),
        ({"tiles": [[0, -1]]}, Reason.OUT_OF_RANGE),
        ({"tiles": [[1.0, 2]]}, Reason.BAD_TYPE),
        ({"tiles": [[True, 2]]}, Reason.BAD_TYPE),
        ({"tiles": [["1", 2]]}, Reason.BAD_TYPE),
        ({"tiles": [[None, 2]]}, Reason.BAD_TYPE),
        ({"tiles": [[1]]}, Reason.BAD_SHAPE),
        ({"tiles": [1, 2]}, Reason.BAD_SHAPE),
        ({"tiles": {"1": 2}}, Reason.BAD_SHAPE),
        ({"tile": []}, Reason.BAD_SHAPE),
        ([[1, 2]], Reason.BAD_SHAPE),
        ("[", Reason.BAD_JSON),
        ('{"tiles": [[1, 2],]}', Reason.BAD_JSON),
        ('{"tiles": [], "tiles": []}', Reason.BAD_JSON),
        ('{"tiles": [[Infinity, 2]]}', Reason.NON_FINITE),
        ('{"tiles": [[1e999, 2]]}', Reason.NON_FINITE),
        ('{"tiles": [[1' + "0" * 5000 + ", 2]]}", Reason.BAD_NUMBER),
        ('{"tiles": ' + "[" * 40 + "]" * 40 + "}", Reason.BAD_JSON),
    ],
)
def test_refusals(submit, content, reason: Reason) -> None:
    with pytest.raises(Refused) as refused:
        submit(content)
    assert refused.value.reason == reason


def test_perfect_and_missing(gold: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    verifier.perfect(gold, out)
    verdict = verifier.judge(out, gold, RULE)
    assert (verdict.reward, verdict.headline, verdict.details) == (1, 1.0, {"wrong_tiles": []})
    headline, metrics = verifier.missing(gold)
    assert headline == 0
    assert metrics.keys() | {"published_reward"} == verdict.metrics.keys()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_text("{"),
        lambda path: path.write_text('{"columns": 2, "rows": 2}'),
        lambda path: path.write_text('{"columns": 2, "rows": 2, "tiles": []}'),
        lambda path: path.write_text(path.read_text().replace('"columns": 25', '"columns": 5')),
    ],
)
def test_damaged_gold_is_no_verdict(gold: Path, tmp_path: Path, damage) -> None:
    damage(gold / "tiles.json")
    with pytest.raises(GoldError):
        verifier.missing(gold)
