"""What harnesses for an agent CLI share: a command line, the instruction on standard input, a story in the logs."""

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from containers.agents import AGENTS
from containers.box import Finished
from runners.errors import class_of
from runners.harness import HarnessError, HarnessOptions, Reading, Seat
from runners.keys import providers, split_model
from runners.trajectories.story import Story, plain

PLACEHOLDER = "box"
"""Stands in the box for a key; the gateway swaps it."""
RETRIES = "4"


@dataclass(frozen=True)
class Call:
    """A command to run in the box."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Absolute path -> content, written before the start."""


class CliHarness(ABC):
    """Subclasses say what differs: the call, and how the CLI's own logs are read."""

    name: str
    agent: str
    keep: tuple[str, ...]
    dialects: tuple[str, ...]
    """The APIs that the CLI speaks, the usual one first."""
    usual_provider: str = "openai"
    needs_model: bool = True

    def __init__(self, options: HarnessOptions) -> None:
        self.options = options
        self.provider, self.model = split_model(options.model, self.usual_provider)
        self.dialect = str(providers()[self.provider]["dialect"])
        able = [name for name, entry in providers().items() if self._speaks_to(entry)]
        if self.provider not in able:
            raise HarnessError(
                f"--harness {self.name}: model {options.model} is one of {self.provider}; "
                f"this CLI speaks to {', '.join(able)}. Write --model PROVIDER/{self.model} to choose."
            )

    def _speaks_to(self, entry: Mapping[str, Any]) -> bool:
        return entry["dialect"] in self.dialects and self.name in entry.get("harnesses", (self.name,))

    @property
    def home(self) -> str:
        """The CLI's folder in the box."""
        return f"{AGENTS}/{self.agent}"

    @property
    def retries(self) -> str:
        """How often the CLI repeats a failed request."""
        return self.options.extra.get("retries", RETRIES)

    @property
    def flags(self) -> list[str]:
        """The user's own flags for the CLI."""
        return shlex.split(self.options.extra.get("flags", ""))

    def base_url(self, seat: Seat) -> str:
        """Where the model is, seen from the box: ends in ``/v1`` for OpenAI's dialect, as its clients expect."""
        return f"{seat.endpoint}/{self.provider}" + ("/v1" if self.dialect == "openai" else "")

    @abstractmethod
    def call(self, seat: Seat) -> Call:
        """Return the command line."""

    @abstractmethod
    def story(self, logs: Path) -> Story:
        """Read the CLI's own logs."""

    def drive(self, seat: Seat) -> Finished:
        call = self.call(seat)
        if call.files:
            seat.put(call.files)
        return seat.exec(call.argv, env=dict(call.env), stdin=seat.instruction.encode())

    def read(self, logs: Path, finished: Finished | None) -> Reading:
        """Success needs exit status 0, the closing event, and no error in it; the rest is classed by its words."""
        try:
            story = self.story(logs)
        except Exception as error:  # noqa: BLE001 (an agent may write what it likes into its logs)
            story = Story(agent=self.name)
            story.warn(f"the log of {self.name} was not understood: {error!r}")
        story.model = story.model or self.model
        error_class, message = "", ""
        if finished is None or finished.exit_code != 0 or story.errors or not story.closed:
            message = story.errors[-1] if story.errors else telling_line(logs / "stderr.log")
            error_class = class_of(message)
            status = "unseen" if finished is None else finished.exit_code
            message = message or f"{self.name} ended with status {status} and without its closing event"
        usage, cost_usd, trajectory = story.told(self.dialect)
        return Reading(usage, cost_usd, trajectory, error_class, plain(message)[:500], tuple(story.warnings))


def telling_line(path: Path) -> str:
    """Return the last line of a log that names an error, else the last that says anything, else nothing."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4000))
        lines = file.read().decode(errors="replace").split("\n")
    said = [line.strip() for line in reversed(lines) if line.strip()]
    return next((line for line in said if line.lower().startswith(("error", "fatal"))), said[0] if said else "")
