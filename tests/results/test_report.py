"""Reports: what counts, what is refused, what is said, and the four formats."""

import csv
import io
import json
import random
from pathlib import Path

import polars as pl
import pytest
import simulate

from results import report as report_module
from results.blocks import MixError
from results.columns import ALL, COLUMNS, to_csv
from results.folder import RunFolder
from results.frame import SCHEMA, export_parquet, trial_frame
from results.pricing import PriceBook, Rates
from results.records import Event, Outcome
from results.render import FORMATS, as_csv, as_html, as_json, as_markdown, as_text
from results.report import build_report

ONE = {"ehr_data_quality": simulate.CATEGORIES["ehr_data_quality"]}
EVENTS = {"ehr_event_modelling": simulate.CATEGORIES["ehr_event_modelling"]}
CODEX = simulate.AGENTS[:1]
PROMISED = [
    "harness", "model", "effort", "category", "edition", "scale", "trials", "passes", "success_rate", "low", "high",
    "interval", "metric", "cost_usd", "minutes", "cost_usd_total", "broken", "missing",
]  # fmt: skip


def folder(tmp_path, outcomes, categories=ONE, attempts=1, name="run", agents=CODEX, plan=None, **changes):
    """A run whose trials end as listed; null leaves one without a record."""
    plan = simulate.run_plan(simulate.trial_plans(agents, 1, attempts, categories), run_id=name, **(plan or {}))
    run = RunFolder.create(tmp_path / name, plan, "0")
    for number, (trial, outcome) in enumerate(zip(plan.trials, outcomes, strict=True)):
        if outcome is not None:
            run.finish(simulate.record(plan, trial, outcome, random.Random(number), **changes))
    return run


def row(report, category=ALL, **keys):
    found = [r for r in report.rows if r["category"] == category and all(r[k] == v for k, v in keys.items())]
    assert len(found) == 1
    return found[0]


P, F, T, E = Outcome.PASSED, Outcome.FAILED, Outcome.AGENT_TIMEOUT, Outcome.AGENT_ERROR
ENV, VER, C = Outcome.ENVIRONMENT_ERROR, Outcome.VERIFIER_ERROR, Outcome.CANCELLED


def test_every_outcome_counts_as_promised(tmp_path):
    run = folder(tmp_path, [P, P, F, T, E, ENV, VER, C])
    found = row(build_report([run]))
    assert (found["trials"], found["passes"], found["missing"], found["broken"]) == (7, 2, 1, 2)
    assert found["success_rate"] == pytest.approx(2 / 7)
    assert (found["agent_timeouts"], found["agent_errors"]) == (1, 1)
    assert found["rate_if_broken_passed"] == pytest.approx(4 / 7)
    assert found["low"] < found["success_rate"] < found["high"]


def test_unstarted_trials_are_missing_not_missed(tmp_path):
    run = folder(tmp_path, [P, *[None] * 7])
    found = row(build_report([run]))
    assert (found["trials"], found["passes"], found["missing"], found["success_rate"]) == (1, 1, 7, 1.0)
    nothing = row(build_report([folder(tmp_path, [None] * 8, name="empty")]))
    assert (nothing["trials"], nothing["success_rate"], nothing["low"], nothing["missing"]) == (0, None, None, 8)
    assert nothing["interval"] == "no trials"


def test_a_time_out_keeps_its_verdict_and_is_a_miss(tmp_path):
    run = folder(tmp_path, [T] * 8, reward=1, headline=1.0)
    found = row(build_report([run]), "ehr_data_quality")
    assert (found["passes"], found["success_rate"], found["metric"]) == (0, 0.0, 1.0)


def test_missing_submissions_have_the_fixed_value(tmp_path):
    run = folder(tmp_path, [F, F, F, F, ENV, ENV], EVENTS, headline=None, reason="missing_submission")
    assert row(build_report([run]), "ehr_event_modelling")["metric"] == 0.5


