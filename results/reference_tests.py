"""Tests that others report, beside the one that a claim rests on; each with what it takes for granted."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from results.comparisons import Paired, mcnemar, two_proportions, within_task_permutation
from results.statistics import TASKS_LIKE_THESE, THESE_TASKS
from results.tables import Section

Counts = tuple[ArrayLike, ArrayLike]
"""(passes, trials) per task instance."""


@dataclass(frozen=True)
class ReferenceTest:
    """One test of A against B."""

    name: str
    about: str
    """For which target, and what it assumes or compares."""
    p: float
    """Two-sided; NaN where it is not defined."""


def reference_tests(a: Counts, b: Counts, pair: Paired) -> list[ReferenceTest]:
    """Return the tests; those that need the same number of trials everywhere are left out where it differs."""
    (ca, na), (cb, nb) = ((np.asarray(c, np.int64), np.asarray(n, np.int64)) for c, n in (a, b))
    only_a, only_b = (
        int(((x > nx / 2) & (y <= ny / 2)).sum()) for x, nx, y, ny in ((ca, na, cb, nb), (cb, nb, ca, na))
    )
    found = [
        ReferenceTest("t by cluster", TASKS_LIKE_THESE, pair.p_t),
        ReferenceTest(
            "McNemar, exact",
            f"tasks that only one passed in more than half of its trials: {only_a} only A, {only_b} only B",
            mcnemar(only_a, only_b),
        ),
    ]
    trials = int(na[0])
    if (na == trials).all() and (nb == trials).all():
        by_task = within_task_permutation(ca, cb, trials)
        naive = two_proportions(int(ca.sum()), int(cb.sum()), trials * ca.size)[1]
        found.append(ReferenceTest("permutation within tasks, exact", f"{THESE_TASKS} only", by_task))
        found.append(ReferenceTest("two proportions", "published form: trials as if independent; p too small", naive))
    return found


def reference_section(tests: list[ReferenceTest]) -> Section:
    """Return the tests as a table."""
    rows = [(test.name, test.about, None if math.isnan(test.p) else f"{test.p:.4f}") for test in tests]
    note = "For readers of other reports: the claim above rests on the sign-flip test alone."
    return Section("Other tests, for reference", note, ("test", "about", "p"), list(rows))
