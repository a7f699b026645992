"""A sentence becomes claims: a finding with its status and every value told of each slot."""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from verifiers_hidden.xray_report_correction.lexicon import HEADS, SLOTS, Item, plain, scan, table
from verifiers_hidden.xray_report_correction.negation import BOUNDARIES, Head
from verifiers_hidden.xray_report_correction.scope import GRADED, clauses, read_clause

Values = dict[str, frozenset[Any]]
BOTH = frozenset({"left", "right"})


@dataclass(frozen=True)
class Claim:
    """What a text says of one finding.

    ``status`` is None where a structure is named without its state. ``weak`` denials (no other, no large) contradict
    nothing. ``slots`` holds what is told, ``soft`` what may be meant.
    """

    finding: str
    status: str | None
    sides: frozenset[str] = frozenset()
    slots: Values = field(default_factory=dict)
    soft: Values = field(default_factory=dict)
    weak: bool = False
    explained: bool = False


def claims(sentences: list[str]) -> list[list[Claim]]:
    """Return the claims of each sentence; one that only describes (``It is small.``) speaks of the findings before."""
    found: list[list[Claim]] = []
    for sentence in sentences:
        stated, loose = _sentence(plain(sentence))
        before = next((list(group) for group in reversed(found) if group), [])
        found.append([*stated, *(_describe(before, loose) if loose else [])])
    return found


@cache
def _sentence(text: str) -> tuple[tuple[Claim, ...], tuple[Item, ...]]:
    """Return a sentence's claims, and the words that describe something named before it."""
    items = scan(text)
    found: list[Claim] = []
    loose: list[Item] = []
    for clause in clauses(items):
        heads = read_clause(clause)
        if any(head.item.kind != "other" for head in heads):
            found += [claim for head in heads for claim in _claims_of(head)]
        elif not heads and (words := [item for item in clause if item.kind in (*SLOTS, *BOUNDARIES)]):
            if any(item.kind == "state" or item.text.split()[0] == "no" for item in (*words, *clause[:1])):
                continue  # "lungs are hyperinflated but clear": of the structure, no finding
            if found:
                found += _describe(found[-1:], words)
            elif _speaks_on(clause):
                loose += words
    return tuple(found), tuple(loose)


def _speaks_on(clause: list[Item]) -> bool:
    """Tell whether a clause without a head goes on about the last one: by a pronoun, or as it holds no other noun."""
    known = all(item.kind not in ("word", *HEADS) or item.text in ("the", "only", "side") for item in clause)
    return known or any(item.kind == "pronoun" for item in clause[:2])


def _describe(before: list[Claim], words: Any) -> list[Claim]:
    """Say loose words of the claims before: of one as told, of several as what may be meant unless they contradict."""
    present = [claim for claim in before if claim.status != "absent"] or before
    found = []
    for claim in present:
        head = Head(Item("finding", claim.finding, ""), 0, after=list(words))
        for fresh in _claims_of(head):
            status = "absent" if "resolved" in fresh.slots.get("change", ()) else claim.status
            sides = fresh.sides or claim.sides
            found.append(replace(fresh, status=status, sides=sides))
    return found if len({claim.finding for claim in present}) == 1 else [_softened(claim) for claim in found]


def _softened(claim: Claim) -> Claim:
    return replace(claim, slots={}, soft=claim.soft | claim.slots)


def _claims_of(head: Head) -> list[Claim]:
    """Return one claim for each side and finding that a head's words tell of."""
    if head.item.kind == "other":
        return []
    shared, instances = _instances(head)
    found = []
    for words in instances:
        every = [*shared, *words]
        slots, soft = _values(every)
        denied = any(item.kind == "negation" and item.text.startswith("none") for item in words)
        for finding, status, weak in _status(head, every, slots, denied):
            sides = slots.get("side", frozenset())
            kept = {name: values for name, values in slots.items() if name not in ("side", "state")}
            if finding in table()["groups"]["counted"] and head.item.text.endswith("s"):
                kept = {"count": frozenset({"many"})} | kept
            kept = _height(kept) if finding == "endotracheal_tube" else kept
            base = Claim(finding, status, sides, kept, soft, weak, head.explained)
            split = status == "present" and len(sides) == 2
            found += [replace(base, sides=frozenset({side})) for side in sorted(sides, key=str)] if split else [base]
    return found


