"""Which agent is better, by task: paired tests, many comparisons at once, ranks and groups. Pure functions.

Sources: sign-flip (Fisher's randomisation) test over whole tasks, exact by convolution; McNemar 1947; Holm 1979;
Benjamini and Hochberg 1995. Pairing trial 1 with trial 1 is arbitrary and pooled McNemar over trials has three times
its nominal error, so neither is offered for claims; see ``results.reference_tests`` for what is shown beside them.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from results.statistics import Floats, clustered_se, fixed_tasks_se, sums_by, t_interval

FINEST = 5040
"""The finest grid of task rates the exact test works on: divisible by 1 to 10."""


@dataclass(frozen=True)
class Paired:
    """A minus B over the same tasks."""

    tasks: int
    clusters: int
    difference: float
    se: float
    """Clustered by template: for tasks like these. NaN with one cluster."""
    se_these_tasks: float
    """Trial noise only. NaN without repeated trials."""
    low: float
    high: float
    """95 %, t with clusters - 1 degrees of freedom, for tasks like these."""
    p_sign_flip: float
    p_t: float
    correlation: float
    """Of the two agents' task rates; NaN where one does not vary."""


def paired(
    a: tuple[ArrayLike, ArrayLike], b: tuple[ArrayLike, ArrayLike], clusters: Sequence[object] | None = None
) -> Paired:
    """Compare two agents, each given as (passes, trials) per task over the same tasks."""
    (ca, na), (cb, nb) = ((np.asarray(c, np.float64), np.asarray(n, np.float64)) for c, n in (a, b))
    xa, xb = ca / na, cb / nb
    labels = list(clusters) if clusters is not None else list(range(xa.size))
    gaps, sizes = sums_by(labels, xa - xb, np.ones(xa.size))
    difference, se, groups = float((xa - xb).mean()), clustered_se(gaps, sizes), gaps.size
    low, high = t_interval(difference, se, groups - 1)
    fine = min(int(np.lcm.reduce(np.concatenate([na, nb]).astype(np.int64))), FINEST)
    whole = np.rint(gaps * fine).astype(np.int64)
    varies = xa.size > 1 and xa.std() > 0 and xb.std() > 0
    return Paired(
        tasks=xa.size,
        clusters=groups,
        difference=difference,
        se=se,
        se_these_tasks=math.hypot(fixed_tasks_se(ca, na), fixed_tasks_se(cb, nb)),
        low=max(low, -1.0),
        high=min(high, 1.0),
        p_sign_flip=sign_flip(whole),
        p_t=_t_test(difference, se, groups),
        correlation=float(np.corrcoef(xa, xb)[0, 1]) if varies else math.nan,
    )


def _t_test(difference: float, se: float, groups: int) -> float:
    if groups < 2:
        return math.nan
    if se == 0:
        return 1.0 if difference == 0 else 0.0
    return float(2 * stats.t.sf(abs(difference / se), groups - 1))


def sign_flip(gaps: ArrayLike) -> float:
    """Return the exact two-sided p that the summed integer gaps are as far from 0 by flipping signs of clusters."""
    values = np.asarray(gaps, np.int64)
    divisor = max(int(np.gcd.reduce(values)), 1)
    steps = np.abs(values) // divisor
    span, observed = int(steps.sum()), abs(int(values.sum())) // divisor
    chances = np.zeros(2 * span + 1)
    chances[span] = 1.0
    for step in steps[steps > 0]:
        chances = (np.roll(chances, step) + np.roll(chances, -step)) / 2
    return float(min(chances[np.abs(np.arange(-span, span + 1)) >= observed].sum(), 1.0))


def within_task_permutation(a: ArrayLike, b: ArrayLike, trials: int) -> float:
    """Return the exact two-sided p when trials are exchanged between the agents within each task.

    Valid only for "both have the same rate on each of these tasks"; for any wider claim it is far too small.
    """
    ca, cb = np.asarray(a, np.int64), np.asarray(b, np.int64)
    chances = np.ones(1)
    for both in ca + cb:
        chances = np.convolve(chances, stats.hypergeom.pmf(np.arange(trials + 1), 2 * trials, both, trials))
    distance = np.abs(2 * np.arange(chances.size) - (ca + cb).sum())
    return float(chances[distance >= abs(int((ca - cb).sum()))].sum())


