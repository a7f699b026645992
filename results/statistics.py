"""Rates with honest intervals. Pure functions over counts per task; no file, no clock, no hidden state.

Model: template > instance > trial. A *task* below is one task instance, with ``passes`` of ``trials``; tasks drawn from
one template (variations of a task, clue twins) hang together and form one *cluster*. Two targets, always named:

- ``TASKS_LIKE_THESE``: the tasks are a sample; the error holds tasks and trials. For claims about agents.
- ``THESE_TASKS``: the tasks are fixed; the error holds trial noise only. For regressions of one agent on one suite.

Sources: Wilson 1927; clustered errors after Miller 2024 (arXiv 2411.00640); small samples after Bowyer et al. 2025
(arXiv 2503.01747); ICC by one-way analysis of variance (Fleiss 1981); pass@k after Chen et al. 2021
(arXiv 2107.03374); pass^k after Yao et al. 2024 (arXiv 2406.12045).
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

TASKS_LIKE_THESE = "tasks like these"
THESE_TASKS = "these tasks"
Z95 = float(stats.norm.ppf(0.975))
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A 95 % interval for a rate; ``method`` says for which target and how."""

    low: float
    high: float
    method: str
    n_eff: float
    """The number of independent trials that would be as informative."""


def wilson(rate: float, n: float, quantile: float = Z95) -> tuple[float, float]:
    """Return the Wilson score interval; ``n`` may be an effective, fractional number."""
    if n <= 0:
        return 0.0, 1.0
    q2 = quantile**2
    centre = rate + q2 / (2 * n)
    half = quantile * math.sqrt(max(rate * (1 - rate), 0.0) / n + q2 / (4 * n**2))
    scale = 1 + q2 / n
    low, high = (centre - half) / scale, (centre + half) / scale
    return max(min(low, rate), 0.0), min(max(high, rate), 1.0)  # rounding must not push the rate out


def sums_by(labels: Sequence[object], *columns: ArrayLike) -> list[Floats]:
    """Return each column summed within the groups that ``labels`` name, groups in order of first appearance."""
    numbers: dict[object, int] = {}
    index = np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)
    return [np.bincount(index, np.asarray(c, np.float64), len(numbers)).astype(np.float64) for c in columns]


def clustered_se(passes: ArrayLike, trials: ArrayLike, *, small_sample: bool = True) -> float:
    """Return the standard error of sum(passes) / sum(trials), one entry per cluster; NaN with one cluster.

    The linearised form, which for equal trials is Miller's. ``small_sample`` multiplies the variance by G/(G-1).
    """
    c, n = np.asarray(passes, np.float64), np.asarray(trials, np.float64)
    if c.size < 2:
        return math.nan
    residuals = c - n * (c.sum() / n.sum())
    factor = c.size / (c.size - 1) if small_sample else 1.0
    return float(math.sqrt(factor * (residuals**2).sum()) / n.sum())


@dataclass(frozen=True)
class Anova:
    """Mean squares between and within tasks, and what follows from them; null where not defined."""

    between: float
    within: float
    icc: float | None
    design_effect: float | None


def anova(passes: ArrayLike, trials: ArrayLike) -> Anova | None:
    """Return the one-way analysis of 0/1 outcomes by task; null with one task or without repeated trials."""
    c, n = np.asarray(passes, np.float64), np.asarray(trials, np.float64)
    groups, total = c.size, n.sum()
    if groups < 2 or total <= groups:
        return None
    rates, pooled = c / n, c.sum() / total
    between = float((n * (rates - pooled) ** 2).sum() / (groups - 1))
    within = float((n * rates * (1 - rates)).sum() / (total - groups))
    size = (total - (n**2).sum() / total) / (groups - 1)
    spread = between + (size - 1) * within
    icc = float((between - within) / spread) if spread > 0 else None
    return Anova(between, within, icc, None if icc is None else float(1 + (size - 1) * icc))


def fixed_tasks_se(passes: ArrayLike, trials: ArrayLike) -> float:
    """Return the standard error from trial noise alone: unbiased within each task, NaN where none is repeated."""
    c, n = np.asarray(passes, np.float64), np.asarray(trials, np.float64)
    if not (n > 1).all():
        return math.nan
    return float(math.sqrt((n * c / n * (1 - c / n) * n / (n - 1)).sum()) / n.sum())


def effective_n(rate: float, se: float, most: float, clusters: int) -> float:
    """Return p(1-p)/SE², at most ``most``; the clusters where the data tell nothing of the error."""
    return float(clusters) if math.isnan(se) or se == 0 else min(rate * (1 - rate) / se**2, most)


def t_interval(rate: float, se: float, df: int) -> tuple[float, float]:
    """Return rate ± t SE, which may leave [0, 1]; NaN without a degree of freedom."""
    if df < 1:
        return math.nan, math.nan
    half = float(stats.t.ppf(0.975, df)) * se
    return rate - half, rate + half


