"""How a disease announces itself: twins of one small world, with and without its preclinical phases."""

from dataclasses import replace

import numpy as np
import pytest

from categories.catalog import load_category
from categories.draw import Draw
from categories.ehr_event_modelling import cohort as patients
from categories.ehr_event_modelling.events import make_block
from categories.ehr_event_modelling.visits import DAY
from categories.ehr_event_modelling.vocabulary import FOLDER, build_topics, load_vocabulary
from categories.seed import case_key

WORDS = load_vocabulary()
DISEASES = tuple(WORDS.diseases)
YEAR_AHEAD = 365


@pytest.fixture(scope="module", params=DISEASES)
def twins(request):
    """A world of one disease, and the same patients with the same dice in whom its phase never begins."""
    case = request.param
    draw = Draw(case, load_category(FOLDER).cases[case], case_key("x", "ehr_event_modelling", case, 0), "small")
    world = patients.build_cohort(draw, WORDS.diseases)
    begin = world.begin.copy()
    begin[:, DISEASES.index(case)] = patients.NEVER
    topics = build_topics(WORDS)
    drawn = [
        make_block(draw, WORDS, topics, cohort, 0, len(world.ids)) for cohort in (world, replace(world, begin=begin))
    ]
    assert np.array_equal(drawn[0].patient, drawn[1].patient)
    assert np.array_equal(drawn[0].minute, drawn[1].minute)
    return case, world, *drawn


@pytest.mark.parametrize("case", DISEASES)
def test_a_prodrome_has_some_25_families_and_unspecific_ones_weigh_more(case: str) -> None:
    disease = WORDS.diseases[case]
    families = [*disease["common"], *disease["telling"]]
    assert 20 <= len(set(families)) == len(families) <= 35
    assert disease["common_share"] > disease["telling_share"] > 0
    for family in families:
        assert len(WORDS.below([family])), f"{family} names no code"


def test_unspecific_codes_dominate_what_a_phase_adds(twins) -> None:
    """Complaints and what is given for them, net of the background they take the place of."""
    case, _, ill, well = twins
    disease = WORDS.diseases[case]
    telling = WORDS.below(disease["telling"])
    given = [WORDS.index(f"RxNorm/{code}") for code in disease["medicines"]]
    common = np.setdiff1d([*WORDS.below(disease["common"]), *given], telling)
    more = {
        kind: int(np.isin(ill.code, codes).sum() - np.isin(well.code, codes).sum())
        for kind, codes in (("common", common), ("telling", telling))
    }
    assert more["common"] > more["telling"] > 0, more


def test_values_drift_as_stated_before_every_diagnosis(twins) -> None:
    case, world, ill, well = twins
    k = DISEASES.index(case)
    day = ill.minute / DAY
    ahead = world.diagnosis[ill.patient, k] - day
    about_to_be = (ahead > 0) & (ahead <= YEAR_AHEAD)
    not_begun = day < world.begin[ill.patient, k]
    drift = WORDS.diseases[case]["drift"]
    assert len(drift) >= 8
    for code, shift in drift.items():
        item = ill.code == WORDS.lab_start + WORDS.labs.at(code)
        moved = (ill.value - well.value)[item & about_to_be]
        assert len(moved) >= 10, code
        assert np.sign(moved.mean()) == np.sign(shift), code
        assert (np.sign(moved) != -np.sign(shift)).all(), code
        assert (moved != 0).mean() > 0.25, code  # a weak drift is rounded away in some
        assert not (ill.value - well.value)[item & not_begun].any(), code
