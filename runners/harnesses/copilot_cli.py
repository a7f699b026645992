"""GitHub Copilot CLI with a model of one's own choosing: offline mode, three APIs, no GitHub login."""

from pathlib import Path

from runners.harness import Seat
from runners.harnesses.cli import PLACEHOLDER, Call, CliHarness
from runners.trajectories.copilot_cli import read_copilot
from runners.trajectories.story import Story

USAGE_FILE = "/tmp/copilot-usage.json"  # noqa: S108 - in the box
SHELL_WAIT_S = "60"


class CopilotCli(CliHarness):
    """Offline it asks nobody but the model, and has no web tools."""

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
            "COPILOT_OFFLINE": "true",
            "COPILOT_MODEL": self.model,
            "COPILOT_PROVIDER_BASE_URL": self.base_url(seat),
            "COPILOT_PROVIDER_API_KEY": PLACEHOLDER,
            "COPILOT_PROVIDER_TYPE": self.dialect,
            "COPILOT_PKG_CACHE_HOME": self.home,
            "COPILOT_TASK_WAIT_TIMEOUT_SECONDS": SHELL_WAIT_S,
            # it wants a trusted certificate even where the endpoint is plain HTTP
            "SSL_CERT_FILE": f"{self.home}/ca-certificates.crt",
        }
        if self.dialect == "openai":
            env["COPILOT_PROVIDER_WIRE_API"] = self.options.extra.get("wire_api", "responses")
        return Call((*argv, *self.flags), env)

    def story(self, logs: Path) -> Story:
        return read_copilot(logs / "stdout.log", logs / "kept" / ".copilot", logs / "kept" / USAGE_FILE.lstrip("/"))
