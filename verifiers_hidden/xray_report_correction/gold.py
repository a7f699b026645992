"""The gold of a case: the draft, the true sentences, and what each claims, in the lexicon's values."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verifiers_hidden.kit import GoldError, gold_json
from verifiers_hidden.xray_report_correction.compare import Truth
from verifiers_hidden.xray_report_correction.lexicon import plain, scan, table
from verifiers_hidden.xray_report_correction.parse import BOTH, Claim

STATUSES = ("present", "absent")


@dataclass(frozen=True)
class Gold:
    """Sentences and claims of draft and truth, in the same order; ``errors``: the draft's wrong sentences, one each."""

    draft: list[str]
    sentences: list[str]
    draft_statements: list[list[Claim]]
    statements: list[list[Claim]]
    errors: list[int]
    others: list[Claim]

    def truths(self) -> list[Truth]:
        """Return fresh true statements to compare with, those on which the draft is silent last."""
        told = [
            Truth(claim, n, next((other for other in self.others if _same(claim, other)), None))
            for n, group in enumerate(self.statements)
            for claim in group
        ]
        silent = [other for other in self.others if not any(_same(truth.claim, other) for truth in told)]
        return told + [Truth(claim, None) for claim in silent]


def _same(claim: Claim, other: Claim) -> bool:
    """Tell whether two true statements are of one finding."""
    meet = not claim.sides or not other.sides or bool(claim.sides & other.sides)
    return claim.finding == other.finding and claim.status == other.status and meet


def read_gold(gold: Path) -> Gold:
    """Read ``findings.json``.

    Raises:
        GoldError: it is damaged, or holds a word that the lexicon does not.
    """
    document = gold_json(gold / "findings.json")
    try:
        found = Gold(
            [str(text) for text in document["draft"]],
            [str(text) for text in document["truth"]],
            [[claim_of(raw) for raw in group] for group in document["draft_statements"]],
            [[claim_of(raw) for raw in group] for group in document["statements"]],
            [int(error["sentence"]) for error in document["errors"]],
            [claim_of(raw) for raw in document["other_truths"]],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise GoldError(f"gold findings.json: {error!r}") from error
    lengths = {len(found.draft), len(found.sentences), len(found.draft_statements), len(found.statements)}
    if len(lengths) != 1 or not found.errors or any(not 0 <= n < len(found.draft) for n in found.errors):
        raise GoldError("gold findings.json: draft, truth and statements differ in length, or no error is named")
    return found


def claim_of(raw: dict[str, Any]) -> Claim:
    """Return a statement of the gold as a claim.

    Raises:
        ValueError: a value that the lexicon does not hold.
    """
    if raw["finding"] not in table()["finding"] or raw["status"] not in STATUSES:
        raise ValueError(f"unknown finding or status: {raw['finding']}, {raw['status']}")
    slots: dict[str, set[Any]] = {}
    for slot in ("location", "severity", "tip"):
        if raw.get(slot):
            for kind, value in _words(str(raw[slot])):
                slots.setdefault(kind, set()).add(value)
    if raw.get("size_mm") is not None:
        slots["size"] = {float(raw["size_mm"])}
    if raw.get("count") is not None:
        slots["count"] = {str(int(raw["count"]))}
    if raw.get("change") is not None:
        if raw["change"] not in table()["change"]:
            raise ValueError(f"change: {raw['change']!r}")
        slots["change"] = {raw["change"]}
    return Claim(
        raw["finding"],
        raw["status"],
        _sides(raw.get("side")),
        {name: frozenset(values) for name, values in slots.items()},
    )


def _words(text: str) -> list[tuple[str, Any]]:
    """Return the values that a word of the gold stands for.

    Raises:
        ValueError: the lexicon does not hold it.
    """
    found: list[tuple[str, Any]] = []
    for item in scan(plain(text)):
        if item.kind == "location":
            found.append(("location", str(item.value).partition("+")[0]))
        elif item.kind == "rib":
            found += [("rib", number) for number in item.value]
        elif item.kind in ("severity", "tip", "size"):
            found.append((item.kind, item.value))
    if not found:
        raise ValueError(f"the lexicon does not hold {text!r}")
    return found


def _sides(word: str | None) -> frozenset[str]:
    """Return the sides of a word.

    Raises:
        ValueError: it is none.
    """
    if not word:
        return frozenset()
    if word not in ("left", "right", "bilateral"):
        raise ValueError(f"side: {word!r}")
    return BOTH if word == "bilateral" else frozenset({word})
