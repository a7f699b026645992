"""A against B by task: the difference for both targets, by category, and the tasks where they part."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import polars as pl

from results import comparisons
from results.blocks import Block, split
from results.columns import ALL, finite
from results.comparisons import Paired
from results.folder import RunFolder
from results.frame import planned_frame, trial_frame
from results.pricing import PriceBook
from results.records import Outcome
from results.reference_tests import ReferenceTest, reference_section, reference_tests
from results.statistics import TASKS_LIKE_THESE, THESE_TASKS, Z95
from results.tables import Cell, Section, points

UNIT = ["category", "template", "task", "instance"]


class CompareError(Exception):
    """The two sides cannot be compared; the message says why and what there is."""


@dataclass(frozen=True)
class Part:
    """The comparison within a category, or over ALL."""

    category: str
    passes_a: int
    trials_a: int
    passes_b: int
    trials_b: int
    paired: Paired
    p_adjusted: float
    """Benjamini-Hochberg over the categories; the plain p for ALL, which was named beforehand."""


@dataclass(frozen=True)
class TaskPair:
    """One task instance that both ran."""

    task: str
    instance: int
    passes_a: int
    trials_a: int
    passes_b: int
    trials_b: int

    @property
    def rate_a(self) -> float:
        return self.passes_a / self.trials_a

    @property
    def rate_b(self) -> float:
        return self.passes_b / self.trials_b


@dataclass(frozen=True)
class Comparison:
    """A against B over the task instances both ran."""

    a: str
    b: str
    settings: str
    parts: list[Part]
    """ALL first."""
    tasks: list[TaskPair]
    only_a: int
    """Task instances that A ran and B did not."""
    only_b: int
    cost: tuple[float | None, float | None]
    """USD per trial of A and of B, over the shared tasks."""
    minutes: tuple[float | None, float | None]
    reference: list[ReferenceTest]
    """What other tests say; no claim rests on them."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values, null for what is not defined."""
        return {key: _plain(value) for key, value in asdict(self).items()}

    def verdict(self) -> str:
        """Say in one sentence what may be claimed."""
        pair = self.parts[0].paired
        gap = f"{100 * pair.difference:+.1f} points (95 % {points(pair.low, pair.high)})"
        if pair.p_sign_flip < 0.05:
            better, worse = (self.a, self.b) if pair.difference > 0 else (self.b, self.a)
            return f"{better} passes more than {worse} on {TASKS_LIKE_THESE}: {gap}, p {pair.p_sign_flip:.4f}."
        return f"{self.a} and {self.b} cannot be told apart on {TASKS_LIKE_THESE}: {gap}, p {pair.p_sign_flip:.4f}."


def compare(runs: Sequence[RunFolder], a: str, b: str, *, prices: PriceBook | None = None) -> Comparison:
    """Compare two agents, named ``[RUN:]<harness>@<model>[@<effort>]`` or by a run that has one agent.

    Raises:
        CompareError: a name fits none or several, or no task was run by both.
        MixError: the runs differ in what must be equal.
    """
    blocks = split(runs, trial_frame(runs, prices), planned_frame(runs))
    if not blocks:
        raise CompareError("these runs have no trials to compare; `hab-suite resume RUN` runs what was planned")
    block = blocks[0]
    counted = block.trials.filter(pl.col("outcome") != Outcome.CANCELLED.value)
    sides = [_select(counted, name) for name in (a, b)]
    units = [_units(side) for side in sides]
    shared = units[0].join(units[1], on=UNIT, suffix="_b").sort(UNIT)
    if not shared.height:
        raise CompareError(f"{a} and {b} have no task in common; run both on the same tasks")
    return _comparison(block, (a, b), sides, units, shared)


