"""What stands below a report's headline: tasks, reliability, time, broken trials, axes, clues, resources.

Every section is a table of plain cells, made from one block's trials; one without rows is left out.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import polars as pl

from results import comparisons, statistics
from results.blocks import Block
from results.frame import PHASES
from results.records import Outcome
from results.rows import UNIT, Units, units_of

Cell = str | int | float | None


@dataclass(frozen=True)
class Section:
    """A titled table; ``note`` says how to read it."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: list[tuple[Cell, ...]]


def sections_of(block: Block) -> list[Section]:
    """Return the block's sections that have something to show."""
    counted = block.trials.filter(pl.col("outcome") != Outcome.CANCELLED.value)
    makers: tuple[Callable[[Block, pl.DataFrame], Section], ...] = (
        apart, reliability, axes, clues, by_task, phases, broken, resources, weights,
    )  # fmt: skip
    made = [maker(block, counted) for maker in makers] if counted.height else []
    return [section for section in made if section.rows]


def rate_cell(units: Units) -> str:
    """Return a rate as it may be printed: with its interval and its n."""
    interval = statistics.tasks_like_these(units.passes, units.trials, units.templates, units.categories)
    n = units.trials.sum()
    rate = units.passes.sum() / n
    return f"{100 * rate:.1f} % ({100 * interval.low:.1f}-{100 * interval.high:.1f}; n {n:.0f})"


def _agents(counted: pl.DataFrame) -> Iterable[tuple[str, pl.DataFrame]]:
    for (agent,), part in counted.group_by(["agent"], maintain_order=True):
        yield str(agent), part


def apart(_: Block, counted: pl.DataFrame) -> Section:
    """Pairs of agents by task, Holm over all pairs shown."""
    found = compare_all(counted)
    rows: list[tuple[Cell, ...]] = []
    for (a, b), pair, p in found:
        interval = f"{_points(pair.low)} to {_points(pair.high)}"
        p_values = (f"{pair.p_sign_flip:.4f}", f"{p:.4f}", "yes" if p < 0.05 else "no")
        rows.append((f"{a} - {b}", pair.tasks, pair.clusters, _points(pair.difference), interval, *p_values))
    note = (
        "Difference of success over the tasks both ran, in points; 95 % interval and exact sign-flip p for "
        f"{statistics.TASKS_LIKE_THESE}; Holm over all {len(found)} pairs. Without 'yes' two cannot be told apart."
    )
    header = ("pair", "tasks", "clusters", "difference", "95 %", "p", "p, Holm", "told apart")
    return Section("Which agents can be told apart", note, header, rows)


def compare_all(counted: pl.DataFrame) -> list[tuple[tuple[str, str], comparisons.Paired, float]]:
    """Return ((a, b), comparison, Holm-adjusted p) for all pairs of agents that share tasks."""
    tables = {agent: _by_unit(part) for agent, part in _agents(counted)}
    names = sorted(tables)
    found = []
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            both = tables[a].join(tables[b], on=["template", *UNIT], suffix="_b")
            if both.height:
                sides = ((both["c"], both["n"]), (both["c_b"], both["n_b"]))
                pair = comparisons.paired(*sides, both["template"].to_list())
                found.append(((a, b), pair))
    adjusted = comparisons.holm([pair.p_sign_flip for _, pair in found])
    return [(names, pair, float(p)) for (names, pair), p in zip(found, adjusted, strict=True)]


def _by_unit(part: pl.DataFrame) -> pl.DataFrame:
    counts = part.group_by(["template", *UNIT]).agg(pl.col("passed").sum().alias("c"), pl.len().alias("n"))
    return counts.sort("template", *UNIT)


def _points(fraction: float) -> str:
    return f"{100 * fraction:+.1f}"


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
