"""The published agents: every derived number equals the one computed elsewhere from the same totals."""

import itertools
import json
from pathlib import Path

import pytest

from results import comparisons, pareto
from results.published import published, published_section
from results.statistics import wilson

STATS = json.loads((Path(__file__).parent / "data" / "published_stats.json").read_text())
AGENTS = {agent.agent: agent for agent in published().agents}
SETS = {"twelve": list(AGENTS), "paper_ten": [name for name, agent in AGENTS.items() if agent.in_paper]}


@pytest.mark.parametrize("want", STATS["agents"], ids=lambda want: want["agent"])
def test_rates_intervals_costs_and_minutes(want):
    agent = AGENTS[want["agent"]]
    assert (agent.passes, agent.trials) == (want["successes"], want["trials"])
    assert agent.interval(0) == pytest.approx(want["wilson95_naive"], abs=6e-7)
    for icc, interval in want["wilson95_clustered_by_icc"].items():
        assert agent.interval(float(icc)) == pytest.approx(interval, abs=6e-7)
    assert agent.cost_usd == pytest.approx(want["mean_cost_usd"], abs=6e-7)
    assert agent.cost_usd / agent.rate == pytest.approx(want["cost_per_success_usd"], abs=6e-7)
    assert agent.minutes == pytest.approx(want["mean_minutes_task_weighted"], abs=6e-5)
    names = published().category_names
    for ours, found in agent.categories.items():
        theirs = want["by_category"][names[ours]]
        assert (found.passes, found.trials) == (theirs["successes"], theirs["trials"])
        assert wilson(found.passes / found.trials, found.trials) == pytest.approx(theirs["wilson95"], abs=6e-7)
    assert sum(found.passes for found in agent.categories.values()) == agent.passes
    weighted = sum(found.cost_usd * found.trials for found in agent.categories.values()) / agent.trials
    assert weighted == pytest.approx(agent.cost_usd, abs=1e-4)


@pytest.mark.parametrize("which", SETS)
def test_frontier_and_hull(which):
    names = SETS[which]
    want = STATS["pareto"][which]
    success = [AGENTS[name].rate for name in names]
    cost, minutes = [AGENTS[n].cost_usd for n in names], [AGENTS[n].minutes for n in names]
    on = [name for name, is_on in zip(names, pareto.frontier(cost, success), strict=True) if is_on]
    assert set(on) == set(want["cost_success_frontier"])
    assert [names[i] for i in pareto.hull(cost, success)] == want["convex_hull"]
    on_time = {name for name, is_on in zip(names, pareto.frontier(minutes, success), strict=True) if is_on}
    assert on_time == set(want["time_success_frontier"])
    over = pareto.dominates(cost, success)
    dominated = {b: [a for i, a in enumerate(names) if over[i, j]] for j, b in enumerate(names) if over[:, j].any()}
    assert {k: set(v) for k, v in dominated.items()} == {k: set(v) for k, v in want["dominated_by"].items()}


@pytest.mark.parametrize("which", SETS)
@pytest.mark.parametrize("category", published().category_names)
def test_frontier_of_a_category(which, category):
    found = [AGENTS[name].categories[category] for name in SETS[which]]
    on = pareto.frontier([c.cost_usd for c in found], [c.passes / c.trials for c in found])
    want = STATS["pareto"]["by_category_cost_success_frontier"][published().category_names[category]][which]
    assert {name for name, is_on in zip(SETS[which], on, strict=True) if is_on} == set(want)


def p_values(names, method):
    pairs = list(itertools.combinations(range(len(names)), 2))
    values = []
    for i, j in pairs:
        a, b = AGENTS[names[i]], AGENTS[names[j]]
        if method == "naive":
            values.append(comparisons.two_proportions(a.passes, b.passes, a.trials)[1])
        else:
            icc, correlation = method
            values.append(comparisons.assumed_pair(a.rate, b.rate, 54, 3, icc=icc, correlation=correlation))
    return pairs, values


METHODS = {
    "naive_binomial": "naive",
    **{f"clustered_unpaired_icc_{icc}": (icc, None) for icc in (0.3, 0.45, 0.6)},
    **{f"clustered_paired_icc_{icc}_taskcorr_{r}": (icc, r) for icc in (0.3, 0.45, 0.6) for r in (0.5, 0.7)},
}


@pytest.mark.parametrize("which", SETS)
@pytest.mark.parametrize("method", METHODS)
def test_numbers_of_pairs_that_can_be_told_apart(which, method):
    _, values = p_values(SETS[which], METHODS[method])
    want = STATS["pair_summary"][which][method]
    assert sum(p < 0.05 for p in values) == want["p_lt_0.05"]
    assert sum(comparisons.holm(values) < 0.05) == want["holm_lt_0.05"]
    assert sum(comparisons.benjamini_hochberg(values) < 0.05) == want["bh_fdr_lt_0.05"]
    assert len(values) == want["pairs"]


def test_every_pair():
    for want in STATS["pairs"]:
        a, b = AGENTS[want["a"]], AGENTS[want["b"]]
        z, p = comparisons.two_proportions(a.passes, b.passes, 162)
        assert (z, p) == (pytest.approx(want["naive_z"], abs=6e-5), pytest.approx(want["naive_p"], rel=1e-4))
        (low_a, high_a), (low_b, high_b) = a.interval(0), b.interval(0)
        assert (low_a <= high_b and low_b <= high_a) == want["wilson_naive_overlap"]
        for icc, printed in want["clustered_unpaired_p"].items():
            found = comparisons.assumed_pair(a.rate, b.rate, 54, 3, icc=float(icc), correlation=None)
            assert found == pytest.approx(printed, rel=1e-4)
        for icc, printed in want["clustered_paired_r0.5_p"].items():
            found = comparisons.assumed_pair(a.rate, b.rate, 54, 3, icc=float(icc), correlation=0.5)
            assert found == pytest.approx(printed, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "method", "holm"),
    [
        ("naive_unadjusted", "naive", False),
        ("naive_holm", "naive", True),
        ("clustered_unpaired_icc_0.45_unadjusted", (0.45, None), False),
        ("clustered_unpaired_icc_0.45_holm", (0.45, None), True),
        ("clustered_paired_icc_0.45_taskcorr_0.5_holm", (0.45, 0.5), True),
    ],
)
def test_rank_intervals(name, method, holm):
    names = SETS["twelve"]
    pairs, values = p_values(names, method)
    adjusted = comparisons.holm(values) if holm else values
    better = comparisons.told_apart([AGENTS[n].rate for n in names], dict(zip(pairs, adjusted, strict=True)))
    found = {n: (r.best, r.worst) for n, r in zip(names, comparisons.rank_intervals(better), strict=True)}
    assert found == {want["agent"]: (want["best_rank"], want["worst_rank"]) for want in STATS["rank_intervals"][name]}


def test_the_table_of_published_agents():
    section = published_section()
    assert section.rows[0][:2] == ("Claude Code (Opus 5)", "54.9 % (44.1-65.3; n 162)")
    assert section.rows[0][4] == 1 and section.rows[-1][5] == 12
    assert "Not comparable" in section.note


def test_names_are_mapped_here_and_nowhere_else():
    house = Path(__file__).parents[2]
    theirs = [name for ours, name in published().category_names.items() if ours != name]
    assert len(theirs) == 2
    for room in ("suite", "runners", "categories", "containers", "results", "verifiers_hidden"):
        for path in (house / room).rglob("*.py"):
            assert not any(name in path.read_text(encoding="utf-8") for name in theirs), path
