"""Claims into sentences: a noun phrase of the kind in a frame of the change, both from the banks under ``phrases/``.

A sentence is made from the claim alone, so a wrong claim reads like a right one: articles, number and verb agree.
"""

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from categories.xray_report_correction.claims import Claim
from categories.xray_report_correction.kinds import load_kinds

NUMBERS = {1: "one", 2: "two", 3: "three"}
LEADS = {1: ("single-lead", "single-chamber"), 2: ("dual-lead", "dual-chamber"), 3: ("three-lead", "triple-lead")}
VOLUME = ("pleural_effusion", "pneumothorax", "consolidation", "nodule")
DEGREE = ("pulmonary_edema", "cardiomegaly", "atelectasis")
OWN_SENTENCE = 0.6
"""How often an enlarged heart and hyperinflated lungs have a sentence of their own instead of a noun phrase."""


@cache
def bank(name: str) -> dict[str, Any]:
    """Return one file of ``phrases/``."""
    return tomllib.loads((Path(__file__).parent / "phrases" / f"{name}.toml").read_text(encoding="utf-8"))


def one_of(rng: np.random.Generator, texts: Sequence[str]) -> str:
    """Return one of several texts."""
    return texts[int(rng.integers(len(texts)))]


def say(rng: np.random.Generator, claim: Claim) -> str:
    """Return one sentence that says exactly the claim."""
    if not claim.present:
        return deny(rng, [claim])
    frames = bank("frames")
    own = _own(claim)
    if own and rng.random() < OWN_SENTENCE:
        return one_of(rng, own)
    texts = list(frames[claim.change or "none"]["any"])
    for group in _groups(claim.finding):
        texts += frames[claim.change or "none"].get(group, [])
    return fill(rng, one_of(rng, texts), noun_phrase(rng, claim))


def say_together(rng: np.random.Generator, claims: Sequence[Claim]) -> str:
    """Return one sentence that says several claims without a change."""
    phrases = [fill(rng, "{indef}", noun_phrase(rng, claim)) for claim in claims]
    return f"There is {', '.join(phrases[:-1])} and {phrases[-1]}."


def _own(claim: Claim) -> list[str]:
    """Return the sentences that only this kind has."""
    frames, found = bank("frames"), list[str]()
    if claim.change is None and claim.finding == "cardiomegaly" and claim.severity:
        found = frames["heart"][claim.severity]
    elif claim.change is None and claim.finding == "hyperinflation":
        found = frames["lungs"]["hyperinflation"]
    elif claim.change is None and claim.finding == "sternal_wires":
        found = frames["wires"]["any"]
    return found


def _groups(name: str) -> list[str]:
    if load_kinds()[name].device:
        return ["device"]
    return ["finding", *(["volume"] if name in VOLUME else ["degree"] if name in DEGREE else [])]


def deny(rng: np.random.Generator, claims: Sequence[Claim]) -> str:
    """Return one sentence that denies every claim; a resolved finding and the heart are denied alone."""
    frames, nouns = bank("frames"), bank("findings")
    first = claims[0]
    if first.finding == "cardiomegaly":
        return one_of(rng, frames["heart"]["resolved" if first.change == "resolved" else "normal"])
    if first.change == "resolved":
        device = load_kinds()[first.finding].device
        text = one_of(rng, frames["resolved"]["device" if device else "any"])
        noun = one_of(rng, nouns[first.finding]["removed" if device else "denied"])
        return text.replace("{noun}", noun)
    text = one_of(rng, frames["denied"]["one" if len(claims) == 1 else "many"])
    return text.replace("{list}", listed(rng, claims))


def beside(rng: np.random.Generator, sentence: str, denied: Sequence[Claim]) -> str:
    """Return a sentence with further findings denied at its end."""
    if not denied:
        return sentence
    text = one_of(rng, bank("frames")["denied"]["beside"])
    return sentence.removesuffix(".") + text.replace("{list}", listed(rng, denied))


def listed(rng: np.random.Generator, claims: Sequence[Claim]) -> str:
    """Return the names of denied findings, joined by commas and "or"."""
    names = [one_of(rng, bank("findings")[claim.finding]["denied"]) for claim in claims]
    comma = "," if len(names) > 2 and rng.random() < 0.5 else ""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])}{comma} or {names[-1]}"


def noun_phrase(rng: np.random.Generator, claim: Claim) -> str:
    """Return the noun phrase of a claim, its class first: ``[a]``, ``[p]`` or ``[0]``."""
    words = bank("findings")[claim.finding]
    several = claim.finding != "pacemaker" and (claim.count or 1) > 1
    pattern = one_of(rng, words["both" if claim.side == "bilateral" else "many" if several else "one"])
    fields = {"side": claim.side or "", "size": "", "upto": "", "count": NUMBERS[claim.count or 1]}
    for slot in ("severity", "location", "tip"):
        value = getattr(claim, slot)
        fields[slot] = one_of(rng, words.get(slot, {}).get(value, [value])) if value else ""
    fields["leads"] = one_of(rng, LEADS[claim.count or 1])
    millimetres = one_of(rng, ("{0} mm", "{0} mm", "{0}-mm"))
    if claim.size_mm:
        fields["size"] = millimetres.format(claim.size_mm)
        fields["upto"] = f" measuring up to {claim.size_mm} mm"
    return re.sub(r" +", " ", pattern.format(**fields)).strip()


def fill(rng: np.random.Generator, frame: str, phrase: str) -> str:
    """Return a frame round a noun phrase, with articles and agreement."""
    group, bare = phrase[:3], phrase[4:]
    plural = group == "[p]"
    first, _, rest = bare.partition(" ")
    new = f"{first} new {rest}" if first in NUMBERS.values() else f"new {bare}"
    indefinite = (lambda text: f"{article(text)} {text}") if group == "[a]" else str
    parts = {"indef": indefinite(bare), "bare": bare, "the": f"the {bare}", "new": indefinite(new)}
    parts |= {name.capitalize(): text[0].upper() + text[1:] for name, text in parts.items()}
    verbs = {"is": "are", "has": "have", "was": "were"} if plural else {"is": "is", "has": "has", "was": "was"}
    return frame.format(**parts, **verbs, since=one_of(rng, bank("frames")["since"]))


def article(text: str) -> str:
    """Return "a" or "an" by the sound of the first word: letters, and numbers as they are read."""
    first = re.split(r"[ -]", text)[0].lower()
    return "an" if first[0] in "aeiou" or first in ("8", "11", "18") else "a"
