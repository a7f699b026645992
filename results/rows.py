"""The rows of a report: one per agent and category, one per agent over ALL, as ``columns.COLUMNS`` has them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from results import pareto, statistics
from results.blocks import Block
from results.columns import ALL, COLUMNS, Row, finite
from results.records import Outcome

AGENT = ["harness", "model", "effort"]
UNIT = ["task", "instance"]
BOOTSTRAP_DRAWS = 2000


def rows_of(block: Block) -> list[Row]:
    """Return the block's rows, agents by falling success, each with ALL first and then its categories."""
    counted = block.trials.filter(pl.col("outcome") != Outcome.CANCELLED.value)
    planned = _planned(block.planned)
    rows: list[Row] = []
    for key, part in _parts(counted, block.planned):
        total = part.height
        whole = _row(block, (*key, ALL), part, planned)
        rows.append(whole)
        for category in sorted(set(part["category"]) | {c for *k, c in planned if tuple(k) == key and c != ALL}):
            row = _row(block, (*key, category), part.filter(pl.col("category") == category), planned)
            rows.append(row | {"weight": row["trials"] / total if total else None})
    order = {tuple(row[k] for k in AGENT): -(row["success_rate"] or 0) for row in rows if row["category"] == ALL}
    return sorted(rows, key=lambda row: (order[tuple(row[k] for k in AGENT)], *(row[k] for k in AGENT)))


def _parts(counted: pl.DataFrame, planned: pl.DataFrame) -> Iterator[tuple[tuple[str, ...], pl.DataFrame]]:
    agents = pl.concat([counted.select(AGENT), planned.select(AGENT)]).unique(maintain_order=True)
    parts = {tuple(map(str, key)): part for key, part in counted.group_by(AGENT, maintain_order=True)}
    for agent in agents.iter_rows():
        yield agent, parts.get(agent, counted.clear())


def _planned(planned: pl.DataFrame) -> dict[tuple[str, ...], int]:
    """Planned trials by (harness, model, effort, category), ALL included."""
    by_category = planned.group_by([*AGENT, "category"]).len()
    whole = planned.group_by(AGENT).len().with_columns(category=pl.lit(ALL)).select(by_category.columns)
    return {tuple(row[:-1]): row[-1] for row in pl.concat([by_category, whole]).iter_rows()}


def _row(block: Block, key: tuple[str, ...], part: pl.DataFrame, planned: dict[tuple[str, ...], int]) -> Row:
    settings, plan = block.settings, block.runs[0].plan
    values: Row = dict.fromkeys(column.key for column in COLUMNS)
    values |= dict(zip((*AGENT, "category"), key, strict=True))
    values |= {
        "edition": settings.edition,
        "scale": settings.scale,
        "network": settings.network,
        "variant": settings.variant,
        "clamped": settings.clamped,
        "seed_fingerprint": settings.seed_fingerprint,
        "public_seed": plan.public_seed,
        "missing": planned.get(key, 0) - part.height,
        "metric_name": plan_headline(block, key[-1]),
        "interval": "no trials",
    }
    values |= _totals(part)
    if part.height:
        values |= _rates(part)
    return {name: finite(value) for name, value in values.items()}


def plan_headline(block: Block, category: str) -> str:
    """Return ``metric (better)`` of a category; empty for ALL."""
    found = next((run.plan.headlines[category] for run in block.runs if category in run.plan.headlines), None)
    return f"{found[0]} ({found[1]} is better)" if found else ""


