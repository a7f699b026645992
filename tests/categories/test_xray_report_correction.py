"""Chest X-ray report correction: stories, reports, drafts and the gold, without pictures."""

import json
import re
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from xray_report_cases import cases, rng_of

from categories.xray_report_correction.casefile import CaseFile, gold_of
from categories.xray_report_correction.claims import Claim
from categories.xray_report_correction.kernel import weights
from categories.xray_report_correction.kinds import Value, load_kinds
from categories.xray_report_correction.phrasing import article, fill, noun_phrase, say
from categories.xray_report_correction.reports import write_heads
from categories.xray_report_correction.state import FINDING_KINDS, TIPS, from_json, to_json
from verifiers_hidden import xray_report_correction as verifier

FOLDER = Path(__file__).parents[2] / "categories" / "xray_report_correction"
RULE = {"significant_errors": 0.0, "published_significant_errors": 0.0}
PUBLISHED_KINDS = {
    "laterality", "severity", "direction", "invented_change", "count", "location", "flipped_negative",
}  # fmt: skip


@pytest.fixture(scope="module")
def many() -> list[CaseFile]:
    return list(cases(400))


def reports(many: list[CaseFile]) -> list[list[str]]:
    """Return the findings of every earlier report and the true findings of every target, as sentences."""
    found = []
    for case in many:
        for text in [*(report.partition("FINDINGS: ")[2] for report in case.prior_reports), case.truth]:
            found.append(re.split(r"(?<=\.)\s+", text.partition("\n")[0].strip()))
    return found


def test_sentence_mix_is_near_that_of_real_reports(many: list[CaseFile]) -> None:
    """Real findings: 65 % normal or negative sentences, 4.7 a report. Sides are commoner here: no report is all normal."""
    found = reports(many)
    sentences = [sentence for report in found for sentence in report]
    side = re.compile(r"\b(left|right|bilateral|both)\b", re.IGNORECASE)
    words = r"\b(no|not|normal|unremarkable|without|intact|midline|patent|within normal|resolved|resolution|cleared|removed)\b"
    normal = [s for s in sentences if re.search(words, s, re.IGNORECASE) and not side.search(s)]
    assert 0.55 <= len(normal) / len(sentences) <= 0.70
    assert sum(bool(side.search(s)) for s in sentences) / len(sentences) <= 0.32
    assert len(sentences) / len(found) >= 4.7


def test_errors_are_3_to_8_of_the_seven_published_kinds(many: list[CaseFile]) -> None:
    kinds: Counter[str] = Counter()
    for case in many:
        wrong = [line for line in case.story.lines if line.kind]
        assert 3 <= len(wrong) <= 8
        assert sum(line.kind is None and line.draft.present for line in case.story.lines) >= 2
        kinds.update(str(line.kind) for line in wrong)
    assert set(kinds) == PUBLISHED_KINDS
    assert min(kinds.values()) / sum(kinds.values()) > 0.04
    assert max(kinds.values()) / sum(kinds.values()) < 0.30


def test_a_sentence_differs_from_its_right_form_exactly_where_an_error_stands(many: list[CaseFile]) -> None:
    for case in many:
        gold = gold_of(case)
        wrong = {error["sentence"] for error in gold["errors"]}
        for number, (draft, truth) in enumerate(zip(gold["draft"], gold["truth"], strict=True)):
            assert (draft != truth) == (number in wrong), (draft, truth)
            assert (gold["draft_statements"][number] != gold["statements"][number]) == (number in wrong)


def test_truth_says_what_is_really_there_and_how_it_really_changed(many: list[CaseFile]) -> None:
    for case in many:
        gold = gold_of(case)
        real = {one["finding"]: one for one in gold["other_truths"]}
        for said in (one for group in gold["statements"] for one in group):
            true = real[said["finding"]]
            assert said["status"] == true["status"]
            stated = {slot: value for slot, value in said.items() if value is not None}
            if said["status"] == "present":
                assert {slot: true[slot] for slot in stated} == stated
            elif said["change"]:
                assert true["change"] == said["change"]
        present = {finding.kind for finding in case.studies[-1].findings} | {d.kind for d in case.studies[-1].devices}
        assert present == {name for name, one in real.items() if one["status"] == "present"}
        assert present <= {said["finding"] for group in gold["statements"] for said in group}