def _instances(head: Head) -> tuple[list[Item], list[list[Item]]]:
    """Part a head's words into those of all and groups of one side each: ``moderate right and small left``."""
    groups: list[list[Item]] = []
    for part in (head.before, head.after):
        group: list[Item] = []
        for item in part:
            if item.kind == "weak":
                groups.append(group)
                group = []
            else:
                group.append(item)
        groups.append(group)
    sided = [group for group in groups if any(_sides(item) for item in group)]
    whole = [group for group in sided if any(_sides(item) == BOTH for item in group)]
    single = [group for group in sided if group not in whole]
    if whole and {side for group in single for item in group for side in _sides(item)} == BOTH:
        shared_groups = [group for group in groups if group not in single]
        return [item for group in shared_groups for item in group if not _sides(item)], single
    if len(sided) < 2:
        return [], [[item for group in groups for item in group]]
    shared = [item for group in groups if group not in sided for item in group]
    first = [Item(f"shared_{item.kind}", item.value, item.text) for item in sided[0] if item.kind in SLOTS]
    rest = [[*group, *(item for item in first if item.kind[7:] != "side")] for group in sided[1:]]
    last = [Item("shared_location", item.value, item.text) for item in sided[-1] if item.kind == "location"]
    return shared, [[*sided[0], *last], *rest]


def _sides(item: Item) -> frozenset[str]:
    value = item.value if item.kind == "side" else str(item.value).partition("+")[2] if item.kind == "location" else ""
    return BOTH if value == "bilateral" else frozenset({value}) if value in BOTH else frozenset()


def _values(items: list[Item]) -> tuple[Values, Values]:
    """Return the hard and the soft values of each slot; behind ``now`` a value replaces those before it."""
    hard: dict[str, set[Any]] = defaultdict(set)
    soft: dict[str, set[Any]] = defaultdict(set)
    replacing = False
    for item in items:
        replacing |= item.kind == "now"
        into, kind = (soft, item.kind[7:]) if item.kind.startswith("shared_") else (hard, item.kind)
        if kind == "soft_change":
            into, kind = soft, "change"
        if kind not in SLOTS:
            continue
        if replacing and kind in into:
            into[kind].clear()
            replacing = False
        into[kind] |= _parts(kind, item)
        if kind == "location" and (sides := _sides(item)):
            into["side"] |= sides
    for values in hard.values():
        contraries = {value for value in values if isinstance(value, tuple)}
        if contraries != values:
            values.difference_update(contraries)
    return _frozen(hard), _frozen(soft)


def _parts(kind: str, item: Item) -> set[Any]:
    if isinstance(item.value, tuple) and item.value[:1] == ("not",):
        return {item.value}
    if kind == "side":
        return set(_sides(item))
    if kind == "rib":
        return set(item.value)
    if kind == "location":
        return {str(item.value).partition("+")[0]}
    return {item.value}


def _height(slots: Values) -> Values:
    """Read a tube's distance from the carina as its place: 2 to 8 cm above is in mid trachea."""
    if "above_carina" not in slots.get("tip", ()) or "size" not in slots:
        return slots
    place = "midtrachea" if all(20 <= size <= 80 for size in slots["size"]) else "off_midtrachea"
    kept = {name: values for name, values in slots.items() if name != "size"}
    return kept | {"tip": slots["tip"] - {"above_carina"} | {place}}


def _frozen(values: dict[str, set[Any]]) -> Values:
    return {name: frozenset(found) for name, found in values.items() if found}


def _status(head: Head, words: list[Item], slots: Values, denied: bool) -> list[tuple[str, str | None, bool]]:
    """Return finding, status and weakness for each finding that a head speaks of."""
    resolved = "resolved" in slots.get("change", ())
    large = head.negated and any(isinstance(v, float) and v >= 1 for v in slots.get("severity", ()))
    weak = head.weak or large or (head.negated and "new" in slots.get("change", ()))
    if head.item.kind == "finding":
        absent = head.negated or denied or resolved
        return [(head.item.value, "absent" if absent else "present", weak and absent)]
    denies = table()["anatomy_denies"][head.item.value]
    state = {item.value for item in words if item.kind == "state"}
    graded = slots.get("severity") and head.item.value in GRADED
    contrary = {value[1] for value in state if isinstance(value, tuple)}
    if "abnormal" in state or "normal" in contrary or (not state and graded):
        return [(denies[0], "absent" if head.negated else "present", False)]
    if "normal" in state or "abnormal" in contrary or head.negated:
        return [(finding, "absent", head.weak) for finding in denies]
    return [(finding, None, True) for finding in denies] if head.item.value in GRADED else []