def naive_interval(passes: float, trials: float) -> Interval:
    """Return Wilson over all trials as if independent: the published form, too narrow where trials hang together."""
    return Interval(*wilson(passes / trials, trials), "Wilson, trials as if independent (published form)", trials)


def tasks_like_these(
    passes: ArrayLike,
    trials: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    strata: Sequence[str] | None = None,
) -> Interval:
    """Return the interval for tasks like these: Wilson with the effective n of errors clustered by template.

    Categories are fixed strata, not a sample: given ``strata`` (one per task, the same within a cluster), differences
    between them are no error. A stratum of one cluster is merged with the one whose name is most like it.
    """
    labels = list(clusters) if clusters is not None else list(range(np.size(passes)))
    c, n = sums_by(labels, passes, trials)
    of = dict(zip(labels, strata, strict=True)) if strata is not None else {}
    names = merged_strata([of.get(label, "") for label in dict.fromkeys(labels)])
    rate, total, groups = float(c.sum() / n.sum()), float(n.sum()), c.size
    most = total if len(set(names)) == 1 else math.inf  # strata can make the whole better known than its trials alone
    n_eff = effective_n(rate, stratified_se(c, n, names), most, groups)
    stratified = f", {len(set(names))} strata" if len(set(names)) > 1 else ""
    method = f"{TASKS_LIKE_THESE}: Wilson, n_eff {n_eff:.1f}, {groups} clusters{stratified}"
    return Interval(*wilson(rate, n_eff), method, n_eff)


def stratified_se(passes: Floats, trials: Floats, strata: Sequence[str]) -> float:
    """Return the clustered standard error within strata, one entry per cluster; NaN where a stratum has one."""
    names, variance = np.array(strata), 0.0
    for name in dict.fromkeys(strata):
        inside = names == name
        variance += (clustered_se(passes[inside], trials[inside]) * float(trials[inside].sum())) ** 2
    return math.sqrt(variance) / float(trials.sum())


def merged_strata(strata: Sequence[str]) -> list[str]:
    """Return the strata with each of one cluster merged into the one of the longest common beginning."""
    names = list(strata)
    for single in sorted({name for name in names if names.count(name) == 1}):
        others = sorted(set(names) - {single})
        if others and names.count(single) == 1:
            names[names.index(single)] = max(others, key=lambda other: _shared_start(single, other))
    return names


def _shared_start(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def these_tasks(passes: ArrayLike, trials: ArrayLike) -> Interval:
    """Return the interval for these tasks: Wilson with the effective n of trial noise.

    Without repeats, or where every task came out the same each time, all trials as if independent: an upper bound.
    """
    c, n = np.asarray(passes, np.float64), np.asarray(trials, np.float64)
    rate, total = float(c.sum() / n.sum()), float(n.sum())
    se = fixed_tasks_se(c, n)
    n_eff = total if math.isnan(se) or se == 0 else max(rate * (1 - rate) / se**2, total)
    return Interval(*wilson(rate, n_eff), f"{THESE_TASKS}: Wilson, n_eff {n_eff:.1f}", n_eff)


def pass_at_k(passes: ArrayLike, trials: ArrayLike, k: int) -> Floats:
    """Return 1 - C(n-c, k)/C(n, k) per task: the chance that one of k trials passes. NaN where n < k."""
    c, n = np.asarray(passes, np.float64), np.asarray(trials, np.float64)
    return 1 - pass_hat_k(n - c, n, k)


def pass_hat_k(passes: ArrayLike, trials: ArrayLike, k: int) -> Floats:
    """Return C(c, k)/C(n, k) per task: the chance that all of k trials pass. NaN where n < k."""
    c, n = np.asarray(passes, np.float64), np.asarray(trials, np.float64)
    return np.asarray(special.comb(c, k) / np.where(n >= k, special.comb(n, k), np.nan), np.float64)


def cumulative_incidence(seconds: ArrayLike, passed: ArrayLike) -> tuple[Floats, Floats]:
    """Return (times, share of all trials solved by then), one step per success.

    A wrong submission ends a trial, so failures compete with success and are no censoring: they never count.
    """
    at, won = np.asarray(seconds, np.float64), np.asarray(passed, bool)
    times, counts = np.unique(at[won], return_counts=True)
    return times, np.cumsum(counts) / max(at.size, 1)


def cost_per_success(passes: ArrayLike, costs: ArrayLike) -> tuple[float, float] | None:
    """Return (USD per success, its linearised clustered standard error); null without a success.

    ``passes`` and ``costs`` are sums per cluster. The error is NaN with one cluster.
    """
    s, c = np.asarray(passes, np.float64), np.asarray(costs, np.float64)
    if s.sum() == 0:
        return None
    ratio, groups = float(c.sum() / s.sum()), s.size
    if groups < 2:
        return ratio, math.nan
    return ratio, float(math.sqrt(groups / (groups - 1) * ((c - ratio * s) ** 2).sum()) / s.sum())
