"""Success against cost or time: who is on the frontier, who spans its hull, and how sure that is. Pure functions.

A point is (cost, success): less of the first and more of the second is better. An agent is dominated when another has
at least its success at no more than its cost, one of them strictly; ties stay.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from results.statistics import Floats

DRAWS = 10_000
CHUNK = 1_000
"""Draws at a time, so that memory does not grow with their number."""


def dominates(cost: ArrayLike, success: ArrayLike) -> NDArray[np.bool_]:
    """Return ``d[..., i, j]``: agent i dominates agent j. Leading axes are draws."""
    c, s = np.asarray(cost, np.float64), np.asarray(success, np.float64)
    ci, cj, si, sj = c[..., :, None], c[..., None, :], s[..., :, None], s[..., None, :]
    return (ci <= cj) & (si >= sj) & ((ci < cj) | (si > sj))


def frontier(cost: ArrayLike, success: ArrayLike) -> NDArray[np.bool_]:
    """Return which agents nobody dominates."""
    return np.logical_not(dominates(cost, success).any(axis=-2))


def hull(cost: ArrayLike, success: ArrayLike) -> list[int]:
    """Return the frontier's upper convex hull, cheapest first: what a mixture of agents cannot beat."""
    c, s = np.asarray(cost, np.float64), np.asarray(success, np.float64)
    chain: list[int] = []
    for i in sorted(np.flatnonzero(frontier(c, s)), key=lambda i: (c[i], -s[i])):
        while len(chain) > 1 and _above(c, s, chain[-2], chain[-1], int(i)):
            chain.pop()
        chain.append(int(i))
    return chain


def _above(c: Floats, s: Floats, a: int, b: int, d: int) -> bool:
    """Whether b lies on or below the line from a to d."""
    return bool((s[b] - s[a]) * (c[d] - c[a]) <= (s[d] - s[a]) * (c[b] - c[a]))


@dataclass(frozen=True)
class Sums:
    """Per agent (rows) and cluster (columns): trials, passes and USD, or minutes in their place."""

    trials: Floats
    passes: Floats
    costs: Floats


def resamples(strata: Sequence[Hashable], draws: int, seed: int = 0) -> NDArray[np.int64]:
    """Return how often each cluster is drawn: whole clusters, with replacement, within each stratum (category)."""
    rng = np.random.default_rng(seed)
    labels = {name: number for number, name in enumerate(dict.fromkeys(strata))}
    index = np.array([labels[name] for name in strata])
    counts = np.zeros((draws, len(index)), np.int64)
    for number in labels.values():
        members = np.flatnonzero(index == number)
        counts[:, members] = rng.multinomial(members.size, np.full(members.size, 1 / members.size), draws)
    return counts


def resampled(sums: Sums, counts: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return (mean cost, success rate) per draw and agent."""
    trials = counts @ sums.trials.T
    with np.errstate(invalid="ignore", divide="ignore"):
        return counts @ sums.costs.T / trials, counts @ sums.passes.T / trials


def membership(sums: Sums, counts: NDArray[np.int64]) -> Floats:
    """Return the share of draws in which each agent is on the frontier."""
    on = np.zeros(len(sums.trials))
    for start in range(0, len(counts), CHUNK):
        on += frontier(*resampled(sums, counts[start : start + CHUNK])).sum(axis=0)
    return on / len(counts)


def mean_cost_intervals(sums: Sums, counts: NDArray[np.int64]) -> Floats:
    """Return (low, high) of the mean cost per trial, one row per agent: 95 %, percentiles of the draws."""
    parts = [resampled(sums, counts[start : start + CHUNK])[0] for start in range(0, len(counts), CHUNK)]
    return np.asarray(np.nanpercentile(np.concatenate(parts), [2.5, 97.5], axis=0).T, np.float64)
