"""How a request speaks: mentions of events and columns, sentences and lists, by choices of its own."""

import textwrap
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from categories.ehr_format_conversion.change import Split, one_of
from categories.ehr_format_conversion.files import HERE

EXAMPLES = {"%Y-%m-%d %H:%M:%S": "2180-05-06 22:23:00", "%Y-%m-%d": "2180-05-06"}
GLUE = "\N{NO-BREAK SPACE}"
"""Stands for the blanks within back-ticks while text is wrapped."""


@cache
def wordings(name: str) -> dict[str, Any]:
    """Return the content of ``wordings/<name>.toml``."""
    return tomllib.loads((HERE / "wordings" / f"{name}.toml").read_text(encoding="utf-8"))


def enumerated(items: Iterable[str]) -> str:
    """Return ``a, b and c``."""
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last


def quoted(text: str) -> str:
    return f"`{text}`"


def sentence(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[0].upper() + text[1:]


class Voice:
    """One writer: takes every choice of words from one generator, so that a draw is always worded alike."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.width = int(rng.integers(84, 116))
        self.plain = float(rng.choice([0.25, 0.5, 0.75]))
        """How often an event or a column is called by its name."""

    def one(self, menu: Sequence[Any]) -> Any:
        return one_of(self.rng, [*menu])

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def shuffled(self, items: Iterable[Any]) -> list[Any]:
        listed = [*items]
        return [listed[at] for at in self.rng.permutation(len(listed))]

    def frame(self, name: str) -> str:
        """Return one of a layout's phrases."""
        found: Any = wordings("layouts")
        for key in name.split("."):
            found = found[key]
        return str(self.one(found))

    def event(self, *names: str) -> str:
        """Mention an event, or two of one table together, by name or by description."""
        if not self.chance(self.plain):
            return str(self.one(wordings("mentions")["events"]["+".join(names)]))
        table = names[0].partition(".")[0]
        return quoted(names[0]) if len(names) == 1 else f"both events of {quoted(table)}"

    def column(self, event: str, name: str) -> str:
        """Mention a column of the event's table by name or by what it means."""
        meanings = wordings("mentions")["columns"].get(event.partition(".")[0], {}).get(name)
        return quoted(name) if not meanings or self.chance(self.plain) else str(self.one(meanings))

    def say(self, kind: str, **slots: str) -> str:
        """Word one statement (``prefix.prose``) by one of its templates."""
        part, _, way = kind.partition(".")
        return sentence(str(self.one(wordings("sentences")[part][way])).format(**slots))

    def line(self, kind: str, **slots: str) -> str:
        """Word one entry of a list."""
        return str(self.one(wordings("sentences")[kind]["line"])).format(**slots)

    def form(self, split: Split, own: str = "") -> str:
        """Say how a new event's time is written; ``own`` is the time of the event it comes from."""
        if own == split.when and self.chance(0.4):
            return str(wordings("sentences")["date"]["host"]).format(event=self.event(split.event))
        forms, examples = (map(quoted, split.forms), [EXAMPLES[form] for form in split.forms])
        said = str(self.one(wordings("sentences")["date"]["form"]))
        return said.format(forms=" or ".join(forms), examples=" or ".join(examples))

    def paragraph(self, sentences: Iterable[str], lead: str = "", rest: str = "") -> str:
        """Return sentences as wrapped lines, ``lead`` before the first and ``rest`` before others; code stays whole."""
        pieces = " ".join(sentences).split("`")
        text = "`".join(piece.replace(" ", GLUE) if at % 2 else piece for at, piece in enumerate(pieces))
        filled = textwrap.fill(
            text,
            self.width,
            initial_indent=lead,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return filled.replace(GLUE, " ")

    def bullets(self, lines: Iterable[str], mark: str = "- ") -> str:
        return "\n".join(self.paragraph([line], mark, " " * len(mark)) for line in lines)

    def numbered(self, items: Iterable[Sequence[str]]) -> str:
        return "\n".join(self.paragraph(item, f"{number}. ", "   ") for number, item in enumerate(items, start=1))
