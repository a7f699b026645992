"""Codex CLI: the Responses API, everything set by ``-c``, the rollout file as its log."""

from pathlib import Path

from runners.harness import Seat
from runners.harnesses.cli import PLACEHOLDER, Call, CliHarness
from runners.trajectories.codex import read_codex
from runners.trajectories.story import Story

IDLE_MS = 300_000
OFF = (
    'web_search="disabled"',
    "analytics.enabled=false",
    "feedback.enabled=false",
    "check_for_update_on_startup=false",
    "agents.enabled=false",
    "allow_login_shell=false",  # a login shell would reset PATH and lose the agent's Python
    "project_doc_max_bytes=0",  # AGENTS.md in the workspace is data, no instruction
)
FEATURES_OFF = ("plugins", "apps", "goals", "image_generation", "unbounded_connection_retries")


class Codex(CliHarness):
    """Its own sandbox needs namespaces that a box does not grant; the box is the sandbox."""

    name = "codex"
    agent = "codex"
    dialects = ("openai",)
    keep = ("~/.codex/sessions",)

    def call(self, seat: Seat) -> Call:
        door = (
            f'{{name="door",base_url="{self.base_url(seat)}",env_key="DOOR_KEY",wire_api="responses",'
            f"request_max_retries={self.retries},stream_max_retries={self.retries},stream_idle_timeout_ms={IDLE_MS}}}"
        )
        settings = ['model_provider="door"', f"model_providers.door={door}", *OFF]
        if self.options.effort:
            settings.append(f'model_reasoning_effort="{self.options.effort}"')
        argv = [
            f"{self.home}/bin/codex", "exec", "--json", "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox", "-C", "/workspace", "-m", self.model,
        ]  # fmt: skip
        argv += [word for setting in settings for word in ("-c", setting)]
        argv += [word for feature in FEATURES_OFF for word in ("--disable", feature)]
        return Call((*argv, *self.flags, "-"), {"DOOR_KEY": PLACEHOLDER})

    def story(self, logs: Path) -> Story:
        return read_codex(logs / "stdout.log", logs / "kept" / ".codex" / "sessions")
