"""GitHub Copilot CLI: offline with a model of one's own choosing, or signed in to GitHub where the user allows it."""

from pathlib import Path

from runners.harness import Seat
from runners.harnesses.cli import PLACEHOLDER, Call, CliHarness
from runners.trajectories.copilot_cli import read_copilot
from runners.trajectories.story import Story

USAGE_FILE = "/tmp/copilot-usage.json"  # noqa: S108 - in the box
SHELL_WAIT_S = "60"
LOGIN_FILE = "/tmp/copilot-login"  # noqa: S108 - in the box
SIGN_IN = f'export COPILOT_GITHUB_TOKEN="$(cat {LOGIN_FILE})" && rm {LOGIN_FILE} && exec "$@"'
"""By a file, not by the command's environment: that is kept with the engine."""
ONLINE = (
    "--disable-builtin-mcps", "--excluded-tools=web_fetch,semantic_code_search",
    "--secret-env-vars=COPILOT_GITHUB_TOKEN",
)  # fmt: skip
"""Signed in it would have GitHub's search and web tools; its shell does not see the token."""


class CopilotCli(CliHarness):
    """Offline it asks nobody but the model, and has no web tools; ``--model github/NAME`` signs in instead."""

    name = "copilot-cli"
    agent = "copilot-cli"
    dialects = ("openai", "anthropic")
    keep = (USAGE_FILE, "~/.copilot/session-state")

    def call(self, seat: Seat) -> Call:
        argv = [
            f"{self.home}/copilot", "--allow-all", "--no-ask-user", "--no-auto-update", "--no-color",
            "--no-custom-instructions", "--output-format", "json", "--usage-output-file", USAGE_FILE,
        ]  # fmt: skip
        if self.options.effort:
            argv += ["--reasoning-effort", self.options.effort]
        env = {
            "COPILOT_MODEL": self.model,
            "COPILOT_PKG_CACHE_HOME": self.home,
            "COPILOT_TASK_WAIT_TIMEOUT_SECONDS": SHELL_WAIT_S,
            # it wants a trusted certificate even where the endpoint is plain HTTP
            "SSL_CERT_FILE": f"{self.home}/ca-certificates.crt",
        }
        if seat.login:
            argv = ["bash", "-c", SIGN_IN, "copilot", *argv, *ONLINE]
            return Call((*argv, *self.flags), env, {LOGIN_FILE: seat.login.encode()})
        env |= {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": self.base_url(seat),
            "COPILOT_PROVIDER_API_KEY": PLACEHOLDER,
            "COPILOT_PROVIDER_TYPE": self.dialect,
        }
        if self.dialect == "openai":
            env["COPILOT_PROVIDER_WIRE_API"] = self.options.extra.get("wire_api", "responses")
        return Call((*argv, *self.flags), env)

    def story(self, logs: Path) -> Story:
        return read_copilot(logs / "stdout.log", logs / "kept" / ".copilot", logs / "kept" / USAGE_FILE.lstrip("/"))