def test_extents_lie_in_their_bands_and_change_as_stated(many: list[CaseFile]) -> None:
    """A stated change within a severity is a step that can be seen; what is unchanged keeps its extent."""
    kinds, steps = load_kinds(), 0
    for case in many:
        target = case.studies[-1]
        for finding in target.findings:
            low, high = kinds[finding.kind].bands[finding.severity or ""]
            wider = 0.05 if finding.kind == "cardiomegaly" and target.portable else 0.0
            assert low + wider - 0.06 <= finding.extent <= high + wider + 0.06
            before = (
                [f for f in case.studies[-2].found(finding.kind) if f.track == finding.track] if case.story.real else []
            )
            step = case.story.steps.get(finding.kind, 0)
            if before and (before[0].severity, before[0].count) == (finding.severity, finding.count):
                ratio = finding.extent / before[0].extent
                least = kinds[finding.kind].step * 0.9
                assert ratio == 1 if step == 0 else ratio >= least if step > 0 else 1 / ratio >= least
                steps += step != 0
    assert steps > 50


def test_law_of_change_allows_two_steps_shrinking_and_a_change_of_side() -> None:
    small = Value(side="left", severity="small")
    found = weights("pleural_effusion", "pa", small)
    assert all(weight > 0 for weight in found.values())
    assert found[small] > found[Value(side="left", severity="large")] > 0
    assert found[Value(side="right", severity="small")] > 0


def test_some_truths_contradict_earlier_reports_and_some_earlier_reports_are_wrong(many: list[CaseFile]) -> None:
    compared = [case for case in many if case.story.real]
    wrong = sum(bool(case.story.wrong_priors) for case in compared)
    assert 0.2 < wrong / len(compared) < 0.8
    for case in compared:
        for name in case.story.wrong_priors:
            assert case.story.real[-1].get(name) == case.story.truth.get(name)
            assert case.story.real[-1].get(name) != case.story.reported[-1].get(name)


def test_articles_numbers_and_verbs_agree(many: list[CaseFile]) -> None:
    texts = [s for case in many for s in (case.draft, case.truth, *case.prior_reports)]
    for text in texts:
        assert not re.search(r"\ba (?:[aeiou]|8|11|18)", text, re.IGNORECASE), text
        assert not re.search(r"\ban (?![aeiou]|8|11|18|ET)", text, re.IGNORECASE), text
        assert "  " not in text, text
        assert not re.search(r"[{}]| ,| \.|\.\.", text), text
        assert not re.search(r"(?:effusions|nodules|tubes|drains|wires)[^.,;]* (?:is|has) ", text), text
        assert not re.search(r"There is (?:two |three |[a-z -]*effusions)", text), text
        for sentence in re.split(r"(?<=\.)\s+", text.partition("FINDINGS: ")[2].partition("\n")[0]):
            assert not sentence or not sentence[0].islower(), sentence


