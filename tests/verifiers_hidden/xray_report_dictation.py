"""Another radiologist: says the same statements in words that neither the generator nor the judge took from here."""

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

Statement = dict[str, Any]

NAMES = {
    "pleural_effusion": ("pleural effusion", "effusion", "pleural fluid"),
    "pneumothorax": ("pneumothorax", "PTX"),
    "consolidation": ("consolidation", "airspace disease", "airspace consolidation", "infiltrate", "air space opacity"),
    "atelectasis": ("atelectasis", "subsegmental atelectasis", "discoid atelectasis", "plate-like atelectasis"),
    "pulmonary_edema": ("pulmonary edema", "interstitial edema", "pulmonary vascular congestion"),
    "nodule": ("nodule", "pulmonary nodule", "nodular opacity", "lung nodule"),
    "granuloma": ("calcified granuloma", "granuloma", "calcified nodule"),
    "cardiomegaly": ("cardiomegaly", "cardiac enlargement", "enlargement of the cardiac silhouette"),
    "mediastinal_widening": ("mediastinal widening", "widening of the mediastinum"),
    "hyperinflation": ("hyperinflation", "lung hyperexpansion", "hyperinflation of the lungs"),
    "hiatal_hernia": ("hiatal hernia", "hiatus hernia"),
    "rib_fracture": ("rib fracture",),
    "endotracheal_tube": ("endotracheal tube", "ET tube", "ETT"),
    "enteric_tube": ("nasogastric tube", "NG tube", "feeding tube", "orogastric tube"),
    "central_line": ("central venous catheter", "central line", "IJ catheter", "CVC"),
    "pacemaker": ("pacemaker", "cardiac pacemaker", "pacing device"),
    "chest_tube": ("chest tube", "thoracostomy tube", "pleural drain"),
    "sternal_wires": ("median sternotomy wires", "sternal wires", "sternotomy sutures"),
}
GRADES = {
    "small": ("small", "small-sized", "small volume"),
    "mild": ("mild", "minor"),
    "moderate": ("moderate", "moderate-sized"),
    "large": ("large", "sizable", "large volume"),
    "severe": ("severe", "marked"),
}
PLAIN = ("moderate", "mild", "severe")
"""Kinds told by degree take no size."""
PLACES = {
    "upper lobe": ("upper lobe",),
    "middle lobe": ("middle lobe",),
    "lower lobe": ("lower lobe", "lung base", "base"),
    "upper zone": ("upper zone", "upper lung", "upper lung field"),
    "mid zone": ("mid zone", "mid lung", "midlung zone"),
    "lower zone": ("lower zone", "lower lung zone", "lung base", "lower lung field"),
}
TIPS = {
    "mid trachea": ("in the mid trachea", "4.5 cm above the carina", "5 cm from the carina"),
    "right main bronchus": ("in the right mainstem bronchus", "within the right main bronchus"),
    "stomach": ("in the stomach", "below the left hemidiaphragm", "in the gastric body"),
    "distal esophagus": ("in the distal esophagus", "within the lower esophagus"),
    "superior vena cava": ("in the SVC", "over the superior vena cava", "in the mid SVC"),
    "right atrium": ("in the right atrium", "over the right atrium"),
    "brachiocephalic vein": ("in the brachiocephalic vein", "in the innominate vein"),
    "apex": ("at the apex", "at the lung apex"),
    "base": ("at the base", "at the lung base"),
}
CHANGES = {
    "unchanged": ("unchanged", "stable", "not significantly changed", "similar to the prior study"),
    "increased": (
        "increased since the prior exam",
        "worse than before",
        "larger compared with the previous radiograph",
    ),
    "decreased": ("decreased in the interval", "smaller than before", "improved from the prior study"),
    "new": ("new since the prior exam", "new from the previous radiograph", "newly developed"),
}
LEADING = {
    "unchanged": ("Unchanged", "Stable"),
    "increased": ("Interval increase in", "Worsening"),
    "decreased": ("Interval decrease in", "Improving"),
    "new": ("New", "Interval development of"),
}
NUMBERS = {2: ("two", "2"), 3: ("three", "3")}
LEADS = {1: ("single-lead", "single chamber"), 2: ("dual-lead", "dual chamber"), 3: ("three-lead", "biventricular")}
DENIALS = (
    "No {0}.",
    "There is no {0}.",
    "No evidence of {0}.",
    "{0} is not seen.",
    "Negative for {0}.",
    "No {0} is identified.",
    "No radiographic evidence of {0}.",
)
RESOLVED = (
    "The {0} has resolved.",
    "Interval resolution of the {0}.",
    "The {0} is no longer seen.",
    "Previously seen {0} has cleared.",
)
REMOVED = ("The {0} has been removed.", "Interval removal of the {0}.", "The {0} is no longer present.")


