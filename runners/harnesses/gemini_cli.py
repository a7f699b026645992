"""Gemini CLI: a script that brings its own node; what flags cannot say stands in the user's settings file."""

import json
from pathlib import Path
from typing import Any

from runners.harness import Seat
from runners.harnesses.cli import PLACEHOLDER, Call, CliHarness
from runners.trajectories.gemini_cli import read_gemini
from runners.trajectories.story import Story

SETTINGS_FILE = "/tmp/gemini-settings.json"  # noqa: S108 - in the box
START = f'mkdir -p ~/.gemini && mv {SETTINGS_FILE} ~/.gemini/settings.json && exec "$@"'
SETTINGS: dict[str, Any] = {
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "tools": {"exclude": ["google_web_search", "web_fetch"]},
    "hooksConfig": {"enabled": False},
    "mcp": {"allowed": []},
}
"""No web tools, no telemetry, no updates; a task's hooks and servers do nothing."""
LEVELS = {"minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM", "high": "HIGH"}


class GeminiCli(CliHarness):
    """Effort is a thinking level, which this CLI takes by an alias of the model.

    It has no switch against a GEMINI.md in the workspace (0.61.0: ``context.fileName`` adds a name, and drops none;
    only an untrusted folder is not read, and there the agent may not act); the tasks have none.
    """

    name = "gemini-cli"
    agent = "gemini-cli"
    dialects = ("google",)
    usual_provider = "google"
    keep = ("~/.gemini/tmp",)

    def call(self, seat: Seat) -> Call:
        settings = dict(SETTINGS)
        attempts = int(self.retries) + 1
        settings["general"] = {**SETTINGS["general"], "maxAttempts": attempts}
        if self.options.effort:
            thinking = {"thinkingConfig": {"thinkingLevel": LEVELS.get(self.options.effort, self.options.effort)}}
            override = {"match": {"model": self.model}, "modelConfig": {"generateContentConfig": thinking}}
            settings["modelConfigs"] = {"customOverrides": [override]}
        argv = (
            "bash", "-c", START, "gemini", f"{self.home}/node/node", f"{self.home}/gemini/bundle/gemini.js",
            "--approval-mode", "yolo", "--model", self.model, "--output-format", "stream-json", *self.flags,
        )  # fmt: skip
        env = {
            "GEMINI_API_KEY": PLACEHOLDER,
            "GOOGLE_GEMINI_BASE_URL": self.base_url(seat),
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",
        }
        return Call(argv, env, {SETTINGS_FILE: json.dumps(settings).encode()})

    def story(self, logs: Path) -> Story:
        return read_gemini(logs / "stdout.log", logs / "kept" / ".gemini" / "tmp")