def test_articles() -> None:
    assert [article(word) for word in ("11 mm", "12 mm", "8-mm", "18 mm", "airspace", "left", "ET tube")] == [
        "an", "a", "an", "an", "an", "a", "an",
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    assert fill(rng, "There {is} {new}.", "[p] two right chest tubes") == "There are two new right chest tubes."
    assert fill(rng, "There {is} {indef}.", "[0] mild pulmonary edema") == "There is mild pulmonary edema."


def test_every_kind_has_words_for_every_value_and_change() -> None:
    rng = np.random.default_rng(1)
    for name in load_kinds():
        for setting in ("pa", "ap"):
            for value in weights(name, setting, None):
                claim = Claim(name, side=value.side, location=value.location, severity=value.severity,
                              count=value.count, tip=value.tip)  # fmt: skip
                phrase = noun_phrase(rng, claim)
                for slot in (value.side, value.severity and value.severity.replace("severe", "")):
                    assert (slot or "") in phrase.replace("both", "bilateral").replace(
                        "marked", ""
                    ) or slot == "bilateral"
                for change in ("new", "increased", "decreased", "unchanged", None):
                    assert say(rng, Claim(name, change=change, side=value.side, count=value.count)).endswith(".")


def test_heads_name_no_finding_and_do_not_depend_on_any(many: list[CaseFile]) -> None:
    words = re.compile(r"\b(left|right|effusion|pneumothorax|nodule|edema|enlarged|catheter)\b")
    for number, case in enumerate(many[:60]):
        assert not words.search(case.heads.lower())
        ago = case.studies[-1].day - case.studies[-2].day if len(case.studies) > 1 else None
        assert case.heads == write_heads(rng_of(number)("target", "heads"), case.story.setting, ago)


def test_the_verifier_passes_the_truth_and_counts_each_error_left(many: list[CaseFile], tmp_path: Path) -> None:
    """The truth earns 1, the draft has as many significant errors as were made, and one error left is one error."""
    for number, case in enumerate(many[:120]):
        gold, submission = tmp_path / f"gold{number}", tmp_path / f"submission{number}"
        gold.mkdir()
        submission.mkdir()
        document = gold_of(case)
        (gold / "findings.json").write_text(json.dumps(document))
        verifier.perfect(gold, submission)
        assert verifier.judge(submission, gold, RULE).reward == 1
        (submission / "findings.txt").write_text("FINDINGS: " + case.draft)
        drafted = verifier.judge(submission, gold, RULE)
        assert drafted.metrics["significant_errors"] >= len({error["sentence"] for error in document["errors"]})
        for wrong in {error["sentence"] for error in document["errors"]}:
            left = [*document["truth"]]
            left[wrong] = document["draft"][wrong]
            (submission / "findings.txt").write_text("\n".join(left))
            assert verifier.judge(submission, gold, RULE).reward == 0, left[wrong]


def test_states_survive_json_and_the_same_draw_is_the_same_case(many: list[CaseFile]) -> None:
    for number, case in enumerate(many[:30]):
        for study in case.studies:
            assert from_json(json.loads(json.dumps(to_json(study)))) == study
        again = next(cases(1, first=number))
        assert (again.draft, again.truth, again.prior_reports, again.studies) == (
            case.draft, case.truth, case.prior_reports, case.studies,
        )  # fmt: skip


def test_wording_names_every_kind_place_and_tip() -> None:
    text = (FOLDER / "wording.md").read_text(encoding="utf-8").lower()
    for kind, words in load_kinds().items():
        assert kind.replace("_", " ") in text or {"cardiomegaly": "heart size", "nodule": "nodule"}[kind] in text
        for axis in (words.severities, words.zones, words.lobes):
            assert all(word.split()[0] in text for word in axis)
    assert all(tip in text for tips in TIPS.values() for tip in tips)


def test_kinds_are_those_of_the_state_and_cases_those_of_the_suite() -> None:
    kinds = load_kinds()
    assert {name for name, kind in kinds.items() if not kind.device} <= set(FINDING_KINDS)
    assert {name: set(kind.tips) for name, kind in kinds.items() if kind.tips} == {n: set(t) for n, t in TIPS.items()}
    found = tomllib.loads((FOLDER / "cases.toml").read_text(encoding="utf-8"))
    priors = [case["parameters"]["priors"] for case in found.values()]
    assert len(found) == 10
    assert priors.count(0) == 2
    assert set(priors) == {0, 1, 2, 3}
    assert {case["parameters"]["format"] for case in found.values()} == {"png", "jpg", "dcm"}
    assert {case["parameters"]["views"] for case in found.values()} == {"pa", "ap"}