def dictate(rng: random.Random, statement: Statement) -> str:
    """Return one or two sentences that say a statement."""
    name = rng.choice(NAMES[statement["finding"]])
    if statement["status"] == "absent":
        if statement["finding"] == "cardiomegaly" and not statement.get("change"):
            return rng.choice(
                ("Heart size is normal.", "The heart is not enlarged.", "No cardiomegaly.", "Normal heart.")
            )
        devices = REMOVED if "tube" in name or statement["finding"] in ("central_line", "sternal_wires") else RESOLVED
        return _sentence(rng.choice(devices if statement.get("change") == "resolved" else DENIALS).format(name))
    return _sentence(rng.choice((_front, _predicate, _note, _two))(rng, statement, name))


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _parts(rng: random.Random, statement: Statement, name: str) -> tuple[str, str, str, str]:
    """Return number and grade, the side with the place, the name, and what follows it."""
    grade = rng.choice(GRADES[statement["severity"]]) if statement.get("severity") else ""
    if grade.endswith("volume") and not name.startswith("pleural"):
        grade = statement["severity"]
    count, side, after = statement.get("count"), statement.get("side") or "", ""
    if statement["finding"] == "pacemaker" and count:
        name = f"{rng.choice(LEADS[count])} {name}"
    elif count and count > 1:
        grade, name = rng.choice(NUMBERS[count]), (f"{name[:-1]}ies" if name.endswith("y") else f"{name}s")
    elif side == "bilateral" and name[-1] in "ne":
        name = f"{name}s"
    if statement.get("size_mm"):
        after = rng.choice((f" measuring {statement['size_mm']} mm", f", {statement['size_mm'] / 10:g} cm in diameter"))
    if statement.get("tip"):
        after += f"{rng.choice((' with tip ', ' terminating ', ', tip '))}{rng.choice(TIPS[statement['tip']])}"
    return grade, side, name, after


def _place(rng: random.Random, statement: Statement) -> str:
    return rng.choice(PLACES[statement["location"]]) if statement.get("location") else ""


def _front(rng: random.Random, statement: Statement, name: str) -> str:
    """``Stable small left pleural effusion.``"""
    grade, side, name, after = _parts(rng, statement, name)
    change = rng.choice(LEADING[statement["change"]]) if statement.get("change") else ""
    place = _place(rng, statement)
    if place and rng.random() < 0.5:
        where = f" in the {side} {place}" if side != "bilateral" else f" in both {place}s"
        words = [change, grade, name + where]
    else:
        words = [change, grade, side, place, name]
    return " ".join(word for word in words if word) + after + "."


def _predicate(rng: random.Random, statement: Statement, name: str) -> str:
    """``There is a small effusion on the left, unchanged.``"""
    grade, side, name, after = _parts(rng, statement, name)
    place = _place(rng, statement)
    where = ""
    if side == "bilateral":
        where = f" in both {place}s" if place else " bilaterally"
    elif side:
        where = f" in the {side} {place}" if place else f" on the {side}"
    tail = f", {rng.choice(CHANGES[statement['change']])}" if statement.get("change") else ""
    plural = name.endswith("s") and not name.endswith("sis")
    head = "There are" if plural else rng.choice(("There is", "There is a"))
    return " ".join(word for word in (head, grade, name) if word) + where + after + tail + "."


