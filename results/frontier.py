"""The frontier of a block: its agents as points, with intervals, membership probability and retry baselines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from results import pareto, statistics
from results.blocks import Block
from results.published import published
from results.records import Outcome
from results.tables import Cell, Section

Measure = Literal["cost", "minutes"]
VALUE = {"cost": pl.col("cost_usd"), "minutes": pl.col("run_agent_s") / 60}


LEAST_KNOWN = 0.9
"""Share of an agent's trials whose value must be known for it to stand in the plane."""


@dataclass(frozen=True)
class Point:
    """An agent in the plane of success and cost (USD) or time (minutes), both means per trial."""

    agent: str
    value: float
    value_low: float | None
    value_high: float | None
    success: float
    low: float
    high: float
    trials: int
    on_frontier: bool
    on_hull: bool
    membership: float | None
    """Share of resamples in which it is on the frontier; null for published agents, whose tasks are not known."""
    retry: tuple[float, float] | None = None
    """(value, success) of running it up to k times and keeping a pass: pass@k at k times the value."""


@dataclass(frozen=True)
class Frontier:
    """One panel."""

    title: str
    measure: Measure
    points: list[Point]
    left_out: list[str]
    """Agents whose value is too often unknown, and those without a model: they would stand at no cost."""


def frontier_of(block: Block, measure: Measure = "cost") -> Frontier:
    """Return the block's panel. Whole templates are resampled within categories, the same for all agents."""
    counted = block.trials.filter(pl.col("outcome") != Outcome.CANCELLED.value)
    valued = counted.with_columns(value=VALUE[measure])
    share_known = valued.group_by("agent", maintain_order=True).agg(
        pl.col("value").is_not_null().mean().alias("known"), pl.col("model").first()
    )
    usable = (pl.col("known") >= LEAST_KNOWN) & ~pl.col("model").is_in(["", "-"])
    names = share_known.filter(usable)["agent"].to_list()
    left_out = share_known.filter(~usable)["agent"].to_list()
    # The few unknown values are taken at the agent's mean.
    valued = valued.with_columns(pl.col("value").fill_null(pl.col("value").mean().over("agent")))
    points = _points(valued.filter(pl.col("agent").is_in(names)), names) if names else []
    return Frontier(block.settings.title, measure, points, left_out)


def _points(valued: pl.DataFrame, names: Sequence[str]) -> list[Point]:
    sums, strata = _sums(valued, names)
    counts = pareto.resamples(strata, pareto.DRAWS)
    share, intervals = pareto.membership(sums, counts), pareto.mean_cost_intervals(sums, counts)
    totals = sums.trials.sum(axis=1)
    value, success = sums.costs.sum(axis=1) / totals, sums.passes.sum(axis=1) / totals
    on, hull = pareto.frontier(value, success), pareto.hull(value, success)
    made = []
    for i, name in enumerate(names):
        units = valued.filter(pl.col("agent") == name).group_by("category", "template", "task", "instance")
        table = units.agg(pl.col("passed").sum().alias("c"), pl.len().alias("n")).sort("template", "task", "instance")
        interval = statistics.tasks_like_these(
            table["c"], table["n"], table["template"].to_list(), table["category"].to_list()
        )
        k = min(table["n"].to_list())
        at_k = float(statistics.pass_at_k(table["c"], table["n"], k).mean())
        made.append(
            Point(
                agent=name,
                value=float(value[i]),
                value_low=float(intervals[i, 0]),
                value_high=float(intervals[i, 1]),
                success=float(success[i]),
                low=interval.low,
                high=interval.high,
                trials=int(totals[i]),
                on_frontier=bool(on[i]),
                on_hull=i in hull,
                membership=float(share[i]),
                retry=(k * float(value[i]), at_k) if k > 1 else None,
            )
        )
    return sorted(made, key=lambda point: point.value)


def _sums(valued: pl.DataFrame, names: Sequence[str]) -> tuple[pareto.Sums, list[str]]:
    """Return sums per agent and template over all templates, and each template's category."""
    templates = valued.select("category", "template").unique().sort("category", "template")
    grid = pl.DataFrame({"agent": names}).join(templates, how="cross")
    cells = valued.group_by("agent", "template").agg(pl.len().alias("n"), pl.col("passed").sum(), pl.col("value").sum())
    wide = grid.join(cells, on=["agent", "template"], how="left", maintain_order="left").fill_null(0)
    shape = (len(names), templates.height)
    n, passed, value = (wide[c].to_numpy().astype(np.float64).reshape(shape) for c in ("n", "passed", "value"))
    return pareto.Sums(n, passed, value), templates["category"].to_list()


def published_frontier(measure: Measure = "cost") -> Frontier:
    """Return the published agents on a panel of their own: another edition, other rules, open network."""
    agents = published().agents
    value = [agent.cost_usd if measure == "cost" else agent.minutes for agent in agents]
    success = [agent.rate for agent in agents]
    on, hull = pareto.frontier(value, success), pareto.hull(value, success)
    points = []
    for i, agent in enumerate(agents):
        low, high = agent.interval()
        known = (agent.agent, value[i], None, None, success[i], low, high, agent.trials)
        points.append(Point(*known, bool(on[i]), i in hull, None))
    title = "Published agents: clinical data, published rules, open network; intervals assume an ICC of 0.5"
    return Frontier(title, measure, sorted(points, key=lambda point: point.value), [])


def frontier_section(found: Frontier) -> Section:
    """Return the panel as a table."""
    unit = "USD" if found.measure == "cost" else "minutes"
    header = ("agent", f"{unit}/trial", "95 %", "success", "trials", "frontier", "hull", "how often on it")
    rows: list[tuple[Cell, ...]] = []
    for p in found.points:
        spread = "-" if p.value_low is None else f"{p.value_low:.3g}-{p.value_high:.3g}"
        success = f"{100 * p.success:.1f} % ({100 * p.low:.1f}-{100 * p.high:.1f})"
        share = None if p.membership is None else f"{100 * p.membership:.0f} %"
        marks = ("yes" if p.on_frontier else "no", "yes" if p.on_hull else "no")
        rows.append((p.agent, f"{p.value:.3g}", spread, success, p.trials, *marks, share))
    left_out = f" Left out, without a known value: {', '.join(found.left_out)}." if found.left_out else ""
    note = f"{found.title}. Cheapest first; templates resampled within categories, {pareto.DRAWS:,} draws.{left_out}"
    return Section(f"Success against {found.measure}", note, header, rows)
