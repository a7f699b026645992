"""What the stub model says: turns, in the words of the record format."""

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class Tokens:
    """As in the record format: ``input`` is fresh, ``output`` includes the reasoning."""

    input: int = 1000
    cache_read: int = 0
    cache_write: int = 0
    output: int = 50
    reasoning: int = 0

    @property
    def prompt(self) -> int:
        return self.input + self.cache_read + self.cache_write


@dataclass(frozen=True)
class Failure:
    """An answer that is an error. ``times`` failures, then the turn is played."""

    status: int = 500
    message: str = ""
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1 << 30
    in_stream: bool = False
    """HTTP 200 first, the error as an event."""


@dataclass(frozen=True)
class Turn:
    """One answer of the model."""

    text: str = ""
    reasoning: str = ""
    shell: str = ""
    """A command line, put into whichever shell tool the request declares."""
    tools: tuple[dict[str, Any], ...] = ()
    """Further calls by exact name: ``{"name": ..., "arguments": {...}}``."""
    tokens: Tokens = Tokens()
    stop: Literal["", "length", "refusal"] = ""
    delay_s: float = 0.0
    """Before the headers."""
    pace_s: float = 0.0
    """Between two events of a stream."""
    steps: threading.Semaphore | None = None
    """Each event of a stream waits for a permit."""
    together: threading.Barrier | None = None
    """Nothing is answered before so many requests are there."""
    silent: Literal["", "headers", "middle"] = ""
    """Says nothing more from there on, for as long as the client listens."""
    cut: bool = False
    """Closes the connection in mid-stream."""
    failure: Failure | None = None


@dataclass(frozen=True)
class Script:
    """The turns of a trial. Which one is due is read from the request's history, so retries and resumes are safe."""

    turns: tuple[Turn, ...]
    counted: bool = False
    """Take the turns in their order instead, one an answer: for CLIs that shorten their history on the way."""
    aside: str = "ok"
    """The answer to requests that offer no tools: titles, summaries, compaction."""

    def turn(self, number: int) -> Turn:
        """Return a turn; past the last, the last once more without its calls."""
        if number < len(self.turns):
            return self.turns[number]
        last = self.turns[-1]
        return Turn(text=last.text or "Done.", tokens=last.tokens, stop=last.stop, failure=last.failure)


def solve(*commands: str, tokens: Tokens = Tokens()) -> Script:
    """Return a script that runs shell commands, one a turn, and says that it is done."""
    turns = [Turn(text=f"Step {n}.", shell=command, tokens=tokens) for n, command in enumerate(commands, 1)]
    return Script((*turns, Turn(text="Done.", tokens=tokens)))


def replay(trajectory: Path) -> Script:
    """Return the script of a recorded trajectory (ATIF): the same words, calls and token counts, step by step."""
    turns = []
    for step in json.loads(trajectory.read_text(encoding="utf-8"))["steps"]:
        if step["source"] != "agent":
            continue
        shells, tools = [], []
        for call in step.get("tool_calls", ()):
            arguments = call["arguments"]
            command = arguments.get("command") or arguments.get("cmd")
            if isinstance(command, list):
                command = command[-1]
            (shells if command else tools).append(command or {"name": call["function_name"], "arguments": arguments})
        metrics = step.get("metrics") or {}
        cached = metrics.get("cached_tokens", 0)
        written = (metrics.get("extra") or {}).get("cache_write_tokens", 0)
        tokens = Tokens(
            input=metrics.get("prompt_tokens", 1000) - cached - written,
            cache_read=cached,
            cache_write=written,
            output=metrics.get("completion_tokens", 50),
            reasoning=(metrics.get("extra") or {}).get("reasoning_tokens", 0),
        )
        message = step["message"] if isinstance(step["message"], str) else ""
        turns.append(Turn(text=message, shell="\n".join(shells), tools=tuple(tools), tokens=tokens))
    return Script(tuple(turns))
