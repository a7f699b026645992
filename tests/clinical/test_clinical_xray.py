"""Chest radiograph reports on MIMIC-CXR: seeded errors in plain sentences, everything else as it was filed."""

import gzip
import json

import mimiccxr
import numpy as np
import pydicom
import pytest
from PIL import Image

from categories.catalog import find_task
from categories.sources.errors import SourceError
from categories.staging import StageRequest, StagingError, staged
from categories.xray_report_correction.clinical import hashed, known_hashes, read_film, sections
from categories.xray_report_correction.dictated import read_findings
from categories.xray_report_correction.misdictation import draw_edits, edits_of

SINGLE = [
    ("There is a small right pleural effusion.", "pleural_effusion", {"side": "right", "severity": "small"}),
    ("Left-sided moderate pneumothorax.", "pneumothorax", {"side": "left", "severity": "moderate"}),
    ("Mild cardiomegaly is unchanged.", "cardiomegaly", {"severity": "mild", "change": "unchanged"}),
    ("There are two nodules in the left upper lobe.", "nodule", {"count": 2, "side": "left", "location": "upper lobe"}),
    ("No pneumothorax.", "pneumothorax", {"status": "absent"}),
]
BEYOND = [
    "Opacity may be infection or effusion.",
    "Small left and moderate right pleural effusions.",
    "Pleural effusion is no longer seen.",
    "There is a large consolidation.",
    "The hila are unremarkable.",
    "No large pleural effusion.",
    "Right pleural effusion, possibly with atelectasis.",
]


@pytest.mark.parametrize(("text", "finding", "slots"), SINGLE)
def test_plain_sentences_are_understood(text: str, finding: str, slots: dict) -> None:
    (said,) = read_findings(text)
    claim = said.single
    assert claim is not None
    assert claim.finding == finding
    stated = claim.statement()
    assert {name: stated[name] for name in slots} == slots
    assert all(value is None for name, value in stated.items() if name not in ("finding", "status", *slots))


@pytest.mark.parametrize("text", BEYOND)
def test_what_is_not_plain_is_left_alone(text: str) -> None:
    for said in read_findings(text):
        assert said.claims == ()


def test_a_list_of_denials_is_known_and_not_edited() -> None:
    (said,) = read_findings("No focal consolidation, pleural effusion, or pneumothorax.")
    assert {(claim.finding, claim.status) for claim in said.claims} == {
        ("consolidation", "absent"), ("pleural_effusion", "absent"), ("pneumothorax", "absent"),
    }  # fmt: skip
    assert edits_of(said, np.random.default_rng(0), priors=True) == []


def test_all_seven_kinds_are_given_and_changes_only_with_an_earlier_study() -> None:
    sentences = read_findings(mimiccxr.FINDINGS)
    kinds = {e.kind for said in sentences for e in edits_of(said, np.random.default_rng(1), priors=True)}
    assert kinds == {
        "laterality", "severity", "direction", "invented_change", "count", "location", "flipped_negative",
    }  # fmt: skip
    alone = {e.kind for said in sentences for e in edits_of(said, np.random.default_rng(1), priors=False)}
    assert kinds - alone == {"direction", "invented_change"}


def test_an_edit_changes_one_word_and_its_statement_alike() -> None:
    texts = {
        "Left-sided moderate pneumothorax.": "Right-sided moderate pneumothorax.",
        "There are two nodules in the left upper lobe.": "There are three nodules in the left upper lobe.",
    }
    for text, wrong in texts.items():
        (said,) = read_findings(text)
        made = {edit.text: edit for edit in edits_of(said, np.random.default_rng(2), priors=False)}
        assert wrong in made
        (again,) = read_findings(wrong)
        assert again.single == made[wrong].claim


def test_three_to_eight_errors_by_the_key_and_none_twice_in_a_sentence() -> None:
    sentences = read_findings(mimiccxr.FINDINGS)
    drawn = [draw_edits(sentences, np.random.default_rng(seed), priors=True) for seed in range(20)]
    assert {len(edits) for edits in drawn} <= set(range(3, 9))
    assert len({tuple(edits) for edits in drawn}) > 3
    assert draw_edits(sentences, np.random.default_rng(3), priors=True) == drawn[3]


