"""What a TOML file says of a harness, and how it is read."""

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from results.records import first_fault
from runners.harness import HarnessError, HarnessOptions


class PackageWords(BaseModel):
    """An npm package of the agent's folder, in the words of ``containers/agents.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    version: str = "{version}"
    source: str = Field(default="package", alias="from")
    into: str = ""
    drop: tuple[str, ...] = ()
    any: str = ""
    """Checksum (``sha512-...``) for every processor; ``x64`` and ``arm64`` for one. Empty: the registry's own."""
    x64: str = ""
    arm64: str = ""


class Declaration(BaseModel):
    """The file. Words in braces are filled in everywhere: ``{model}``, ``{effort}``, ``{base_url}``, ``{key}`` (a
    placeholder: the gateway has the real one), ``{home}`` (the agent's folder), ``{instruction_file}``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    command: tuple[str, ...] = Field(min_length=1)
    effort: tuple[str, ...] = ()
    """Further words of the command where ``--effort`` is given."""
    env: dict[str, str] = {}
    instruction: Literal["stdin", "file"] = "stdin"
    dialects: tuple[Literal["openai", "anthropic", "google"], ...] = ("openai",)
    provider: str = "openai"
    """Serves models whose name says nothing else."""
    keep: tuple[str, ...] = ()
    """Paths in the box that are copied to the trial's folder."""
    done: str = ""
    """A regular expression: without it near the end of standard output the agent did not finish."""
    version: str = ""
    binary: str = ""
    packages: tuple[PackageWords, ...] = ()
    """What makes the agent's folder, ``/opt/agents/<name>``; needs ``version``. None: the agent is in the image."""


def read_declaration(options: HarnessOptions) -> Declaration:
    """Read the file that the options name.

    Raises:
        HarnessError: none named, unreadable, or something in it is wrong.
    """
    named = options.extra.get("harness_file")
    if not named:
        raise HarnessError(
            "--harness declared: needs --harness-file FILE, a TOML file that says how to call the agent."
        )
    try:
        found = Declaration.model_validate(tomllib.loads(Path(named).read_text(encoding="utf-8")))
    except OSError as error:
        raise HarnessError(f"--harness-file {named}: {error.strerror}; it must be a TOML file") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise HarnessError(f"--harness-file {named}: is no TOML file: {error}") from None
    except ValidationError as error:
        known = ", ".join(Declaration.model_fields)
        raise HarnessError(f"--harness-file {named}: {first_fault(error)}; its words are {known}") from None
    if options.argument not in ("", found.name, "example"):
        raise HarnessError(f"--harness declared:{options.argument}: {named} declares {found.name}.")
    return found
