"""The one place where commands load what they need: by name, when they are called."""

import importlib
from typing import Any


def load(path: str) -> Any:
    """Return ``module:attribute``; importing it is what makes ``hab-suite --help`` fast for all others."""
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)
