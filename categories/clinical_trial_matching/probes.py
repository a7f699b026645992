"""Dumb solvers that must earn nothing here, and plain baselines whose passes are bounded. Runs alone in the box."""

import hashlib
import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
OUT = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
EXCLUSION = r"exclusion criteria|excluded if|may not be enrol|ineligible patients|who cannot join"


class Trial:
    """A protocol as these solvers see it."""

    def __init__(self, path: Path) -> None:
        root = ET.parse(path).getroot()  # noqa: S314 (our own files)
        self.path, self.id = path, path.stem
        self.condition = (root.findtext("condition") or "").lower()
        self.criteria = root.findtext("eligibility/criteria/textblock") or ""
        self.gender = root.findtext("eligibility/gender") or "All"
        self.low = number(root.findtext("eligibility/minimum_age") or "", 0)
        self.high = number(root.findtext("eligibility/maximum_age") or "", 999)
        self.text = " ".join(root.itertext())
        split = re.split(EXCLUSION, self.criteria, flags=re.IGNORECASE)
        self.inclusion, self.exclusion = split[0], split[-1] if len(split) > 1 else ""

    def items(self) -> list[str]:
        """The items of both lists."""
        return re.findall(r"^\s+(?:-|\d+\.|\*)\s+(.+)$", self.criteria, flags=re.MULTILINE)


def number(text: str, default: float) -> float:
    """The first number of a text."""
    match = re.search(r"\d+(?:\.\d+)?", text)
    return float(match.group()) if match else default


def note() -> str:
    """The patient's note."""
    return (DATA / "patient.txt").read_text(encoding="utf-8")


def words(text: str) -> list[str]:
    """Lower-case words of three letters and more."""
    return [w for w in re.findall(r"[a-z][a-z0-9-]+", text.lower()) if len(w) > 2]


def shuffled(trials: list[Trial], salt: str = "") -> list[Trial]:
    """An order that depends on the note only."""
    return sorted(trials, key=lambda t: hashlib.sha256(f"{salt}{note()}{t.id}".encode()).digest())


def weights(trials: list[Trial]) -> tuple[list[Counter[str]], dict[str, float]]:
    """Word counts per protocol, and inverse document frequencies."""
    docs = [Counter(words(t.text)) for t in trials]
    seen = Counter(w for doc in docs for w in doc)
    return docs, {w: math.log(1 + (len(docs) - n + 0.5) / (n + 0.5)) for w, n in seen.items()}


def by_score(trials: list[Trial], scores: list[float]) -> list[Trial]:
    """Best first."""
    return [trials[i] for i in sorted(range(len(trials)), key=lambda i: -scores[i])]


def bm25(trials: list[Trial]) -> list[Trial]:
    """The note as a query."""
    docs, idf = weights(trials)
    mean = sum(sum(d.values()) for d in docs) / len(docs)
    query = set(words(note()))
    scores = []
    for doc in docs:
        norm = 1.2 * (0.25 + 0.75 * sum(doc.values()) / mean)
        scores.append(sum(idf[w] * doc[w] * 2.2 / (doc[w] + norm) for w in query & set(doc)))
    return by_score(trials, scores)


def vectors(trials: list[Trial]) -> tuple[list[dict[str, float]], dict[str, float]]:
    """TF-IDF vectors of unit length."""
    docs, idf = weights(trials)
    out = []
    for doc in docs:
        vector = {w: (1 + math.log(n)) * idf[w] for w, n in doc.items()}
        norm = math.sqrt(sum(x * x for x in vector.values()))
        out.append({w: x / norm for w, x in vector.items()})
    return out, idf


def tfidf(trials: list[Trial]) -> list[Trial]:
    """Cosine similarity with the note."""
    docs, idf = vectors(trials)
    query = {w: idf.get(w, 0.0) for w in set(words(note()))}
    return by_score(trials, [sum(query.get(w, 0.0) * x for w, x in doc.items()) for doc in docs])


def centrality(trials: list[Trial]) -> list[Trial]:
    """Those most like all others: near-misses edited from one protocol would surround it."""
    docs, _ = vectors(trials)
    total: Counter[str] = Counter()
    for doc in docs:
        total.update(doc)
    return by_score(trials, [sum(total[w] * x for w, x in doc.items()) for doc in docs])


def keywords(trials: list[Trial]) -> list[Trial]:
    """Those whose criteria share the most words with the note."""
    query = set(words(note()))
    return by_score(trials, [float(len(query & set(words(t.criteria)))) for t in trials])


def main_disease(trials: list[Trial]) -> list[Trial]:
    """The trials about the disease that most conditions share a word with."""
    common = Counter(w for t in trials for w in set(words(t.condition)))
    common.pop("disease", None)
    names = {w for w, n in common.items() if n >= len(trials) / 5}
    return [t for t in trials if names & set(words(t.condition))]


def patient_age_sex() -> tuple[float, str]:
    """Age, and the registry's word for the sex."""
    age = number(re.search(r"\d+-year-old", note()).group(), 0)  # type: ignore[union-attr]
    return age, "Female" if re.search(r"\b(woman|girl)\b", note()) else "Male"


def structured(trials: list[Trial]) -> list[Trial]:
    """Condition, gender and age fields, no text."""
    age, sex = patient_age_sex()
    fit = [t for t in main_disease(trials) if t.gender in ("All", sex) and t.low <= age <= t.high]
    return shuffled(fit)


