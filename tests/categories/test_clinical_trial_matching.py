"""Trial matching: patients and protocols are plausible, the gold is right, and the quotas hold."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest
from lxml import etree

from categories.catalog import load_catalog
from categories.clinical_trial_matching.bank import load_library
from categories.clinical_trial_matching.catalogue import Catalogue
from categories.clinical_trial_matching.criteria import (
    Definitions,
    Facts,
    Leaf,
    Medication,
    Tree,
    evaluate,
    is_clear_cut,
    leaves,
    parse_composition,
    parse_leaf,
    parse_rule,
    printed_value,
)
from categories.clinical_trial_matching.note import MAX_WORDS, MIN_WORDS
from categories.clinical_trial_matching.phrasing import british, load_packs
from categories.clinical_trial_matching.pool import SIZES, fits, quotas
from categories.clinical_trial_matching.synthetic import FLOORS, draw_task, prepare
from categories.draw import Draw
from categories.seed import case_key

CATEGORY = next(c for c in load_catalog() if c.id == "clinical_trial_matching")
LIBRARY = load_library()
ORDER = [
    "required_header",
    "id_info",
    "brief_title",
    "official_title",
    "sponsors",
    "source",
    "oversight_info",
    "brief_summary",
    "detailed_description",
    "overall_status",
    "start_date",
    "completion_date",
    "primary_completion_date",
    "phase",
    "study_type",
    "has_expanded_access",
    "study_design_info",
    "primary_outcome",
    "secondary_outcome",
    "number_of_arms",
    "enrollment",
    "condition",
    "arm_group",
    "intervention",
    "eligibility",
    "overall_official",
    "location",
    "location_countries",
    "verification_date",
    "study_first_submitted",
    "study_first_submitted_qc",
    "study_first_posted",
    "last_update_submitted",
    "last_update_submitted_qc",
    "last_update_posted",
    "responsible_party",
    "keyword",
    "condition_browse",
]
"""The order of the public clinical_study schema, of the elements that are written."""


def draw_of(case: str, seed: str = "0", scale: str = "full") -> Draw:
    return Draw(case, CATEGORY.cases[case], case_key(seed, CATEGORY.id, case, 0), scale)


@pytest.fixture(scope="module", params=list(CATEGORY.cases))
def task(request, tmp_path_factory):
    """One case at full scale, written."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    public, gold = folder / "public", folder / "gold"
    public.mkdir()
    gold.mkdir()
    draw = draw_of(request.param)
    prepare(draw, public=public, gold=gold, workspace=folder)
    document = json.loads((gold / "gold.json").read_text())
    bank = LIBRARY.banks[str(draw.spec.parameters["disease"])]
    patient, note, pool = draw_task(draw, bank, LIBRARY, SIZES["full"])
    return SimpleNamespace(public=public, gold=document, bank=bank, patient=patient, note=note, pool=pool)


def test_pool_has_the_published_shape(task) -> None:
    buckets = Counter(trial["bucket"] for trial in task.gold["trials"].values())
    assert 350 <= len(task.gold["pool"]) <= 450
    assert 4 <= buckets["eligible"] <= 9
    assert buckets["near"] >= 250
    assert len(task.gold["eligible"]) == buckets["eligible"]
    for trial in task.gold["trials"].values():
        count = len(trial["failing"])
        assert {"eligible": count == 0, "near": count == 1, "multi": count > 1, "off": count > 0}[trial["bucket"]]


def test_quotas_hold(task) -> None:
    shares = quotas(task.pool, task.patient)
    for name, floor in FLOORS.items():
        assert shares[name] >= floor, shares
    assert 0.10 <= shares["age_sex"] <= 0.15
    assert shares["kinds"] >= 9


def test_150_survive_disease_age_sex_and_numbers(task) -> None:
    survivors = 0
    for protocol in task.pool:
        readable = [c for c in protocol.criteria if c.kind in ("num", "uln")]
        right = protocol.target == "main" and all(c.passes for c in readable)
        limits = protocol.limits
        right &= fits(limits.age(), task.patient.facts.age) and limits.sex() in ("", task.patient.facts.sex)
        survivors += right and protocol.bucket != "eligible"
    assert survivors >= 150