def test_a_row_per_agent_and_category_and_no_rate_without_n_and_interval(tmp_path):
    report = build_report([simulate.simulate(tmp_path / "r", durable=False)])
    assert len(report.rows) == 3 * (7 + 1)
    for found in report.rows:
        assert set(found) == {column.key for column in COLUMNS}
        assert found["trials"] > 0 and found["low"] <= found["success_rate"] <= found["high"]
        assert found["interval"].startswith("tasks like these")
    whole = row(report, harness="codex")
    parts = [r for r in report.rows if r["harness"] == "codex" and r["category"] != ALL]
    assert whole["passes"] == sum(r["passes"] for r in parts)
    assert whole["cost_usd_total"] == pytest.approx(sum(r["cost_usd_total"] for r in parts))
    assert sum(r["weight"] for r in parts) == pytest.approx(1)
    for text in (as_text(report), as_markdown(report)):
        for section in ("By axis", "Which agents can be told apart", "Reliability", "Weight in the headline"):
            assert section in text


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"edition": "clinical"}, "editions"),
        ({"scale": "small"}, "scales"),
        ({"seed_fingerprint": "other"}, "seeds"),
        ({"network": "open"}, "network policies"),
        (
            {"task_versions": {f"ehr_data_quality/case-0{n}": "v2" for n in range(8)}},
            "versions of ehr_data_quality/case",
        ),
    ],
)
def test_runs_that_differ_are_not_mixed_silently(tmp_path, plan, words):
    a, b = folder(tmp_path, [P] * 8), folder(tmp_path, [F] * 8, name="other", plan=plan)
    with pytest.raises(MixError, match=words) as caught:
        build_report([a, b], redact=True)
    assert "--mix" in str(caught.value)
    report = build_report([a, b], mix=True, redact=True)
    assert [block.runs for block in report.blocks] == [("run",), ("other",)]
    assert [r["success_rate"] for r in report.rows if r["category"] == ALL] == [1.0, 0.0]


def test_clamped_runs_stand_apart(tmp_path):
    clamped = simulate.LIMITS.model_copy(update={"clamped": True, "cpus": 1})
    a, b = folder(tmp_path, [P] * 8), folder(tmp_path, [P] * 8, name="other", limits=clamped)
    with pytest.raises(MixError, match="clamped"):
        build_report([a, b])
    assert any("lowered" in text for block in build_report([a, b], mix=True).blocks for text in block.warnings)


def test_other_limits_of_a_task_are_named(tmp_path):
    longer = simulate.LIMITS.model_copy(update={"agent_timeout_s": 7200})
    with pytest.raises(MixError, match="limits of ehr_data_quality/case-0"):
        build_report([folder(tmp_path, [P] * 8), folder(tmp_path, [P] * 8, name="other", limits=longer)])


def test_equal_runs_are_pooled(tmp_path):
    report = build_report([folder(tmp_path, [P] * 8), folder(tmp_path, [F] * 8, name="other")])
    assert (row(report)["trials"], row(report)["success_rate"], row(report)["tasks"]) == (16, 0.5, 8)


def test_fall_back_data_is_never_pooled(tmp_path):
    run = folder(tmp_path, [P] * 7 + [None])
    last = run.plan.trials[-1]
    run.finish(simulate.record(run.plan, last, F, random.Random(0), variant="no-gpu"))
    main, other = build_report([run]).blocks
    assert (main.rows[0]["trials"], main.rows[0]["success_rate"], main.rows[0]["missing"]) == (7, 1.0, 0)
    assert (other.settings.variant, other.rows[0]["trials"]) == ("no-gpu", 1)


def test_twins_are_one_cluster(tmp_path):
    twins = {f"ehr_data_quality/case-0{n}": f"ehr_data_quality/case-0{n // 2 * 2}" for n in range(8)}
    outcomes = [P, P, F, F, P, P, F, F]
    plain = row(build_report([folder(tmp_path, outcomes)]))
    report = build_report([folder(tmp_path, outcomes, name="twins", plan={"templates": twins})])
    found = row(report)
    assert (found["tasks"], found["clusters"], plain["clusters"]) == (8, 4, 8)
    assert found["high"] - found["low"] > plain["high"] - plain["low"]
    assert "With and without clues" in as_text(report)


