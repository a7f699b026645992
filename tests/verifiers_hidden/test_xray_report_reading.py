"""What the report judge reads from sentences: negation, sides, grades, changes, devices; generated texts; mutations."""

import dataclasses
import random

import numpy as np
import pytest
import xray_report_dictation as dictation
from xray_report_golds import golds, read_against, significant, statement

from categories.xray_report_correction.claims import Claim as Said
from categories.xray_report_correction.kinds import load_kinds, values_of
from categories.xray_report_correction.phrasing import say
from verifiers_hidden.xray_report_correction.lexicon import table
from verifiers_hidden.xray_report_correction.parse import claims

PRESENT = (
    "{}.",
    "There is {}.",
    "{} is present.",
    "Findings consistent with {}.",
    "{} is again seen.",
    "{} persists.",
    "Interval development of {}.",
    "{} is noted without other abnormality.",
    "{}, not significantly changed.",
    "No change in {}.",
    "{} has not resolved.",
    "{} cannot be excluded.",
    "Normal bones but {}.",
    "No fracture; {} is seen.",
)
ABSENT = (
    "No {}.",
    "There is no {}.",
    "No evidence of {}.",
    "{} is not seen.",
    "{} is absent.",
    "Negative for {}.",
    "Without {}.",
    "{} has resolved.",
    "{} is no longer present.",
    "Resolution of {}.",
    "No residual {}.",
    "No definite {} is identified.",
    "Neither fracture nor {}.",
    "Free of {}.",
    "No free air or {}.",
)
NAMED = {
    "pleural_effusion": "pleural effusion",
    "pneumothorax": "pneumothorax",
    "consolidation": "focal consolidation",
    "atelectasis": "atelectasis",
    "pulmonary_edema": "pulmonary edema",
    "nodule": "nodule",
    "cardiomegaly": "cardiomegaly",
    "hiatal_hernia": "hiatal hernia",
}


@pytest.mark.parametrize("finding", NAMED)
@pytest.mark.parametrize(("form", "status"), [(f, "present") for f in PRESENT] + [(f, "absent") for f in ABSENT])
def test_negation_before_and_behind(finding: str, form: str, status: str) -> None:
    text = form.format(NAMED[finding])
    found = [claim.status for claim in claims([text])[0] if claim.finding == finding]
    assert found == [status], text


READ = [
    (
        "No pneumothorax, small left pleural effusion.",
        [statement("pneumothorax", "absent"), statement("pleural_effusion", side="left", severity="small")],
    ),
    (
        "No focal consolidation, pneumothorax, or large effusion.",
        [
            statement("consolidation", "absent"),
            statement("pneumothorax", "absent"),
            statement("pleural_effusion", "absent"),
        ],
    ),
    (
        "Moderate right and small left pleural effusions.",
        [
            statement("pleural_effusion", side="right", severity="moderate"),
            statement("pleural_effusion", side="left", severity="small"),
        ],
    ),
    (
        "Bilateral effusions, small on the left and moderate on the right.",
        [
            statement("pleural_effusion", side="right", severity="moderate"),
            statement("pleural_effusion", side="left", severity="small"),
        ],
    ),
    (
        "Small bilateral pleural effusions, left greater than right.",
        [statement("pleural_effusion", side="bilateral", severity="small")],
    ),
    ("Small pleural effusions on both sides.", [statement("pleural_effusion", side="bilateral", severity="small")]),
    (
        "The left effusion has increased from small to moderate.",
        [statement("pleural_effusion", side="left", severity="moderate", change="increased")],
    ),
    ("Previously small left effusion is now large.", [statement("pleural_effusion", side="left", severity="large")]),
    ("The effusion is on the left, not on the right.", [statement("pleural_effusion", side="left")]),
    ("Heart is mildly enlarged, unchanged.", [statement("cardiomegaly", severity="mild", change="unchanged")]),
    (
        "Heart size, mediastinal contours and vascularity are within normal limits.",
        [
            statement("cardiomegaly", "absent"),
            statement("mediastinal_widening", "absent"),
            statement("pulmonary_edema", "absent"),
        ],
    ),
    ("The cardiac silhouette is not enlarged.", [statement("cardiomegaly", "absent")]),
    (
        "RLL consolidation and left basilar atelectasis.",
        [
            statement("consolidation", side="right", location="lower lobe"),
            statement("atelectasis", side="left", location="base"),
        ],
    ),
    (
        "Two nodules in the right upper lobe, largest 1.2 cm.",
        [statement("nodule", side="right", location="upper lobe", count=2, size_mm=12)],
    ),
    ("8-mm calcified nodule, LUL.", [statement("granuloma", side="left", location="upper lobe", size_mm=8)]),
    ("ETT tip 4.5 cm above the carina.", [statement("endotracheal_tube", tip="mid trachea")]),
    (
        "Right IJ central venous catheter with tip in the lower SVC.",
        [statement("central_line", side="right", tip="lower SVC")],
    ),
    (
        "PICC from the left, tip at the cavoatrial junction.",
        [statement("central_line", side="left", tip="cavoatrial junction")],
    ),
    ("Left chest wall dual-chamber pacemaker.", [statement("pacemaker", side="left", count=2)]),
    ("NG tube courses below the diaphragm with tip in the stomach.", [statement("enteric_tube", tip="stomach")]),
    (
        "The chest tube on the right has been removed.",
        [statement("chest_tube", "absent", side="right", change="resolved")],
    ),
    (
        "Fractures of the left 5th through 7th ribs.",
        [statement("rib_fracture", side="left", location="5th through 7th ribs")],
    ),
    (
        "Lungs: hyperinflated. Pleura: no effusion.",
        [statement("hyperinflation"), statement("pleural_effusion", "absent")],
    ),
    ("Blunting of the left costophrenic angle.", [statement("pleural_effusion", side="left")]),
]


