"""How a patient changes from one study to the next: one law for what is true, what is drafted and what is wrong.

The law is log-linear: a value's weight is how often it is met, times a factor for every slot it keeps. Any value can
follow any other: severities may move by two steps, nodules may shrink, a finding may change sides.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from categories.xray_report_correction.kinds import SLOTS, Setting, Value, load_kinds, values_of

KEEP = {"side": 16.0, "location": 16.0, "severity": 2.0, "count": 10.0, "tip": 4.0}
"""How much likelier a slot keeps its value than the mere mix would have it."""
NOT_WITH_HYPERINFLATION = {"cardiomegaly", "pulmonary_edema", "pneumothorax"}
Held = Mapping[str, Value]
"""Kind -> value: what is present at one study; a kind that is not named is absent."""
TRIES = 60
_Item = TypeVar("_Item")


def pick(rng: np.random.Generator, items: Sequence[_Item], weights: Sequence[float]) -> _Item:
    """Return one item by weight."""
    total = np.cumsum(np.asarray(weights, np.float64))
    return items[min(int(np.searchsorted(total, rng.random() * total[-1], side="right")), len(items) - 1)]


def weights(name: str, setting: Setting, before: Value | None) -> dict[Value, float]:
    """Return the weight of every value of a kind, given what it was before (None: absent)."""
    base = values_of(name, setting)
    if before is None:
        return base
    return {value: weight * likeness(value, before) for value, weight in base.items()}


def likeness(value: Value, before: Value) -> float:
    """Return the product of the factors of all slots that stay as they were."""
    factor = 1.0
    for slot in SLOTS:
        old = getattr(before, slot)
        if old is not None and getattr(value, slot) == old:
            factor *= KEEP[slot]
    return factor


def draw_value(rng: np.random.Generator, name: str, setting: Setting, before: Value | None) -> Value:
    """Return a value of a kind that is present."""
    found = weights(name, setting, before)
    return pick(rng, list(found), list(found.values()))


def draw_held(rng: np.random.Generator, setting: Setting, before: Held, count: int) -> dict[str, Value]:
    """Return what a study holds after one that held ``before``: ``count`` kinds or more, as far as they go together."""
    kinds = load_kinds()
    held: dict[str, Value] = {}
    for name, value in before.items():
        if rng.random() < kinds[name].stay:
            _add(rng, setting, held, name, value)
    for _ in range(TRIES):
        if len(held) >= count:
            break
        free = [name for name, kind in kinds.items() if kind.weight(setting) > 0 and name not in held]
        name = pick(rng, free, [kinds[name].weight(setting) for name in free])
        _add(rng, setting, held, name, before.get(name))
    return {name: held[name] for name in kinds if name in held}


def _add(rng: np.random.Generator, setting: Setting, held: dict[str, Value], name: str, before: Value | None) -> None:
    for _ in range(8):
        value = draw_value(rng, name, setting, before)
        if together({**held, name: value}):
            held[name] = value
            return


def together(held: Held) -> bool:
    """Tell whether findings can be told apart on one picture and do not exclude one another."""
    if "hyperinflation" in held and (held.keys() & NOT_WITH_HYPERINFLATION or _bulky(held)):
        return False
    if "pulmonary_edema" in held and "consolidation" in held:
        return False
    effusion, air = held.get("pleural_effusion"), held.get("pneumothorax")
    if effusion and air and overlap(effusion, air):
        return False
    lung = [held[name] for name in ("consolidation", "atelectasis", "nodule", "granuloma") if name in held]
    if any(overlap(one, other) and near(one, other) for one, other in itertools.combinations(lung, 2)):
        return False
    if effusion and any(overlap(value, effusion) and hides(effusion, value) for value in lung):
        return False
    return not (air and air.severity != "small" and any(overlap(value, air) for value in lung))


def _bulky(held: Held) -> bool:
    return any(value.severity in ("moderate", "large", "severe") for value in held.values())


def overlap(one: Value, other: Value) -> bool:
    """Tell whether two values share a side."""
    return one.side == other.side or "bilateral" in (one.side, other.side)


def near(one: Value, other: Value) -> bool:
    """Tell whether two places of one lung may overlap: the middle lobe lies before the mid and the lower zone."""
    level = {"upper": {0}, "mid": {1}, "middle": {1, 2}, "lower": {1, 2}}
    first, second = ((value.location or "").split() or [""] for value in (one, other))
    if first[-1:] == second[-1:] == ["zone"]:
        return first == second
    return bool(level.get(first[0], {0, 1, 2}) & level.get(second[0], {0, 1, 2}))


def hides(effusion: Value, value: Value) -> bool:
    """Tell whether an effusion may cover a finding of the same side."""
    place = (value.location or "").split()[0]
    return (
        effusion.severity == "large"
        or place in ("lower", "middle")
        or (effusion.severity, place) == ("moderate", "mid")
    )


def differing(value: Value, name: str, setting: Setting) -> dict[str, list[Value]]:
    """Return the values that differ from ``value`` in exactly one slot, by slot."""
    found: dict[str, list[Value]] = {}
    for other in values_of(name, setting):
        slots = [slot for slot in SLOTS if getattr(other, slot) != getattr(value, slot)]
        if len(slots) == 1:
            found.setdefault(slots[0], []).append(other)
    return found