@pytest.mark.parametrize(
    ("plan", "record", "words"),
    [
        ({"network": "open"}, {}, "answers can be looked up"),
        ({"public_seed": True}, {}, "seed is public"),
        ({"scale": "small"}, {}, "Small scale"),
        ({}, {"login_in_box": True}, "login was inside"),
        ({}, {"limits": simulate.LIMITS.model_copy(update={"disk": "watched"})}, "watching"),
    ],
)
def test_warnings(tmp_path, plan, record, words):
    run = folder(tmp_path, [P] * 8, plan={"public_seed": False} | plan, **record)
    assert [text for text in build_report([run]).blocks[0].warnings if words in text]
    plain = folder(tmp_path, [P] * 8, name="plain", plan={"public_seed": False})
    assert build_report([plain]).blocks[0].warnings == []


def test_above_five_percent_broken_no_ranking(tmp_path):
    assert any("no ranking" in text for text in build_report([folder(tmp_path, [P] * 7 + [ENV])]).blocks[0].warnings)


def test_agents_on_different_tasks_are_not_compared_silently(tmp_path):
    run = folder(tmp_path, [P] * 15 + [None], agents=simulate.AGENTS[:2])
    assert any("different tasks" in text for text in build_report([run]).blocks[0].warnings)


def test_unknown_prices_and_lost_usage_are_said(tmp_path):
    plan = simulate.run_plan(simulate.trial_plans((("codex", "secret-1", "", 0),), 1, 1, ONE), run_id="r")
    run = RunFolder.create(tmp_path / "r", plan, "0")
    for trial in plan.trials:
        run.finish(simulate.record(plan, trial, P, random.Random(0)))
    report = build_report([run])
    assert (row(report)["cost_usd"], row(report)["cost_unknown"], row(report)["cost_per_success_usd"]) == (
        None,
        8,
        None,
    )
    assert any("secret-1" in text for text in report.blocks[0].warnings)
    book = PriceBook(own={"secret-1": Rates(input=1, output=1)})
    assert row(build_report([run], prices=book))["cost_usd"] > 0
    lost = folder(tmp_path, [P] * 8, name="lost", usage=())
    assert row(build_report([lost]))["cost_unknown"] == 8


def test_costs_are_means_per_trial_and_sums(tmp_path):
    run = folder(tmp_path, [P, F] * 4)
    book = PriceBook(own={"gpt-5.4": Rates(input=1, cache_read=0, cache_write=0, output=0)})
    fresh = [r.usage[0].input_tokens / 1e6 for r in run.records().values()]
    found = row(build_report([run], prices=book))
    assert found["cost_usd_total"] == pytest.approx(sum(fresh))
    assert found["cost_usd"] == pytest.approx(sum(fresh) / 8)
    assert found["cost_per_success_usd"] == pytest.approx(sum(fresh) / 4)
    minutes = [r.seconds("run_agent") / 60 for r in run.records().values()]
    assert found["minutes"] == pytest.approx(sum(minutes) / 8)
    assert found["cost_low"] < found["cost_usd"] < found["cost_high"]


def test_json_has_the_promised_keys_and_csv_the_same_rows(tmp_path):
    report = build_report([simulate.simulate(tmp_path / "r", categories=ONE, durable=False)])
    rows = json.loads(as_json(report))
    assert all(key in rows[0] for key in PROMISED)
    table = list(csv.DictReader(io.StringIO(as_csv(report))))
    assert [r["success_rate"] for r in table] == [str(r["success_rate"]) for r in rows]
    assert list(table[0]) == [column.key for column in COLUMNS]


