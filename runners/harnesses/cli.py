"""What harnesses for an agent CLI share: a command line, the instruction on standard input, a story in the logs."""

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

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
        if self.dialect not in self.dialects:
            able = ", ".join(name for name, entry in providers().items() if entry["dialect"] in self.dialects)
            raise HarnessError(
                f"--harness {self.name}: model {options.model} is one of {self.provider}; this CLI speaks to {able}. "
                f"Write --model PROVIDER/{self.model} to choose."
            )

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
            message = story.errors[-1] if story.errors else last_line(logs / "stderr.log")
            error_class = class_of(message)
            status = "unseen" if finished is None else finished.exit_code
            message = message or f"{self.name} ended with status {status} and without its closing event"
        usage, cost_usd, trajectory = story.told(self.dialect)
        return Reading(usage, cost_usd, trajectory, error_class, plain(message)[:500], tuple(story.warnings))


def last_line(path: Path) -> str:
    """Return the last line of a log that says anything; empty where there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4000))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