@pytest.mark.parametrize(("text", "statements"), READ)
def test_sentences_by_hand(text: str, statements: list[dict]) -> None:
    assert significant(read_against(text, statements)) == [], text
    for number, one in enumerate(statements):
        for slot, other in (
            ("side", {"left": "right", "right": "left"}),
            ("status", {"present": "absent", "absent": "present"}),
        ):
            if one[slot] in other and not (slot == "side" and one["status"] == "absent"):
                wrong = [*statements[:number], {**one, slot: other[one[slot]]}, *statements[number + 1 :]]
                assert significant(read_against(text, wrong)), (text, slot)


@pytest.mark.parametrize(
    ("first", "second", "slot"),
    [
        ("There is a left pleural effusion.", "It is small.", "severity"),
        ("Small pleural effusion.", "[Left]", "sides"),
        ("Left pleural effusion.", "This has increased.", "change"),
        ("Left pleural effusion is seen.", "Right side.", "sides"),
    ],
)
def test_a_sentence_without_a_finding_speaks_of_the_one_before(first: str, second: str, slot: str) -> None:
    (claim,) = claims([first, second])[1]
    assert claim.finding == "pleural_effusion"
    assert claim.sides if slot == "sides" else claim.slots[slot]


def test_words_of_things_outside_the_scope_stay_with_them() -> None:
    for text in (
        "The right hemidiaphragm is elevated.",
        "Mild degenerative changes of the spine, unchanged.",
        "Left shoulder prosthesis.",
    ):
        assert claims(["Small left pleural effusion.", text])[1] == []


def assert_round_trip(count: int, first: int) -> None:
    texts = 0
    for gold in golds(count, first):
        for side, said in (("truth", "statements"), ("draft", "draft_statements")):
            for text, statements in zip(gold[side], gold[said], strict=True):
                texts += 1
                assert read_against(text, statements) == [], text
    assert texts >= 1000 or count < 40


def test_generated_texts_are_read_back_whole() -> None:
    assert_round_trip(12, 10_000)


@pytest.mark.full
def test_a_thousand_generated_texts_are_read_back_whole() -> None:
    assert_round_trip(60, 20_000)


def single_slot_mutations(said: Said, setting: str) -> list[Said]:
    """Return a claim with one stated slot changed, in every way its kind can be."""
    if not said.present:
        return [dataclasses.replace(said, status="present", change=None)]
    kind, found = load_kinds()[said.finding], []
    for slot in ("side", "location", "severity", "count", "tip"):
        if getattr(said, slot) is not None:
            values = {getattr(value, slot) for value in values_of(said.finding, setting)} - {None, getattr(said, slot)}
            found += [dataclasses.replace(said, **{slot: value}) for value in sorted(values, key=str)]
    if said.change in ("unchanged", "increased", "decreased"):
        found += [
            dataclasses.replace(said, change=c) for c in ("unchanged", "increased", "decreased") if c != said.change
        ]
    if not kind.device:
        found.append(Said(said.finding, "absent"))
    return found


