"""The verifier on a gold small enough to count by hand, and against scikit-learn and SciPy on larger ones."""

import csv
import json
import time
from pathlib import Path

import numpy as np
import pytest
from mutations_ehr_event_modelling import MUTATIONS
from sklearn.metrics import average_precision_score, roc_auc_score

from verifiers_hidden import ehr_event_modelling as verifier
from verifiers_hidden.kit import GoldError, Reason, Refused

RULE = {"plain_margin": 0.01}


def write_gold(folder: Path, risk, label, gate, plain: float = 0.55) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "gold.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["patient_id", "prediction_time", "label", "risk", "gate", "embedding"])
        for i, (p, y, g) in enumerate(zip(risk, label, gate, strict=True)):
            writer.writerow([100 + i, f"2014-03-{1 + i % 28:02d} 23:59:00", int(y), f"{p:.6f}", f"{g:.6f}", f"{g:.6f}"])
    (folder / "plain.json").write_text(json.dumps({"ordering": "age", "auroc": plain}))
    return folder


def submit(folder: Path, gold: Path, score) -> Path:
    folder.mkdir(exist_ok=True)
    with (gold / "gold.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (folder / "predictions.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["patient_id", "prediction_time", "probability"])
        writer.writerows([row["patient_id"], row["prediction_time"], s] for row, s in zip(rows, score, strict=True))
    return folder


@pytest.fixture
def cohort(tmp_path):
    rng = np.random.default_rng(3)
    risk = rng.beta(0.4, 2.5, 400)
    label = rng.random(400) < risk
    gate = np.clip(risk + rng.normal(0, 0.25, 400), 0, 1)
    return write_gold(tmp_path / "gold", risk, label, gate), risk.round(6), label, gate.round(6)


def test_expected_auroc_equals_the_sum_over_pairs():
    rng = np.random.default_rng(1)
    risk, score = rng.random(40), rng.integers(0, 6, 40) / 5
    won = total = 0.0
    for i in range(40):
        for j in range(40):
            if i != j:
                weight = risk[i] * (1 - risk[j])
                won += weight * ((score[i] > score[j]) + 0.5 * (score[i] == score[j]))
                total += weight
    assert verifier.weighted_auroc(score, risk) == pytest.approx(won / total, abs=1e-12)


def test_with_labels_as_risks_it_is_the_usual_auroc(cohort):
    _, _, label, gate = cohort
    assert verifier.weighted_auroc(gate, label.astype(float)) == pytest.approx(roc_auc_score(label, gate), abs=1e-12)
    expected = average_precision_score(label, gate)
    assert verifier.average_precision(gate, label.astype(float)) == pytest.approx(expected, abs=1e-12)


def test_the_gate_passes_itself_and_anything_worse_fails(tmp_path, cohort):
    gold, risk, _, gate = cohort
    equal = verifier.judge(submit(tmp_path / "a", gold, gate), gold, RULE)
    assert (equal.reward, equal.reason) == (1, Reason.PASSED)
    assert equal.metrics["published_reward"] == 1.0
    worse = gate.copy()
    high = np.argmax(risk)
    worse[high] = 0.0
    verdict = verifier.judge(submit(tmp_path / "b", gold, worse), gold, RULE)
    assert (verdict.reward, verdict.reason) == (0, Reason.BELOW_THRESHOLD)
    assert verdict.metrics["auroc"] < equal.metrics["gate_auroc"]


def test_the_gate_itself_fails_where_a_plain_ordering_is_as_good(tmp_path, cohort):
    gold, risk, label, gate = cohort
    reached = verifier.weighted_auroc(gate, risk)
    write_gold(gold, risk, label, gate, plain=reached)
    assert verifier.judge(submit(tmp_path / "a", gold, gate), gold, RULE).reward == 0
    write_gold(gold, risk, label, gate, plain=reached - 0.0101)
    assert verifier.judge(submit(tmp_path / "a", gold, gate), gold, RULE).reward == 1


def test_the_verdict_keeps_curves_to_draw(tmp_path, cohort):
    gold, risk, label, gate = cohort
    details = verifier.judge(submit(tmp_path / "s", gold, risk), gold, RULE).details
    for name, score in (("roc", risk), ("gate_roc", gate)):
        curve = np.array(details[name])
        assert curve[0].tolist() == [0, 0] and curve[-1].tolist() == [1, 1] and len(curve) <= 101
        assert np.trapezoid(curve[:, 1], curve[:, 0]) == pytest.approx(roc_auc_score(label, score), abs=0.01)
    groups = details["calibration"]
    assert sum(g["n"] for g in groups) == 400
    assert sum(g["n"] * g["observed"] for g in groups) == label.sum()
    assert [g["predicted"] for g in groups] == sorted(g["predicted"] for g in groups)


def test_delong_agrees_with_the_bootstrap(cohort):
    _, _, label, gate = cohort
    low, high = verifier._delong(gate, label.astype(float))
    rng = np.random.default_rng(0)
    drawn = [roc_auc_score(label[i], gate[i]) for i in (rng.integers(0, 400, 400) for _ in range(400))]
    assert low == pytest.approx(np.quantile(drawn, 0.025), abs=0.02)
    assert high == pytest.approx(np.quantile(drawn, 0.975), abs=0.02)