def _totals(part: pl.DataFrame) -> Row:
    """Sums and means over trials."""
    n, known = part.height, part.drop_nulls("cost_usd")
    passes, broken = int(part["passed"].sum()), int(part["broken"].sum())
    agent_s = part["run_agent_s"].sum()
    cost = float(known["cost_usd"].sum())
    single = part["category"].n_unique() == 1
    return {
        "trials": n,
        "passes": passes,
        "success_rate": passes / n if n else None,
        "metric": part.filter(~pl.col("broken"))["headline"].mean() if single else None,
        "published_rate": part["published_reward"].fill_null(0).mean() if part["published_reward"].count() else None,
        "cost_usd": cost / known.height if known.height else None,
        "cost_without_cache_usd": known["cost_without_cache_usd"].mean(),
        "cost_usd_total": cost if known.height else None,
        "cost_unknown": n - known.height,
        "harness_cost_usd": part["harness_cost_usd"].mean(),
        "minutes": _minutes(part["run_agent_s"].mean()),
        "minutes_per_success": agent_s / 60 / passes if passes else None,
        "peak_memory_mb": part["peak_memory_mb"].max(),
        "agent_timeouts": int((part["outcome"] == Outcome.AGENT_TIMEOUT.value).sum()),
        "agent_errors": int((part["outcome"] == Outcome.AGENT_ERROR.value).sum()),
        "broken": broken,
        "rate_if_broken_passed": (passes + broken) / n if n else None,
        "login_in_box": bool(part["login_in_box"].any()),
    }


def _minutes(seconds: object) -> float | None:
    return seconds / 60 if isinstance(seconds, float) else None


@dataclass(frozen=True)
class Units:
    """Task instances of one agent: what intervals are made of."""

    passes: statistics.Floats
    trials: statistics.Floats
    costs: statistics.Floats
    """USD; 0 for trials of unknown cost."""
    templates: list[str]
    categories: list[str]

    @property
    def strata(self) -> list[str]:
        """Category of each template, in the order in which ``statistics.sums_by`` has them."""
        return list(dict(zip(self.templates, self.categories, strict=True)).values())


def units_of(part: pl.DataFrame) -> Units:
    """Return the task instances of trials of one agent."""
    table = part.group_by(["category", "template", *UNIT]).agg(
        pl.col("passed").sum(), pl.len().alias("n"), pl.col("cost_usd").fill_null(0).sum()
    )
    table = table.sort("category", "template", *UNIT)
    passes, trials, costs = (table[name].to_numpy().astype(np.float64) for name in ("passed", "n", "cost_usd"))
    return Units(passes, trials, costs, table["template"].to_list(), table["category"].to_list())


def _rates(part: pl.DataFrame) -> Row:
    """Everything that needs the hierarchy of templates, instances and trials."""
    units = units_of(part)
    like = statistics.tasks_like_these(units.passes, units.trials, units.templates, units.categories)
    these = statistics.these_tasks(units.passes, units.trials)
    naive = statistics.naive_interval(float(units.passes.sum()), float(units.trials.sum()))
    passes, trials, costs = statistics.sums_by(units.templates, units.passes, units.trials, units.costs)
    analysis = statistics.anova(passes, trials)
    priced = part["cost_usd"].null_count() == 0
    per_success = statistics.cost_per_success(passes, costs) if priced else None
    low, high = _cost_interval(trials, passes, costs, units.strata) if priced else (None, None)
    counts, often = np.unique(units.trials, return_counts=True)
    k = int(counts[often.argmax()])
    return {
        "tasks": units.trials.size,
        "clusters": trials.size,
        "low": like.low,
        "high": like.high,
        "interval": like.method,
        "low_these": these.low,
        "high_these": these.high,
        "low_naive": naive.low,
        "high_naive": naive.high,
        "icc": analysis.icc if analysis else None,
        "design_effect": analysis.design_effect if analysis else None,
        "k": k,
        "pass_at_k": float(np.nanmean(statistics.pass_at_k(units.passes, units.trials, k))),
        "pass_hat_k": float(np.nanmean(statistics.pass_hat_k(units.passes, units.trials, k))),
        "cost_low": low,
        "cost_high": high,
        "cost_per_success_usd": per_success[0] if per_success else None,
        "cost_per_success_se": per_success[1] if per_success else None,
    }


def _cost_interval(
    trials: statistics.Floats, passes: statistics.Floats, costs: statistics.Floats, strata: list[str]
) -> tuple[float | None, float | None]:
    """Whole templates resampled within categories; nothing to resample with one template."""
    if trials.size < 2:
        return None, None
    sums = pareto.Sums(trials[None, :], passes[None, :], costs[None, :])
    low, high = pareto.mean_cost_intervals(sums, pareto.resamples(strata, BOOTSTRAP_DRAWS))[0]
    return float(low), float(high)
