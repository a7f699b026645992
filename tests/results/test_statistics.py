"""Every worked value to its printed digits, and the properties that no single value shows."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from results import comparisons, pareto, power, statistics, validity
from results.planning import detect_section
from results.power import Assumptions, Design
from results.pricing import Rates
from results.records import Usage

VECTORS = json.loads((Path(__file__).parent / "data" / "test_vectors.json").read_text())


def same(value, printed, digits=6):
    """Equal when rounded to the six digits of the vectors; more where more are printed."""
    for got, want in zip(np.ravel(value), np.ravel(printed), strict=True):
        shown = max(digits, min(len(repr(float(want)).partition(".")[2]), 10))
        assert abs(got - want) <= 0.5000001 * 10**-shown, (got, want)


def toy(name):
    counts = VECTORS[name].get("counts")
    if counts is None:
        counts = [int(c) for c, tasks in VECTORS[name]["tasks_with_c_successes"].items() for _ in range(tasks)]
    return counts, [3] * len(counts)


def test_quantile():
    same(statistics.Z95, VECTORS["z_975"])


@pytest.mark.parametrize("case", VECTORS["wilson"])
def test_wilson(case):
    c, n = map(int, case.split("/"))
    same(statistics.wilson(c / n, n), VECTORS["wilson"][case])


@pytest.mark.parametrize(
    ("icc", "printed"),
    [
        (0.3, (0.328285, 0.517088)),
        (0.4, (0.323133, 0.522943)),
        (0.5, (0.318310, 0.528463)),
        (0.6, (0.313769, 0.533695)),
    ],
)
def test_wilson_with_an_effective_n(icc, printed):
    same(statistics.wilson(68 / 162, 162 / (1 + 2 * icc)), printed)


@pytest.mark.parametrize("function", [statistics.pass_at_k, statistics.pass_hat_k])
def test_pass_k(function):
    name = function.__name__
    for c, values in VECTORS[f"{name}_n3"].items():
        same([function([int(c)], [3], k)[0] for k in (1, 2, 3)], values)
    for k, value in VECTORS[f"{name}_n10_c3"].items():
        same(function([3], [10], int(k)), value)
    assert np.isnan(function([1], [2], 3)).all()


def test_toy_of_four_tasks():
    counts, trials = toy("toy4x3")
    want = VECTORS["toy4x3"]
    same(math.sqrt(0.25 / 12), want["se_naive_p(1-p)/n"])
    same(statistics.clustered_se(counts, trials, small_sample=False), want["se_cluster_no_small_sample_factor"])
    same(statistics.clustered_se(counts, trials), want["se_cluster_G/(G-1)"])
    found = statistics.anova(counts, trials)
    same(
        [found.between, found.within, found.icc, found.design_effect],
        [want[k] for k in ("msb", "msw", "icc_anova", "deff")],
    )


def test_toy_of_54_tasks():
    counts, trials = toy("toy54x3")
    want = VECTORS["toy54x3"]
    rate, se = sum(counts) / 162, statistics.clustered_se(counts, trials)
    assert sum(counts) == want["successes"]
    same(rate, want["rate"])
    same(math.sqrt(rate * (1 - rate) / 162), want["se_naive"])
    same(se, want["se_cluster"])
    same(statistics.t_interval(rate, se, 53), want["t_interval_df53"])
    interval = statistics.tasks_like_these(counts, trials)
    same(interval.n_eff, want["n_eff"])
    same([interval.low, interval.high], want["wilson_n_eff"])
    found = statistics.anova(counts, trials)
    same([found.between, found.within, found.icc], [want[k] for k in ("msb", "msw", "icc_anova")])
    same(statistics.fixed_tasks_se(counts, trials), want["se_fixed_tasks_sqrt(MSW/162)"])
    same([statistics.pass_at_k(counts, trials, k).mean() for k in (1, 2, 3)], want["pass_at_1_2_3"])
    same([statistics.pass_hat_k(counts, trials, k).mean() for k in (1, 2, 3)], want["pass_hat_1_2_3"])


def test_paired_of_54_tasks():
    want = VECTORS["paired54x3"]
    pairs = [
        (a, b) for a, row in enumerate(want["joint_rows_A_cols_B"]) for b, tasks in enumerate(row) for _ in range(tasks)
    ]
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    trials = np.full(54, 3)
    found = comparisons.paired((a, trials), (b, trials))
    assert [a.sum(), b.sum()] == want["successes_A_B"]
    same(found.difference, want["diff"])
    same(found.se, want["se_paired"])
    unpaired = math.hypot(statistics.clustered_se(a, trials), statistics.clustered_se(b, trials))
    same(unpaired, want["se_clustered_unpaired"])
    same(found.correlation, want["corr_task_means"])
    same(found.difference / found.se, want["paired_t"], digits=4)
    same(found.p_t, want["paired_t_p_df53"])
    same(found.p_sign_flip, want["sign_flip_exact_p"])
    same(comparisons.within_task_permutation(a, b, 3), want["within_task_permutation_exact_p"])
    same(comparisons.two_proportions(int(a.sum()), int(b.sum()), 162), want["naive_two_proportion_z_p"])
    same(found.se_these_tasks, want["se_fixed_tasks"])
    for name, threshold in (("mcnemar_on_majority", 2), ("mcnemar_on_any", 1)):
        only_a, only_b = (
            int(((a >= threshold) & (b < threshold)).sum()),
            int(((b >= threshold) & (a < threshold)).sum()),
        )
        assert (only_a, only_b) == (want[name]["b"], want[name]["c"])
        same(comparisons.mcnemar(only_a, only_b), want[name]["p"])


def test_small_exact_tests():
    same(comparisons.sign_flip(VECTORS["sign_flip_small"]["d"]), VECTORS["sign_flip_small"]["p"])
    small = VECTORS["within_task_perm_small"]
    same(comparisons.within_task_permutation(small["a"], small["b"], 3), small["p"])
    for case, p in VECTORS["mcnemar_exact"].items():
        same(comparisons.mcnemar(*map(int, case.split(","))), p)


def test_many_comparisons():
    same(comparisons.holm(VECTORS["holm"]["p"]), VECTORS["holm"]["adjusted"])
    same(comparisons.benjamini_hochberg(VECTORS["bh"]["p"]), VECTORS["bh"]["adjusted"])
    assert comparisons.holm([]).size == comparisons.benjamini_hochberg([]).size == 0
    assert comparisons.holm([0.04, 0.001, 0.2, 0.01, 0.02]).tolist() == pytest.approx([0.08, 0.005, 0.2, 0.04, 0.06])


def test_pareto_membership_over_all_resamples():
    want = VECTORS["pareto_bootstrap_exact"]
    success = np.array([agent["success"] for agent in want["agents"].values()], float)
    cost = np.array([agent["cost"] for agent in want["agents"].values()], float)
    draws = np.array(list(itertools.product(range(4), repeat=4)))
    counts = np.stack([(draws == task).sum(axis=1) for task in range(4)], axis=1)
    share = pareto.membership(pareto.Sums(np.ones((4, 4)), success, cost), counts)
    assert len(counts) == want["resamples_of_4_tasks"]
    assert (share * 256).round(9).tolist() == list(want["on_frontier_count"].values())
    on = pareto.frontier(cost.mean(axis=1), success.mean(axis=1))
    assert [name for name, is_on in zip(want["agents"], on, strict=True) if is_on] == want["point_frontier"]


def test_cost_per_success():
    want = VECTORS["cost_per_success"]
    found = statistics.cost_per_success(want["successes_per_task"], want["cost_per_task_sum_of_3_trials"])
    same(found, [want["cost_per_success"], want["linearised_cluster_se"]])
    assert statistics.cost_per_success([0, 0], [1, 2]) is None


def test_token_cost():
    want = VECTORS["token_cost_example"]
    tokens = want["tokens"]
    usage = Usage(
        model="m", input_tokens=tokens["input"], cache_read_tokens=tokens["cache_read"],
        cache_write_tokens=tokens["cache_write"], output_tokens=tokens["output"],
    )  # fmt: skip
    rates = Rates(**want["prices_per_million"])
    same([rates.cost(usage), rates.cost_without_cache(usage)], [want["cost"], want["if_all_input_at_full_price"]])
    dropped = usage.model_copy(update={"cache_read_tokens": 0, "cache_write_tokens": 0})
    same(rates.cost(dropped), want["if_cached_tokens_dropped"])


def test_judges_probes_and_chance():
    votes = VECTORS["judge_votes_3_of_5"]
    for error, printed in votes["independent"].items():
        same(validity.majority_error(float(error), 5), printed)
    for rho, printed in votes["beta_binomial_e0.2"].items():
        same(validity.majority_error(0.2, 5, float(rho.removeprefix("rho"))), printed)
    judge = VECTORS["rogan_gladen"]
    same(validity.corrected_rate(judge["observed"], judge["sensitivity"], judge["specificity"]), judge["corrected"])
    for bound, trials in VECTORS["zero_failure_sample_size_95"].items():
        assert validity.trials_without_a_pass(float(bound.removeprefix("rate<="))) == trials
    assert validity.bound_without_a_pass(30) == pytest.approx(0.095, abs=0.0005)
    chance = VECTORS["auroc_null_sd"]
    same(validity.auroc_sd_by_chance(10, 1245), chance["celiac_10_1245"])
    same(validity.auroc_sd_by_chance(15, 1234), chance["lupus_15_1234"])
    same(validity.chance_of_auroc(0.63968, 10, 1245), chance["chance_pass_celiac_gate_0.63968"], digits=4)
    same(validity.chance_of_auroc(0.66294, 15, 1234), chance["chance_pass_lupus_gate_0.66294"], digits=4)


def test_every_vector_is_used():
    """A vector added to the file needs a test here."""
    source = Path(__file__).read_text()
    composed = {"pass_at_k_n3", "pass_at_k_n10_c3", "pass_hat_k_n3", "pass_hat_k_n10_c3"}
    assert [name for name in VECTORS if name not in composed and f'"{name}"' not in source] == []


def test_time_to_success_counts_failures_as_never():
    times, share = statistics.cumulative_incidence([5, 7, 9, 60], [True, False, True, False])
    assert (times.tolist(), share.tolist()) == ([5, 9], [0.25, 0.5])


class TestPower:
    def assumed(self, icc=0.45, correlation=0.5, share=0.0, rate=0.42):
        return Assumptions(rate=rate, icc=icc, correlation=correlation, template_share=share)

    def test_42_against_35(self):
        assert power.independent_trials(0.42, 0.35, Assumptions()) == pytest.approx(757.36, abs=0.005)
        needed = [
            power.templates_needed(0.42, 0.35, 3, self.assumed(icc, r))
            for r in (0.5, 0.7, 0.9)
            for icc in (0.3, 0.45, 0.6)
        ]
        assert needed == [290, 309, 328, 245, 241, 237, 199, 173, 147]
        assert [power.trials_needed(54, 0.42, 0.35, self.assumed(i, 0.7)) for i in (0.3, 0.45, 0.6)] == [None] * 3
        assert [power.trials_needed(54, 0.42, 0.35, self.assumed(i, 0.9)) for i in (0.3, 0.45, 0.6)] == [17, 21, 36]
        fixed = [power.trials_needed(54, 0.42, 0.35, self.assumed(i), these_tasks=True) for i in (0.3, 0.45, 0.6)]
        assert fixed == [10, 8, 6]
        found = [power.power_of(Design(54), 0.42, 0.35, self.assumed(0.45, r)) for r in (0.5, 0.7, 0.9)]
        assert [round(100 * p) for p in found] == [22, 26, 35]

    def test_detectable_gaps(self):
        gaps = [
            power.detectable_gap(Design(54), self.assumed(i, r, rate=0.4)) for r in (0.5, 0.7) for i in (0.3, 0.45, 0.6)
        ]
        assert [round(100 * gap, 1) for gap in gaps] == [16.4, 16.9, 17.4, 15.0, 14.9, 14.8]
        fixed = [
            power.detectable_gap(Design(54), self.assumed(i, rate=0.4), these_tasks=True) for i in (0.3, 0.45, 0.6)
        ]
        assert [round(100 * gap, 1) for gap in fixed] == [12.8, 11.3, 9.6]
        design = Design(54, 5, 3)
        by_share = [power.detectable_gap(design, self.assumed(share=s, rate=0.385)) for s in (0, 0.5, 1)]
        assert by_share == pytest.approx([0.075, 0.108, 0.134], abs=0.001)

    def test_designs_detect_what_they_promise_and_no_smaller_one_does(self):
        assumed = Assumptions()
        for design in power.designs_that_detect(0.11, 54, assumed):
            assert power.detectable_gap(design, assumed) <= 0.11
            if design.instances > 1:
                fewer = Design(54, design.instances - 1, design.trials)
                assert power.detectable_gap(fewer, assumed) > 0.11
        assert power.designs_that_detect(0.05, 54, assumed) == [], "the templates alone exceed the budget"

    def test_what_a_plan_is_told(self):
        section = detect_section(0.11, Design(54))
        assert section.rows[0][:4] == ("planned", 1, 3, 162)
        assert section.header[4:6] == ("power", "detects") and section.rows[0][4] == "45 %"
        assert all(float(row[5].removesuffix(" points")) <= 11.0 for row in section.rows[1:]) and len(section.rows) > 2
        assert all(int(row[4].removesuffix(" %")) >= 79 for row in section.rows[1:])
        assert "trials per agent if no two had anything in common" in section.note
        for gap in (0.6, 0.99):
            assert detect_section(gap, Design(54)).rows[0][4] == "100 %", "also where one side has no room"
        hopeless = detect_section(0.05, Design(54))
        assert len(hopeless.rows) == 1 and "Only more tasks help" in hopeless.note


counts_of_three = st.lists(st.integers(0, 3), min_size=1, max_size=60)


@given(counts_of_three)
def test_intervals_hold_the_rate_and_stay_within_0_and_1(counts):
    trials = [3] * len(counts)
    rate = sum(counts) / sum(trials)
    for interval in (
        statistics.tasks_like_these(counts, trials),
        statistics.these_tasks(counts, trials),
        statistics.naive_interval(sum(counts), sum(trials)),
        statistics.tasks_like_these(counts, trials, strata=["ab"[i % 2] for i in range(len(counts))]),
    ):
        assert 0 <= interval.low <= rate + 1e-12 and rate - 1e-12 <= interval.high <= 1
        assert interval.low < interval.high


@given(counts_of_three, st.integers(2, 4))
def test_copies_of_a_template_add_no_information(counts, copies):
    """Five perfect copies of each task, clustered by template, say no more than one."""
    one = statistics.tasks_like_these(counts, [3] * len(counts))
    many = statistics.tasks_like_these(counts * copies, [3] * len(counts) * copies, list(range(len(counts))) * copies)
    if one.n_eff < 3 * len(counts):  # else the cap at the number of trials was reached
        assert (many.low, many.high) == pytest.approx((one.low, one.high))


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_sign_flip_equals_counting_all_patterns(gaps):
    total = abs(sum(gaps))
    patterns = list(itertools.product((1, -1), repeat=len(gaps)))
    as_far = sum(abs(sum(s * g for s, g in zip(signs, gaps, strict=True))) >= total for signs in patterns)
    assert comparisons.sign_flip(gaps) == pytest.approx(as_far / len(patterns))
    assert comparisons.sign_flip([7 * gap for gap in gaps]) == pytest.approx(as_far / len(patterns))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=20))
def test_paired_is_antisymmetric(pairs):
    a, b = zip(*pairs, strict=True)
    n = [3] * len(pairs)
    there, back = comparisons.paired((a, n), (b, n)), comparisons.paired((b, n), (a, n))
    assert there.difference == pytest.approx(-back.difference)
    assert there.p_sign_flip == pytest.approx(back.p_sign_flip)


def test_clue_twins_count_as_one_cluster():
    counts, trials, twins = [3, 3, 0, 0, 3, 3, 0, 0], [3] * 8, list("aabbccdd")
    alone, together = statistics.tasks_like_these(counts, trials), statistics.tasks_like_these(counts, trials, twins)
    assert together.high - together.low > alone.high - alone.low
    assert "4 clusters" in together.method and statistics.TASKS_LIKE_THESE in together.method


def test_a_stratum_of_one_is_merged_with_its_nearest():
    strata = ["ehr_data_quality"] * 4 + ["xray_report"] * 4 + ["ehr_format_conversion"]
    assert statistics.merged_strata(strata)[-1] == "ehr_data_quality"
    assert statistics.merged_strata(["only"]) == ["only"]
    assert not math.isnan(statistics.tasks_like_these([1] * 4 + [2] * 4 + [3], [3] * 9, strata=strata).low)


def test_uneven_trials():
    """Lost trials: the rate is passes over trials, and the icc is still defined."""
    interval = statistics.tasks_like_these([2, 1, 0], [3, 1, 2])
    assert interval.low < 0.5 < interval.high
    assert statistics.anova([2, 1, 0], [3, 1, 2]).icc is not None
    assert statistics.anova([1, 0], [1, 1]) is None
    found = comparisons.paired(([2, 1], [3, 1]), ([1, 0], [2, 7]))
    assert found.difference == pytest.approx((2 / 3 - 1 / 2 + 1) / 2)


def test_ranks_and_groups():
    better = comparisons.told_apart([0.6, 0.5, 0.3], {(0, 1): 0.4, (0, 2): 0.01, (1, 2): 0.2})
    assert comparisons.rank_intervals(better) == [
        comparisons.Rank(1, 2),
        comparisons.Rank(1, 3),
        comparisons.Rank(2, 3),
    ]
    assert comparisons.groups(better) == [(0, 1), (1, 2)]
    assert comparisons.groups(np.zeros((0, 0), bool)) == [()]
    assert comparisons.groups(np.zeros((3, 3), bool)) == [(0, 1, 2)]


def test_bootstrap_keeps_strata():
    strata = ["a"] * 3 + ["b"] * 2
    counts = pareto.resamples(strata, 500)
    assert (counts[:, :3].sum(axis=1) == 3).all() and (counts[:, 3:].sum(axis=1) == 2).all()
    assert (pareto.resamples(strata, 500) == counts).all(), "a fixed seed gives fixed draws"
    sums = pareto.Sums(np.ones((1, 5)), np.ones((1, 5)), np.arange(5.0)[None, :])
    low, high = pareto.mean_cost_intervals(sums, counts)[0]
    assert low < 2 < high
