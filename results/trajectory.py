"""What an agent did with its steps: each classed by the stated rules of ``trajectory_rules.toml``, and counted.

Classes: *orient* (where am I, what is here), *scope* (what do the data and the task hold), *execute* (do the work),
*verify* (look at what was made), *clean* (tidy up, report). A step with several calls has the class of the weightiest,
one without calls that of the step before; the first is orientation, a closing message is clean.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from results.blocks import Block
from results.tables import Cell, Section
from results.trial_folder import TrialFolder

CLASSES = ("orient", "scope", "execute", "verify", "clean")
WEIGHT = {"execute": 5, "verify": 4, "clean": 3, "scope": 2, "orient": 1}
RULES = Path(__file__).parent / "trajectory_rules.toml"
LONGEST = 20_000
"""Characters of a call or result that the rules look at."""


@lru_cache
def rules() -> dict[str, dict[str, re.Pattern[str]]]:
    """Read the rules."""
    tables = tomllib.loads(RULES.read_text(encoding="utf-8"))
    return {name: {k: re.compile(p, re.IGNORECASE) for k, p in table.items()} for name, table in tables.items()}


@dataclass(frozen=True)
class Step:
    """One agent step, as far as it is counted."""

    step_id: int
    kind: str
    calls: int
    writes_submission: bool
    rereads_submission: bool
    repeats: int
    """Calls that an earlier step made with the same arguments."""
    errors: int


@dataclass(frozen=True)
class Behaviour:
    """A whole trajectory in numbers."""

    steps: list[Step]
    calls: int
    shares: dict[str, float]
    """Class -> share of the agent's steps."""
    first_write: int | None
    """The agent step (from 1) that first wrote to the submission; null where none did."""
    rereads: int
    """Calls that looked at the submission after it was written."""
    repeated: int
    errors: int
    images: int
    """Calls that named an image file."""
    subagents: int


def analyse(trajectory: dict[str, Any]) -> Behaviour:
    """Class and count the agent's steps of an ATIF trajectory; tolerant of missing parts."""
    steps: list[Step] = []
    seen: Counter[str] = Counter()
    written, images = False, 0
    told = [step for step in trajectory.get("steps", ()) if step.get("source") == "agent"]
    for number, step in enumerate(told, 1):
        calls = step.get("tool_calls") or ()
        texts = [call_text(call) for call in calls]
        kinds = [classify(call, text, written=written) for call, text in zip(calls, texts, strict=True)]
        writes = [_names_submission(text) and kind == "execute" for text, kind in zip(texts, kinds, strict=True)]
        rereads = written and any(_names_submission(text) and not w for text, w in zip(texts, writes, strict=True))
        repeats = sum(seen[text] > 0 for text in texts)
        seen.update(texts)
        images += sum(bool(rules()["results"]["image"].search(text)) for text in texts)
        kind = max(kinds, key=WEIGHT.__getitem__, default=_silent(steps, last=number == len(told)))
        steps.append(Step(number, kind, len(texts), any(writes), rereads, repeats, _errors(step)))
        written = written or any(writes)
    return _summary(steps, images, len(trajectory.get("subagent_trajectories") or ()))


def _summary(steps: list[Step], images: int, subagents: int) -> Behaviour:
    counts = Counter(step.kind for step in steps)
    return Behaviour(
        steps=steps,
        calls=sum(step.calls for step in steps),
        shares={kind: counts[kind] / len(steps) if steps else 0.0 for kind in CLASSES},
        first_write=next((step.step_id for step in steps if step.writes_submission), None),
        rereads=sum(step.rereads_submission for step in steps),
        repeated=sum(step.repeats for step in steps),
        errors=sum(step.errors for step in steps),
        images=images,
        subagents=subagents,
    )


def call_text(call: dict[str, Any]) -> str:
    """Return a call as one text: its name, then its arguments' values."""
    arguments = call.get("arguments") or {}
    values = [value if isinstance(value, str) else json.dumps(value, sort_keys=True) for value in arguments.values()]
    return "\n".join([str(call.get("function_name", "")), *values])[:LONGEST]


def classify(call: dict[str, Any], text: str, *, written: bool) -> str:
    """Return the class of one call."""
    name, command = str(call.get("function_name", "")), text.partition("\n")[2]
    by_name = next((kind for kind, rule in rules()["names"].items() if rule.search(name)), None)
    if by_name in ("scope", "orient"):
        return "verify" if written and _names_submission(text) else by_name
    if by_name:
        return by_name
    rule = rules()["commands"]
    writes = bool(rule["write"].search(command))
    if rule["test"].search(command) or (written and _names_submission(text) and not writes):
        return "execute" if writes and not written else "verify"
    if rule["clean"].search(command) and not writes:
        return "clean"
    if writes or rule["run"].search(command):
        return "execute"
    return next((kind for kind in ("orient", "scope") if rule[kind].search(command)), "execute")


def _names_submission(text: str) -> bool:
    return "submission" in text


def _silent(steps: Sequence[Step], *, last: bool) -> str:
    """Class of a step without calls."""
    if not steps:
        return "orient"
    return "clean" if last else steps[-1].kind


def _errors(step: dict[str, Any]) -> int:
    results = (step.get("observation") or {}).get("results") or ()
    pattern = rules()["results"]["error"]
    return sum(bool(pattern.search(_content(result.get("content"))[:LONGEST])) for result in results)


def _content(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def read_trajectory(trial: TrialFolder) -> dict[str, Any] | None:
    """Return a trial's trajectory; null where there is none or it cannot be read."""
    try:
        found = json.loads(trial.trajectory.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("steps"), list) else None


def behaviour_section(block: Block) -> Section:
    """Return the shares of steps per agent and outcome; reads every trial's trajectory."""
    found: dict[tuple[str, str], list[Behaviour]] = {}
    for run, trial_id, agent, outcome in block.trials.select("run_id", "trial_id", "agent", "outcome").iter_rows():
        folder = next(folder for folder in block.runs if folder.plan.run_id == run)
        trajectory = read_trajectory(folder.trial(trial_id))
        if trajectory is not None:
            found.setdefault((agent, outcome), []).append(analyse(trajectory))
    header = ("agent", "outcome", "trials", "steps", *CLASSES, "first write", "rereads", "repeated", "errors", "images")
    note = "Means per trial; classes as shares of the agent's steps, by results/trajectory_rules.toml."
    return Section("What the agents did", note, header, [_row(key, many) for key, many in sorted(found.items())])


def _row(key: tuple[str, str], many: Sequence[Behaviour]) -> tuple[Cell, ...]:
    shares = (f"{100 * _mean(b.shares[kind] for b in many):.0f} %" for kind in CLASSES)
    firsts = [b.first_write for b in many if b.first_write is not None]
    counts = ((b.rereads for b in many), (b.repeated for b in many), (b.errors for b in many), (b.images for b in many))
    return (
        *key,
        len(many),
        round(_mean(len(b.steps) for b in many), 1),
        *shares,
        round(_mean(firsts), 1) if firsts else None,
        *(round(_mean(values), 2) for values in counts),
    )


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0