def test_note_is_an_admission_note(task) -> None:
    note = (task.public / "patient.txt").read_text()
    assert note == task.note
    assert MIN_WORDS <= len(note.split()) <= MAX_WORDS <= 400
    assert f"{task.patient.facts.age}-year-old" in note
    assert not re.search(r"[{}=]|\bNone\b|\bnan\b", note)
    assert not re.search(r"NCT|flag|trial_", note)
    for medication in task.patient.facts.medications:
        assert medication.product.lower() in note.lower()


def test_gold_follows_from_the_printed_facts(task) -> None:
    """Judge every criterion again from the gold's own state, with an evaluation written here."""
    state = task.gold["patient"]
    for trial in task.gold["trials"].values():
        for item in trial["criteria"]:
            holds = again(item["tree"], state, task.patient.known)
            assert holds == item["holds"], item
            assert item["passes"] is ((holds is True) if item["side"] == "inc" else (holds is not True))


def again(tree: list, state: dict, known: Definitions) -> bool | None:
    """A second evaluation, over plain data."""
    if tree[0] in ("or", "and", "if", "unless"):
        a, b = (again(part, state, known) for part in tree[1:])
        table = {True: 1.0, None: 0.5, False: 0.0}
        x, y = table[a], table[b]
        value = {"or": max(x, y), "and": min(x, y), "if": max(1 - x, y), "unless": min(x, 1 - y)}[tree[0]]
        return {1.0: True, 0.5: None, 0.0: False}[value]
    kind, key, op, limit, unit, values = tree
    if kind == "flag":
        return state["flags"].get(key)
    if kind == "cat":
        return state["categories"][key] in values if key in state["categories"] else None
    if kind == "event":
        if key not in state["weeks_since_event"]:
            return None
        weeks = state["weeks_since_event"][key]
        return weeks is not None and weeks <= limit
    mine = [m for m in state["medications"] if key in m["classes"]]
    if kind == "class":
        return any(m["ended"] is None or m["ended"] <= limit for m in mine)
    if kind == "stable":
        return any(m["weeks"] is not None and m["weeks"] >= limit for m in mine)
    if kind == "dur":
        value = state["months_since_diagnosis"]
    elif kind in ("num", "uln") and key in state["values"]:
        spec = known.nums[key]
        value = state["values"][key]
        chosen = spec.units[unit]
        value = value / spec.uln if kind == "uln" else value * chosen.factor + chosen.offset
    else:
        return None
    return {">=": value >= limit, "<=": value <= limit, ">": value > limit, "<": value < limit}[op]


def test_limits_come_from_menus_and_keep_a_distance(task) -> None:
    for protocol in task.pool:
        for criterion in protocol.criteria:
            assert is_clear_cut(criterion.node, task.patient.facts, task.patient.known)
            for leaf in leaves(criterion.node):
                if leaf.kind == "num" and criterion.kind == "num":
                    assert leaf.limit in task.patient.known.nums[leaf.key].units[leaf.unit].menu
                if leaf.kind in ("num", "uln"):
                    value = printed_value(leaf, task.patient.facts, task.patient.known)
                    assert value is None or abs(value - leaf.limit) > 0.019 * abs(leaf.limit)
        assert protocol.limits.field_age in task.bank.windows
        if protocol.limits.text_age is not None:
            assert task.patient.facts.age not in protocol.limits.text_age


def test_no_fact_is_asked_twice_in_a_protocol(task) -> None:
    for protocol in task.pool:
        asked = Counter(tag for criterion in protocol.criteria for tag in criterion.tags if tag[0] != "group")
        assert not [tag for tag, count in asked.items() if count > 1]


