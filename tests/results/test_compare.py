"""A against B, and the frontier: what is claimed, what is refused, what the figures show."""

import json
import random
import xml.etree.ElementTree as ET

import pytest
import simulate

from results import comparisons
from results.blocks import MixError, split
from results.compare import CompareError, compare, sections_of_comparison
from results.figures import figure_bytes, save_frontier
from results.folder import RunFolder
from results.frame import planned_frame, trial_frame
from results.frontier import frontier_of, frontier_section, published_frontier
from results.records import Outcome
from results.render import sections_as_markdown, sections_as_text

ONE = {"ehr_data_quality": simulate.CATEGORIES["ehr_data_quality"]}
TWO = simulate.AGENTS[:2]
A, B = "codex@gpt-5.4@high", "claude-code@claude-opus-4-5"
P, F = Outcome.PASSED, Outcome.FAILED


def run_of(tmp_path, outcome, name="run", agents=TWO, attempts=2, categories=ONE, **plan):
    """A run in which ``outcome(trial)`` says how each trial ends."""
    made = simulate.run_plan(simulate.trial_plans(agents, 1, attempts, categories), run_id=name, **plan)
    run = RunFolder.create(tmp_path / name, made, "0")
    for number, trial in enumerate(made.trials):
        if (found := outcome(trial)) is not None:
            run.finish(simulate.record(made, trial, found, random.Random(number)))
    return run


def block_of(*runs):
    return split(runs, trial_frame(runs), planned_frame(runs))[0]


def test_a_clear_winner(tmp_path):
    run = run_of(tmp_path, lambda trial: P if trial.harness == "codex" else F)
    found = compare([run], A, B)
    whole = found.parts[0]
    assert (whole.category, whole.passes_a, whole.trials_a, whole.passes_b) == ("ALL", 16, 16, 0)
    assert whole.paired.difference == 1.0
    assert whole.paired.p_sign_flip == pytest.approx(2 / 2**8)
    assert found.verdict().startswith(f"{A} passes more than {B} on tasks like these: +100.0 points")
    back = compare([run], B, A)
    assert back.verdict().startswith(f"{A} passes more than {B}") and "-100.0 points" in back.verdict()


def test_other_tests_stand_beside_and_say_what_they_assume(tmp_path):
    def outcome(trial):  # two of three trials against one, on six tasks of eight
        return P if trial.attempt < (3 if trial.harness == "codex" and trial.case < "case-06" else 2) else F

    found = compare([run_of(tmp_path, outcome, attempts=3)], A, B)
    tests = {test.name: test for test in found.reference}
    assert tests["McNemar, exact"].about.endswith("6 only A, 0 only B")
    assert tests["McNemar, exact"].p == pytest.approx(2 / 2**6)
    assert tests["permutation within tasks, exact"].p == comparisons.within_task_permutation(
        [2] * 6 + [1] * 2, [1] * 8, 3
    )
    assert tests["two proportions"].p == comparisons.two_proportions(14, 8, 24)[1]
    text = sections_as_text(sections_of_comparison(found))
    assert "Other tests, for reference" in text and "trials as if independent; p too small" in text

    def uneven(trial):
        return None if trial.harness == "codex" and trial.attempt == 3 and trial.case == "case-00" else outcome(trial)

    names = [test.name for test in compare([run_of(tmp_path, uneven, "uneven", attempts=3)], A, B).reference]
    assert names == ["t by cluster", "McNemar, exact"], "the others need equal numbers of trials"


def test_no_claim_without_evidence(tmp_path):
    run = run_of(tmp_path, lambda trial: P if trial.case < "case-04" or trial.attempt == 1 else F)
    found = compare([run], A, B)
    assert "cannot be told apart" in found.verdict()
    text = sections_as_text(sections_of_comparison(found))
    assert "tasks like these" in text and "these tasks" in text
    assert json.loads(json.dumps(found.as_json(), allow_nan=False))["parts"][0]["paired"]["difference"] == 0


