"""L1: ten minutes. Age and sex, plain numbers of the note, words of a criterion found in an affirmed sentence."""

import os
import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
SUBMISSION = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
NOTE = (DATA / "patient.txt").read_text(encoding="utf-8")
AGE = int((re.search(r"(\d+)-year-old", NOTE) or ["", "50"])[1])
FEMALE = re.search(r"\b(woman|girl|she|her)\b", NOTE) is not None
LABS = {"alt|alanine": r"ALT (\d+)", "systolic": r"(?:BP|pressure) (\d+)/", "qtc": r"QTc (\d+)", "egfr": r"eGFR (\d+)"}
LABS |= {
    "hemoglobin|^hb": r"(?:Hb|emoglobin) ([\d.]+)",
    "potassium": r"otassium ([\d.]+)",
    "platelet": r"latelets (\d+)",
}
NEGATED = re.compile(r"\b(no|not|never|without|negative|denies|normal|clean|clear|nobody|absent)\b", re.IGNORECASE)
DULL = {"patients", "known", "history", "documentation", "presence", "disease", "must", "have", "with", "within"}
DULL |= {"last", "weeks", "days", "months", "least", "before", "screening", "entry", "received", "years", "during"}
HARMLESS = re.compile(r"consent|visits|investigator|telephone|study|insurance|venous access|sponsor", re.IGNORECASE)
SAID = {w for s in re.split(r"[.;]\s", NOTE) if not NEGATED.search(s) for w in re.findall(r"[a-z]{4,}", s.lower())}


def met(text: str) -> bool | None:
    """Return whether a criterion is met, None where the script cannot tell."""
    ages = [int(n) for n in re.findall(r"\d+", text)]
    if ages and re.search(r"years old|\b[aA]ge[d ]|of age", text):
        return ages[0] <= AGE <= (ages[1] if len(ages) > 1 else 120)
    for name, pattern in LABS.items():
        value, limit = re.search(pattern, NOTE), re.search(r"(\d+(?:\.\d+)?)", text)
        if re.search(name, text, re.IGNORECASE) and value and limit and "upper" not in text and "ULN" not in text:
            low = re.search(r"at least|>|above|greater|higher|or more|not below", text) and "no higher" not in text
            return (float(value[1]) >= float(limit[1])) == bool(low)
    words = set(re.findall(r"[a-z]{4,}", text.lower())) - DULL
    return True if words & SAID else None


def failures(path: Path, target: set[str]) -> float:
    root = ET.parse(path).getroot()
    if {"Female": not FEMALE, "Male": FEMALE}.get(root.findtext(".//gender") or "", False):
        return 99
    failed, excluding = 0.0 if root.findtext("condition") in target else 5.0, False
    for block in re.split(r"\n\s*\n", root.findtext(".//criteria/textblock") or ""):
        text = re.sub(r"^\s*(-|\*|\d+\.)\s*", "", " ".join(block.split()))
        if text.endswith(":") and len(text) < 150 and re.search("clusion|ligible|enrolled|excluded|join", text):
            excluding = re.search(r"not be|xclu|ineli|cannot", text, re.IGNORECASE) is not None
        elif not HARMLESS.search(text) and not text.endswith(":"):
            answer = met(text)
            failed += (answer is True) if excluding else 0.3 * (answer is None) + (answer is False)
    return failed


if __name__ == "__main__":
    trials = sorted((DATA / "trials").glob("*.xml"))
    common = Counter(ET.parse(path).getroot().findtext("condition") for path in trials)
    ranked = sorted(trials, key=lambda path: failures(path, {str(c) for c, n in common.items() if n > 20}))
    (SUBMISSION / "eligible_trials.txt").write_text("\n".join(path.stem for path in ranked[:50]), encoding="utf-8")