def mcnemar(only_a: int, only_b: int) -> float:
    """Return McNemar's exact p from the tasks that only one of the two passed."""
    if only_a + only_b == 0:
        return 1.0
    return float(stats.binomtest(only_a, only_a + only_b).pvalue)


def two_proportions(passes_a: int, passes_b: int, trials: int) -> tuple[float, float]:
    """Return (z, p) of the pooled two-proportion test: the published form, for reference."""
    pooled = (passes_a + passes_b) / (2 * trials)
    se = math.sqrt(2 * pooled * (1 - pooled) / trials)
    z = (passes_a - passes_b) / trials / se if se else 0.0
    return z, float(2 * stats.norm.sf(abs(z)))


def assumed_pair(
    rate_a: float, rate_b: float, tasks: int, trials: int, *, icc: float, correlation: float | None
) -> float:
    """Return the p of a gap when only totals are published, under a stated ICC and correlation of task rates.

    ``correlation`` null means unpaired. t with tasks - 1 degrees of freedom.
    """
    mean = (rate_a + rate_b) / 2
    v = mean * (1 - mean)
    if correlation is None:
        variance = 2 * v * (1 + (trials - 1) * icc) / (tasks * trials)
    else:
        variance = (2 * icc * v * (1 - correlation) + 2 * (1 - icc) * v / trials) / tasks
    return float(2 * stats.t.sf(abs(rate_a - rate_b) / math.sqrt(variance), tasks - 1)) if variance else 1.0


def holm(p: ArrayLike) -> Floats:
    """Return Holm's adjusted p values: the chance of any false claim stays at 5 %."""
    values = np.asarray(p, np.float64)
    order = np.argsort(values)
    stepped = np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Return adjusted p values with the share of false claims held at 5 %: for exploration."""
    values = np.asarray(p, np.float64)
    return np.asarray(stats.false_discovery_control(values, method="bh"), np.float64) if values.size else values


@dataclass(frozen=True)
class Rank:
    """Where an agent may stand, given what can be told apart."""

    best: int
    worst: int


def rank_intervals(better: NDArray[np.bool_]) -> list[Rank]:
    """Return each agent's rank interval; ``better[i, j]`` says that i is told apart from j and above it."""
    count = len(better)
    return [Rank(1 + int(better[:, i].sum()), count - int(better[i].sum())) for i in range(count)]


def groups(better: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """Return the largest sets of agents of which no two can be told apart; an agent may stand in several."""
    count = len(better)
    same = [{j for j in range(count) if j != i and not better[i, j] and not better[j, i]} for i in range(count)]
    found: list[tuple[int, ...]] = []

    def grow(chosen: set[int], candidates: set[int], excluded: set[int]) -> None:  # Bron and Kerbosch 1973
        if not candidates and not excluded:
            found.append(tuple(sorted(chosen)))
        pivot = max(candidates | excluded, key=lambda i: len(same[i] & candidates), default=None)
        for i in sorted(candidates - (same[pivot] if pivot is not None else set())):
            grow(chosen | {i}, candidates & same[i], excluded & same[i])
            candidates = candidates - {i}
            excluded = excluded | {i}

    grow(set(), set(range(count)), set())
    return sorted(found)


def told_apart(rates: Sequence[float], p: dict[tuple[int, int], float], level: float = 0.05) -> NDArray[np.bool_]:
    """Return ``better`` from (adjusted) p values of the pairs i < j."""
    better = np.zeros((len(rates), len(rates)), bool)
    for i, j in itertools.combinations(range(len(rates)), 2):
        if p[i, j] < level and rates[i] != rates[j]:
            better[(i, j) if rates[i] > rates[j] else (j, i)] = True
    return better
