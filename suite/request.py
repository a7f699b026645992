"""What a user asks of ``run``: flags, or a plan file with the same words."""

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from categories.seed import DEFAULT_SEED


class RequestError(Exception):
    """A flag or a line of the plan file is wrong; the message says which and what it may be."""


class RunRequest(BaseModel):
    """The words of ``hab-suite run``, as flags (``--trials 3``) or as keys of a plan file (``trials = 3``)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    harness: tuple[str, ...] = Field(min_length=1)
    """``codex``, ``probe:everything``, or bound to a model: ``codex@gpt-5.5``."""
    model: tuple[str, ...] = ()
    effort: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    """Globs over task ids."""
    category: tuple[str, ...] = ()
    trials: int = Field(default=1, ge=1)
    """Attempts per instance."""
    instances: int = Field(default=1, ge=1)
    """Draws per task."""
    jobs: int | None = Field(default=None, ge=1)
    """Trials at once; left out, the machine decides."""
    edition: Literal["synthetic", "clinical"] = "synthetic"
    scale: Literal["full", "small"] = "full"
    seed: str = Field(default=DEFAULT_SEED, min_length=1)
    out: Path = Path("runs")
    command: str = ""
    agent_option: tuple[str, ...] = ()
    """``NAME=value``; see ``runners.harness.AGENT_OPTIONS``."""
    harness_file: Path | None = None
    """A TOML file that defines a further harness."""
    agent_version: str = ""
    agent_timeout_s: int | None = Field(default=None, ge=1)
    """Another time limit than the tasks' own; such trials share no table with others."""
    network: Literal["model", "packages", "open"] = "model"
    package_hosts: tuple[str, ...] = ()
    max_usd: float | None = Field(default=None, gt=0)
    max_usd_per_trial: float | None = Field(default=None, gt=0)
    prices: Path | None = None
    """A TOML file of prices that override the dated table."""
    key_file: Path | None = None
    allow_login_in_box: bool = False
    """Let a subscription's token into the box, where the CLI takes it in no other way."""


def make_request(plan_file: Path | None, flags: dict[str, Any]) -> RunRequest:
    """Return the request: the plan file's words, overridden by the flags that were given.

    Raises:
        RequestError: a word is unknown or its value impossible.
    """
    words: dict[str, Any] = {}
    if plan_file is not None:
        try:
            words = tomllib.loads(plan_file.read_text(encoding="utf-8"))
        except OSError as error:
            raise RequestError(f"-f {plan_file}: {error.strerror}") from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise RequestError(f"-f {plan_file}: is no TOML file: {error}") from None
    words |= {name: value for name, value in flags.items() if value not in (None, [], ())}
    try:
        return RunRequest.model_validate(words)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        flag = f"--{name.replace('_', '-')}"
        where = f"-f {plan_file}: {name}" if plan_file is not None and name not in flags else flag
        if first["type"] == "missing" or (name == "harness" and first["type"] == "too_short"):
            raise RequestError("--harness is needed: oracle, nop, reference, codex, claude-code ...") from None
        if first["type"] == "extra_forbidden":
            raise RequestError(f"{where}: no such word; there are {', '.join(RunRequest.model_fields)}") from None
        said = first["msg"].replace("Input should", "it should")
        raise RequestError(f"{where}: {said} (given: {first['input']!r})") from None


def check_figure(path: Path, suffixes: tuple[str, ...]) -> None:
    """Return if a picture can be written there.

    Raises:
        RequestError: another format, no such folder, or a folder itself.
    """
    if path.suffix not in suffixes or not path.parent.is_dir() or path.is_dir():
        kinds = " or ".join(suffixes)
        raise RequestError(f"--figure {path}: must be a file that ends in {kinds}, in a folder that exists")
