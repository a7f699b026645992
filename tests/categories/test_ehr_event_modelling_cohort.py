"""Plausibility of the patients, exactness of the true risks, validity of the codes: full scale, no timelines."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from categories.catalog import load_category
from categories.draw import Draw
from categories.ehr_event_modelling import cohort as patients
from categories.ehr_event_modelling.vocabulary import FOLDER, SLOTS, build_topics, load_vocabulary
from categories.seed import case_key

CASES = tuple(load_category(FOLDER).cases)
PUBLISHED = {
    "acute_mi": 0.070,
    "celiac": 0.008,
    "hyperlipidemia": 0.132,
    "hypertension": 0.151,
    "lupus": 0.012,
    "pancreatic_cancer": 0.024,
}


@pytest.fixture(scope="module")
def words():
    return load_vocabulary()


@pytest.fixture(scope="module", params=CASES)
def world(request, words):
    case = request.param
    draw = Draw(case, load_category(FOLDER).cases[case], case_key("0", "ehr_event_modelling", case, 0), "full")
    return case, words.diseases[case], list(words.diseases).index(case), patients.build_cohort(draw, words.diseases)


def split_rows(cohort, split):
    return cohort.rows[cohort.split[cohort.rows[:, 0]] == patients.SPLITS.index(split)]


def test_examples_are_as_rare_as_published_but_in_the_test_split(world):
    case, _, _, cohort = world
    for split in ("train", "val"):
        label = split_rows(cohort, split)[:, 2]
        assert label.mean() == pytest.approx(PUBLISHED[case], rel=0.05)
        assert label.sum() >= 20
    if PUBLISHED[case] < 0.02:
        assert split_rows(cohort, "train")[:, 2].sum() <= 80
    assert 0.08 <= split_rows(cohort, "test")[:, 2].mean() <= 0.25


def test_every_example_has_history_follow_up_and_no_diagnosis_yet(world):
    _, _, k, cohort = world
    who, day, label = cohort.rows.T
    found = cohort.diagnosis[who, k]
    assert (day - cohort.opens[who] >= patients.HISTORY).all()
    assert (day + patients.WINDOW < cohort.closes[who]).all()
    assert (found > day).all()
    assert (label == (found <= day + patients.WINDOW)).all()
    discharged = {(int(p), int(d)) for p, _, d in cohort.stays}
    assert {(int(p), int(d)) for p, d, _ in cohort.rows} <= discharged


def test_a_test_patient_has_its_earliest_example_only(world):
    _, _, _, cohort = world
    rows = split_rows(cohort, "test")
    assert len(np.unique(rows[:, 0])) == len(rows)
    days = dict(rows[:, :2].tolist())
    for patient, _, day in cohort.stays:
        early = int(patient) in days and day < days[int(patient)]
        assert not early or day - cohort.opens[patient] < patients.HISTORY


def test_true_risks_are_calibrated(world):
    _, _, _, cohort = world
    test = cohort.split[cohort.rows[:, 0]] == patients.SPLITS.index("test")
    risk, label = cohort.risk[test], cohort.rows[test, 2]
    for group in np.array_split(np.argsort(risk), 5)[1:]:
        spread = np.sqrt((risk[group] * (1 - risk[group])).sum())
        assert abs(label[group].sum() - risk[group].sum()) < 3.5 * spread + 0.5


def test_sex_ratio_and_age_of_onset(world):
    case, disease, k, cohort = world
    who = cohort.rows[cohort.rows[:, 2] == 1, 0]
    women, men = (cohort.male[who] == 0).sum(), (cohort.male[who] == 1).sum()
    if case == "lupus":
        assert 6 <= women / men <= 10
    elif case == "celiac":
        assert 1.5 <= women / men <= 3
    age = (cohort.diagnosis[who, k] - cohort.birth[who]) / patients.YEAR
    low, high = disease["onset_age"]
    assert low <= np.median(age) <= high
    assert (age >= 18).all()


def test_stays_do_not_overlap_and_last_as_in_hospitals(world):
    _, _, _, cohort = world
    patient, first, last = cohort.stays.T
    same = patient[1:] == patient[:-1]
    assert (first[1:][same] > last[:-1][same]).all()
    assert 3 <= np.median(last - first) <= 5
    assert (last <= cohort.closes[patient]).all()
    assert (first >= cohort.opens[patient]).all()


def test_order_and_id_say_nothing(world):
    _, _, _, cohort = world
    assert (np.diff(cohort.ids) > 0).all()
    place = np.arange(len(cohort.ids))
    # a rank correlation of n random pairs stays below 4/sqrt(n) in all but one of 16,000 draws
    limit = 4 / np.sqrt(len(place))
    assert abs(np.corrcoef(place, cohort.split)[0, 1]) < limit
    assert abs(np.corrcoef(cohort.rows[:, 0], cohort.rows[:, 2])[0, 1]) < 4 / np.sqrt(len(cohort.rows)) * 2


@pytest.mark.parametrize("case", ["celiac", "acute_mi"])
@pytest.mark.parametrize("weekday", range(7))
@pytest.mark.parametrize("since", [400, 30, -40])
def test_the_risk_is_that_of_the_simulated_process(words, case, weekday, since):
    """Begin ``since`` days before the prediction (negative: not begun, the rest of the process is drawn)."""
    disease = words.diseases[case]
    rng = np.random.default_rng([weekday, since + 100])
    day, rate, n = 14_004 + weekday, 0.4, 200_000
    begin = np.full(n, float(day - since)) if since > 0 else day + 1 + rng.exponential(patients.YEAR / rate, n)
    found = np.floor(begin + disease["scale_y"] * rng.weibull(disease["shape"], n) * patients.YEAR).astype(np.int64)
    if disease["visit"] == "office":
        found = patients.to_weekday(found)
    at_risk = found > day
    seen = (found[at_risk] <= day + patients.WINDOW).mean()
    known = patients.true_risk(
        disease, np.array([day]), np.array([day - since if since > 0 else day + 1e6]), np.array([rate])
    )[0]
    # 4 standard errors, and two days of 365 at the edges of the window for a phase not begun
    assert seen == pytest.approx(
        known, abs=4 * np.sqrt(known * (1 - known) / at_risk.sum()) + (0.006 if since < 0 else 0)
    )


def test_chronic_diseases_are_diagnosed_on_working_days():
    day = np.arange(20_000, 20_700)
    moved = patients.to_weekday(day)
    assert ((moved - day >= 0) & (moved - day <= 2)).all()
    assert {int((d + 3) % 7) for d in moved} == {0, 1, 2, 3, 4}


def luhn(number: str) -> int:
    """LOINC's mod-10 check digit."""
    odd, even = number[::-1][0::2], number[::-1][1::2]
    return -sum(int(digit) for digit in str(int(odd) * 2) + even) % 10


