"""Is a trajectory ATIF v1.7: by its JSON Schema, and by the two rules that a schema cannot say."""

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

FILE = Path(__file__).parent / "schema" / "atif-1.7.json"
MOST_FAULTS = 20


@lru_cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads(FILE.read_bytes()))


def validate_trajectory(trajectory: Any) -> list[str]:
    """Return what is wrong, each with its place; empty where the trajectory is valid."""
    faults = []
    for error in _validator().iter_errors(trajectory):
        place = "/".join(map(str, error.absolute_path)) or "(root)"
        faults.append(f"{place}: {error.message[:200]}")
        if len(faults) == MOST_FAULTS:
            return faults
    return faults or list(_order_faults(trajectory))


def _order_faults(trajectory: dict[str, Any]) -> Iterator[str]:
    for number, step in enumerate(trajectory["steps"], 1):
        if step["step_id"] != number:
            yield f"steps/{number - 1}: step_id is {step['step_id']}, not {number}"
        calls = {call["tool_call_id"] for call in step.get("tool_calls") or ()}
        for result in (step.get("observation") or {}).get("results", ()):
            source = result.get("source_call_id")
            if source is not None and source not in calls:
                yield f"steps/{number - 1}: source_call_id {source!r} is no call of this step"
    for inner in trajectory.get("subagent_trajectories") or ():
        yield from _order_faults(inner)
