"""Criteria as trees over a patient's facts, their three-valued truth, and the small language that banks write them in.

A leaf reads ``flag:osa``, ``event:dka<26`` (within 26 weeks), ``num:a1c>=8``, ``class:nsaid<14`` (within 14 days),
``stable:statin>8`` (unchanged for at least 8 weeks), ``cat:stage=II|III`` or ``sex:F``. Several limits stand for
several leaves.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

from categories.clinical_trial_matching.bank import Category, Event, Flag, Num

_LEAF = re.compile(r"(flag|event|num|class|stable|cat|sex):(\w+)(>=|<=|<|>|=)?([^ ]*)")
_FORMS: dict[str, Literal["inc", "exc"]] = {"or": "inc", "if": "inc", "and": "exc", "unless": "exc"}


@dataclass(frozen=True)
class Leaf:
    """One question about one fact; limits are in the printed unit."""

    kind: str
    key: str
    op: str = ""
    limit: float = 0.0
    unit: int = 0
    values: tuple[str, ...] = ()
    """Classes of a category; the text itself where ``kind`` is ``unsaid``."""


@dataclass(frozen=True)
class Tree:
    """``or``, ``and``, ``if`` (first implies second), ``unless`` (first without second), ``not``."""

    form: str
    parts: tuple["Node", ...]


Node: TypeAlias = Leaf | Tree
Side = Literal["inc", "exc"]


@dataclass(frozen=True)
class Medication:
    """A line of the medication list: current with weeks at the dose, or ended some days ago."""

    product: str
    classes: frozenset[str]
    weeks: int | None
    ended: int | None


@dataclass
class Facts:
    """What the note documents, as printed. A missing key is unknown; an event that never happened is infinite."""

    age: int
    sex: str
    months: int
    flags: dict[str, bool]
    events: dict[str, float]
    """Weeks since."""
    nums: dict[str, float]
    categories: dict[str, str]
    medications: list[Medication]


@dataclass(frozen=True)
class Definitions:
    """The facts that protocols of one disease may speak of."""

    flags: dict[str, Flag]
    events: dict[str, Event]
    nums: dict[str, Num]
    categories: dict[str, Category]


def evaluate(node: Node, facts: Facts, known: Definitions) -> bool | None:
    """Return the Kleene truth of a criterion: None where the note leaves it open."""
    if isinstance(node, Leaf):
        return _leaf(node, facts, known)
    truths = [evaluate(part, facts, known) for part in node.parts]
    if node.form == "not":
        return _negate(truths[0])
    if node.form == "if":
        return _any([_negate(truths[0]), truths[1]])
    if node.form == "unless":
        return _negate(_any([_negate(truths[0]), truths[1]]))
    return _any(truths) if node.form == "or" else _negate(_any([_negate(truth) for truth in truths]))


def _negate(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _any(truths: list[bool | None]) -> bool | None:
    return True if True in truths else None if None in truths else False


def _leaf(leaf: Leaf, facts: Facts, known: Definitions) -> bool | None:
    if leaf.kind in ("class", "stable"):
        return _drug(leaf, facts.medications)
    truth: bool | None = None
    if leaf.kind == "flag":
        truth = facts.flags.get(leaf.key)
    elif leaf.kind == "sex":
        truth = facts.sex == leaf.key
    elif leaf.kind == "dur":
        truth = _compare(facts.months, leaf.op, leaf.limit)
    elif leaf.kind == "cat" and leaf.key in facts.categories:
        truth = facts.categories[leaf.key] in leaf.values
    elif leaf.kind == "event" and leaf.key in facts.events:
        truth = facts.events[leaf.key] <= leaf.limit
    elif leaf.kind in ("num", "uln"):
        number = printed_value(leaf, facts, known)
        truth = None if number is None else _compare(number, leaf.op, leaf.limit)
    return truth


def _drug(leaf: Leaf, medications: list[Medication]) -> bool:
    """The medication list is complete: what is not on it was not taken."""
    mine = [m for m in medications if leaf.key in m.classes]
    if leaf.kind == "class":
        return any(m.ended is None or m.ended <= leaf.limit for m in mine)
    return any(m.weeks is not None and m.weeks >= leaf.limit for m in mine)


def printed_value(leaf: Leaf, facts: Facts, known: Definitions) -> float | None:
    """Return the patient's value in the unit, or the multiple of the upper limit, that the criterion speaks of."""
    value = facts.nums.get(leaf.key)
    if value is None:
        return None
    spec = known.nums[leaf.key]
    if leaf.kind == "uln":
        return value / (spec.uln or math.nan)
    unit = spec.units[leaf.unit]
    return value * unit.factor + unit.offset


