"""Records as one table, a row per trial, costs computed: what reports, sites, exports and notebooks work on."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import TypeAdapter
from pydantic_core import to_json

from results.folder import RunFolder
from results.pricing import PriceBook
from results.records import Outcome, RunPlan, Usage
from results.redaction import redacted, require_redaction

PHASES = ("stage", "open_box", "run_agent", "collect", "verify")
USAGES = TypeAdapter(list[Usage])
BROKEN = {outcome.value for outcome in Outcome if outcome.broken}
SCHEMA: dict[str, Any] = {
    "run": pl.Int32,  # position of the run among those given
    "run_id": pl.String,
    "trial_id": pl.String,
    "category": pl.String,
    "task": pl.String,  # <category>/<case>
    "template": pl.String,  # the task whose draw it shares
    "instance": pl.Int32,
    "attempt": pl.Int32,
    "agent": pl.String,  # <harness>@<model>[@<effort>], as in trial ids
    "harness": pl.String,
    "model": pl.String,
    "effort": pl.String,
    "edition": pl.String,
    "scale": pl.String,
    "seed_fingerprint": pl.String,
    "task_version": pl.String,
    "harness_version": pl.String,
    "network": pl.String,
    "login_in_box": pl.Boolean,
    "variant": pl.String,
    "public_seed": pl.Boolean,
    "limits": pl.String,
    "clamped": pl.Boolean,
    "disk": pl.String,
    "outcome": pl.String,
    "reason": pl.String,
    "message": pl.String,
    "passed": pl.Boolean,
    "broken": pl.Boolean,
    "headline": pl.Float64,
    "published_reward": pl.Float64,
    "metrics": pl.String,  # JSON object
    "cost_usd": pl.Float64,  # null where usage or price is unknown
    "cost_without_cache_usd": pl.Float64,
    "harness_cost_usd": pl.Float64,
    "input_tokens": pl.Int64,
    "cache_read_tokens": pl.Int64,
    "cache_write_tokens": pl.Int64,
    "output_tokens": pl.Int64,
    "reasoning_tokens": pl.Int64,
    "requests": pl.Int64,
    **{f"{phase}_s": pl.Float64 for phase in PHASES},
    "peak_memory_mb": pl.Float64,
    "oom_killed": pl.Boolean,
    "submission_bytes": pl.Int64,
    "tries": pl.Int32,
    "started_at": pl.String,
}
IDENTITY = (
    ("edition", ""),
    ("scale", ""),
    ("seed_fingerprint", ""),
    ("task_version", ""),
    ("harness_version", ""),
    ("network", ""),
    ("login_in_box", False),
    ("variant", ""),
)
"""Fields taken as they are, in ``SCHEMA``'s order, with the value of a record that lacks them."""
TOKENS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens", "requests")


def trial_frame(runs: Sequence[RunFolder], prices: PriceBook | None = None) -> pl.DataFrame:
    """Return one row per trial that has a record, cancelled ones included; columns and types as in ``SCHEMA``.

    Of several records of a trial in one run the last counts.
    """
    book = prices or PriceBook()
    with _without_collector():
        tables = [_table(number, run, book) for number, run in enumerate(runs)]
    return pl.concat(tables) if tables else pl.DataFrame(schema=SCHEMA)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Records hold no cycles, and looking for some among a million of their values takes a fifth of a report's time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def planned_frame(runs: Sequence[RunFolder]) -> pl.DataFrame:
    """Return one row per planned trial: with its run, task and agent."""
    keys = ("category", "harness", "model", "effort", "trial_id")
    columns: dict[str, list[Any]] = {key: [] for key in ("run", "task", "agent", *keys)}
    for number, run in enumerate(runs):
        trials = run.plan.trials
        columns["run"] += [number] * len(trials)
        columns["task"] += [trial.task for trial in trials]
        columns["agent"] += [trial.trial_id.split("/")[-2] for trial in trials]
        for key in keys:
            columns[key] += [getattr(trial, key) for trial in trials]
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String) | {"run": pl.Int32})


def export_parquet(
    runs: Sequence[RunFolder], target: Path, prices: PriceBook | None = None, *, redact: bool = False
) -> int:
    """Write the table to one Parquet file and return the number of rows.

    Raises:
        RedactionError: a run holds records of real people and ``redact`` is false.
    """
    require_redaction(runs, redact=redact, what="export")
    frame = trial_frame(runs, prices)
    frame = redacted(frame) if redact else frame
    frame.write_parquet(target)
    return frame.height


