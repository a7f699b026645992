"""What a harness is: a few members, and a table from name to import path."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Protocol

from categories.spec import Task
from containers.box import Box, Finished
from results.records import RunPlan, TrialPlan, Usage

HARNESSES: dict[str, str] = {
    "codex": "runners.harnesses.codex:Codex",
    "claude-code": "runners.harnesses.claude_code:ClaudeCode",
    "copilot-cli": "runners.harnesses.copilot_cli:CopilotCli",
    "gemini-cli": "runners.harnesses.gemini_cli:GeminiCli",
    "opencode": "runners.harnesses.opencode:OpenCode",
    "declared": "runners.harnesses.declared:Declared",
    "oracle": "runners.harnesses.oracle:Oracle",
    "nop": "runners.harnesses.nop:Nop",
    "reference": "runners.harnesses.script:Reference",
    "probe": "runners.harnesses.script:Probe",
    "command": "runners.harnesses.command:Command",
    "human": "runners.harnesses.human:Human",
}
"""Adding a harness is one file and one line here. What follows a colon (``probe:NAME``) is its argument."""


Say = Callable[[str], None]
"""Told what takes long, for people."""


AGENT_OPTIONS = ("flags", "retries", "wire_api")
"""What ``--agent-option`` may set: further flags of the CLI, its retries of model errors, Copilot's dialect."""


class HarnessError(Exception):
    """The harness is unknown or not ready; the message says what to do. Raised before anything runs."""


class AgentFailedError(Exception):
    """The agent did not finish its work; ``error_class`` is one of ``AgentExit.error_class``."""

    def __init__(self, error_class: str, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class


@dataclass(frozen=True)
class HarnessOptions:
    """What the user gave on the command line or in the plan file."""

    argument: str = ""
    """What followed the colon: ``everything`` in ``probe:everything``."""
    model: str = "-"
    effort: str = ""
    command: str = ""
    """``--command``, for the ``command`` harness."""
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seat:
    """What a harness may touch: the box, the instruction, and ways to run things there."""

    box: Box
    task: Task
    instruction: str
    options: HarnessOptions
    logs: Path
    """``agent/`` of the trial's folder, for files the harness fetches after the run."""
    endpoint: str
    """Base URL of the gateway inside the box (``http://127.0.0.1:PORT``); empty where no door was opened."""
    exec: Callable[..., Finished]
    """``exec(argv, env={}, stdin=b"")``: runs as the box's user in ``/workspace``, streams into ``agent/stdout.log``
    and ``agent/stderr.log``, and returns when the command ends or the box is stopped at the time limit."""
    put: Callable[[Mapping[str, bytes]], None]
    """``put({"/abs/path": content})``: writes files into the box, owned by its user."""
    login: str
    """The token of a subscription that only the CLI can use; empty unless the user let it into the box."""
    perfect: Callable[[], None]
    """Writes the perfect submission into the box (made from gold in a verifier box). For the oracle alone."""


@dataclass(frozen=True)
class Reading:
    """What the agent's own logs say, read after the box was stopped."""

    usage: tuple[Usage, ...] = ()
    cost_usd: float | None = None
    trajectory: dict[str, Any] | None = None
    """ATIF v1.7."""
    error_class: str = ""
    """Set where the log shows that the agent did not finish, whatever its exit status says."""
    message: str = ""
    warnings: tuple[str, ...] = ()


class Harness(Protocol):
    """The adapter for an agent CLI: what differs, nothing else."""

    needs_model: bool
    """Whether ``--model`` must be given and the box gets a door to the gateway."""
    agent: str
    """The folder under ``/opt/agents`` that must be mounted; empty for none."""
    keep: tuple[str, ...]
    """Paths in the box (absolute, or beginning with ``~/``) whose files are copied into ``agent/kept/<path without
    leading ~/ or />`` once the box was stopped: session logs, usage files. Links are not followed; missing ones are
    passed over."""

    def drive(self, seat: Seat) -> Finished:
        """Do the agent's part of a trial, from the instruction to the last word.

        Raises:
            AgentFailedError: it did not do its work; the submission is collected and judged all the same.
        """
        ...

    def read(self, logs: Path, finished: Finished | None) -> Reading:
        """Read usage, cost and trajectory from ``agent/`` (``stdout.log``, ``stderr.log``, ``kept/``).

        ``finished`` is null where ``drive`` raised. Never raises on what an agent wrote: it warns in the ``Reading``.
        """
        ...


def load_harness(name: str, options: HarnessOptions) -> Harness:
    """Return the harness of that name (``probe:NAME`` style arguments already in ``options``).

    Raises:
        HarnessError: no such harness; the message names near ones.
    """
    if name not in HARNESSES:
        near = get_close_matches(name, HARNESSES, n=2)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise HarnessError(f"--harness {name}: no such harness.{hint} There are: {', '.join(HARNESSES)}.")
    module, _, attribute = HARNESSES[name].partition(":")
    harness: Harness = getattr(importlib.import_module(module), attribute)(options)
    return harness


def plan_harness(trial: TrialPlan, plan: RunPlan) -> tuple[Harness, HarnessOptions]:
    """Return the harness of a planned trial, made from the plan alone, so that ``resume`` finds the same."""
    name, _, argument = trial.harness.partition(":")
    command = plan.options.get("command", "")
    options = HarnessOptions(argument, trial.model, trial.effort, command, extra_options(plan.options))
    return load_harness(name, options), options


def extra_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return what a plan's options hold for harnesses: ``agent_option`` lines (``NAME=value``) and ``harness_file``.

    Raises:
        HarnessError: a line is no ``NAME=value``, or names nothing that a harness reads.
    """
    found = {"harness_file": options["harness_file"]} if "harness_file" in options else {}
    for line in options.get("agent_option", "").splitlines():
        name, equals, value = line.partition("=")
        if not equals or name not in AGENT_OPTIONS:
            raise HarnessError(
                f"--agent-option {line}: must be NAME=value with NAME one of {', '.join(AGENT_OPTIONS)}."
            )
        found[name] = value
    return found
