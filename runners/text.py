"""Text from outside the suite: agents, models and verifiers may say anything."""

from typing import Any

LONGEST = 4000


def clean(text: str, longest: int = LONGEST) -> str:
    """Return text that can be written as UTF-8 and printed: no lone surrogates, no control characters, not endless."""
    shown = text.encode("utf-8", "replace").decode()
    shown = "".join(c if c in "\n\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
    return shown if len(shown) <= longest else f"{shown[:longest]} ..."


def clean_tree(value: Any) -> Any:
    """Return a JSON value with every string in it cleaned, names included."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [clean_tree(item) for item in value]
    if isinstance(value, dict):
        return {clean(str(name)): clean_tree(item) for name, item in value.items()}
    return value