def _select(counted: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the trials that a name stands for."""
    known = counted.select("run_id", "agent").unique(maintain_order=True).rows()
    run_id, colon, agent = name.partition(":")
    if colon and any(run == run_id for run, _ in known):
        found = counted.filter((pl.col("run_id") == run_id) & (pl.col("agent") == agent))
    elif any(run == name for run, _ in known):
        found = counted.filter(pl.col("run_id") == name)
    else:
        found = counted.filter(pl.col("agent") == name)
    agents = found["agent"].unique().to_list()
    if len(agents) != 1:
        there = ", ".join(sorted({agent for _, agent in known}))
        why = f"holds several agents, write {name}:AGENT" if agents else "has no trials"
        raise CompareError(f"{name} {why}; there are {there}")
    return found


def _units(side: pl.DataFrame) -> pl.DataFrame:
    return side.group_by(UNIT).agg(pl.col("passed").sum().cast(pl.Int64).alias("c"), pl.len().cast(pl.Int64).alias("n"))


def _comparison(
    block: Block,
    names: tuple[str, str],
    sides: Sequence[pl.DataFrame],
    units: Sequence[pl.DataFrame],
    shared: pl.DataFrame,
) -> Comparison:
    whole = _part(ALL, shared)
    inside = [_part(str(category), part) for (category,), part in shared.group_by("category", maintain_order=True)]
    adjusted = comparisons.benjamini_hochberg([part.paired.p_sign_flip for part in inside])
    parts = [whole, *(replace(part, p_adjusted=float(p)) for part, p in zip(inside, adjusted, strict=True))]
    both = [side.join(shared, on=UNIT, how="semi") for side in sides]
    tasks = shared.select("task", "instance", "c", "n", "c_b", "n_b").iter_rows()
    return Comparison(
        a=names[0],
        b=names[1],
        settings=block.settings.title,
        parts=parts,
        tasks=[TaskPair(*row) for row in tasks],
        only_a=units[0].height - shared.height,
        only_b=units[1].height - shared.height,
        cost=(_mean(both[0], "cost_usd", 1), _mean(both[1], "cost_usd", 1)),
        minutes=(_mean(both[0], "run_agent_s", 60), _mean(both[1], "run_agent_s", 60)),
        reference=reference_tests((shared["c"], shared["n"]), (shared["c_b"], shared["n_b"]), whole.paired),
    )


def _part(category: str, shared: pl.DataFrame) -> Part:
    pair = comparisons.paired((shared["c"], shared["n"]), (shared["c_b"], shared["n_b"]), shared["template"].to_list())
    passes_a, trials_a, passes_b, trials_b = (int(shared[name].sum()) for name in ("c", "n", "c_b", "n_b"))
    return Part(category, passes_a, trials_a, passes_b, trials_b, pair, pair.p_sign_flip)


def _mean(side: pl.DataFrame, column: str, unit: float) -> float | None:
    value = side[column].mean()
    return value / unit if isinstance(value, float) else None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return finite(value)


def sections_of_comparison(found: Comparison) -> list[Section]:
    """Return the comparison as tables, for any of the text formats."""
    note = (
        f"A is {found.a}, B is {found.b}. {found.verdict()} p by exact sign-flip over clusters; categories are "
        "exploratory and adjusted after Benjamini-Hochberg. "
        f"Left out, run by one only: {found.only_a} of A, {found.only_b} of B."
    )
    header = (
        *("category", "tasks", "A", "B", "points"),
        *(f"95 %, {TASKS_LIKE_THESE}", f"95 %, {THESE_TASKS}", "p", "p, adjusted"),
    )
    overall = Section("A against B", note, header, [_part_row(part) for part in found.parts])
    apart = [_task_row(task, found) for task in found.tasks if task.rate_a != task.rate_b]
    columns = ("task", "instance", "A", "B", "better")
    return [
        overall,
        Section("Tasks where they part", "Passes / trials.", columns, apart),
        reference_section(found.reference),
    ]


def _part_row(part: Part) -> tuple[Cell, ...]:
    pair = part.paired
    these = Z95 * pair.se_these_tasks
    return (
        part.category,
        pair.tasks,
        f"{part.passes_a}/{part.trials_a}",
        f"{part.passes_b}/{part.trials_b}",
        f"{100 * pair.difference:+.1f}",
        points(pair.low, pair.high),
        points(pair.difference - these, pair.difference + these),
        f"{pair.p_sign_flip:.4f}",
        f"{part.p_adjusted:.4f}",
    )


def _task_row(task: TaskPair, found: Comparison) -> tuple[Cell, ...]:
    better = found.a if task.rate_a > task.rate_b else found.b
    a, b = f"{task.passes_a}/{task.trials_a}", f"{task.passes_b}/{task.trials_b}"
    return task.task, task.instance, a, b, better
