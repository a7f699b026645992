"""The verdict on a list of trials: metrics, the published reward, and damaged gold."""

import json
from pathlib import Path

import pytest

from verifiers_hidden import clinical_trial_matching as verifier
from verifiers_hidden.kit import GoldError, Refused

RULE = {"top": 50, "recall": 1.0}
POOL = [f"NCT{n:08d}" for n in range(1, 101)]
ELIGIBLE = POOL[:4]


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    criterion = {"side": "exc", "text": "too old", "holds": True, "passes": False, "kind": "age", "tree": []}
    entry = {"failing": ["age"], "criteria": [criterion]}
    document = {"eligible": ELIGIBLE, "pool": POOL, "trials": dict.fromkeys(POOL, entry)}
    (tmp_path / "gold.json").write_text(json.dumps(document))
    return tmp_path


def verdict(gold: Path, text: str):
    folder = gold / "submission"
    folder.mkdir()
    (folder / "eligible_trials.txt").write_text(text)
    return verifier.judge(folder, gold, RULE)


def test_metrics_of_a_mixed_list(gold: Path) -> None:
    listed = [*ELIGIBLE[:2], *POOL[10:36], ELIGIBLE[2], "NCT99999999", ELIGIBLE[0]]
    found = verdict(gold, "\n".join(listed))
    assert (found.reward, found.reason) == (0, "below_threshold")
    assert found.headline == found.metrics["recall_at_50"] == 0.75
    assert found.metrics["recall_at_20"] == 0.5
    assert found.metrics["n_predicted_raw"] == 31
    assert found.metrics["n_predicted"] == 29
    assert found.metrics["n_discarded_outside_pool"] == 1
    assert found.metrics["precision"] == pytest.approx(3 / 29)
    assert found.metrics["f1"] == pytest.approx(2 * 3 / (29 + 4))
    assert [entry["trial"] for entry in found.details["missed_eligible"]] == [ELIGIBLE[3]]
    assert found.details["ranks"][ELIGIBLE[2]] == 29
    why = {"side": "exc", "text": "too old", "holds": True, "passes": False}
    assert found.details["wrong_among_top"][0] == {"trial": POOL[10], "fails_by": ["age"], "criteria": [why]}


def test_the_published_reading_stands_beside_a_stricter_refusal(gold: Path) -> None:
    found = verdict(gold, "\n".join(f"- {trial} because" for trial in ELIGIBLE))
    assert (found.reward, found.reason, found.headline) == (0, "bad_token", 0.0)
    assert found.metrics["published_reward"] == 1.0


def test_metrics_have_the_same_names_whatever_happens(gold: Path) -> None:
    _, metrics = verifier.missing(gold)
    assert {*metrics, "published_reward"} == set(verdict(gold, ELIGIBLE[0]).metrics)


def test_no_file_is_refused(gold: Path) -> None:
    with pytest.raises(Refused) as refusal:
        verifier.judge(gold / "nowhere", gold, RULE)
    assert refusal.value.reason == "missing_submission"


@pytest.mark.parametrize(
    "damage",
    [
        {"eligible": []},
        {"eligible": ["NCT77777777"]},
        {"pool": []},
        {"trials": {}},
        {"trials": None},
    ],
)
def test_damaged_gold_is_no_verdict(gold: Path, damage: dict) -> None:
    document = json.loads((gold / "gold.json").read_text())
    (gold / "gold.json").write_text(json.dumps({**document, **damage}))
    with pytest.raises(GoldError):
        verdict(gold, ELIGIBLE[0])


def test_missing_gold_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(GoldError):
        verifier.missing(tmp_path)
