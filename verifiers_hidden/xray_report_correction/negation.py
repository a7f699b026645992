"""Heads, and what a negation covers: the list that follows ``no``, the findings before ``is not seen``."""

from dataclasses import dataclass, field

from verifiers_hidden.xray_report_correction.lexicon import HEADS, SLOTS, Item, table

BOUNDARIES = ("weak", "negation")
_INTRODUCES = ("with", "plus", "along", "together", "superimposed", "accompanied", "adjacent", "associated", ":")
_SHOWS = ("show", "demonstrate", "reveal")
_WEAKENS = ("new", "other", "overt", "frank", "gross")
NOT = ("not", "not a", "not an", "not any", "rather than", "instead of")


@dataclass
class Head:
    """A finding, a structure or another thing, with the words that describe it."""

    item: Item
    place: int
    negated: bool = False
    weak: bool = False
    explained: bool = False
    before: list[Item] = field(default_factory=list)
    after: list[Item] = field(default_factory=list)

    def kinds(self) -> list[str]:
        return [item.kind for item in (*self.before, *self.after)]


def negate(clause: list[Item], heads: list[Head]) -> None:
    """Carry a negation from its word over the list that follows."""
    by_place = {head.place: head for head in heads}
    active = weak = False
    for place, item in enumerate(clause):
        if item.kind == "negation":
            active = not (item.text.startswith(NOT) and _only_slots(clause[place + 1 :]))
            weak = any(word in item.text.split() for word in _WEAKENS)
        elif item.kind == "weak" and active:
            active = _goes_on(clause, place)
        elif item.kind == "explains":
            active = False
        elif place in by_place and active and _said_again(clause, place):
            active = False  # "no effusion, small left effusion" contradicts itself
        elif place in by_place and active:
            by_place[place].negated, by_place[place].weak = True, weak
        elif item.kind == "verb" and active and any(by_place.get(p) for p in range(place)):
            active = not any(later.kind in ("change", "severity") for later in clause[place + 1 : place + 3])


def _only_slots(rest: list[Item]) -> bool:
    """Tell whether ``not`` stands before a description, no finding: ``not on the left``."""
    first = next((item for item in rest if item.kind not in ("preposition", "article", "word")), None)
    return first is not None and first.kind in SLOTS and not any(item.kind in HEADS for item in rest)


def _said_again(clause: list[Item], place: int) -> bool:
    """Tell whether a finding of a negated list is one named before, now in brackets or with a description."""
    places = [n for n, item in enumerate(clause[:place]) if item.kind == "finding"]
    between = clause[places[-1] + 1 : place] if places else []
    told = any(item.kind in SLOTS or item.text in ("(", "the") for item in between)
    told &= not any(item.kind == "negation" for item in between)
    return told and any(clause[n].value == clause[place].value for n in places)


def _goes_on(clause: list[Item], place: int) -> bool:
    """Tell whether a negation reaches over a boundary: ``no A, B or C`` does, ``no A, small B`` does not."""
    word, rest = clause[place].text, clause[place + 1 :]
    stop = next((n for n, item in enumerate(rest) if item.kind in BOUNDARIES), len(rest))
    chunk = rest[:stop]
    heads = [item for item in chunk if item.kind in HEADS]
    if (
        word.startswith((*_INTRODUCES, *_SHOWS))
        or (word == "(" and any(item.kind in HEADS for item in clause[:place]))
        or any(item.kind == "anatomy" for item in heads)
    ):
        return False
    if any(item.text in ("or", "nor", "and/or") for item in (clause[place], *rest)):
        return True
    grades = [item for item in chunk if item.kind == "severity" and (item.value < 3 or word == "and")]
    telling = [item for item in chunk if item.kind in ("article", "change", "tip", "count", "side", "location")]
    devices = [item for item in heads if item.value in table()["groups"]["devices"]]
    return not heads or not (grades or telling or devices)


def deny_after(clause: list[Item], heads: list[Head]) -> None:
    """Let ``is not seen`` deny the heads before it, back to the last that has a predicate of its own."""
    for place, item in enumerate(clause):
        if item.kind != "denied_after":
            continue
        earlier = [head for head in heads if head.place < place]
        for number, head in enumerate(reversed(earlier)):
            if number and head.kinds():
                break
            head.negated = True
            if any(item.kind in ("verb", "strong") for item in clause[head.place + 1 : place] if number == 0):
                break
