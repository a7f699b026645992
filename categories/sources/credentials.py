"""Credentials: from the environment, else a ``.env`` file, else the keyring (if one is installed). Nowhere else."""

import importlib
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path

from categories.sources.spec import SourceSpec

KEYRING_SERVICE = "hab-suite"


def read_env_file(path: Path) -> dict[str, str]:
    """Return the ``NAME=value`` lines of a file; other lines, and a file that is not there, are passed over."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    found = {}
    for line in lines:
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and name.strip().isidentifier():
            found[name.strip()] = value.strip().strip("\"'")
    return found


def find_credentials(
    source: SourceSpec, env_file: Path, environ: Mapping[str, str] | None = None
) -> tuple[str, ...] | None:
    """Return the values of the first complete group of a source's variables; empty if it needs none, null if missing.

    Values are never put into the environment, a message or a file.
    """
    if not source.variables:
        return ()
    env = os.environ if environ is None else environ
    file = read_env_file(env_file)
    for group in source.variables:
        values = [env.get(name) or file.get(name) or _from_keyring(name) for name in group]
        if all(values):
            return tuple(values)
    return None


def _from_keyring(name: str) -> str:
    """Return a secret of the user's keyring; nothing where no keyring is installed or it cannot be opened."""
    if importlib.util.find_spec("keyring") is None:
        return ""
    try:
        return str(importlib.import_module("keyring").get_password(KEYRING_SERVICE, name) or "")
    except Exception:  # noqa: BLE001 (each backend has errors of its own; a locked keyring is no credential)
        return ""


def variables_in_words(source: SourceSpec) -> str:
    """Return ``HF_TOKEN``, or ``PN_USER and PN_PASS (or ...)``."""
    groups = [" and ".join(group) for group in source.variables]
    return groups[0] + (f" (or {', or '.join(groups[1:])})" if groups[1:] else "") if groups else ""
