"""What a text claims against what is true: every difference, none weighed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from verifiers_hidden.xray_report_correction.lexicon import table
from verifiers_hidden.xray_report_correction.parse import Claim

SLOTS = ("side", "location", "rib", "severity", "count", "size", "change", "tip")
NOTHING: frozenset[Any] = frozenset()
SIZE_MM, SIZE_SHARE = 2.0, 0.2
"""Two measures agree within the larger of the two."""


@dataclass(frozen=True)
class Told:
    """A claim with the sentence of the submission it stands in, and the draft's sentence this resembles."""

    claim: Claim
    sentence: int
    like: int | None


@dataclass
class Truth:
    """A true statement of sentence ``sentence``, null where the draft is silent on it, and what is told of it.

    ``real`` holds what is true beyond what the sentence says.
    """

    claim: Claim
    sentence: int | None
    real: Claim | None = None
    told: list[Told] = field(default_factory=list)


@dataclass(frozen=True)
class Difference:
    """A slot told wrongly or not at all, or a claim that nothing supports.

    ``slot`` is one of ``SLOTS``, or ``status`` (of a true statement), ``finding`` (a claim beside the truth),
    ``wording``, ``history`` (how something denied came about). ``told`` is empty where nothing is told, ``true``
    where nothing is true of the slot.
    """

    slot: str
    finding: str
    true: frozenset[Any]
    told: frozenset[Any]
    true_sentence: int | None
    sentence: int | None


def differences(truths: list[Truth], told: list[Told]) -> list[Difference]:
    """Return all differences between what is true and what is told; ``truths`` must be fresh."""
    present = [truth for truth in truths if truth.claim.status == "present"]
    denied = [truth for truth in truths if truth.claim.status == "absent"]
    stated = {truth.claim.finding for truth in truths}
    unfit = _assign(present, [one for one in told if one.claim.status == "present"])
    extras = [one for one in unfit if not _explains(one, present, stated)]
    for one in told:
        if one.claim.status is None:
            for truth in present:
                if truth.claim.finding == one.claim.finding:
                    truth.told.append(one)
    found = [difference for truth in present for difference in _of_present(truth)]
    found += _of_denials(present, denied, [one for one in told if one.claim.status == "absent"])
    extra = {one.claim.finding for one in extras}
    for truth in denied:
        if not truth.told and truth.sentence is not None and truth.claim.finding not in extra:
            found.append(_difference("status", truth, frozenset({"absent"}), NOTHING, None))
    return found + [_extra(one, denied) for one in extras]


def _extra(one: Told, denied: list[Truth]) -> Difference:
    where = next((truth.sentence for truth in denied if truth.claim.finding == one.claim.finding), None)
    true = frozenset({"absent"}) if where is not None else NOTHING
    return Difference("finding", one.claim.finding, true, frozenset({"present"}), where, one.sentence)


def _assign(present: list[Truth], told: list[Told]) -> list[Told]:
    """Give each claim of presence to a true statement, each statement one first; return the claims nobody wants."""
    pairs = sorted(
        (cost, order, number)
        for order, one in enumerate(told)
        for number, truth in enumerate(present)
        if (cost := _cost(truth, one)) is not None
    )
    free, untold = set(range(len(told))), set(range(len(present)))
    for _, order, number in pairs:
        if order in free and number in untold:
            present[number].told.append(told[order])
            free.discard(order)
            untold.discard(number)
    for _, order, number in pairs:
        if order in free and _fits(present[number].claim, told[order].claim):
            present[number].told.append(told[order])
            free.discard(order)
    return [told[order] for order in sorted(free)]


def _explains(one: Told, present: list[Truth], stated: set[str]) -> bool:
    """Tell whether a claim only explains another, true finding of its sentence: ``opacity, likely pneumonia``.

    A finding of which the truth says anything, present or absent, is no mere explanation: else one sentence for each
    side (``A due to left B. A due to right B.``) would hold the right one, and a doubtful finding could be kept.
    """
    beside = any(other.sentence == one.sentence for truth in present for other in truth.told)
    return one.claim.explained and beside and one.claim.finding not in stated


def related(one: str, other: str) -> bool:
    """Tell whether two findings are the same, or one is the wider word for the other."""
    wider = table()["groups"]["wider"]
    return one == other or other in wider.get(one, ()) or one in wider.get(other, ())


def _cost(truth: Truth, one: Told) -> int | None:
    """Return how badly a claim fits a true statement, null where it speaks of something else."""
    if not related(truth.claim.finding, one.claim.finding):
        return None
    cost = 30 * (truth.claim.finding != one.claim.finding) + 40 * (truth.sentence is None)
    cost += 40 * (not _meet(truth.claim, one.claim)) - 12 * (one.like is not None and one.like == truth.sentence)
    weights = {"location": 16, "rib": 16, "tip": 8, "count": 6, "size": 6, "severity": 3, "change": 3}
    for slot, weight in weights.items():
        wanted, values = truth.claim.slots.get(slot, NOTHING), one.claim.slots.get(slot, NOTHING)
        if wanted and values and not near(slot, wanted, values):
            cost += weight
        elif bool(wanted) != bool(values):
            cost += 1
    return cost


