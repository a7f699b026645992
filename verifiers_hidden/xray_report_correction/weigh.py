"""Which differences matter: the table of significance, the six published kinds, and whose errors they are."""

from dataclasses import dataclass

from verifiers_hidden.xray_report_correction.compare import Difference, near
from verifiers_hidden.xray_report_correction.lexicon import table

KINDS = (
    "false_positive_finding",
    "omission_finding",
    "incorrect_location",
    "incorrect_severity",
    "false_positive_comparison",
    "omission_comparison",
)
_LOCATION = ("side", "location", "rib", "tip")
_DIRECTED = {"new", "increased", "decreased", "resolved"}


@dataclass(frozen=True)
class Error:
    """A difference weighed. ``origin``: residual (the draft's), damaged, added or missing (the submission's own)."""

    difference: Difference
    kind: str
    origin: str
    significant: bool


def weigh(found: list[Difference], draft: list[Difference]) -> list[Error]:
    """Weigh differences, knowing those of the draft as it was handed out."""
    in_draft = {_mark(difference) for difference in draft}
    return [_weigh(difference, _mark(difference) in in_draft, _flipped(difference, in_draft)) for difference in found]


def _flipped(difference: Difference, in_draft: set[tuple[str, str, int | None]]) -> bool:
    """Tell whether the draft denied the finding: then the truth says nothing of its change, and a text may."""
    return ("finding", difference.finding, difference.true_sentence) in in_draft


def _mark(difference: Difference) -> tuple[str, str, int | None]:
    """Return what two differences share if one is left of the other; a side told wrongly can become a false finding."""
    slot = "finding" if difference.slot in ("finding", "status") else difference.slot
    return slot, difference.finding, difference.true_sentence


def _weigh(difference: Difference, residual: bool, flipped: bool) -> Error:
    kind, significant = _kind(difference), _significant(difference, residual, flipped)
    own = {"finding": "added", "status": "missing"}.get(difference.slot, "damaged")
    if difference.slot == "status" and difference.told:
        own = "damaged"
    return Error(difference, kind, "residual" if residual else own, significant)


def _kind(difference: Difference) -> str:
    if difference.slot == "finding":
        return "false_positive_finding"
    if difference.slot == "status":
        return "omission_finding"
    if difference.slot in _LOCATION:
        return "incorrect_location"
    if difference.slot in ("change", "history"):
        return "false_positive_comparison" if difference.told - difference.true else "omission_comparison"
    return "incorrect_severity"


def _significant(difference: Difference, residual: bool, flipped: bool) -> bool:
    """Apply the table of significance of the instruction."""
    slot, true, told = difference.slot, difference.true, difference.told
    if slot in ("finding", "status", "wording", "history"):
        asserted = slot == "finding" and "present" not in true
        return (asserted and difference.finding not in table()["groups"]["out_of_scope"]) or (
            slot == "status" and "present" in true
        )
    if slot == "change":
        return _change(true, told, residual, flipped)
    if not told:
        return slot != "size" or residual
    return bool(true) and not near(slot, true, told)


def _change(true: frozenset[str], told: frozenset[str], residual: bool, flipped: bool) -> bool:
    if not told:
        return residual or bool(true & _DIRECTED)
    if not true:
        return bool(told & _DIRECTED) and not flipped
    return not near("change", true, told)
