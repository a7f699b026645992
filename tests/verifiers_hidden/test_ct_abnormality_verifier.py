"""CT abnormality's verifier: its counts, its reading, and the published reading beside it."""

import json
from pathlib import Path

import pytest

from verifiers_hidden import ct_abnormality, kit
from verifiers_hidden.ct_abnormality import LABELS
from verifiers_hidden.kit import GoldError, Reason, Refused

RULE = {"accuracy": 1.0, "published_accuracy": 1.0}
YES = ("Lung nodule", "Pleural effusion", "Emphysema")
UNSCORED = ("Cardiomegaly", "Hiatal hernia")


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    """Fifteen scored labels, three of them yes."""
    folder = tmp_path / "gold"
    folder.mkdir()
    write_gold(folder, [entry(label) for label in LABELS])
    return folder


def entry(label: str) -> dict:
    answer = "" if label in UNSCORED else "yes" if label in YES else "no"
    return {"label": label, "scored": label not in UNSCORED, "answer": answer, "facts": {"measure": 1.0}}


def write_gold(folder: Path, labels: list[dict]) -> None:
    (folder / "labels.json").write_text(json.dumps({"labels": labels}))


def submit(folder: Path, answers: dict[str, str], *more: str) -> Path:
    folder.mkdir(exist_ok=True)
    lines = [f"{label}: {answers.get(label, 'yes' if label in YES else 'no')}" for label in LABELS]
    (folder / "predictions.txt").write_text("\n".join([*lines, *more]) + "\n")
    return folder


def test_counts_of_a_mixed_answer(gold: Path, tmp_path: Path) -> None:
    given = {"Lung nodule": "no", "Consolidation": "yes", "Atelectasis": "Yes", "Cardiomegaly": "yes"}
    verdict = ct_abnormality.judge(submit(tmp_path / "s", given), gold, RULE)
    assert (verdict.reward, verdict.reason) == (0, Reason.BELOW_THRESHOLD)
    counts = {name: verdict.metrics[name] for name in verdict.metrics if name.startswith("n_")}
    assert counts == {
        "n_scored": 15,
        "n_correct": 12,
        "n_true_positives": 2,
        "n_true_negatives": 10,
        "n_false_positives": 2,
        "n_false_negatives": 1,
    }
    assert verdict.headline == verdict.metrics["accuracy"] == 12 / 15
    assert "Lung nodule" in verdict.message
    assert "Cardiomegaly" not in verdict.message
    rows = {row["label"]: row for row in verdict.details["labels"]}
    assert rows["Lung nodule"] == {
        "label": "Lung nodule",
        "scored": True,
        "gold": "yes",
        "submitted": "no",
        "facts": {"measure": 1.0},
    }
    assert (rows["Cardiomegaly"]["scored"], rows["Cardiomegaly"]["gold"]) == (False, "")


def test_nothing_submitted_counts_every_label_wrong(gold: Path) -> None:
    headline, metrics = ct_abnormality.missing(gold)
    assert (headline, metrics["n_correct"], metrics["n_scored"]) == (0.0, 0, 15)
    assert (metrics["n_false_negatives"], metrics["n_false_positives"]) == (3, 12)


def test_perfect_submission_passes_by_both_rules(gold: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    ct_abnormality.perfect(gold, out)
    verdict = ct_abnormality.judge(out, gold, RULE)
    assert (verdict.reward, verdict.headline, verdict.metrics["published_reward"]) == (1, 1.0, 1.0)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("Lung nodule: yes", Reason.DUPLICATE_KEY),
        ("lung nodule: no", Reason.DUPLICATE_KEY),
        ("Fracture: no", Reason.UNKNOWN_KEYS),
        ("all done", Reason.BAD_TOKEN),
    ],
)
def test_a_line_too_many_is_refused(gold: Path, tmp_path: Path, more: str, reason: Reason) -> None:
    with pytest.raises(Refused) as refused:
        ct_abnormality.judge(submit(tmp_path / "s", {}, more), gold, RULE)
    assert refused.value.reason == reason


@pytest.mark.parametrize("answer", ["", "y", "true", "1", "yes.", "yes no", "no, small", "j\u0430"])
def test_another_answer_is_refused(gold: Path, tmp_path: Path, answer: str) -> None:
    with pytest.raises(Refused) as refused:
        ct_abnormality.judge(submit(tmp_path / "s", {"Emphysema": answer}), gold, RULE)
    assert refused.value.reason == Reason.BAD_TOKEN


def test_missing_labels_are_named(gold: Path, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "predictions.txt").write_text("Emphysema: yes\n")
    with pytest.raises(Refused, match="Medical material, Arterial") as refused:
        ct_abnormality.judge(folder, gold, RULE)
    assert refused.value.reason == Reason.MISSING_KEYS


def test_published_reading_is_lenient_and_takes_the_last_line(gold: Path) -> None:
    truth = ct_abnormality.read_gold(gold)
    lines = [f"{label}: {'POS, large' if label in YES else '0'}" for label in LABELS]
    assert ct_abnormality.published_accuracy(truth, lines) == 1.0
    assert ct_abnormality.published_accuracy(truth, [*lines, "emphysema: n", "Fracture: y", "text"]) == 14 / 15
    assert ct_abnormality.published_accuracy(truth, [*lines, "emphysema: n", "emphysema: t"]) == 1.0
    assert ct_abnormality.published_accuracy(truth, []) == 0.0


@pytest.mark.parametrize(
    "labels",
    [
        [],
        [{**entry("Emphysema"), "answer": "maybe"}],
        [{**entry("Emphysema"), "label": "Fracture"}],
        [{"label": "Emphysema"}],
        [entry("Cardiomegaly")],
        ["Emphysema"],
    ],
)
def test_damaged_gold_is_no_verdict(gold: Path, tmp_path: Path, labels: list) -> None:
    write_gold(gold, labels)
    with pytest.raises(GoldError):
        ct_abnormality.judge(submit(tmp_path / "s", {}), gold, RULE)


def test_reading_is_quick_on_a_large_file(tmp_path: Path) -> None:
    path = tmp_path / "predictions.txt"
    path.write_text("Emphysema: yes\n" + "x:\n" * 300_000)
    with pytest.raises(Refused):
        ct_abnormality.read_answers(kit.read_lines(path))
