"""Nothing in the texts tells a wrong statement from a right one of the same kind: classifiers that see no picture."""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from xray_report_cases import cases

from categories.xray_report_correction.errors import Line
from categories.xray_report_correction.kinds import SLOTS
from categories.xray_report_correction.story import may_be_wrong

CASES, PAIRS, BOUND = 2600, 10_000, 0.55


@dataclass(frozen=True)
class Statement:
    """A drafted statement that may be in error, with all that the texts show around it."""

    case: int
    line: Line
    sentence: str
    earlier: str
    heads: str
    draft: str
    place: float

    @property
    def wrong(self) -> bool:
        return self.line.kind is not None

    @property
    def group(self) -> tuple[str, bool]:
        """What is compared with what: statements of one kind, present or absent."""
        return self.line.name, self.line.draft.present


@pytest.fixture(scope="module")
def statements() -> list[Statement]:
    found = []
    for number, case in enumerate(cases(CASES)):
        earlier = " ".join(case.prior_reports)
        for place, sentence in enumerate(case.sentences):
            for line in sentence.lines:
                if not may_be_wrong(line):
                    continue
                share = place / len(case.sentences)
                found.append(Statement(number, line, sentence.draft, earlier, case.heads, case.draft, share))
    return found


def pairs(statements: list[Statement], score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for pairs of a wrong and a right statement of one group, 1 where the wrong one scores higher."""
    wrong, right = defaultdict(list), defaultdict(list)
    for number, statement in enumerate(statements):
        (wrong if statement.wrong else right)[statement.group].append(number)
    rng, groups = np.random.default_rng(7), [group for group in wrong if right[group]]
    sizes = np.array([len(wrong[group]) for group in groups], float)
    wins = []
    for group in rng.choice(len(groups), PAIRS, p=sizes / sizes.sum()):
        one, other = (score[rng.choice(side[groups[group]])] for side in (wrong, right))
        wins.append(float(one > other) + 0.5 * float(one == other))
    return np.array(wins)


def upper_limit(wins: NDArray[np.float64]) -> float:
    """Return the upper 95 % limit of the AUROC."""
    return float(wins.mean() + 1.645 * wins.std() / len(wins) ** 0.5)


def transition(statement: Statement) -> dict[str, str]:
    """Return what a reader who knows the law of change sees: the value before, the value now, the stated change."""
    line = statement.line
    before, claim = line.before, line.draft
    told = {"change": str(claim.change), "was there": str(before is not None), "size": str(claim.size_mm)}
    for slot in SLOTS:
        old = getattr(before, slot) if before else None
        told[slot] = f"{old} > {getattr(claim, slot)}"
        told[f"{slot} kept"] = str(old == getattr(claim, slot))
    return told


def whole_key(statement: Statement) -> dict[str, str]:
    return {"all": repr(sorted(transition(statement).items()))}


def context(statement: Statement) -> dict[str, str]:
    """Return what stands around: the place in the draft, lengths, how much of the earlier report is repeated."""
    repeated = statement.sentence in statement.earlier
    words = len(statement.sentence.split())
    return {
        "place": str(int(statement.place * 5)),
        "words": str(words),
        "repeated": str(repeated),
        "sentences": str(statement.draft.count(".")),
        "first words": " ".join(statement.sentence.split()[:2]),
        "last word": statement.sentence.split()[-1],
    }


@pytest.mark.parametrize("look", [transition, whole_key, context])
def test_likelihood_ratios_do_not_tell_a_wrong_statement(
    statements: list[Statement], look: Callable[[Statement], dict[str, str]]
) -> None:
    """Learned on one half of the cases by counting, within a kind; upper limit of the AUROC on the other half."""
    half = CASES // 2
    counts: dict[bool, Counter[tuple[object, ...]]] = {True: Counter(), False: Counter()}
    seen: dict[bool, Counter[tuple[str, bool]]] = {True: Counter(), False: Counter()}
    for statement in statements:
        if statement.case < half:
            seen[statement.wrong][statement.group] += 1
            for name, value in look(statement).items():
                counts[statement.wrong][(*statement.group, name, value)] += 1
    test = [statement for statement in statements if statement.case >= half]
    score = np.zeros(len(test))
    for number, statement in enumerate(test):
        for name, value in look(statement).items():
            key = (*statement.group, name, value)
            rate = [(counts[w][key] + 1) / (seen[w][statement.group] + 2) for w in (True, False)]
            score[number] += np.log(rate[0] / rate[1])
    assert upper_limit(pairs(test, score)) <= BOUND


def test_words_of_draft_heads_and_earlier_reports_do_not_tell_a_wrong_statement(statements: list[Statement]) -> None:
    """A linear classifier on words and pairs of words, with the kind in front of each."""
    half = CASES // 2
    texts = [f"{s.sentence} || {s.heads}" for s in statements]
    tagged = [
        " ".join(f"{s.line.name}_{word}" for word in text.split()) for s, text in zip(statements, texts, strict=True)
    ]
    words = HashingVectorizer(n_features=1 << 18, ngram_range=(1, 2), token_pattern=r"\S+").transform(
        [f"{one} {s.earlier} {s.draft}" for one, s in zip(tagged, statements, strict=True)]
    )
    wrong = np.array([s.wrong for s in statements])
    train = np.array([s.case < half for s in statements])
    model = SGDClassifier(loss="log_loss", alpha=1e-4, random_state=0, class_weight="balanced", max_iter=50)
    model.fit(words[train], wrong[train])
    test = [s for s in statements if s.case >= half]
    assert upper_limit(pairs(test, model.decision_function(words[~train]))) <= BOUND


def test_a_test_that_can_fail_finds_an_error_that_shows(statements: list[Statement]) -> None:
    """The same pairs, scored by the truth: the measure would see a leak."""
    score = np.array([float(s.line.truth != s.line.draft) for s in statements])
    assert pairs(statements, score).mean() > 0.99


def test_earlier_reports_rarely_state_what_is_true_instead(statements: list[Statement]) -> None:
    """Copying the earlier report's value into wrong statements corrects few of them."""
    wrong = [s for s in statements if s.wrong and s.line.before is not None and s.line.draft.present]
    copied = 0
    for statement in wrong:
        slot = str(statement.line.slot)
        if slot not in ("change", "status"):
            copied += getattr(statement.line.before, slot) == getattr(statement.line.truth, slot)
    everything = sum(s.wrong for s in statements)
    assert copied / everything < 0.2