def test_xml_is_well_formed_ordered_and_of_registry_size(task) -> None:
    sizes = []
    for path in sorted((task.public / "trials").iterdir()):
        root = ET.parse(path).getroot()
        assert etree.tostring(etree.parse(path), method="c14n") == etree.tostring(
            etree.fromstring(ET.tostring(root)), method="c14n"
        )
        tags = list(dict.fromkeys(child.tag for child in root))
        assert [ORDER.index(tag) for tag in tags] == sorted(ORDER.index(tag) for tag in tags)
        assert root.findtext("id_info/nct_id") == path.stem
        assert re.fullmatch(r"NCT\d{8}", path.stem)
        sizes.append(path.stat().st_size)
    assert min(sizes) >= 2_000
    assert max(sizes) <= 10_240


def test_text_speaks_for_every_criterion_and_nothing_gives_the_outcome_away(task) -> None:
    for path in (task.public / "trials").iterdir():
        root = ET.parse(path).getroot()
        text = re.sub(r"\W+", "", root.findtext("eligibility/criteria/textblock") or "").lower()
        for item in task.gold["trials"][path.stem]["criteria"]:
            said = re.sub(r"\W+", "", item["text"]).lower()
            assert said in text or re.sub(r"\W+", "", british(item["text"])).lower() in text, item["text"]
        assert not re.search(r"near|off_target|eligible\b.*=|bucket", path.name)
    assert len({path.stat().st_mtime_ns for path in task.public.rglob("*") if path.is_file()}) == 1


def test_fields_are_those_of_the_registry_and_sometimes_disagree_with_the_text(task) -> None:
    apart = silent = 0
    for path in (task.public / "trials").iterdir():
        root, limits = ET.parse(path).getroot(), task.gold["trials"][path.stem]["limits"]
        assert root.findtext("eligibility/gender") in ("All", "Female", "Male")
        low = root.findtext("eligibility/minimum_age")
        assert low == (f"{limits['field_age'][0]} Years" if limits["field_age"][0] else "N/A")
        silent += limits["text_age"] is None
        apart += limits["text_age"] not in (None, limits["field_age"])
    assert 0.10 <= silent / len(task.pool) <= 0.30
    assert 0.02 <= apart / len(task.pool) <= 0.14


def test_patient_is_plausible(task) -> None:
    facts, known = task.patient.facts, task.patient.known
    assert task.bank.ages[0] <= facts.age <= task.bank.ages[1]
    assert facts.months < facts.age * 12
    assert "pregnant" not in facts.flags or facts.sex == "F"
    for medication in facts.medications:
        assert (medication.weeks is None) != (medication.ended is None)
    for key, flag in known.flags.items():
        if flag.given and key in facts.flags:
            assert evaluate(parse_rule(flag.given), facts, known) is True
        if flag.rule and key in facts.flags:
            assert evaluate(parse_rule(flag.rule), facts, known) is facts.flags[key]
    if "lvef" in facts.nums and task.bank.mesh.startswith("Tachycardia"):
        assert facts.nums["lvef"] <= 45


def test_packs_and_spellings_are_all_used(task) -> None:
    texts = [(task.public / "trials" / f"{trial}.xml").read_text() for trial in task.gold["pool"]]
    for head in ("nclusion criteria:", "to be included only|To be enrolled", "Eligible patients|Who can join"):
        assert sum(bool(re.search(head, text, re.IGNORECASE)) for text in texts) > len(texts) / 6
    assert len(load_packs()) >= 3


def test_facts_flip_between_instances() -> None:
    bank = LIBRARY.banks["sickle"]
    states = []
    for seed in ("a", "b", "c", "d", "e", "f"):
        patient, note, _ = draw_task(draw_of("benign_hematology", seed, "small"), bank, LIBRARY, SIZES["small"])
        states.append((patient.facts.flags, note))
    for key in ("avn", "ironload", "chronic"):
        assert {flags.get(key) for flags, _ in states} >= {True, False}
    first, second = (set(re.split(r"[.;,\n]", note)) for _, note in states[:2])
    assert len(first & second) / len(first) < 0.4


