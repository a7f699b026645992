"""`hab-suite run` as a user types it, with canary keys and the stub as every provider."""

import os
import subprocess
import sys
from pathlib import Path

from tests.runners.cli_box import CANARIES
from tests.stub_model.server import StubModel

SUITE = Path(sys.executable).with_name("hab-suite")
AGENTS = ("codex@gpt-5.5", "claude-code@claude-sonnet-5", "copilot-cli@gpt-5.4")
RATES = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}


def suite(
    folder: Path, stub: StubModel | None, *words: str, keys: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command with the canary keys in a key file, and with the stub as every provider."""
    folder.mkdir(exist_ok=True)
    lines = [f"{n}={k}" for n, k in zip(("OPENAI_API_KEY", "ANTHROPIC_API_KEY"), CANARIES.values(), strict=False)]
    if stub is not None:
        lines += [f"OPENAI_BASE_URL={stub.url}/v1", f"ANTHROPIC_BASE_URL={stub.url}"]
    (folder / "keys").write_text("\n".join(lines) if keys is None else keys)
    prices = "".join(
        f'["{agent.split("@")[1]}"]\n' + "".join(f"{name} = {rate}\n" for name, rate in RATES.items())
        for agent in AGENTS
    )
    (folder / "prices.toml").write_text(prices)
    given = ["--out", folder / "runs", "--key-file", folder / "keys", "--prices", folder / "prices.toml"]
    environ = {name: value for name, value in os.environ.items() if "_API_KEY" not in name and "BASE_URL" not in name}
    return subprocess.run(
        [SUITE, "run", "--scale", "small", *given, *words],
        capture_output=True,
        text=True,
        env=environ,
        check=False,
    )