@pytest.fixture(scope="module")
def draws(stage):
    """Return a case without earlier studies in JPEG, and one with some in DICOM."""
    return stage("xray_report_correction/case_06"), stage("xray_report_correction/case_07")


def test_the_draft_holds_the_errors_and_the_rest_word_for_word(draws) -> None:
    for draw in draws:
        gold = json.loads((draw.gold / "findings.json").read_text())
        last = max(draw.public.glob("study_*"))
        report = (last / "report.txt").read_text()
        assert report.endswith(f"FINDINGS: {' '.join(gold['draft'])}\n")
        assert "IMPRESSION" not in report
        assert "the answer in short" not in report
        assert report.startswith("EXAMINATION: CHEST (PA AND LAT)")
        wrong = {error["sentence"] for error in gold["errors"]}
        assert 3 <= len(wrong) <= 8
        for number, (draft, truth) in enumerate(zip(gold["draft"], gold["truth"], strict=True)):
            assert (draft != truth) == (number in wrong)
        assert " ".join(gold["truth"]) == " ".join(mimiccxr.FINDINGS.split())


def test_earlier_reports_are_complete_and_no_other_target_is_among_them(draws) -> None:
    alone, with_priors = draws
    assert len(list(alone.public.glob("study_*"))) == 1
    folders = sorted(with_priors.public.glob("study_*"))
    assert len(folders) == 3
    for number, folder in zip((2, 3), folders[:-1], strict=True):
        text = (folder / "report.txt").read_text()
        assert f"in study {number}." in text, "the last ones before the target, in order"
        assert "IMPRESSION" in text
        assert "FINAL REPORT" not in text


def test_the_same_patient_in_two_cases_gives_no_answer_away(stage) -> None:
    first, second = "case_02", "case_09"
    assert mimiccxr.CASES[first][0] == mimiccxr.CASES[second][0]
    for case in (first, second):
        texts = [p.read_text() for p in stage(f"xray_report_correction/{case}").public.rglob("report.txt")]
        assert sum("The patient is rotated." in text for text in texts) == 1


def test_pictures_are_the_sources_pixels_and_name_nothing(draws) -> None:
    alone, with_priors = draws
    views = sorted(alone.public.rglob("view_*"))
    assert [path.suffix for path in views] == [".jpg", ".jpg"]
    with Image.open(views[0]) as image:
        assert max(image.size) <= 900
        assert image.size == (600, 750)
    dicoms = [pydicom.dcmread(path) for path in with_priors.public.rglob("*.dcm")]
    assert {str(d.ViewPosition) for d in dicoms} == {"AP", "PA", "LL"}
    for draw in draws:
        for path in (p for p in draw.public.rglob("*") if p.is_file()):
            content = path.read_bytes()
            for word in (b"MIMIC", b"p1000", b"2180", *(n.encode() for n in mimiccxr.numbers().values())):
                assert word not in content, (path.name, word)


def test_a_case_that_is_not_in_the_release_is_said(clinic, tmp_path, monkeypatch) -> None:
    task = find_task("xray_report_correction/case_06")
    clinic.open_for(task)
    host = clinic["mimic_cxr_jpg"]
    name = "mimic-cxr-2.0.0-metadata.csv.gz"
    empty = gzip.compress(gzip.decompress(host.files[name]).splitlines(keepends=True)[0] + b"d,1,5,PA,1,1,20,1\n")
    monkeypatch.setitem(host.files, name, empty)
    request = StageRequest(task, "0", 0, "small", "clinical")
    with pytest.raises(StagingError, match="does not hold the patient"), staged(request, tmp_path):
        pass


def test_hashes_sections_and_pictures_that_are_none(tmp_path) -> None:
    assert len(hashed("10000032")) == 16
    assert hashed("10000032") != hashed("10000033")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SourceError, match="kind, real and hash"):
        known_hashes(tmp_path / "t.csv")
    assert sections(" FINDINGS:  a\n b.\n\n IMPRESSION:\n c.\n") == {"FINDINGS": "a b.", "IMPRESSION": "c."}
    (tmp_path / "x.jpg").write_bytes(b"<html>")
    with pytest.raises(SourceError, match="is no picture"):
        read_film(tmp_path / "x.jpg", small=True)