def test_same_draw_same_bytes(tmp_path: Path) -> None:
    contents = []
    for name in ("one", "two"):
        folder = tmp_path / name
        for part in ("public", "gold"):
            (folder / part).mkdir(parents=True)
        draw = draw_of("neurology", "x", "small")
        prepare(draw, public=folder / "public", gold=folder / "gold", workspace=folder)
        contents.append({p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()})
    assert contents[0] == contents[1]


def test_ids_say_nothing_about_the_bucket() -> None:
    ranks = []
    for seed in range(12):
        draw = draw_of("cardiology", str(seed), "small")
        bank = LIBRARY.banks["cardiac"]
        _, _, pool = draw_task(draw, bank, LIBRARY, SIZES["small"])
        places = [n for n, protocol in enumerate(pool) if protocol.bucket == "eligible"]
        ranks += [place / len(pool) for place in places]
    assert 0.35 < sum(ranks) / len(ranks) < 0.65


def no_facts(**given) -> Facts:
    return replace(Facts(50, "F", 24, {}, {}, {}, {}, []), **given)


def test_kleene_rules() -> None:
    known = Definitions({}, {}, {}, {})
    yes, no, open_ = Leaf("flag", "a"), Leaf("flag", "b"), Leaf("flag", "c")
    facts = no_facts(flags={"a": True, "b": False})

    def truth(form: str, *parts: Leaf) -> bool | None:
        return evaluate(Tree(form, parts), facts, known)

    assert [truth("or", yes, open_), truth("or", no, open_), truth("or", no, no)] == [True, None, False]
    assert [truth("and", yes, open_), truth("and", no, open_), truth("and", yes, yes)] == [None, False, True]
    assert [truth("if", no, open_), truth("if", yes, open_), truth("if", yes, no)] == [True, None, False]
    assert [truth("unless", yes, no), truth("unless", yes, open_), truth("unless", yes, yes)] == [True, None, False]
    assert truth("not", open_) is None


def test_the_medication_list_is_complete_and_dated() -> None:
    known = Definitions({}, {}, {}, {})
    drugs = [Medication("x", frozenset({"ssri"}), 10, None), Medication("y", frozenset({"nsaid"}), None, 9)]
    facts = no_facts(medications=drugs)
    asked = {"class:ssri<0": True, "class:nsaid<0": False, "class:nsaid<14": True, "class:statin<90": False}
    asked |= {"stable:ssri>8": True, "stable:ssri>12": False, "stable:nsaid>1": False}
    for text, expected in asked.items():
        assert evaluate(parse_leaf(text)[0], facts, known) is expected, text


@pytest.mark.parametrize("text", ["exc or flag:a / flag:b", "inc unless flag:a / flag:b"])
def test_a_composition_on_the_wrong_side_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="side"):
        parse_composition(text)


def test_banks_name_only_what_exists() -> None:
    common = LIBRARY.common
    names = {*common.flags, *common.events, *common.nums, *common.drugs}
    assert len(LIBRARY.banks) == len(CATEGORY.cases) == 9
    for bank in LIBRARY.banks.values():
        assert set(bank.use) <= names
        assert set(bank.likely) <= set(bank.use)
        assert set(bank.classes) <= set(common.classes)
        assert set(bank.related) <= set(LIBRARY.topics)
        for drug in (*bank.drugs, *common.drugs.values()):
            for product in drug.products:
                assert any(product in spec.products for spec in common.classes.values()), product


@pytest.mark.parametrize("bank", LIBRARY.banks.values(), ids=LIBRARY.banks)
def test_every_kind_can_pass_and_fail(bank) -> None:
    case = next(name for name, spec in CATEGORY.cases.items() if LIBRARY.banks[str(spec.parameters["disease"])] is bank)
    patient, _, _ = draw_task(draw_of(case, "0", "small"), bank, LIBRARY, SIZES["small"])
    catalogue = Catalogue(patient, bank, LIBRARY.common)
    both = catalogue.kinds(passes=True) & catalogue.kinds(passes=False)
    assert {"num", "class", "stable", "event", "flag", "cat", "comp", "unsaid"} <= both