def undetected(count: int, first: int) -> tuple[int, list[str]]:
    """Return how many mutations were tried, by the generator's words and by other words, and those that slip by."""
    tried, missed = 0, []
    for number, gold in enumerate(golds(count, first)):
        setting = "pa" if (first + number) % 2 else "ap"
        for statements in gold["statements"]:
            for one in statements:
                for mutant in single_slot_mutations(Said(**one), setting):
                    rng = random.Random(tried)
                    own = dictation.dictate(rng, mutant.statement())
                    texts = (
                        [own]
                        if mutant.side is None and mutant.present and one["status"] == "absent"
                        else [say(np.random.default_rng(tried), mutant), own]
                    )
                    for text in texts:
                        tried += 1
                        if not significant(read_against(text, [one])):
                            missed.append(f"{text} | {one}")
    return tried, missed


def test_every_single_slot_mutation_is_significant() -> None:
    tried, missed = undetected(3, 30_000)
    assert tried > 100
    assert missed == []


@pytest.mark.full
def test_every_single_slot_mutation_of_many_cases_is_significant() -> None:
    tried, missed = undetected(60, 40_000)
    assert tried > 3000
    assert missed == []


def test_lexicon_holds_every_value_of_the_kinds() -> None:
    assert set(load_kinds()) <= set(table()["finding"])


