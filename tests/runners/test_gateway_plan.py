"""What a run's gateway is told of money: prices, limits, and what was spent before."""

import json
from pathlib import Path

import pytest

from results.folder import RunFolder
from results.pricing import PriceBook, Rates
from results.records import RunPlan
from runners.gateway import _prices, plan_gateway, spent_usd
from runners.harness import HarnessError
from runners.keys import KeyMissingError

LIMITS = ({"max_usd": "5"}, {"max_usd_per_trial": "1"})


def planned(yard, model: str, **options: str) -> RunPlan:
    plan = yard.plan("codex")
    trials = tuple(trial.model_copy(update={"model": model}) for trial in plan.trials)
    return plan.model_copy(update={"trials": trials, "options": options})


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_on_a_model_without_a_price_is_refused_before_anything_is_built(yard, limit: dict[str, str]) -> None:
    with pytest.raises(HarnessError, match=r"--model made-up: no price is known.*--max-usd.*--prices"):
        plan_gateway(planned(yard, "made-up", **limit), None)


@pytest.mark.parametrize("limit", [{}, *LIMITS])
def test_prices_of_ones_own_and_of_the_table_serve(yard, limit: dict[str, str], tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    own = tmp_path / "prices.toml"
    own.write_text('["made-up"]\ninput = 1.0\noutput = 2.0\n')
    assert plan_gateway(planned(yard, "gpt-5", **limit), None).models == {"gpt-5": "openai"}
    assert plan_gateway(planned(yard, "made-up", **limit, prices=str(own)), None).models == {"made-up": "openai"}
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(KeyMissingError):
        plan_gateway(planned(yard, "gpt-5", **limit), None)


def test_a_clis_helpers_have_a_price_too() -> None:
    prices = _prices({"gemini-2.5-pro": "google", "made-up": "google"}, PriceBook())
    assert {"gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite"} <= prices.keys()
    assert prices["gemini-2.5-flash-lite"].output < prices["gemini-2.5-pro"].output
    assert "made-up" not in prices
    assert "gpt-5" not in prices, "of the run's own providers"
    own = PriceBook(own={"gemini-2.5-flash": Rates(input=7, output=8)})
    assert _prices({"gemini-2.5-pro": "google"}, own)["gemini-2.5-flash"].input == 7


def test_a_resumed_run_has_spent_what_all_its_requests_cost(yard) -> None:
    folder = RunFolder.create(yard.tmp / "r1", planned(yard, "gpt-5"), "s")
    assert spent_usd(folder, PriceBook()) == 0
    lines = [{"trial": "a", "cost_usd": 0.25}, {"trial": "a", "refused": "budget"}, {"trial": "b", "cost_usd": 1.5}]
    (folder.path / "gateway.jsonl").write_text("\n".join(map(json.dumps, lines)) + '\n{"trial": "c", "cost_u')
    assert spent_usd(folder, PriceBook()) == 1.75


def test_a_login_in_the_box_has_a_run_of_its_own(yard, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("COPILOT_GITHUB_TOKEN", "t")
    plan = planned(yard, "gpt-5", allow_login_in_box="True")
    signed = [t.model_copy(update={"harness": "copilot-cli", "model": "github/gpt-5"}) for t in plan.trials]
    assert list(plan_gateway(plan.model_copy(update={"trials": tuple(signed)}), None).logins) == ["github"]
    with pytest.raises(HarnessError, match="open to the boxes of codex too; make a run of its own"):
        plan_gateway(plan.model_copy(update={"trials": (*plan.trials, *signed)}), None)