def _compare(value: float, op: str, limit: float) -> bool:
    slack = 1e-9 * max(1.0, abs(limit))
    return {
        ">=": value >= limit - slack,
        "<=": value <= limit + slack,
        ">": value > limit + slack,
        "<": value < limit - slack,
    }[op]


def leaves(node: Node) -> Iterator[Leaf]:
    """Yield the leaves of a criterion, left to right."""
    if isinstance(node, Leaf):
        yield node
    else:
        for part in node.parts:
            yield from leaves(part)


def is_clear_cut(node: Node, facts: Facts, known: Definitions) -> bool:
    """Return whether every printed limit keeps a distance from the printed fact, so that no reading of it can flip."""
    return all(_clear(leaf, facts, known) for leaf in leaves(node))


def _clear(leaf: Leaf, facts: Facts, known: Definitions) -> bool:
    limit = leaf.limit
    if leaf.kind in ("num", "uln"):
        value = printed_value(leaf, facts, known)
        return value is None or abs(value - limit) > 0.02 * max(abs(limit), 0.01)
    if leaf.kind == "event":
        ago = facts.events.get(leaf.key, math.inf)
        return math.isinf(ago) or abs(ago - limit) >= max(1.0, 0.15 * limit)
    if leaf.kind == "dur":
        return abs(facts.months - limit) >= max(2.0, 0.1 * limit)
    mine = [m for m in facts.medications if leaf.key in m.classes]
    if leaf.kind == "class" and limit > 0:
        return all(m.ended is None or abs(m.ended - limit) >= max(2.0, 0.1 * limit) for m in mine)
    if leaf.kind == "stable":
        return all(m.weeks is None or abs(m.weeks - limit) >= max(1.0, 0.15 * limit) for m in mine)
    return True


def parse_leaf(text: str) -> list[Leaf]:
    """Read one leaf; several limits give several leaves."""
    match = _LEAF.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a criterion: {text!r}")
    kind, key, op, rest = match.group(1), match.group(2), match.group(3) or "", match.group(4)
    if kind == "cat":
        return [Leaf(kind, key, values=tuple(rest.split("|")))]
    if not op:
        return [Leaf(kind, key)]
    return [Leaf(kind, key, op, float(limit)) for limit in rest.split(",")]


def parse_rule(text: str) -> Node:
    """Read ``a and not b``: what banks write under ``given`` and ``rule``."""
    parts: list[Node] = []
    for term in text.split(" and "):
        negated = term.startswith("not ")
        leaf = parse_leaf(term.removeprefix("not "))[0]
        parts.append(Tree("not", (leaf,)) if negated else leaf)
    return parts[0] if len(parts) == 1 else Tree("and", tuple(parts))


def parse_composition(text: str) -> list[tuple[Side, Tree]]:
    """Read ``inc or a / b``, ``inc if a / b``, ``exc and a / b`` or ``exc unless a / b``, for every pair of limits."""
    head, _, body = text.partition(" ")
    form, _, body = body.partition(" ")
    side = _FORMS[form]
    if head != side:
        raise ValueError(f"{form!r} is written on the side {side!r}: {text!r}")
    first, second = (parse_leaf(part) for part in body.split(" / "))
    return [(side, Tree(form, pair)) for pair in product(first, second)]
