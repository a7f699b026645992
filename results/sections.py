"""What stands below a report's headline: tasks, reliability, time, broken trials, axes, clues, resources.

Every section is a table of plain cells, made from one block's trials; one without rows is left out.
"""

from collections.abc import Callable

import polars as pl

from results import statistics
from results.apart import apart_sections
from results.blocks import Block
from results.frame import PHASES
from results.records import Outcome
from results.rows import UNIT, Units, units_of
from results.tables import Cell, Section

MINUTES = (1, 2, 5, 10, 20, 30, 60, 120)


def sections_of(block: Block) -> list[Section]:
    """Return the block's sections that have something to show."""
    counted = block.trials.filter(pl.col("outcome") != Outcome.CANCELLED.value)
    makers: tuple[Callable[[Block, pl.DataFrame], Section], ...] = (
        reliability, axes, clues, by_task, phases, solved_by, broken, resources, weights,
    )  # fmt: skip
    if not counted.height:
        return []
    made = [*apart_sections(counted), *(maker(block, counted) for maker in makers)]
    return [section for section in made if section.rows]


def rate_cell(units: Units) -> str:
    """Return a rate as it may be printed: with its interval and its n."""
    interval = statistics.tasks_like_these(units.passes, units.trials, units.templates, units.categories)
    n = units.trials.sum()
    rate = units.passes.sum() / n
    return f"{100 * rate:.1f} % ({100 * interval.low:.1f}-{100 * interval.high:.1f}; n {n:.0f})"


def reliability(_: Block, counted: pl.DataFrame) -> Section:
    """How many task instances were passed in all, some or none of their trials."""
    table = counted.group_by(["agent", *UNIT], maintain_order=True).agg(pl.col("passed").sum(), pl.len().alias("n"))
    levels = sorted({(n, c) for c, n in table.select("passed", "n").unique().iter_rows()}, reverse=True)
    rows: list[tuple[Cell, ...]] = []
    for (agent,), part in table.group_by(["agent"], maintain_order=True):
        counts = {(n, c): count for c, n, count in part.group_by(["passed", "n"]).len().iter_rows()}
        rows.append((str(agent), *(counts.get(level, 0) for level in levels)))
    header = ("agent", *(f"{c}/{n}" for n, c in levels))
    return Section("Reliability", "Task instances by how many of their trials passed.", header, rows)


def axes(block: Block, counted: pl.DataFrame) -> Section:
    """Success grouped by the five axes of the categories."""
    of = {category: values for run in block.runs for category, values in run.plan.axes.items()}
    names = list(dict.fromkeys(axis for values in of.values() for axis in values))
    rows: list[tuple[Cell, ...]] = []
    for axis in names:
        values = {category: axes.get(axis, "") for category, axes in of.items()}
        marked = counted.with_columns(value=pl.col("category").replace_strict(values, default=""))
        for (value, agent), part in sorted(marked.group_by(["value", "agent"]), key=lambda item: str(item[0])):
            if value:
                rows.append((axis, str(value), str(agent), rate_cell(units_of(part))))
    return Section(
        "By axis", "Success with its interval and number of trials.", ("axis", "value", "agent", "success"), rows
    )


def clues(_: Block, counted: pl.DataFrame) -> Section:
    """Twins that share their data and differ in the instruction: base against the rest."""
    twins = counted.filter(pl.col("task") != pl.col("template"))
    rows: list[tuple[Cell, ...]] = []
    for (template, agent), part in sorted(twins.group_by(["template", "agent"]), key=lambda item: str(item[0])):
        base = counted.filter((pl.col("task") == template) & (pl.col("agent") == agent))
        if base.height:
            name = str(part["task"][0]).partition("/")[2]
            rows.append((str(template), name, str(agent), rate_cell(units_of(base)), rate_cell(units_of(part))))
    return Section(
        "With and without clues", "Tasks that share their data.", ("task", "twin", "agent", "task's", "twin's"), rows
    )


