"""Lay out the eligibility criteria of a protocol as the registry prints them."""

import random
from dataclasses import dataclass

from categories.clinical_trial_matching.bank import Topic
from categories.clinical_trial_matching.catalogue import Criterion
from categories.clinical_trial_matching.note import capital
from categories.clinical_trial_matching.phrasing import INDENT, Pack, Wording, group_of
from categories.clinical_trial_matching.pool import Protocol

ITEM = "          "
BODY = "        "


@dataclass(frozen=True)
class Item:
    """One line of a list; ``measured`` items may move to the appendix."""

    text: str
    group: int
    measured: bool = False
    criterion: Criterion | None = None


@dataclass(frozen=True)
class Eligibility:
    """The text, and what each criterion reads in it (for the gold)."""

    text: str
    readings: list[tuple[Criterion, str]]


def write_eligibility(
    rng: random.Random, protocol: Protocol, wording: Wording, disease: str, topic: Topic | None
) -> Eligibility:
    """Return the criteria in the layout of the pack; the order within a list says nothing about what decides."""
    pack = wording.pack
    head = [Item(rng.choice(pack.disease).format(x=disease), 0)]
    limits = [wording.age(protocol.limits), wording.sex(protocol.limits)]
    head += [Item(text, 1) for text in limits if text]
    sides: dict[str, list[Item]] = {"inc": [], "exc": []}
    for criterion in protocol.criteria:
        text = wording.node(criterion.node)
        measured = criterion.kind in ("num", "uln") and criterion.side == "inc"
        sides[criterion.side].append(Item(text, group_of(criterion), measured, criterion))
    if topic is not None and not protocol.has_target:
        sides["inc"] += [Item(text, 0) for text in rng.sample(topic.inc, rng.randint(1, 2))]
    if topic is not None:
        sides["exc"] += [Item(text, 1) for text in rng.sample(topic.exc, rng.randint(1, 2))]
    sides["inc"] += [Item(text, 1) for text in rng.sample(pack.consent, rng.randint(1, 2))]
    sides["exc"] += [Item(text, 1) for text in rng.sample(pack.refuse, rng.randint(0, 2))]
    rng.shuffle(sides["inc"])
    rng.shuffle(sides["exc"])
    layout = {"dashes": _dashes, "numbers": _numbers, "headings": _headings}[pack.layout]
    text = layout(rng, pack, head + sides["inc"], sides["exc"])
    readings = [(item.criterion, _flat(item.text)) for side in sides.values() for item in side if item.criterion]
    return Eligibility(text, readings)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _dashes(rng: random.Random, pack: Pack, inc: list[Item], exc: list[Item]) -> str:
    def lines(items: list[Item]) -> str:
        return "\n\n".join(f"{ITEM}-  {capital(item.text)}" for item in items)

    return f"{BODY}{rng.choice(pack.inclusion)}\n\n{lines(inc)}\n\n{BODY}{rng.choice(pack.exclusion)}\n\n{lines(exc)}"


def _numbers(rng: random.Random, pack: Pack, inc: list[Item], exc: list[Item]) -> str:
    measured = [item for item in inc if item.measured]
    moved = measured if len(measured) > 1 and rng.random() < 0.6 else []
    kept = [item for item in inc if item not in moved]
    if moved:
        kept.insert(rng.randint(1, len(kept)), Item(rng.choice(pack.refer), 1))
    parts = [
        f"{BODY}{rng.choice(pack.inclusion)}",
        _numbered(kept),
        f"{BODY}{rng.choice(pack.exclusion)}",
        _numbered(exc),
    ]
    if moved:
        values = "\n\n".join(f"{ITEM}*  {capital(item.text)}" for item in moved)
        parts += [f"{BODY}{rng.choice(pack.appendix)}:", values]
    return "\n\n".join(parts)


def _numbered(items: list[Item]) -> str:
    return "\n\n".join(f"{ITEM}{place}. {capital(item.text)}." for place, item in enumerate(items, start=1))


def _headings(rng: random.Random, pack: Pack, inc: list[Item], exc: list[Item]) -> str:
    parts = []
    for head, items in ((rng.choice(pack.inclusion), inc), (rng.choice(pack.exclusion), exc)):
        parts.append(BODY + head)
        for number, group in enumerate(pack.groups):
            mine = [item for item in items if item.group == number]
            if mine:
                parts.append(f"{BODY}{group}:")
                parts += [f"{ITEM}-  {capital(item.text).replace(INDENT, ' ')}." for item in mine]
    return "\n\n".join(parts)
