"""Which harnesses can run here now, and what the others lack."""

import os
from dataclasses import dataclass
from pathlib import Path

from containers import agents
from runners.harness import HarnessError, HarnessOptions, load_harness
from runners.keys import AsksModel, KeyMissingError, find_upstream

EXAMPLE = HarnessOptions(argument="example", model="example", command="true")
"""Enough to make any harness; nothing is run with it."""


@dataclass(frozen=True)
class HarnessState:
    """What ``doctor`` says of a harness."""

    ready: bool
    detail: str
    repair: str = ""


def harness_state(name: str, cache: Path) -> HarnessState:
    """Return whether a harness has its agent and its credentials."""
    try:
        harness = load_harness(name, EXAMPLE)
    except HarnessError as error:
        return HarnessState(ready=False, detail=str(error))
    if not harness.needs_model:
        return HarnessState(ready=True, detail="needs no model")
    there = bool(harness.agent) and agents.installed(harness.agent, cache) is not None
    detail = f"agent {'fetched' if there else 'not fetched yet'}"
    if isinstance(harness, AsksModel):
        try:
            find_upstream(harness.provider, os.environ, name)
        except KeyMissingError as error:
            return HarnessState(ready=False, detail=f"{detail}, no credentials", repair=str(error))
    return HarnessState(ready=True, detail=detail, repair="" if there else "`hab-suite build agents`, or the first run")
