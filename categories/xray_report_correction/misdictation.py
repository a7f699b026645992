"""Seeded errors in real sentences: the seven kinds, each in a sentence whose right statement is known."""

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from categories.xray_report_correction.claims import Claim
from categories.xray_report_correction.dictated import SEVERITIES, SLOT_WORDS, Said
from categories.xray_report_correction.errors import ErrorKind

LEAST, MOST = 3, 8
INVENTED: dict[str, tuple[str, dict[str, Any]]] = {
    "pleural_effusion": ("There is a small {side} pleural effusion.", {"severity": "small"}),
    "pneumothorax": ("There is a small {side} pneumothorax.", {"severity": "small"}),
    "consolidation": ("There is consolidation in the {side} lower lobe.", {"location": "lower lobe"}),
}
"""Finding -> a sentence that states it, and what that says beside the side."""
Rng = np.random.Generator


@dataclass(frozen=True)
class Edit:
    """A wrong version of a sentence."""

    kind: ErrorKind
    slot: str
    text: str
    claim: Claim


def edits_of(said: Said, rng: Rng, *, priors: bool) -> list[Edit]:
    """Return the errors that a sentence can be given; changes only where there is an earlier study."""
    claim = said.single
    if claim is None:
        return []
    if not claim.present:
        return _flipped(claim, rng)
    found = [
        _turned(said, claim, "laterality", "side", {"left": "right", "right": "left"}),
        _turned(said, claim, "location", "location", {"upper": "lower", "lower": "upper"}),
        _turned(said, claim, "count", "count", {2: 3, 3: 2}),
        _turned(said, claim, "severity", "severity", _other_severity(claim, rng)),
    ]
    if priors:
        found.append(_turned(said, claim, "direction", "change", {"increased": "decreased", "decreased": "increased"}))
        found.append(_turned(said, claim, "invented_change", "change", {"unchanged": "increased"}))
    return [edit for edit in found if edit is not None]


def _flipped(claim: Claim, rng: Rng) -> list[Edit]:
    if claim.finding not in INVENTED:
        return []
    text, slots = INVENTED[claim.finding]
    side = "left" if rng.random() < 0.5 else "right"
    return [Edit("flipped_negative", "status", text.format(side=side), Claim(claim.finding, "present", side, **slots))]


def _other_severity(claim: Claim, rng: Rng) -> dict[Any, Any]:
    """Return the severity turned to one that is not next to it, where there is one."""
    degrees = SEVERITIES.get(claim.finding, ())
    if claim.severity not in degrees:
        return {}
    place = degrees.index(claim.severity)
    others = [degrees[-1]] if place == 0 else [degrees[0]] if place == len(degrees) - 1 else [degrees[0], degrees[-1]]
    return {claim.severity: others[int(rng.integers(len(others)))]}


def _turned(said: Said, claim: Claim, kind: ErrorKind, slot: str, other: dict[Any, Any]) -> Edit | None:
    """Return the sentence with one word of a slot replaced; none where the word stands twice or fits no pattern."""
    value = getattr(claim, slot)
    if value is None:
        return None
    if slot == "location":
        part, _, what = str(value).partition(" ")
        new: Any = f"{other[part]} {what}" if part in other else None
    else:
        new = other.get(value)
    words = [word for word, meant in SLOT_WORDS[slot].items() if meant == value]
    hits = [match for word in words for match in re.finditer(rf"(?i)(?<![\w-]){word}(?![\w-])", said.text)]
    if new is None or len(hits) != 1:
        return None
    hit = hits[0]
    text = said.text[: hit.start()] + _as(hit.group(), value, new) + said.text[hit.end() :]
    return Edit(kind, slot, text, replace(claim, **{slot: new}))


def _as(word: str, value: Any, new: Any) -> str:
    """Return the new value in the form of the old word: ``Left-sided``, ``mildly``."""
    names = {2: "two", 3: "three"}
    made = word.lower().replace(str(names.get(value, value)), str(names.get(new, new)))
    if made == word.lower():
        made = str(names.get(new, new))
    return made.capitalize() if word[0].isupper() else made


def draw_edits(sentences: list[Said], rng: Rng, *, priors: bool) -> dict[int, Edit]:
    """Return sentence number -> its error: three to eight sentences as far as they can be given one, kinds in turn."""
    options = {number: edits_of(said, rng, priors=priors) for number, said in enumerate(sentences)}
    able = [number for number, edits in options.items() if edits]
    count = min(len(able), int(rng.integers(LEAST, MOST + 1)))
    chosen: dict[int, Edit] = {}
    used: dict[str, int] = {}
    for number in [able[i] for i in rng.permutation(len(able))[:count]]:
        least = min(used.get(edit.kind, 0) for edit in options[number])
        rare = [edit for edit in options[number] if used.get(edit.kind, 0) == least]
        edit = rare[int(rng.integers(len(rare)))]
        used[edit.kind] = used.get(edit.kind, 0) + 1
        chosen[number] = edit
    return dict(sorted(chosen.items()))