def verhoeff(number: str) -> bool:
    """SNOMED CT's check digit, in the dihedral group of the pentagon."""

    def multiply(a: int, b: int) -> int:
        turn = (a % 5 + (b if a < 5 else -b)) % 5
        return turn + 5 * ((a < 5) != (b < 5))

    permutation = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4]
    check = 0
    for place, digit in enumerate(reversed(number)):
        value = int(digit)
        for _ in range(place % 8):
            value = permutation[value]
        check = multiply(check, value)
    return check == 0


def published_icd() -> set[str]:
    """Return the codes of the list that CMS publishes, as a package ships it; read as data, so that nothing runs."""
    spec = importlib.util.find_spec("simple_icd_10_cm")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    path = Path(spec.submodule_search_locations[0]) / "data" / "code-list-April-2026.txt"
    return set(path.read_text(encoding="utf-8").split())


def test_check_digits_catch_a_wrong_digit():
    assert verhoeff("57054005")
    assert not verhoeff("57054006")
    assert not verhoeff("75054005")
    assert luhn("718") == 7


def test_codes_are_of_their_vocabulary(words):
    known = published_icd()
    assert len(set(words.codes)) == len(words.codes)
    for code in words.codes:
        vocabulary, _, rest = code.partition("/")
        if vocabulary == "LOINC":
            number, check = rest.split("-")
            assert luhn(number) == int(check), code
        elif vocabulary == "SNOMED":
            assert verhoeff(rest), code
        elif vocabulary == "ICD10CM":
            assert re.fullmatch(r"[A-TV-Z]\d[0-9A-Z](\.[0-9A-Z]{1,4})?", rest), code
            assert rest.replace(".", "") in known, code
        elif vocabulary == "RxNorm":
            assert rest.isdigit(), code
        else:
            assert vocabulary in ("Visit", "Gender", "Race"), code


def test_nothing_of_the_disease_before_its_diagnosis(words):
    """Background and prodrome topics hold no code of any of the six diseases, no treatment and no defining test."""
    topics = build_topics(words)
    before = set(np.unique(topics.tables[:, : topics.treatment]).tolist())
    for name, disease in words.diseases.items():
        forbidden = set(words.below(disease["banned"]).tolist())
        forbidden |= {words.index(f"RxNorm/{code}") for code in disease["treatment"]}
        assert not before & forbidden, name
        for test in disease["defining"]:
            assert words.labs.at(test) in words.labs.panels["defining"]
        assert 20 <= len(disease["common"]) + len(disease["telling"]) + len(disease["medicines"]) <= 36


def test_a_disease_is_announced_by_families_of_rare_leaves(words):
    topics = build_topics(words)
    for k in range(6):
        used, count = np.unique(topics.tables[1, topics.telling + k], return_counts=True)
        assert len(used) >= 60
        assert np.sort(count)[-1] / SLOTS < 0.12


def test_sexes_get_their_own_codes(words):
    topics = build_topics(words)
    sexes = np.array(words.sexes)
    assert "M" not in sexes[topics.tables[0]]
    assert "F" not in sexes[topics.tables[1]]
