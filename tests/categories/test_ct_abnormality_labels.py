"""Which findings a CT case holds: no answer without looking is right often enough to matter."""

import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from categories.ct_abnormality import labels
from categories.ct_abnormality.labels import IMPLICATIONS, KEYS, LABELS, POSITIVES, SELDOM_SCORED, draw_states
from categories.spec import Case
from verifiers_hidden import ct_abnormality as verifier

CODES = {"present": 1, "lookalike": 0, "grey": -1}
EASY = (*SELDOM_SCORED, "arterial_calcification", "coronary_calcification", "pleural_effusion", "consolidation")
"""What thresholds and a glance find."""
MIX = ("normal", *["light"] * 3, *["moderate"] * 4, *["heavy"] * 2)


@cache
def states(number: int) -> NDArray[np.int8]:
    """Return (number, 17): 1 yes, 0 no, -1 not scored; cases in turn by the published mix of densities."""
    rng = np.random.default_rng(20)
    drawn = (draw_states(rng, MIX[n % len(MIX)]) for n in range(number))
    return np.array([[CODES[state] for state in of_case.values()] for of_case in drawn], np.int8)


def passes(drawn: NDArray[np.int8], answer: NDArray[np.int8]) -> float:
    """Return how often one fixed answer is right in all scored labels."""
    return float(((drawn == answer) | (drawn < 0)).all(1).mean())


def best_answer(drawn: NDArray[np.int8]) -> tuple[float, NDArray[np.int8]]:
    """Return the best fixed answer found by climbing from many starts, one and two labels at a time."""
    rng = np.random.default_rng(0)
    known = drawn.shape[1]
    found = (0.0, np.zeros(known, np.int8))
    flips = [np.array(pair) for pair in np.ndindex(known, known) if pair[0] <= pair[1]]
    # a start that is right somewhere: a flat plain has no way up
    for start in drawn[rng.choice(len(drawn), 4, replace=False)]:
        answer = np.where(start < 0, 0, start).astype(np.int8)
        value = passes(drawn, answer)
        while True:
            steps = []
            for flip in flips:
                other = answer.copy()
                other[flip] = 1 - other[flip]
                steps.append((passes(drawn, other), other))
            best = max(steps, key=lambda step: step[0])
            if best[0] <= value:
                break
            value, answer = best
        found = max(found, (value, answer), key=lambda pair: pair[0])
    return found


def test_the_labels_are_the_published_ones_in_their_order() -> None:
    assert tuple(LABELS.values()) == verifier.LABELS
    assert len(KEYS) == 17


@pytest.mark.parametrize("density", POSITIVES)
def test_twelve_scored_with_yes_and_no_among_them(density: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        drawn = list(draw_states(rng, density).values())
        assert len(drawn) == 17
        assert drawn.count("present") + drawn.count("lookalike") == 12
        assert drawn.count("present") in POSITIVES[density]
        assert min(drawn.count("present"), drawn.count("lookalike")) >= 2


def test_cases_follow_the_published_mix_of_densities_in_both_formats() -> None:
    document = tomllib.loads((Path(labels.__file__).parent / "cases.toml").read_text(encoding="utf-8"))
    cases = {name: Case.model_validate(case) for name, case in document.items()}
    densities = [case.parameters["density"] for case in cases.values()]
    assert densities == list(MIX)
    formats = [case.parameters["format"] for case in cases.values()]
    assert formats.count("dicom") == 3
    assert len({case.parameters["density"] for case in cases.values() if case.parameters["format"] == "dicom"}) == 3
    assert len({case.clinical["volume"] for case in cases.values()}) == 10


def test_what_is_often_scored_is_yes_in_four_to_six_of_ten_cases() -> None:
    drawn = states(20_000)
    yes, scored = (drawn == 1).mean(0), (drawn >= 0).mean(0)
    for key, share, of in zip(KEYS, yes, scored, strict=True):
        if any(key in pair for pair in IMPLICATIONS):
            assert 0.4 <= share <= 0.6, key
        assert 0.4 <= share / of <= 0.6, key
        assert of > 0.15, key


def test_what_readers_infer_is_wrong_in_three_of_ten_cases() -> None:
    drawn = states(20_000)
    for first, second in IMPLICATIONS:
        a, b = drawn[:, KEYS.index(first)], drawn[:, KEYS.index(second)]
        assert ((a == 1) & (b == 0)).mean() >= 0.30, (first, second)
        # and the opposite is no better guess: the second is neither common nor rare beside the first
        assert 0.3 < (b[(a == 1) & (b >= 0)] == 1).mean() < 0.5, (first, second)


@pytest.mark.slow
def test_no_fixed_answer_is_right_in_more_than_one_of_a_thousand_cases() -> None:
    drawn = states(100_000)
    rate, answer = best_answer(drawn[:20_000])
    assert rate > 0
    assert passes(drawn[20_000:], answer) <= 0.001
    vectors, counts = np.unique(drawn, axis=0, return_counts=True)
    assert counts.max() / len(drawn) <= 0.001
    assert len(vectors) > 20_000


def test_nine_easy_labels_and_the_best_guess_at_the_others_pass_few_cases() -> None:
    drawn = states(20_000)
    others = [number for number, key in enumerate(KEYS) if key not in EASY]
    assert len(others) == 8
    rest = drawn[:, others]
    rates = [passes(rest, np.array([code >> bit & 1 for bit in range(8)], np.int8)) for code in range(256)]
    assert max(rates) <= 0.03