def _note(rng: random.Random, statement: Statement, name: str) -> str:
    """``A small left effusion is noted and is unchanged.``"""
    grade, side, name, after = _parts(rng, statement, name)
    place = _place(rng, statement)
    words = " ".join(word for word in (grade, side, place, name) if word)
    if statement.get("change"):
        told = rng.choice(CHANGES[statement["change"]])
        return rng.choice((f"{words}{after} is {told}.", f"{words}{after} noted, {told}.", f"{words}{after}; {told}."))
    return f"{words}{after} {rng.choice(('is noted', 'is present', 'is again demonstrated', 'is seen'))}."


def _two(rng: random.Random, statement: Statement, name: str) -> str:
    """``There is a left effusion. It is small and unchanged.``"""
    change, grade = statement.get("change"), statement.get("severity")
    if not change or statement["side"] == "bilateral":
        return _front(rng, statement, name)
    first = _predicate(rng, {**statement, "change": None, "severity": None}, name).replace("  ", " ")
    told = rng.choice(CHANGES[change])
    subject = "These are" if (statement.get("count") or 1) > 1 else rng.choice(("It is", "This is"))
    return f"{first} {subject} {grade + ' and ' if grade else ''}{told}."


ABBREVIATIONS = (
    (r"\bright upper lobe\b", "RUL"),
    (r"\bright middle lobe\b", "RML"),
    (r"\bright lower lobe\b", "RLL"),
    (r"\bleft upper lobe\b", "LUL"),
    (r"\bleft lower lobe\b", "LLL"),
    (r"\bsuperior vena cava\b", "SVC"),
    (r"\bcompared with\b", "c/w"),
    (r"\b(left|right)-sided\b", r"\1"),
)


def rewrite(rng: random.Random, sentences: Sequence[str], statements: Sequence[Sequence[Statement]]) -> str:
    """Return a whole report that says the same: other words, order, punctuation, abbreviations; merged and split."""
    found = []
    for sentence, group in zip(sentences, statements, strict=True):
        said = " ".join(dictate(rng, statement) for statement in group) if group and rng.random() < 0.8 else sentence
        found.append(said)
    rng.shuffle(found)
    return _punctuated(rng, _merged(rng, [_abbreviated(rng, text) for text in found]))


def _abbreviated(rng: random.Random, text: str) -> str:
    for pattern, short in ABBREVIATIONS[:6]:
        if rng.random() < 0.5:
            text = re.sub(pattern, short, text, flags=re.IGNORECASE)
    return text


def _merged(rng: random.Random, texts: list[str]) -> list[str]:
    """Join some pairs of one-sentence texts by a semicolon or ``and``."""
    found: list[str] = []
    for text in texts:
        single = text.count(". ") == 0 and bool(found) and found[-1].count(". ") == 0
        if single and rng.random() < 0.2 and ";" not in found[-1] and not text.startswith(("Previously", "No ")):
            joint = rng.choice(("; ", ", and "))
            first = text if re.match(r"[A-Z]{2}", text) else text[0].lower() + text[1:]
            found[-1] = found[-1].removesuffix(".") + joint + first
        else:
            found.append(text)
    return found


def _punctuated(rng: random.Random, texts: list[str]) -> str:
    styles: list[Callable[[list[str]], str]] = [
        lambda lines: "FINDINGS:\n" + " ".join(lines),
        lambda lines: "FINDINGS: " + "\n".join(lines) + "\n",
        lambda lines: "\n".join(f"- {line.rstrip('.')}" for line in lines),
        lambda lines: "Findings:\n\n" + "\n".join(f"{n}. {line}" for n, line in enumerate(lines, 1)),
        lambda lines: " ".join(lines).upper(),
        "\r\n".join,
        lambda lines: " ".join(lines) + "\n\nIMPRESSION: As above.",
    ]
    return rng.choice(styles)(texts)
