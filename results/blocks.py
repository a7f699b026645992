"""What may stand in one table: trials of one edition, scale, seed, network and limits, on the same task versions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from results.folder import RunFolder

PER_RUN = {
    "edition": "editions",
    "scale": "scales",
    "seed_fingerprint": "seeds",
    "network": "network policies",
    "clamped": "clamped and unclamped limits",
}
"""Setting -> what to call two values of it."""
PER_TASK = {"task_version": "versions", "limits": "limits"}
"""Columns that may differ between tasks but not within one."""
MIX_FLAG = "--mix"


class MixError(Exception):
    """Runs that may not share a table; the message names the difference and the flag that separates them."""


@dataclass(frozen=True)
class Settings:
    """What the trials of a block have in common."""

    edition: str
    scale: str
    seed_fingerprint: str
    network: str
    clamped: bool
    """Whether any limit was lowered to what the machine has."""
    variant: str = ""
    """The fall-back generator that made the data; empty as a rule."""
    group: int = 0
    """Runs whose task versions or limits differ are in different groups."""

    @property
    def title(self) -> str:
        parts = [f"{self.edition} edition", f"{self.scale} scale", f"seed {self.seed_fingerprint}"]
        parts.append(f"network {self.network}")
        parts += ["limits clamped to the machine"] * self.clamped
        parts += [f"variant {self.variant}"] * bool(self.variant)
        parts += [f"set {self.group + 1} of task versions and limits"] * bool(self.group)
        return ", ".join(parts)


@dataclass(frozen=True)
class Block:
    """Trials that may be compared."""

    settings: Settings
    runs: tuple[RunFolder, ...]
    trials: pl.DataFrame
    """``frame.trial_frame``'s columns."""
    planned: pl.DataFrame


def split(runs: Sequence[RunFolder], trials: pl.DataFrame, planned: pl.DataFrame, *, mix: bool = False) -> list[Block]:
    """Return the blocks: one, unless ``mix`` allows several or a fall-back generator made some of the data.

    Raises:
        MixError: the runs differ in what must be equal, and ``mix`` is false.
    """
    clamped = set(trials.filter("clamped")["run"].to_list())
    groups, conflict = _groups(len(runs), trials)
    settings = [
        Settings(p.edition, p.scale, p.seed_fingerprint, p.network, number in clamped, group=groups[number])
        for number, p in enumerate(run.plan for run in runs)
    ]
    if not mix:
        _refuse(runs, settings, conflict)
    blocks = []
    for common in dict.fromkeys(settings):
        numbers = [number for number, found in enumerate(settings) if found == common]
        mine = trials.filter(pl.col("run").is_in(numbers))
        plan = planned.filter(pl.col("run").is_in(numbers))
        folders = tuple(runs[number] for number in numbers)
        for variant in ["", *sorted(set(mine["variant"].unique()) - {""})]:
            part, rest = mine.filter(pl.col("variant") == variant), mine.filter(pl.col("variant") != variant)
            # Planned trials without a record belong to no variant yet: they are missing from the main block.
            own = plan.join(part if variant else rest, on=["run", "trial_id"], how="semi" if variant else "anti")
            if own.height:
                blocks.append(Block(replace(common, variant=variant), folders, part, own))
    return blocks


def _groups(count: int, trials: pl.DataFrame) -> tuple[list[int], str]:
    """Return each run's group and what separates them: no task of a group has two versions or limits."""
    known: list[dict[tuple[str, str], str]] = []
    found, conflict = [0] * count, ""
    for number in range(count):
        mine = trials.filter(pl.col("run") == number)
        values = {
            (column, task): value
            for column in PER_TASK
            for task, value in mine.filter(pl.col(column) != "").select("task", column).unique().iter_rows()
        }
        for group, members in enumerate(known):
            clash = next((key for key, value in values.items() if members.get(key, value) != value), None)
            if clash is None:
                members.update(values)
                found[number] = group
                break
            conflict = conflict or f"{PER_TASK[clash[0]]} of {clash[1]}: {members[clash]} and {values[clash]}"
        else:
            known.append(values)
            found[number] = len(known) - 1
    return found, conflict


def _refuse(runs: Sequence[RunFolder], settings: Sequence[Settings], conflict: str) -> None:
    differences = []
    for name, words in PER_RUN.items():
        values = {getattr(found, name): runs[number].plan.run_id for number, found in enumerate(settings)}
        if len(values) > 1:
            shown = ", ".join(f"{value} ({run_id})" for value, run_id in values.items())
            differences.append(f"{words}: {shown}")
    if conflict:
        differences.append(conflict)
    if differences:
        raise MixError(
            f"these runs do not belong in one table; they have different {'; '.join(differences)}. "
            f"{MIX_FLAG} shows them as separate blocks"
        )