LABS = {
    "hba1c|glycated h(?:a)?emoglobin": r"(?:hba1c|a1c) {v} %",
    "h(?:a)?emoglobin|hb": r"(?:hb|hemoglobin) {v}",
    "platelet count|platelets": r"platelets {v}",
    "absolute neutrophil count|anc": r"neutrophils {v}",
    "egfr|glomerular filtration rate": r"egfr {v}",
    "serum albumin": r"albumin {v}",
    "potassium": r"potassium {v}",
    "qtcf|corrected qt interval": r"qtc {v}",
    "systolic blood pressure": r"(?:bp|blood pressure) {v}",
    "heart rate|pulse rate": r"(?:pulse|heart rate) {v}",
    "ferritin": r"ferritin {v}",
    "inr|international normalized ratio": r"inr {v}",
    "alanine aminotransferase|alt": r"\balt {v}",
    "bilirubin": r"bilirubin {v}",
    "left ventricular ejection fraction|lvef": r"ejection fraction {v}",
    "nt-probnp": r"nt-probnp {v}",
    "crp|c-reactive protein": r"crp {v}",
    "hcv rna|hepatitis c viral load": r"hcv rna {v}",
}
"""What a protocol calls a value -> where the note has it."""
FACTORS = {"g/l": 10.0, "/mm3": 1000.0, "umol/l": 17.1, "pmol/l": 0.118, "mg/dl": 1.0}
ULN = {"alanine": 40.0, "bilirubin": 1.2}
UP = r">=|at least|or higher|or more|not below|must be .* or more"
DOWN = r"<=|at most|or lower|or less|not exceeding|no higher|no more"


def numeric_fails(line: str, excluded: bool, text: str) -> bool:
    """Whether a line holds a limit on one laboratory value that the note's value breaks."""
    low = line.lower()
    found = [(name, where) for name, where in LABS.items() if re.search(rf"\b(?:{name})\b", low)]
    limits = re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w^])", low)
    if len(found) != 1 or len(limits) != 1:
        return False
    match = re.search(found[0][1].format(v=r"(\d[\d,]*(?:\.\d+)?)"), text)
    if match is None:
        return False
    value, limit = float(match.group(1).replace(",", "")), float(limits[0].replace(",", ""))
    if "platelet" in found[0][0]:
        value /= 1000
    value *= next((f for unit, f in FACTORS.items() if low.rstrip(".").endswith(unit)), 1.0)
    if "uln" in low or "upper limit" in low:
        value /= next((u for name, u in ULN.items() if name in found[0][0]), 1.0)
    if excluded:
        return (
            value > limit
            if re.search(r">|above|greater", low)
            else value < limit
            if re.search("<|below|less", low)
            else False
        )
    return value < limit if re.search(UP, low) else value > limit if re.search(DOWN, low) else False


def disease_age_labs(trials: list[Trial]) -> list[Trial]:
    """The main disease, age, sex and laboratory limits, text and fields; nothing of history or drugs."""
    text = note().lower()
    fit = []
    for trial in structured(trials):
        lines = [(line, False) for line in trial.inclusion.splitlines()]
        lines += [(line, True) for line in trial.exclusion.splitlines()]
        if not any(numeric_fails(line, excluded, text) for line, excluded in lines):
            fit.append(trial)
    return fit


Solver = Callable[[list[Trial]], list[Trial]]
RANDOM = "ids are keyed and random, all files carry one time, and the pool is several times larger than the places"
LENGTH = "length and number of criteria are drawn before the outcome"
ZERO: dict[str, tuple[Solver, str]] = {
    "pool_as_listed": (lambda pool: pool, RANDOM),
    "ids_ascending": (lambda pool: sorted(pool, key=lambda t: t.id), RANDOM),
    "ids_descending": (lambda pool: sorted(pool, key=lambda t: t.id, reverse=True), RANDOM),
    "newest_files": (lambda pool: sorted(pool, key=lambda t: -t.path.stat().st_mtime_ns), RANDOM),
    "largest_files": (lambda pool: sorted(pool, key=lambda t: -t.path.stat().st_size), LENGTH),
    "smallest_files": (lambda pool: sorted(pool, key=lambda t: t.path.stat().st_size), LENGTH),
    "most_criteria": (lambda pool: sorted(pool, key=lambda t: -len(t.items())), LENGTH),
    "fewest_criteria": (lambda pool: sorted(pool, key=lambda t: len(t.items())), LENGTH),
    "most_keywords": (keywords, "near-misses speak of the patient's facts as much as eligible trials do"),
    "structured_only": (structured, "nearly nine of ten near-misses fail in the text"),
    "centrality": (centrality, "protocols are drawn alone, none is edited from another"),
}
BOUND: dict[str, tuple[Solver, int, str]] = {
    "random_50": (lambda pool: shuffled(pool, "random"), 1, "chance is below 1 in 10,000 a task"),
    "bm25": (bm25, 2, "the note as a query"),
    "tfidf": (tfidf, 2, "the note as a query"),
    "disease_age_labs": (disease_age_labs, 1, "more than 150 wrong trials survive a perfect filter of this kind"),
}
"""Most passes of the nine tasks."""


def main(argument: str) -> None:
    """List the probes, or write the submission of one."""
    if argument == "--list":
        listed: list[dict[str, object]] = [
            {"name": n, "expects": "zero", "bound": None, "of": None, "why": why} for n, (_, why) in ZERO.items()
        ]
        listed += [{"name": n, "expects": "bound", "bound": b, "of": 9, "why": why} for n, (_, b, why) in BOUND.items()]
        print(json.dumps(listed))  # noqa: T201 (the contract)
        return
    trials = [Trial(path) for path in (DATA / "trials").iterdir()]
    if argument != "pool_as_listed":
        trials.sort(key=lambda t: t.id)
    solver = ZERO[argument][0] if argument in ZERO else BOUND[argument][0]
    ranked = solver(trials)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "eligible_trials.txt").write_text("".join(f"{t.id}\n" for t in ranked), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