def test_metrics_are_finite_and_complete(tmp_path, cohort):
    gold, risk, label, _ = cohort
    verdict = verifier.judge(submit(tmp_path / "a", gold, risk), gold, RULE)
    verdict.document()
    assert verdict.headline == verdict.metrics["auroc"] == verdict.metrics["best_auroc"]
    assert verdict.metrics["brier"] == pytest.approx(((risk - label) ** 2).mean())
    for name in ("realised_auroc", "auprc", "brier"):
        assert verdict.metrics[f"{name}_low"] <= verdict.metrics[name] <= verdict.metrics[f"{name}_high"]


def test_labels_count_where_no_risk_is_known(tmp_path, cohort):
    gold, _, label, gate = cohort
    rows = list(csv.reader((gold / "gold.csv").read_text().splitlines()))
    with (gold / "gold.csv").open("w", newline="") as file:
        csv.writer(file).writerows([*row[:3], *row[4:]] for row in rows)
    verdict = verifier.judge(submit(tmp_path / "a", gold, gate), gold, RULE)
    assert verdict.metrics["auroc"] == pytest.approx(roc_auc_score(label, gate))


def test_two_thousand_patients_within_two_seconds(tmp_path):
    rng = np.random.default_rng(0)
    risk = rng.beta(0.3, 2, 2200)
    gold = write_gold(tmp_path / "gold", risk, rng.random(2200) < risk, rng.random(2200))
    with (gold / "gold.csv").open() as file:
        text = file.read()
    assert text.count("\n") == 2201
    folder = submit(tmp_path / "a", gold, risk)
    started = time.process_time()
    assert verifier.judge(folder, gold, RULE).reward == 1
    assert time.process_time() - started < 2.0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("patient_id,prediction_time,probability\n100,2014-03-01 23:59:00,\n", Reason.NON_FINITE),
        ("patient_id,prediction_time,probability\n100,2014-03-01 23:59:00,inf\n", Reason.NON_FINITE),
        ("patient_id,prediction_time,probability\n100,2014-03-01 23:59:00,1e999\n", Reason.NON_FINITE),
        ("patient_id,prediction_time,probability\n100,2014-03-01 23:59:00,0x1\n", Reason.BAD_NUMBER),
        ("patient_id,prediction_time,probability\n100,2014-03-01 23:59:00,73\n", Reason.OUT_OF_RANGE),
        ("patient_id,prediction_time,probability\n100.0,2014-03-01 23:59:00,0.1\n", Reason.BAD_TYPE),
        (f"patient_id,prediction_time,probability\n{'9' * 5000},2014-03-01 23:59:00,0.1\n", Reason.BAD_NUMBER),
        ("patient_id,prediction_time,probability\n100,01/03/2014,0.1\n", Reason.BAD_TOKEN),
        ("patient_id,prediction_time,probability\n100,2014-03-01 23:59:00,0.1\n" * 2, Reason.BAD_NUMBER),
        ("patient_id,prediction_time,probability\n100,2014-03-01 23:59:00,0.1\n", Reason.MISSING_KEYS),
        ("patient_id,prediction_time,probability\n9,2014-03-01 23:59:00,0.1\n", Reason.UNKNOWN_KEYS),
        (
            "patient_id,prediction_time,probability\n100,2014-03-01 23:59:00,0.1\n100,2014-03-01T23:59,0.1\n",
            Reason.DUPLICATE_KEY,
        ),
        ("patient_id,prediction_time\n100,2014-03-01 23:59:00\n", Reason.MISSING_COLUMN),
        ("patient_id,prediction_time,probability\n", Reason.NO_RECORDS),
        ("100,2014-03-01 23:59:00,0.1\n", Reason.MISSING_COLUMN),
    ],
)
def test_every_fault_has_its_reason(tmp_path, cohort, content, reason):
    (tmp_path / "predictions.csv").write_text(content)
    with pytest.raises(Refused) as caught:
        verifier.judge(tmp_path, cohort[0], RULE)
    assert caught.value.reason == reason


@pytest.mark.parametrize(("name", "mutate", "reward"), MUTATIONS, ids=[name for name, _, _ in MUTATIONS])
def test_mutations(tmp_path, cohort, name, mutate, reward):
    out = tmp_path / "out"
    out.mkdir()
    verifier.perfect(cohort[0], out)
    mutate(out, cohort[0])
    try:
        earned = verifier.judge(out, cohort[0], RULE).reward
    except Refused:
        earned = 0
    assert earned == reward


@pytest.mark.parametrize("damage", ["gone", "column", "key", "risk", "plain", "one class"])
def test_damaged_gold_is_no_verdict(tmp_path, cohort, damage):
    gold, risk, label, gate = cohort
    folder = submit(tmp_path / "a", gold, risk)
    text = (gold / "gold.csv").read_text()
    if damage == "gone":
        (gold / "gold.csv").unlink()
    elif damage == "column":
        (gold / "gold.csv").write_text(text.replace("gate", "gone"))
    elif damage == "key":
        lines = text.splitlines(keepends=True)
        (gold / "gold.csv").write_text("".join([*lines, lines[1]]))
    elif damage == "risk":
        write_gold(gold, risk + 1.0, label, gate)
    elif damage == "one class":
        write_gold(gold, risk, np.zeros(400), gate)
    else:
        (gold / "plain.json").write_text("{}")
    with pytest.raises(GoldError):
        verifier.judge(folder, gold, RULE)


def test_an_unusable_submission_orders_nobody(cohort):
    headline, metrics = verifier.missing(cohort[0])
    assert headline == metrics["auroc"] == metrics["realised_auroc"] == 0.5
