"""OpenCode: three APIs, everything set by one variable, JSON events on standard output."""

import json
from pathlib import Path
from typing import Any

from runners.harness import Seat
from runners.harnesses.cli import PLACEHOLDER, Call, CliHarness
from runners.trajectories.opencode import read_opencode
from runners.trajectories.story import Story

DOOR = "door"
PACKAGES = {"openai": "@ai-sdk/openai", "anthropic": "@ai-sdk/anthropic", "google": "@ai-sdk/google"}
"""The client libraries that come inside the binary."""
BELOW = {"openai": "", "anthropic": "/v1", "google": "/v1beta"}
"""What these libraries expect at the end of a base URL."""


class OpenCode(CliHarness):
    """Effort is a variant of the model, as OpenCode calls it."""

    name = "opencode"
    agent = "opencode"
    dialects = ("openai", "anthropic", "google")
    keep = ("~/.local/share/opencode/log",)

    def call(self, seat: Seat) -> Call:
        model = f"{DOOR}/{self.model}"
        config: dict[str, Any] = {
            "model": model,
            "small_model": model,
            "autoupdate": False,
            "share": "disabled",
            "permission": {"*": "allow", "webfetch": "deny", "websearch": "deny"},
            "instructions": [],
            "provider": {
                DOOR: {
                    "npm": PACKAGES[self.dialect],
                    "name": "door",
                    "options": {"baseURL": self.base_url(seat) + BELOW[self.dialect], "apiKey": PLACEHOLDER},
                    "models": {self.model: {"name": self.model, "reasoning": True, "tool_call": True}},
                }
            },
        }
        argv = [f"{self.home}/bin/opencode", "run", "--format", "json", "--model", model, "--thinking", "--auto"]
        argv += ["--title", "task"]  # else it asks the model for one
        if self.options.effort:
            argv += ["--variant", self.options.effort]
        env = {
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
            "OPENCODE_FAKE_VCS": "git",
        }
        return Call((*argv, *self.flags), env)

    def story(self, logs: Path) -> Story:
        log = logs / "kept" / ".local" / "share" / "opencode" / "log" / "opencode.log"
        story = read_opencode(logs / "stdout.log", log)
        for step in story.steps:
            step.model, step.effort = self.model, self.options.effort
            if step.tokens is not None:
                story.spend(self.model, step.tokens)
        return story