def test_untrusted_names_are_harmless(tmp_path):
    evil = "\x1b[2J<script>|`*\u202e"
    plan = simulate.run_plan(simulate.trial_plans(CODEX, 1, 1, ONE), run_id="r")
    run = RunFolder.create(tmp_path / "r", plan, "0")
    for trial in plan.trials:
        run.finish(simulate.record(plan, trial.model_copy(update={"model": evil}), ENV, random.Random(0), message=evil))
    report = build_report([run])
    for text in (as_text(report), as_markdown(report)):
        assert "\x1b" not in text and "\u202e" not in text
    page = as_html(report)
    assert "<script" not in page and "&lt;script&gt;" in page
    assert "<script>" not in as_markdown(report).replace("\\<script\\>", "")
    assert to_csv([{"model": "=1+1"}]).splitlines()[1].split(",")[1] == "'=1+1"


def test_every_format_renders_every_run(tmp_path):
    for outcomes in ([None] * 8, [ENV] * 8, [C] * 8, [P] * 8):
        run = folder(tmp_path, outcomes, name=f"r{outcomes[0]}")
        for render in FORMATS.values():
            assert render(build_report([run]))


def test_the_frame_is_stable_and_exports(tmp_path):
    run = simulate.simulate(tmp_path / "r", categories=ONE, durable=False)
    frame = trial_frame([run])
    assert dict(frame.schema) == SCHEMA
    assert export_parquet([run], tmp_path / "t.parquet") == frame.height == 72
    back = pl.read_parquet(tmp_path / "t.parquet")
    assert back.equals(frame)
    table = back.group_by("agent", "category").agg(pl.sum("passed"), pl.len(), pl.mean("cost_usd"))
    assert table.height == 3 and table["passed"].sum() == frame["passed"].sum() > 0
    assert trial_frame([]).height == 0


def test_rescored_trials_count_once(tmp_path):
    run = folder(tmp_path, [F] * 8)
    trial = run.plan.trials[0]
    better = simulate.record(run.plan, trial, P, random.Random(0))
    run.append(Event(at=simulate.START, kind="rescored", trial_id=trial.trial_id, record=better))
    assert (row(build_report([run]))["trials"], row(build_report([run]))["passes"]) == (8, 1)


def test_notes_name_both_targets_and_what_is_dependent():
    assert "tasks like these" in report_module.METHOD and "these tasks" in report_module.METHOD
    assert "event modelling" in report_module.DEPENDENT and "anatomy" in report_module.DEPENDENT


def test_ranks_and_groups_are_shown(tmp_path):
    report = build_report([simulate.simulate(tmp_path / "r", durable=False)])
    ranks = next(section for section in report.blocks[0].sections if section.title == "Ranks")
    assert [row[1:] for row in ranks.rows] == [(1, 2, "a"), (1, 2, "a"), (3, 3, "b")]
    assert ranks.rows[2][0] == "nop@-"


def test_solved_by_grows_to_the_success_rate(tmp_path):
    report = build_report([simulate.simulate(tmp_path / "r", durable=False)])
    section = next(section for section in report.blocks[0].sections if section.title == "Solved by")
    for agent, _, *cells in section.rows:
        shares = [float(cell.removesuffix(" %")) for cell in cells]
        rate = next(r for r in report.rows if r["category"] == ALL and agent.startswith(r["harness"]))["success_rate"]
        assert shares == sorted(shares) and shares[-1] == pytest.approx(100 * rate, abs=0.05)


def test_published_agents_are_a_table_of_their_own(tmp_path):
    run = folder(tmp_path, [P] * 8)
    assert "Claude Code (Opus 5)" not in as_text(build_report([run]))
    report = build_report([run], with_published=True)
    assert "Claude Code (Opus 5)" in as_text(report) and "Not comparable" in as_text(report)
    assert len(report.rows) == 2, "never among the rows"


def test_a_run_of_version_1_still_reads():
    """The folder in tests/results/data/run-v1 was written once and is never rewritten."""
    run = RunFolder.open(Path(__file__).parent / "data" / "run-v1")
    assert run.plan.schema_version == 1
    found = row(build_report([run]))
    assert (found["trials"], found["passes"], found["broken"], found["missing"]) == (5, 2, 1, 1)
    assert run.trial(run.plan.trials[0]).read_record() == run.records()[run.plan.trials[0].trial_id]
