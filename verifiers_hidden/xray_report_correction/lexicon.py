"""The words of a chest radiograph report: a text becomes a row of items, each with its kind and value."""

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent / "lexicon.toml"
HEADS = ("finding", "anatomy", "other")
SLOTS = ("side", "location", "severity", "soft_change", "change", "tip", "count", "size", "rib", "state")
_ORDER = ("skip", "negation", "denied_after", *HEADS, *SLOTS)
"""Of two equally long phrases, that of the kind named first wins."""
_WORD = re.compile(r"[^ ]+")
_DECIMAL = r"(\d+(?:\.\d+)?)"
_SIZE = re.compile(
    rf"(?:{_DECIMAL} (?:x|by) )?{_DECIMAL}(?: (?:x|by) {_DECIMAL})?"
    r" ?(mm|millimet(?:er|re)s?|cm|centimet(?:er|re)s?)(?![a-z])"
)
_ORDINALS = ("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth").split()  # noqa: SIM905 (a row of words)
_ORDINAL = rf"(?:(\d{{1,2}})(?:st|nd|rd|th)|({'|'.join(_ORDINALS)}))"
_RIB = re.compile(rf"{_ORDINAL}(?: (?:through|thru|to) (?:the )?{_ORDINAL})?(?![a-z])")
_RIB_PLAIN = re.compile(r"ribs? (?:number )?(\d{1,2})(?: (?:through|thru|to) (\d{1,2}))?(?![a-z0-9.]| mm| cm)")


@dataclass(frozen=True)
class Item:
    """A phrase of a sentence. ``value`` is canonical: a finding's name, ``z:lower+left``, a grade, millimetres."""

    kind: str
    value: Any
    text: str


@cache
def table() -> dict[str, Any]:
    """Return ``lexicon.toml``."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


@cache
def _phrases() -> list[tuple[re.Pattern[str], str, str]]:
    found = []
    for section, entries in table().items():
        if section in ("groups", "anatomy_denies", "near"):
            continue
        for name, phrases in entries.items():
            kind = name if section in ("cue", "boundary") else section
            found += [(re.compile(rf"(?:{phrase})(?![a-z0-9])"), kind, name) for phrase in phrases]
    rank = {kind: place for place, kind in enumerate(_ORDER)}
    return sorted(found, key=lambda entry: rank.get(entry[1], len(rank)))


def plain(sentence: str) -> str:
    """Return a sentence in lower case: single spaces, brackets as ``(`` and comma, no hyphen, no final stop."""
    text = re.sub(r"[_*\"'`]", " ", re.sub(r"[\])}<|]", ",", re.sub(r"[\[({]", " ( ", sentence.lower())))
    text = re.sub(r"(?<=\d)\s*[-\u2013]\s*(?=\d)", " to ", text)
    text = re.sub(r"[-\u2010-\u2015]+", " ", text)
    text = re.sub(r"([,;:/&+>=?!])", r" \1 ", text)
    text = re.sub(r"\.(?!\d)", " ", text)
    return re.sub(r"\s+", " ", text).strip(" ,(")


def key(sentence: str) -> str:
    """Return what of a sentence must agree for it to count as unchanged: its letters and digits, case ignored."""
    return " ".join(re.findall(r"[a-z0-9.]*[a-z0-9]|[><+]", unicodedata.normalize("NFKC", sentence).lower()))


@cache
def scan(text: str) -> tuple[Item, ...]:
    """Return the items of a plain sentence in their order; a word the lexicon does not hold is of kind ``word``."""
    items, place = [], 0
    while place < len(text):
        if text[place] == " ":
            place += 1
            continue
        item, place = _number(text, place) or _longest(text, place)
        items.append(item)
    return tuple(items)


def _longest(text: str, place: int) -> tuple[Item, int]:
    best, end = None, place
    for pattern, kind, name in _phrases():
        if (match := pattern.match(text, place)) and match.end() > end:
            best, end = (kind, name), match.end()
    if best is None:
        word = _WORD.match(text, place)
        assert word is not None
        return Item("word", word[0], word[0]), word.end()
    kind, name = best
    value = float(name) if kind == "severity" else name
    return Item(kind, value, text[place:end]), end


def _number(text: str, place: int) -> tuple[Item, int] | None:
    """Read a measure in millimetres (the largest of several) or the numbers of ribs."""
    if match := _SIZE.match(text, place):
        scale = 10.0 if match[4].startswith("c") else 1.0
        return Item("size", max(float(n) for n in match.groups()[:3] if n) * scale, match[0]), match.end()
    if match := _RIB.match(text, place):
        first, last = _ordinal(match[1], match[2]), _ordinal(match[3], match[4])
    elif match := _RIB_PLAIN.match(text, place):
        first, last = int(match[1]), int(match[2] or 0)
    else:
        return None
    return Item("rib", tuple(range(first, max(first, min(last, 12)) + 1)), match[0]), match.end()


def _ordinal(digits: str | None, word: str | None) -> int:
    return int(digits) if digits else _ORDINALS.index(word) + 1 if word else 0
