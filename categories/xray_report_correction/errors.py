"""What may be true where a draft is wrong: the seven published kinds of error, each with its likelihood."""

from dataclasses import dataclass, replace
from typing import Literal

from categories.xray_report_correction.claims import Change, Claim, claim_of
from categories.xray_report_correction.kernel import differing, weights
from categories.xray_report_correction.kinds import Setting, Value, load_kinds

ErrorKind = Literal["laterality", "severity", "direction", "invented_change", "count", "location", "flipped_negative"]
KIND_OF_SLOT: dict[str, ErrorKind] = {
    "side": "laterality",
    "location": "location",
    "severity": "severity",
    "count": "count",
    "tip": "location",
}
DIRECTION = {"increased": 1, "unchanged": 0, "decreased": -1}
PRIOR_WRONG = 0.4
"""Weight of what can be true only if the earlier report was wrong."""


@dataclass(frozen=True)
class Alternative:
    """One way in which a drafted statement can be wrong."""

    kind: ErrorKind
    slot: str
    value: Value | None
    """What is true; None: nothing is there."""
    claim: Claim
    """The right statement."""
    weight: float
    step: int = 0
    prior_wrong: bool = False
    """The earlier report is wrong in the same way."""


@dataclass(frozen=True)
class Line:
    """One statement of the target, as drafted and as it should be."""

    name: str
    before: Value | None
    """What the last earlier report says."""
    value: Value | None
    """What the draft means; None: absent."""
    draft: Claim
    right: Claim | None = None
    """Where the draft is wrong."""
    kind: ErrorKind | None = None
    slot: str | None = None
    step: int = 0

    @property
    def truth(self) -> Claim:
        return self.right or self.draft

    def corrected(self, chosen: Alternative) -> "Line":
        """Return the line with its error."""
        return replace(self, right=chosen.claim, kind=chosen.kind, slot=chosen.slot)


def alternatives(line: Line, setting: Setting, *, compared: bool) -> list[Alternative]:
    """Return everything that may be true where a drafted finding is wrong."""
    kind = load_kinds()[line.name]
    found = _other_slots(line, setting)
    if compared and not kind.device and line.before is not None:
        found += _other_changes(line, setting)
    if not kind.device:
        found.append(Alternative("flipped_negative", "status", None, Claim(line.name, "absent"), 1.0))
    return found


def flipped(line: Line, setting: Setting, *, compared: bool) -> list[Alternative]:  # noqa: ARG001 (one signature)
    """Return everything that may be there where the draft denies a finding."""
    found = weights(line.name, setting, line.before)
    return [
        Alternative("flipped_negative", "status", value, claim_of(line.name, value), weight)
        for value, weight in found.items()
    ]


def _other_slots(line: Line, setting: Setting) -> list[Alternative]:
    """Return the values that differ in one stated slot and go with the stated change."""
    assert line.value is not None
    likely = weights(line.name, setting, line.before)
    found = []
    for slot, values in differing(line.value, line.name, setting).items():
        if getattr(line.draft, slot) is None:
            continue
        for value in values:
            step, wrong = _explained(line, slot, value)
            if step is None:
                continue
            claim = replace(line.draft, **{slot: getattr(value, slot)})
            weight = likely[value] * (PRIOR_WRONG if wrong else 1.0)
            found.append(Alternative(KIND_OF_SLOT[slot], slot, value, claim, weight, step, wrong))
    return found


def _explained(line: Line, slot: str, value: Value) -> tuple[int | None, bool]:
    """Return the step within the severity and whether the earlier report must be wrong; step None: impossible."""
    change = line.draft.change
    if change in (None, "new"):
        return 0, False
    if change == "unchanged":
        return 0, True
    if slot != "severity":
        return None, False
    moved = _moved(line, value)
    direction = DIRECTION[str(change)]
    if moved * direction > 0:
        return 0, False
    if moved == 0 and load_kinds()[line.name].step:
        return direction, False
    return None, False


def _other_changes(line: Line, setting: Setting) -> list[Alternative]:
    """Return the other directions that fit what is stated beside the change."""
    assert line.value is not None
    assert line.before is not None
    kind = load_kinds()[line.name]
    if line.draft.change not in DIRECTION:
        return []
    likely = weights(line.name, setting, line.before)
    pool = [line.value]
    if kind.severities and line.draft.severity is None:
        pool += differing(line.value, line.name, setting)["severity"]
    found = []
    for change, direction in DIRECTION.items():
        if change == line.draft.change:
            continue
        for value in pool:
            moved = _moved(line, value)
            step = direction if moved == 0 else 0
            if moved * direction < 0 or (direction == 0 and moved) or (step and not kind.step):
                continue
            invented = change == "unchanged"
            name: ErrorKind = "invented_change" if invented else "direction"
            claim = replace(line.draft, change=_as_change(change))
            found.append(Alternative(name, "change", value, claim, likely[value], step))
    return found


def _moved(line: Line, value: Value) -> int:
    """Return by how many severities a value lies above what the earlier report says."""
    degrees = load_kinds()[line.name].degrees()
    if not degrees or line.before is None:
        return 0
    return degrees.index(str(value.severity)) - degrees.index(str(line.before.severity))


def _as_change(word: str) -> Change:
    return "increased" if word == "increased" else "decreased" if word == "decreased" else "unchanged"
