"""Who speaks of whom in a sentence: clauses, and which head a word describes."""

from collections.abc import Iterator
from itertools import pairwise

from verifiers_hidden.xray_report_correction.lexicon import HEADS, SLOTS, Item
from verifiers_hidden.xray_report_correction.negation import BOUNDARIES, NOT, Head, deny_after, negate

GRADED = ("heart", "mediastinum", "cardiomediastinum", "vessels")
"""Structures that are themselves described; lungs are only where something is."""
_ONE_VALUE = ("severity", "change", "tip", "count", "size", "side", "state")


def clauses(items: tuple[Item, ...]) -> Iterator[list[Item]]:
    """Cut a sentence at words such as ``but`` and at semicolons."""
    clause: list[Item] = []
    for item in items:
        if item.kind == "strong":
            yield clause
            clause = []
        else:
            clause.append(item)
    yield clause


def read_clause(clause: list[Item]) -> list[Head]:
    """Return the heads of a clause, each with its words; none where it names nothing."""
    clause = _without_former(clause)
    heads = [Head(item, place) for place, item in enumerate(clause) if item.kind in HEADS and _is_head(clause, place)]
    negate(clause, heads)
    _attach(clause, heads)
    deny_after(clause, heads)
    for head in heads:
        earlier = clause[: head.place]
        head.explained = any(item.kind == "explains" for item in earlier)
        head.weak |= any(item.kind == "elsewhere" for item in clause)
    return heads


def _without_former(clause: list[Item]) -> list[Item]:
    """Leave out what is told of an earlier study: ``previously ...`` up to a boundary or verb, ``from the atrium``."""
    kept: list[Item] = []
    former = ""
    for place, item in enumerate(clause):
        if item.kind == "formerly":
            former = item.text
        elif item.kind in ("weak", "verb", "now", "negation", *HEADS) or item.text.startswith(("has ", "have ", "is ")):
            former = ""
        moved = item.kind == "tip" and "from" in [earlier.text for earlier in clause[max(0, place - 2) : place]]
        named = item.kind == "side" and " " not in former
        if not moved and (not former or item.kind not in SLOTS or named):
            kept.append(item)
    return kept


def _is_head(clause: list[Item], place: int) -> bool:
    """Tell whether an item is spoken of: lungs, ribs or pleura behind a preposition are only where something is."""
    item = clause[place]
    if item.value == "costophrenic":
        return not any(other.text.startswith("blunt") for other in clause)
    if item.kind != "anatomy" or item.value not in ("lungs", "pleura", "ribs", "vessels"):
        return True
    for earlier in reversed(clause[:place]):
        if earlier.kind == "preposition" or earlier.value == "throughout":
            return False
        if earlier.kind not in ("side", "location", "article") and earlier.text not in ("the", "both"):
            break
    return True


def _attach(clause: list[Item], heads: list[Head]) -> None:
    """Give every descriptive word to a head: what stands before the first, after the last, between two by a cut."""
    if not heads:
        return
    heads[0].before += _words(clause[: heads[0].place])
    for head, following in pairwise(heads):
        segment = clause[head.place + 1 : following.place]
        cut = _cut(segment, head)
        head.after += _words(segment[:cut])
        following.before += _words(segment[cut:])
    heads[-1].after += _words(clause[heads[-1].place + 1 :])
    _share(clause, heads)


def _words(segment: list[Item]) -> list[Item]:
    """Return descriptive words and the boundaries between them; ``not`` before a word makes it its contrary."""
    found: list[Item] = []
    negated = False
    for item in segment:
        if item.kind in SLOTS:
            found.append(Item(item.kind, ("not", item.value), item.text) if negated else item)
            negated = False
        elif item.kind == "negation" and item.text.startswith(NOT):
            negated = True
        elif item.kind in (*BOUNDARIES, "now"):
            found.append(item)
            negated = False
    return found


def _cut(segment: list[Item], head: Head) -> int:
    """Return where between two heads the words of the second begin: where none says a thing twice of one head."""
    places = [n for n, item in enumerate(segment) if item.kind in (*BOUNDARIES, "article", "explains", "hedge")]
    if head.item.kind == "anatomy" and head.item.value not in GRADED:
        return next((n + 1 for n, item in enumerate(segment) if item.kind == "state"), 0)
    if not places:
        stays = segment and (segment[0].kind in ("verb", "preposition", "state"))
        return len(segment) if stays else 0

    def cost(place: int) -> tuple[int, int, int]:
        mine = [*_kinds(head.before), *_kinds(segment[:place])]
        other = _kinds(segment[place:])
        strength = 0 if segment[place].kind != "weak" or segment[place].text != "," else 1
        return _doubles(mine) + _doubles(other), strength, -place

    return min(places, key=cost)


def _kinds(items: list[Item]) -> list[str]:
    return [item.kind for item in items if item.kind in _ONE_VALUE]


def _doubles(kinds: list[str]) -> int:
    return len(kinds) - len(set(kinds))


def _share(clause: list[Item], heads: list[Head]) -> None:
    """Let coordinated heads share: a predicate reaches back, a description before the first reaches on."""
    for head, following in reversed(list(pairwise(heads))):
        between = clause[head.place + 1 : following.place]
        if not any(item.kind in ("verb", "negation", "state", "explains") for item in between):
            told = [
                item for item in following.after if item.kind in ("state", "change", "soft_change", "side", "location")
            ]
            head.after += [_shared(item) for item in told if item.kind not in head.kinds()]
    for head, following in pairwise(heads):
        between = clause[head.place + 1 : following.place]
        if any(item.kind == "explains" for item in between):
            following.before += [_shared(item) for item in (*head.before, *head.after) if item.kind in SLOTS]
        if between and all(item.kind in ("weak", "article") or item.text == "the" for item in between):
            given = [item for item in head.before if item.kind in SLOTS]
            following.before += [_shared(item) for item in given if item.kind not in following.kinds()]


def _shared(item: Item) -> Item:
    """A shared word is soft: it may fill a slot, and contradicts nothing. The state of a structure is told of all."""
    hard = item.kind in ("state", "soft_change") or item.kind.startswith("shared_")
    return item if hard else Item(f"shared_{item.kind}", item.value, item.text)
