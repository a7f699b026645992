"""Do 95 % intervals cover the truth 93 to 97 % of the time? By simulation, with the functions that reports call.

``python tests/bench/bench_coverage.py [runs]`` prints a table; under pytest a smaller number of runs is asserted.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from results.statistics import tasks_like_these, these_tasks

ICCS = (0.0, 0.3, 0.45, 0.6)
RATES = (0.16, 0.42, 0.55)
TASKS = {"xray": 10, "tumor": 10, "ct": 10, "trial_matching": 9, "ehr_quality": 8, "ehr_events": 6, "ehr_conversion": 1}
PUBLISHED = {
    # category rates of three published agents, in the order of TASKS
    "gpt-5.5": (0.333, 0.400, 0.333, 0.519, 0.250, 0.722, 0.99),
    "opus-5": (0.333, 0.567, 0.267, 0.778, 0.708, 0.722, 0.99),
    "a weak one": (0.10, 0.05, 0.10, 0.20, 0.15, 0.55, 0.67),
}
STRATA = [name for name, tasks in TASKS.items() for _ in range(tasks)]
TRIALS = 3


def true_rates(rng, mean, icc):
    """Task rates of one draw; ``mean`` per task."""
    if icc == 0:
        return np.asarray(mean)
    size = (1 - icc) / icc
    return rng.beta(np.asarray(mean) * size, (1 - np.asarray(mean)) * size)


def coverage(mean, icc, runs, strata=None, target="like", seed=0):
    """Share of runs whose interval holds the truth: the mean of all tasks' means, or the drawn tasks' own rate."""
    rng = np.random.default_rng(seed)
    trials = np.full(len(mean), TRIALS)
    held = 0
    for _ in range(runs):
        rates = true_rates(rng, mean, icc)
        passes = rng.binomial(TRIALS, rates)
        like = target == "like"
        interval = tasks_like_these(passes, trials, strata=strata) if like else these_tasks(passes, trials)
        truth = np.mean(mean) if like else rates.mean()
        held += interval.low <= truth <= interval.high
    return held / runs


def cases():
    for icc in ICCS:
        for rate in RATES:
            yield f"54 tasks, p {rate}", [rate] * 54, icc, None
        for name, rates in PUBLISHED.items():
            mean = [rate for rate, tasks in zip(rates, TASKS.values(), strict=True) for _ in range(tasks)]
            yield f"stratified, {name}", mean, icc, STRATA


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mean", "icc", "strata"), cases())
def test_coverage(name, mean, icc, strata):
    runs = 2000
    noise = 2.5 * (0.95 * 0.05 / runs) ** 0.5
    for target in ("like", "these"):
        held = coverage(mean, icc, runs, strata, target)
        assert 0.93 - noise <= held <= 0.97 + noise, f"{name}, icc {icc}, {target}: {held:.3f}"


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(f"{runs} runs each\n{'case':<28} {'icc':>5} {'tasks like these':>17} {'these tasks':>12}")
    for name, mean, icc, strata in cases():
        like, these = (coverage(mean, icc, runs, strata, target) for target in ("like", "these"))
        print(f"{name:<28} {icc:>5} {like:>16.1%} {these:>12.1%}", flush=True)


if __name__ == "__main__":
    main()
