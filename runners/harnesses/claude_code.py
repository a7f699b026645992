"""Claude Code: the Messages API, print mode with JSON events, the session file as its log."""

from pathlib import Path

from runners.harness import Seat
from runners.harnesses.cli import PLACEHOLDER, Call, CliHarness
from runners.trajectories.claude_code import read_claude_code
from runners.trajectories.story import Story

TIERS = ("HAIKU", "SONNET", "OPUS")


class ClaudeCode(CliHarness):
    """Only the user's settings are read, and there are none: a task's hooks, servers and CLAUDE.md do nothing."""

    name = "claude-code"
    agent = "claude-code"
    dialects = ("anthropic",)
    usual_provider = "anthropic"
    keep = ("~/.claude/projects",)

    def call(self, seat: Seat) -> Call:
        argv = [
            f"{self.home}/claude", "-p", "--output-format", "stream-json", "--verbose",
            "--dangerously-skip-permissions", "--model", self.model, "--disallowedTools", "WebSearch,WebFetch",
            "--setting-sources", "user", "--strict-mcp-config",
        ]  # fmt: skip
        if self.options.effort:
            argv += ["--effort", self.options.effort]
        env = {
            "ANTHROPIC_BASE_URL": self.base_url(seat),
            "ANTHROPIC_API_KEY": PLACEHOLDER,
            "API_TIMEOUT_MS": "600000",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": self.retries,
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }
        # its helpers ask for a tier: they get the model of the trial
        env |= {f"ANTHROPIC_DEFAULT_{tier}_MODEL": self.model for tier in TIERS}
        return Call((*argv, *self.flags), env)

    def story(self, logs: Path) -> Story:
        return read_claude_code(logs / "stdout.log", logs / "kept" / ".claude" / "projects")
