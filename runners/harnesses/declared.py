"""A harness from a TOML file, without code: ``--harness declared:NAME --harness-file FILE``."""

import re
from pathlib import Path

from containers import agents
from runners.harness import HarnessError, HarnessOptions, Seat
from runners.harnesses.cli import PLACEHOLDER, Call, CliHarness
from runners.harnesses.declaration import read_declaration
from runners.trajectories.story import Story

INSTRUCTION_FILE = "/workspace/instruction.md"
TAIL_BYTES = 1 << 20


class Declared(CliHarness):
    """Its usage is what the gateway saw; of its steps nothing is known."""

    name = "declared"
    agent = ""

    def __init__(self, options: HarnessOptions) -> None:
        self.declaration = read_declaration(options)
        self.keep = self.declaration.keep
        self.dialects = self.declaration.dialects
        self.usual_provider = self.declaration.provider
        if self.declaration.packages:
            self.agent = self.declaration.name
            words = self.declaration.model_dump(include={"version", "binary", "packages"}, by_alias=True)
            try:
                agents.declare(self.agent, words)
            except agents.AgentError as error:
                raise HarnessError(f"--harness-file: {error}") from None
        super().__init__(options)

    def call(self, seat: Seat) -> Call:
        words = {
            "model": self.model,
            "effort": self.options.effort,
            "base_url": self.base_url(seat),
            "key": PLACEHOLDER,
            "home": self.home,
            "instruction_file": INSTRUCTION_FILE,
        }
        spoken = [*self.declaration.command, *(self.declaration.effort if self.options.effort else ())]
        env = {name: fill(value, words) for name, value in self.declaration.env.items()}
        files = {INSTRUCTION_FILE: seat.instruction.encode()} if self.declaration.instruction == "file" else {}
        return Call((*(fill(word, words) for word in spoken), *self.flags), env, files)

    def story(self, logs: Path) -> Story:
        story = Story(agent=self.declaration.name, version=self.declaration.version)
        stdout = logs / "stdout.log"
        if self.declaration.done:
            story.closed = stdout.is_file() and bool(re.search(self.declaration.done, tail(stdout), re.MULTILINE))
        else:
            story.closed = True
        return story


def fill(text: str, words: dict[str, str]) -> str:
    """Return a text with its known words filled in; other braces stay."""
    return re.sub(r"\{(\w+)\}", lambda match: words.get(match[1], match[0]), text)


def tail(path: Path) -> str:
    """Return the end of a log."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return file.read().decode(errors="replace")
