"""Every command that shows costs reckons with the same prices."""

import json
import random
import sys

import pytest

from results.folder import RunFolder
from results.records import Outcome
from suite.cli import main
from suite.prices import book
from suite.request import RequestError
from tests.results import simulate

ONE = {"ehr_data_quality": simulate.CATEGORIES["ehr_data_quality"]}


def said(monkeypatch, capsys, *words: str) -> str:
    monkeypatch.setattr(sys, "argv", ["hab-suite", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_a_runs_own_prices_hold_in_report_and_comparison_alike(tmp_path, monkeypatch, capsys) -> None:
    own = tmp_path / "prices.toml"
    models = [agent[1] for agent in simulate.AGENTS[:2]]
    own.write_text("".join(f'["{model}"]\ninput = 1000\noutput = 1000\n' for model in models))
    trials = simulate.trial_plans(simulate.AGENTS[:2], 1, 1, ONE)
    run = RunFolder.create(tmp_path / "run", simulate.run_plan(trials, options={"prices": str(own)}), "0")
    for number, trial in enumerate(trials):
        run.finish(simulate.record(run.plan, trial, Outcome.PASSED, random.Random(number)))
    rows = json.loads(said(monkeypatch, capsys, "report", str(run.path), "--format", "json"))
    told = {
        "@".join(filter(None, (r["harness"], r["model"], r["effort"]))): r["cost_usd"]
        for r in rows
        if r["category"] == "ALL"
    }
    names = list(told)
    found = json.loads(said(monkeypatch, capsys, "compare", *names, "--run", str(run.path), "--json"))
    assert found["cost"] == pytest.approx([told[name] for name in names])
    assert min(found["cost"]) > 5, "at a hundred times the usual price"


def test_prices_that_differ_or_are_gone_are_asked_for(tmp_path, monkeypatch, capsys) -> None:
    trials = simulate.trial_plans(simulate.AGENTS[:2], 1, 1, ONE)
    paths = []
    for name, options in (("gone", {"prices": str(tmp_path / "gone.toml")}), ("plain", {})):
        run = RunFolder.create(tmp_path / name, simulate.run_plan(trials, options=options), "0")
        for number, trial in enumerate(trials):
            run.finish(simulate.record(run.plan, trial, Outcome.PASSED, random.Random(number)))
        paths.append(run.path)
    with pytest.raises(RequestError, match=r"gone: made with prices .* with --prices"):
        book(None, [RunFolder.open(paths[0])])
    with pytest.raises(RequestError, match="different price files"):
        book(None, [RunFolder.open(path) for path in paths])
    assert book(None, [RunFolder.open(paths[1])]).own == {}