EFFUSION = "pleural_effusion"
CORRECTED = [
    (
        "Left pleural effusion has increased and is now moderate.",
        [statement(EFFUSION, side="left", severity="moderate", change="increased")],
    ),
    (
        "Interval increase in size of the left pleural effusion, now moderate in size.",
        [statement(EFFUSION, side="left", severity="moderate", change="increased")],
    ),
    (
        "There is a new small left apical pneumothorax.",
        [statement("pneumothorax", side="left", severity="small", change="new")],
    ),
    (
        "Previously noted right pleural effusion is no longer visualized.",
        [statement(EFFUSION, "absent", change="resolved")],
    ),
    (
        "The nodule in the left upper lung zone measures 16 mm, unchanged.",
        [statement("nodule", side="left", location="upper zone", size_mm=16, change="unchanged", count=1)],
    ),
    (
        "Cardiomegaly, moderate, stable compared to prior.",
        [statement("cardiomegaly", severity="moderate", change="unchanged")],
    ),
    (
        "ETT tip terminates in the right mainstem bronchus; recommend retraction.",
        [statement("endotracheal_tube", tip="right main bronchus")],
    ),
    (
        "Endotracheal tube tip is malpositioned in the right main bronchus.",
        [statement("endotracheal_tube", tip="right main bronchus")],
    ),
    ("Heart size is normal; no cardiomegaly.", [statement("cardiomegaly", "absent")]),
    (
        "A single chest tube on the right with tip at the apex.",
        [statement("chest_tube", side="right", count=1, tip="apex")],
    ),
    ("Mild pulmonary edema, improved from prior.", [statement("pulmonary_edema", severity="mild", change="decreased")]),
    ("There is no evidence of a right pleural effusion.", [statement(EFFUSION, "absent")]),
    (
        "Right IJ central venous catheter terminates in the mid SVC, repositioned from the right atrium.",
        [statement("central_line", side="right", tip="superior vena cava")],
    ),
    ("The pneumothorax is on the right rather than the left.", [statement("pneumothorax", side="right")]),
    (
        "Small right pneumothorax (previously described as left).",
        [statement("pneumothorax", side="right", severity="small")],
    ),
    (
        "Small right pneumothorax, not left as previously stated.",
        [statement("pneumothorax", side="right", severity="small")],
    ),
    (
        "Moderate right pleural effusion, which has decreased since the prior examination.",
        [statement(EFFUSION, side="right", severity="moderate", change="decreased")],
    ),
    (
        "The previously seen left lower lobe consolidation has resolved.",
        [statement("consolidation", "absent", change="resolved")],
    ),
    (
        "Left basilar linear atelectasis, slightly worse.",
        [statement("atelectasis", side="left", location="lower zone", change="increased")],
    ),
    (
        "Three nodules are present in the right mid lung zone, the largest measuring 19 mm.",
        [statement("nodule", side="right", location="mid zone", count=3, size_mm=19)],
    ),
    (
        "Feeding tube tip in the distal esophagus; advancement is recommended.",
        [statement("enteric_tube", tip="distal esophagus")],
    ),
    (
        "Enteric tube courses below the diaphragm, terminating in the stomach.",
        [statement("enteric_tube", tip="stomach")],
    ),
    (
        "Left subclavian line with tip at the brachiocephalic vein confluence.",
        [statement("central_line", side="left", tip="brachiocephalic vein")],
    ),
    ("Left-sided three-lead pacemaker/ICD in place.", [statement("pacemaker", side="left", count=3)]),
    (
        "Bilateral lower lobe atelectasis is unchanged.",
        [statement("atelectasis", side="bilateral", location="lower zone", change="unchanged")],
    ),
    ("No pneumothorax on either side.", [statement("pneumothorax", "absent")]),
    (
        "No acute cardiopulmonary abnormality; lungs are clear without consolidation, effusion, or pneumothorax.",
        [statement("consolidation", "absent"), statement(EFFUSION, "absent"), statement("pneumothorax", "absent")],
    ),
    (
        "Cardiac silhouette is moderately enlarged, similar to the prior exam.",
        [statement("cardiomegaly", severity="moderate", change="unchanged")],
    ),
    ("Large hiatal hernia again noted behind the heart.", [statement("hiatal_hernia", severity="large")]),
    ("The lungs are hyperinflated with flattened hemidiaphragms.", [statement("hyperinflation")]),
    ("Interval removal of the left chest tube.", [statement("chest_tube", "absent", change="resolved")]),
    ("Median sternotomy wires are intact and unchanged.", [statement("sternal_wires", change="unchanged")]),
    (
        "Pulmonary vascular congestion has progressed to moderate pulmonary edema.",
        [statement("pulmonary_edema", severity="moderate", change="increased")],
    ),
    (
        "There is interval worsening of the moderate pulmonary edema.",
        [statement("pulmonary_edema", severity="moderate", change="increased")],
    ),
    (
        "Small left pleural effusion, unchanged from the prior study of 3 days ago.",
        [statement(EFFUSION, side="left", severity="small", change="unchanged")],
    ),
    (
        "Right apical pneumothorax measuring 2 cm, moderate, increased from 1 cm previously.",
        [statement("pneumothorax", side="right", severity="moderate", change="increased")],
    ),
    (
        "Left upper lobe consolidation, new compared to the prior radiograph; no corresponding change on the right.",
        [statement("consolidation", side="left", location="upper lobe", change="new")],
    ),
    (
        "Compared to the prior study, the left-sided pleural effusion is larger and now moderate in volume.",
        [statement(EFFUSION, side="left", severity="moderate", change="increased")],
    ),
    (
        "The right pleural effusion seen previously has resolved completely.",
        [statement(EFFUSION, "absent", change="resolved")],
    ),
    (
        "Stable appearance of a 9 mm calcified granuloma in the right upper lung.",
        [statement("granuloma", side="right", location="upper zone", size_mm=9, change="unchanged")],
    ),
    (
        "Single-lead pacemaker generator over the left chest with the lead tip in the right ventricle.",
        [statement("pacemaker", side="left", count=1)],
    ),
    (
        "Right-sided PICC tip projects over the cavoatrial junction.",
        [statement("central_line", side="right", tip="cavoatrial junction")],
    ),
    (
        "Airspace opacity in the right lower lobe, concerning for pneumonia, has increased.",
        [statement("consolidation", side="right", location="lower lobe", change="increased")],
    ),
    (
        "No significant interval change in the moderate left pleural effusion.",
        [statement(EFFUSION, side="left", severity="moderate", change="unchanged")],
    ),
    (
        "Left pleural effusion is unchanged in size, remaining small.",
        [statement(EFFUSION, side="left", severity="small", change="unchanged")],
    ),
    (
        "There has been no interval change in mild cardiomegaly.",
        [statement("cardiomegaly", severity="mild", change="unchanged")],
    ),
    ("The endotracheal tube tip lies 2.1 cm above the carina.", [statement("endotracheal_tube", tip="mid trachea")]),
    (
        "Both lungs are hyperexpanded. No focal infiltrate.",
        [statement("hyperinflation"), statement("consolidation", "absent")],
    ),
]


@pytest.mark.parametrize(("text", "statements"), CORRECTED)
def test_corrections_as_people_and_models_write_them(text: str, statements: list[dict]) -> None:
    assert significant(read_against(text, statements)) == [], text