def _table(number: int, run: RunFolder, book: PriceBook) -> pl.DataFrame:
    try:
        rows = [_row(number, raw, run.plan, book) for _, raw in run.iter_raw_records()]
        columns = zip(*rows, strict=True) if rows else ((),) * len(SCHEMA)
        table = pl.DataFrame(dict(zip(SCHEMA, columns, strict=True)), schema=SCHEMA)
    except (LookupError, TypeError, ValueError, AttributeError, pl.exceptions.PolarsError):
        run.records()  # slowly, and strictly: says which record is damaged
        raise
    return table.unique("trial_id", keep="last", maintain_order=True)


def _row(number: int, raw: dict[str, Any], plan: RunPlan, book: PriceBook) -> tuple[Any, ...]:
    """One row, in ``SCHEMA``'s order."""
    trial, outcome, phases = raw["plan"], raw["outcome"], {p["name"]: p["seconds"] for p in raw.get("phases", ())}
    task = f"{trial['category']}/{trial['case']}"
    limits, agent, metrics = raw.get("limits") or {}, raw.get("agent") or {}, raw.get("metrics") or {}
    usages = raw.get("usage") or ()
    observed, without_cache = _cost(usages, trial["model"], raw["started_at"], "run_agent" in phases, book)
    return (
        number,
        raw["run_id"],
        trial["trial_id"],
        trial["category"],
        task,
        plan.templates.get(task, task),
        trial["instance"],
        trial["attempt"],
        trial["trial_id"].split("/")[-2],
        trial["harness"],
        trial["model"],
        trial.get("effort", ""),
        *(raw.get(key, default) for key, default in IDENTITY),
        plan.public_seed,
        _limits_text(limits),
        limits.get("clamped", False),
        limits.get("disk", ""),
        outcome,
        raw.get("reason", ""),
        raw.get("message", ""),
        outcome == Outcome.PASSED.value,
        outcome in BROKEN,
        _headline(raw, plan),
        metrics.get("published_reward"),
        to_json(metrics).decode(),
        observed,
        without_cache,
        raw.get("harness_cost_usd"),
        *_tokens(usages),
        *(phases.get(phase) for phase in PHASES),
        agent.get("peak_memory_mb"),
        agent.get("oom_killed", False),
        (raw.get("submission") or {}).get("bytes"),
        raw.get("tries", 1),
        raw["started_at"],
    )


def _tokens(usages: Sequence[dict[str, Any]]) -> list[int]:
    """Sums over the models of a trial, in ``TOKENS``' order."""
    if len(usages) == 1:  # nearly always, and worth the line in a run of many trials
        return [usages[0].get(key, 0) for key in TOKENS]
    return [sum(usage.get(key, 0) for usage in usages) for key in TOKENS]


def _headline(raw: dict[str, Any], plan: RunPlan) -> float | None:
    """The headline metric; the category's fixed value where there was nothing to measure and nothing broke."""
    outcome, value = raw["outcome"], raw.get("headline")
    if value is None and outcome not in BROKEN and outcome != Outcome.CANCELLED.value:
        return plan.headlines.get(raw["plan"]["category"], ("", "", None))[2]
    return None if value is None else float(value)


def _limits_text(limits: dict[str, Any]) -> str:
    if not limits:
        return ""
    return (
        f"{limits['cpus']:g} CPU, {limits['memory_mb']} MB, disk {limits['storage_mb']} MB, "
        f"{limits['pids']} pids, {limits['agent_timeout_s']} s"
    )


def _cost(
    usages: Sequence[dict[str, Any]], model: str, started_at: str, agent_ran: bool, book: PriceBook
) -> tuple[float | None, float | None]:
    """Cost of a trial. An agent that ran with a model but left no usage has an unknown cost, not none."""
    if not usages and agent_ran and model not in ("", "-"):
        return None, None
    cost = book.cost(USAGES.validate_python(usages), _day(started_at[:10]))
    return cost.usd, cost.without_cache_usd


@lru_cache(maxsize=4096)
def _day(date: str) -> datetime:
    return datetime.fromisoformat(f"{date}T00:00:00+00:00")
