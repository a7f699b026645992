"""What a dictated sentence plainly states: one finding with its slots, or a list of findings that are not there.

Much of a real report is beyond this reader, and is left alone: such sentences are never edited and claim nothing.
"""

import re
from dataclasses import dataclass
from typing import Any

from categories.xray_report_correction.claims import Claim

FINDINGS = {
    "pleural_effusion": r"(?:pleural )?effusions?",
    "pneumothorax": r"pneumothora(?:x|ces)",
    "consolidation": r"(?:focal )?consolidations?",
    "atelectasis": r"atelectasis",
    "pulmonary_edema": r"(?:pulmonary|interstitial) edema",
    "nodule": r"(?:pulmonary |lung )?nodules?",
    "cardiomegaly": r"cardiomegaly",
    "hiatal_hernia": r"hiatal hernia",
    "endotracheal_tube": r"endotracheal tube",
    "enteric_tube": r"(?:nasogastric|enteric|orogastric) tube",
    "central_line": r"(?:central venous (?:line|catheter)|picc(?: line)?|port-a-cath)",
    "chest_tube": r"chest tubes?",
    "pacemaker": r"pacemaker",
    "sternal_wires": r"(?:median )?stern(?:al|otomy) wires",
}
SLOT_WORDS: dict[str, dict[str, Any]] = {
    "side": {"left": "left", "left-sided": "left", "right": "right", "right-sided": "right", "bilateral": "bilateral"},
    "severity": {
        **{word: word for word in ("small", "moderate", "large", "mild", "severe")},
        "mildly": "mild",
        "moderately": "moderate",
        "severely": "severe",
    },
    "change": {
        **dict.fromkeys(("unchanged", "stable"), "unchanged"),
        **dict.fromkeys(("increased", "worsened", "larger", "worsening", "increasing"), "increased"),
        **dict.fromkeys(("decreased", "improved", "smaller", "improving", "decreasing"), "decreased"),
        "new": "new",
        "resolved": "resolved",
    },
    "location": {
        f"{part} {what}": f"{part} {what}" for part in ("upper", "middle", "lower") for what in ("lobe", "zone")
    },
    "count": {"two": 2, "three": 3},
}
"""Words of a sentence -> the value they state."""
SEVERITIES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("pleural_effusion", "pneumothorax"), ("small", "moderate", "large")),
    **dict.fromkeys(("pulmonary_edema", "cardiomegaly"), ("mild", "moderate", "severe")),
}
DOUBT = re.compile(
    r"\b(?:may|might|could|possibl[ey]|probabl[ey]|likely|suspicious|suggest\w*|question\w*|versus|vs|cannot|difficult|"
    r"apparent|perhaps|if|however|but|although|except|other(?:wise)?|not|no longer|less|more|than)\b",
)
DENIES = re.compile(r"^(?:there (?:is|are) )?(?:no|without)\b")
LETTERS = re.compile(r"[A-Za-z]")
ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9])")


@dataclass(frozen=True)
class Said:
    """A sentence and what it plainly states; nothing where it is beyond the reader."""

    text: str
    claims: tuple[Claim, ...]

    @property
    def single(self) -> Claim | None:
        """The one claim of a sentence that makes one."""
        return self.claims[0] if len(self.claims) == 1 else None


def read_findings(text: str) -> list[Said]:
    """Return the sentences of a FINDINGS section, on one line each."""
    parts = (" ".join(part.split()) for part in ENDS.split(" ".join(text.split())))
    return [Said(part, tuple(claims_of(part))) for part in parts if LETTERS.search(part)]


def claims_of(sentence: str) -> list[Claim]:
    """Return the claims of a plain sentence."""
    plain = sentence.lower()
    found = [name for name, words in FINDINGS.items() for _ in re.finditer(rf"\b{words}\b", plain)]
    if not found or len(found) != len(set(found)) or DOUBT.search(re.sub(DENIES, "", plain)):
        return []
    if DENIES.search(plain):
        return (
            [Claim(name, "absent") for name in found] if not any(values_of(plain, slot) for slot in SLOT_WORDS) else []
        )
    if len(found) != 1 or re.search(r"\b(?:no|without|and|with)\b", plain):
        return []
    slots: dict[str, Any] = {}
    for slot in SLOT_WORDS:
        values = values_of(plain, slot)
        if len(values) > 1:
            return []
        slots[slot] = next(iter(values), None)
    if slots["severity"] and slots["severity"] not in SEVERITIES.get(found[0], ()):
        return []
    return [Claim(found[0], "present", **slots)]


def values_of(plain: str, slot: str) -> set[Any]:
    """Return the values of a slot that a sentence (lower case) names."""
    return {value for word, value in SLOT_WORDS[slot].items() if re.search(rf"(?<![\w-]){word}(?![\w-])", plain)}