def by_task(_: Block, counted: pl.DataFrame) -> Section:
    """Passes of trials, tasks down and agents across."""
    cells = counted.group_by(["task", "agent"]).agg(pl.col("passed").sum(), pl.len().alias("n"))
    cells = cells.with_columns(cell=pl.format("{}/{}", "passed", "n"))
    wide = cells.sort("task", "agent").pivot(on="agent", index="task", values="cell").sort("task")
    return Section("By task", "Passes / trials.", tuple(wide.columns), wide.rows())


def phases(_: Block, counted: pl.DataFrame) -> Section:
    """Mean seconds of each phase."""
    means = [pl.col(f"{phase}_s").mean().round(1) for phase in PHASES]
    table = counted.group_by(["agent"], maintain_order=True).agg(means)
    return Section("Seconds by phase", "Means over the trials that reached it.", ("agent", *PHASES), table.rows())


def solved_by(_: Block, counted: pl.DataFrame) -> Section:
    """Share of all trials that passed within so many agent minutes."""
    rows: list[tuple[Cell, ...]] = []
    for (agent,), part in counted.group_by(["agent"], maintain_order=True):
        times, shares = statistics.cumulative_incidence(part["run_agent_s"].fill_null(0) / 60, part["passed"])
        solved = [0.0, *shares]
        rows.append((str(agent), part.height, *(f"{100 * solved[(times <= m).sum()]:.1f} %" for m in MINUTES)))
    note = "Cumulative incidence over agent minutes: failures and time-outs count as never, not as censored."
    return Section("Solved by", note, ("agent", "trials", *(f"{m} min" for m in MINUTES)), rows)


def broken(_: Block, counted: pl.DataFrame) -> Section:
    """Trials that are no pass and no failure of the work, by class."""
    odd = counted.filter(~pl.col("outcome").is_in([Outcome.PASSED.value, Outcome.FAILED.value]))
    table = odd.group_by(["agent", "outcome", "reason"]).agg(pl.len(), pl.col("message").first().str.slice(0, 100))
    note = "All are misses in the success rate; environment and verifier errors are no fault of the agent."
    rows = table.sort("agent", "outcome", "reason").rows()
    return Section(
        "Timeouts, errors and broken trials", note, ("agent", "outcome", "class", "trials", "an example"), rows
    )


def resources(_: Block, counted: pl.DataFrame) -> Section:
    """Tokens and memory of the boxes."""
    prompt = pl.sum_horizontal("input_tokens", "cache_read_tokens", "cache_write_tokens")
    gap = _metric("validation_auroc") - _metric("auroc")
    table = counted.group_by(["agent"], maintain_order=True).agg(
        prompt.mean().round(0).cast(pl.Int64),
        (pl.col("cache_read_tokens").sum() / prompt.sum()).round(3).fill_nan(None).alias("cached"),
        pl.col("output_tokens").mean().round(0).cast(pl.Int64),
        pl.col("requests").mean().round(1),
        pl.col("peak_memory_mb").max().round(0),
        pl.col("oom_killed").sum(),
        gap.mean().round(3).alias("gap"),
    )
    header = ("agent", "input tokens", "cached", "output tokens", "requests", "peak MB", "out of memory", "AUROC gap")
    note = "Means per trial; highest memory of a box; mean of validation minus test AUROC where both were recorded."
    return Section("Tokens and memory", note, header, table.rows())


def _metric(name: str) -> pl.Expr:
    return pl.col("metrics").str.json_path_match(f"$.{name}").cast(pl.Float64)


def weights(block: Block, _: pl.DataFrame) -> Section:
    """What part of the headline each category is."""
    planned = block.planned.group_by("category").agg(pl.col("task").n_unique().alias("tasks")).sort("category")
    total = planned["tasks"].sum()
    rows: list[tuple[Cell, ...]] = [(c, n, f"{n}/{total} ({100 * n / total:.0f} %)") for c, n in planned.iter_rows()]
    return Section("Weight in the headline", "Tasks of each category.", ("category", "tasks", "weight"), rows)