def _meet(truth: Claim, one: Claim) -> bool:
    return not truth.sides or not one.sides or bool(truth.sides & one.sides)


def _fits(truth: Claim, one: Claim) -> bool:
    """Tell whether a second claim may speak of the same thing: nothing says that it is elsewhere."""
    return _meet(truth, one) and all(
        near(slot, truth.slots[slot], one.slots[slot])
        for slot in ("location", "rib")
        if truth.slots.get(slot) and one.slots.get(slot)
    )


def _of_present(truth: Truth) -> Iterator[Difference]:
    """Compare a true finding with all that is told of it."""
    telling = [one for one in truth.told if one.claim.status == "present"]
    if not telling:
        if truth.sentence is not None:
            yield _difference("status", truth, frozenset({"present"}), NOTHING, None)
        return
    if truth.sentence is None:
        yield _difference("finding", truth, frozenset({"present"}), frozenset({"present"}), telling[0].sentence)
    if words := frozenset(one.claim.finding for one in telling) - {truth.claim.finding}:
        yield _difference("wording", truth, frozenset({truth.claim.finding}), words, telling[0].sentence)
    for slot in SLOTS:
        true = _values(truth.claim, slot)
        told = _together(slot, (_values(one.claim, slot) for one in truth.told))
        soft = NOTHING.union(*(one.claim.soft.get(slot, NOTHING) for one in truth.told))
        if told and not true and truth.real:
            true = _values(truth.real, slot)
        if not agree(slot, true, told) and not (not told and true and true == soft):
            yield _difference(slot, truth, true, told, telling[0].sentence)


def _together(slot: str, values: Iterable[frozenset[Any]]) -> frozenset[Any]:
    """Return all that is told of a slot; a plural adds nothing to a number."""
    told = NOTHING.union(*values)
    return told - {"many"} or told if slot == "count" else told


def _values(claim: Claim, slot: str) -> frozenset[Any]:
    values = claim.sides if slot == "side" else claim.slots.get(slot, NOTHING)
    if slot == "count":
        ribs = claim.slots.get("rib", NOTHING)
        number = frozenset({str(len(ribs))}) if ribs else NOTHING
        return values or number
    return values


def agree(slot: str, true: frozenset[Any], told: frozenset[Any]) -> bool:
    """Tell whether the same is told as is true; a detail of another kind than the truth's (lateral) is left out."""
    if slot == "location" and true:
        axes = {value.partition(":")[0] for value in true}
        told = frozenset(v for v in told if isinstance(v, tuple) or v.partition(":")[0] in axes)
    if slot == "count" and {*true, *told} == {"1"}:
        return True
    if slot == "size" and true and told:
        return all(isinstance(v, float) and any(_close(v, one) for one in true) for v in told)
    return true == told


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= max(SIZE_MM, SIZE_SHARE * other)


def near(slot: str, true: frozenset[Any], told: frozenset[Any]) -> bool:
    """Tell whether every value told is a true one or near one, by the lexicon's table, and none is left out."""
    groups = table()["near"].get(slot, [])

    def close(value: Any, others: Iterable[Any]) -> bool:
        return any(value == one or any(value in group and one in group for group in groups) for one in others)

    return all(close(value, true) for value in told) and all(close(value, told) for value in true)


def _of_denials(present: list[Truth], denied: list[Truth], told: list[Told]) -> Iterator[Difference]:
    """Compare what is denied: a denial of something true contradicts it, whatever else is told of it."""
    for one in told:
        fitting = [t for t in denied if t.claim.finding == one.claim.finding and _meet(t.claim, one.claim)]
        for truth in fitting:
            truth.told.append(one)
        against = [t for t in present if t.claim.finding == one.claim.finding and _meet(t.claim, one.claim)]
        if fitting or one.claim.weak:
            continue
        for truth in against:
            if any(other.claim.status == "present" for other in truth.told) or truth.sentence is None:
                yield _difference("status", truth, frozenset({"present"}), frozenset({"absent"}), one.sentence)
    for truth in denied:
        true = truth.claim.slots.get("change", NOTHING)
        change = NOTHING.union(*(other.claim.slots.get("change", NOTHING) for other in truth.told))
        if truth.told and true != change:
            yield _difference("history", truth, true, change, truth.told[0].sentence)


def _difference(
    slot: str, truth: Truth, true: frozenset[Any], told: frozenset[Any], sentence: int | None
) -> Difference:
    return Difference(slot, truth.claim.finding, true, told, truth.sentence, sentence)