def test_only_shared_tasks_count(tmp_path):
    def outcome(trial):
        return None if trial.harness == "codex" and trial.case == "case-00" else P

    found = compare([run_of(tmp_path, outcome)], A, B)
    assert (len(found.tasks), found.only_a, found.only_b) == (7, 0, 1)
    with pytest.raises(CompareError, match="no task in common"):
        compare([run_of(tmp_path, lambda t: P if (t.harness == "codex") == (t.case < "case-04") else None, "r2")], A, B)


def test_names(tmp_path):
    run = run_of(tmp_path, lambda _: P)
    later = run_of(tmp_path, lambda _: F, "later", agents=TWO[:1])
    assert compare([run, later], f"run:{A}", "later").parts[0].paired.difference == 1.0
    with pytest.raises(CompareError, match="has no trials; there are claude-code"):
        compare([run], A, "nobody")
    with pytest.raises(CompareError, match="several agents, write run:AGENT"):
        compare([run], "run", A)
    with pytest.raises(MixError):
        compare([run, run_of(tmp_path, lambda _: P, "small", scale="small")], A, B)


def test_one_cluster_claims_nothing(tmp_path):
    lone = {"ehr_format_conversion": simulate.CATEGORIES["ehr_format_conversion"]}
    found = compare([run_of(tmp_path, lambda t: P if t.harness == "codex" else F, categories=lone)], A, B)
    assert "cannot be told apart" in found.verdict() and "nan" not in found.verdict()
    assert "not defined" in sections_as_markdown(sections_of_comparison(found))
    json.dumps(found.as_json(), allow_nan=False)


def test_the_frontier_leaves_out_who_costs_nothing(tmp_path):
    run = simulate.simulate(tmp_path / "r", durable=False)
    found = frontier_of(block_of(run))
    assert found.left_out == ["nop@-"]
    table = frontier_section(found)
    assert [row[0] for row in table.rows] == [A, B] and "nop@-" in table.note
    assert [point.agent for point in found.points] == [A, B], "cheapest first"
    for point in found.points:
        assert point.low <= point.success <= point.high
        assert point.value_low < point.value < point.value_high
        assert 0 <= point.membership <= 1
        assert point.retry[0] == pytest.approx(3 * point.value) and point.retry[1] >= point.success
    assert found.points[0].on_frontier and found.points[0].membership == 1.0
    minutes = frontier_of(block_of(run), "minutes")
    assert all(0 < point.value < 100 for point in minutes.points) and minutes.left_out == ["nop@-"]


def test_a_dominated_agent_is_off_the_frontier(tmp_path):
    found = frontier_of(block_of(run_of(tmp_path, lambda trial: P if trial.harness == "codex" else F)))
    assert [(p.agent, p.on_frontier, p.on_hull, p.membership) for p in found.points] == [
        (A, True, True, 1.0),
        (B, False, False, 0.0),
    ]


def test_published_agents_have_their_own_panel():
    found = published_frontier()
    assert len(found.points) == 12 and "open network" in found.title
    assert [p.agent for p in found.points if p.on_hull] == [
        "Codex (GPT 5.4 Mini)",
        "Codex (GPT 5.4)",
        "Claude Code (Opus 5)",
    ]


def test_figures(tmp_path):
    panels = [frontier_of(block_of(simulate.simulate(tmp_path / "r", durable=False))), published_frontier()]
    svg = figure_bytes(panels, "svg")
    assert svg == figure_bytes(panels, "svg"), "equal input gives equal bytes"
    texts = {"".join(node.itertext()).strip() for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")}
    assert any(text.startswith(A) for text in texts) and "Claude Code (Opus 5)" in texts
    assert "USD per trial (logarithmic)" in texts
    save_frontier(panels, tmp_path / "f.png")
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    empty = frontier_of(block_of(run_of(tmp_path, lambda _: P, "nop", agents=simulate.AGENTS[2:])))
    assert b"no agent with a known value" in figure_bytes([empty], "svg")
