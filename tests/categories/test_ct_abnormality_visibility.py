"""What is scored can be seen, and a look-alike beside it tells nothing."""

import json
from pathlib import Path

import numpy as np
import pytest
from ct_draws import draw_of
from ct_small_thorax import thorax
from scipy import ndimage

from categories.catalog import find_task
from categories.chest.labels import LOBES, where
from categories.ct_abnormality import mosaic_attenuation, opacity, synthetic
from categories.ct_abnormality.canvas import open_canvas
from categories.ct_abnormality.findings import BODILY
from categories.ct_abnormality.lungs import survey
from categories.ct_abnormality.visibility import GATE, contrast_hu

CASES = tuple(find_task("ct_abnormality/scan_01").category.cases)
DEFINED_HU = 100
"""Of ground-glass above the lung around it, by the definition."""


def test_contrast_is_the_change_and_not_what_hardly_changes() -> None:
    before = np.zeros((20, 20, 20), np.float32)
    after = before.copy()
    after[:4] += 5
    assert contrast_hu(before, after) == 0
    after[5:9, 5:9, 5:9] -= 120
    after[9, 5:9, 5:9] += 30
    assert contrast_hu(before, after) == pytest.approx(120)


@pytest.mark.parametrize("seed", ["0", "a private seed"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_scored_is_seen_and_has_a_look_alike(case: str, seed: str, stage) -> None:
    gold = json.loads((stage(f"ct_abnormality/{case}", seed).gold / "labels.json").read_text())
    answers = [entry["answer"] for entry in gold["labels"] if entry["scored"]]
    assert 8 <= len(answers) <= 12
    assert min(answers.count("yes"), answers.count("no")) >= 2
    for entry in gold["labels"]:
        facts = entry["facts"]
        if entry["answer"] == "yes":
            assert facts["beside"]["signs"], entry["label"]
            assert entry["label"] == "Cardiomegaly" or facts["cnr"] >= GATE, entry
        assert "beside" not in facts or facts["state"] != "lookalike"


def prepared(into: Path) -> list[dict]:
    for name in ("public", "gold", "workspace"):
        (into / name).mkdir()
    draw = draw_of("scan_01", "a private seed")
    synthetic.prepare(draw, public=into / "public", gold=into / "gold", workspace=into / "workspace")
    return json.loads((into / "gold" / "labels.json").read_text())["labels"]


def test_a_finding_below_the_gate_is_not_scored(monkeypatch, stage, tmp_path: Path) -> None:
    staged = json.loads((stage("ct_abnormality/scan_01", "a private seed").gold / "labels.json").read_text())["labels"]
    faintest, second = sorted(e["facts"]["cnr"] for e in staged if e["answer"] == "yes" and "cnr" in e["facts"])[:2]
    monkeypatch.setattr(synthetic, "GATE", (faintest + second) / 2)
    labels = prepared(tmp_path)
    assert BODILY == ("cardiomegaly",)
    for before, after in zip(staged, labels, strict=True):
        below = before["answer"] == "yes" and before["facts"].get("cnr", second) == faintest
        assert after["answer"] == ("" if below else before["answer"])
        assert after["scored"] == (before["scored"] and not below)


def test_a_case_of_which_too_little_can_be_seen_is_not_handed_out(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(synthetic, "GATE", 1e6)
    with pytest.raises(ValueError, match=r"scan_01: \d+ labels are scored, [01] yes and \d+ no; .* another seed"):
        prepared(tmp_path)
    assert not list((tmp_path / "gold").iterdir())
    assert not list((tmp_path / "public").iterdir())


@pytest.mark.parametrize(("yes", "no"), [(2, 6), (6, 2), (9, 3)])
def test_a_case_of_eight_labels_and_two_of_each_is_handed_out(yes: int, no: int) -> None:
    synthetic.require_enough("scan_01", ["yes"] * yes + ["no"] * no + [""] * (17 - yes - no))


@pytest.mark.parametrize(("yes", "no"), [(1, 11), (11, 1), (2, 5), (5, 2), (0, 0)])
def test_a_case_of_fewer_is_refused_with_its_counts(yes: int, no: int) -> None:
    with pytest.raises(ValueError, match=f"scan_01: {yes + no} labels are scored, {yes} yes and {no} no"):
        synthetic.require_enough("scan_01", ["yes"] * yes + ["no"] * no + [""] * (17 - yes - no))


@pytest.mark.parametrize("later", ["nothing", "mosaic", "expiration"])
@pytest.mark.parametrize("seed", range(3))
def test_haze_keeps_its_contrast_beside_what_is_drawn_later(later: str, seed: int) -> None:
    canvas, rng = open_canvas(thorax(), np.random.default_rng(1)), np.random.default_rng(seed)
    before = canvas.hu.copy()
    opacity._haze(canvas, rng, survey(canvas), 40.0, opacity.YES_HU[0])
    hazy = canvas.hu - before > 0.6 * opacity.YES_HU[0]
    if later == "mosaic":
        mosaic_attenuation.present(canvas, rng, {})
    elif later == "expiration":
        mosaic_attenuation.lookalike(canvas, rng, {})
    near = ndimage.binary_dilation(hazy, iterations=12) & ~ndimage.binary_dilation(canvas.occupied, iterations=4)
    lung = near & where(canvas.organs, LOBES) & (before < -800)
    assert np.median(canvas.hu[hazy & (before < -800)]) - np.median(canvas.hu[lung]) > DEFINED_HU


def test_the_faintest_haze_is_seen_in_the_noisiest_scan() -> None:
    canvas = open_canvas(thorax(), np.random.default_rng(1))
    before = canvas.hu.copy()
    opacity._haze(canvas, np.random.default_rng(0), survey(canvas), 30.0, opacity.YES_HU[0])
    assert contrast_hu(before, canvas.hu) / 30 > 1.5 * GATE
