"""L2: an afternoon. A small screener for any specialty: numbers with units and limits, drug classes with wash-out and
stable dose, dated events, common diseases said in other words, and either/or, under three-valued logic.

Written from the instruction and the public notes and protocols of seed 0 alone. What it does not know stays open.
"""

import os
import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
SUBMISSION = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
NOTE = (DATA / "patient.txt").read_text(encoding="utf-8")
I = re.IGNORECASE  # noqa: E741 (the pattern tables stay readable)
DAYS = {"day": 1, "week": 7, "month": 30.4, "year": 365.25}

LABS = {
    r"\bALT\b|alanine": r"ALT ([\d.]+)",
    r"bilirubin": r"bilirubin ([\d.]+)",
    r"\bLDH\b|lactate dehydrogenase": r"LDH ([\d.]+)",
    r"systolic": r"(?:BP|pressure) (\d+)/",
    r"QTc": r"QTc (\d+)",
    r"eGFR|glomerular": r"eGFR ([\d.]+)",
    r"h(a)?emoglobin (of|below|above|not|must|at|<|>|no|is)|\bHb\b": r"(?:Hb|h(?:ae|e)moglobin) ([\d.]+)",
    r"potassium": r"potassium ([\d.]+)",
    r"platelets? (count|of|below|above|not|must|at|<|>|no|is)": r"platelets ([\d,.]+)",
    r"serum albumin": r"albumin ([\d.]+) g",
    r"neutrophil": r"neutrophils ([\d.]+)",
    r"leu[ck]ocyte count|white (blood )?cell": r"white cells ([\d.]+)",
    r"C-reactive|\bCRP\b": r"CRP ([\d.]+)",
    r"phosphate (below|not|of|at|must|above|no|<|>|is)|phosphorus": r"phosphorus ([\d.]+)",
    r"Kt/V": r"Kt/V ([\d.]+)",
    r"loose stools|unformed": r"(\d+) (?:loose|watery) stools",
    r"temperature|fever \(": r"temperature ([\d.]+)",
    r"ejection fraction|LVEF": r"ejection fraction (\d+)",
    r"NT-proBNP": r"NT-proBNP ([\d.]+)",
    r"\bLDL\b": r"LDL ([\d.]+)",
    r"A1c": r"a1c ([\d.]+)",
    r"ferritin": r"ferritin ([\d.]+)",
    r"\bINR\b": r"INR ([\d.]+)",
    r"alpha-fetoprotein|\bAFP\b": r"AFP ([\d.]+)",
    r"HCV RNA": r"HCV RNA ([\d.]+)",
    r"SLEDAI": r"SLEDAI (\d+)",
    r"anti-dsDNA": r"anti-dsDNA (\d+)",
    r"lymphocyte": r"lymphocytes ([\d.]+)",
    r"HbF|fetal": r"HbF ([\d.]+)",
    r"jet|TRV": r"jet ([\d.]+)",
    r"PedMIDAS": r"PedMIDAS (\d+)",
    r"headache days": r"(\d+) headache days",
    r"untreated attacks|attack length": r"lasts (\d+) hours",
}
LIMIT = r"\(upper limit ([\d.]+)"
TO_NOTE_UNITS = ((r"g/L", r"albumin|h(a)?emoglobin|\bHb\b", 0.1), (r"/mm", r"neutrophil", 0.001))
TO_NOTE_UNITS += ((r"umol/L", r"bilirubin", 1 / 17.1), (r"mmol/L", r"phosph", 3.1), (r"mmol/mol", r"A1c", 0.0915))

CLASSES = {
    r"statin|HMG-CoA": r"statin|crestor|lipitor|zocor",
    r"proton pump|PPIs?\b": r"prazole|nexium|prilosec|protonix",
    r"SSRI|selective serotonin": r"sertraline|fluoxetine|citalopram|paroxetine|zoloft|prozac|lexapro",
    r"SNRI|serotonin-norepinephrine": r"duloxetine|venlafaxine|cymbalta|effexor",
    r"antidepressa": r"sertraline|fluoxetine|citalopram|paroxetine|duloxetine|venlafaxine|amitriptyline|zoloft|bupropion",
    r"benzodiazepine": r"azepam|alprazolam|xanax|ativan",
    r"corticosteroids|glucocorticoids": r"prednis|medrol|dexamethasone|hydrocortisone",
    r"NSAID|nonsteroidal": r"ibuprofen|naproxen|diclofenac|meloxicam|advil|aleve|indomethacin",
    r"opioid agonist|opioid": r"oxycodone|morphine|tramadol|methadone|hydromorphone|suboxone|buprenorphine|fentanyl",
    r"fluoroquinolone": r"floxacin|cipro|levaquin",
    r"antibiotics|antibacterial": r"cephalexin|floxacin|azithromycin|amoxicillin|doxycycline|vancocin|dificid|keflex",
    r"beta-?(adrenergic )?block": r"olol\b|carvedilol|coreg|lopressor",
    r"renin-angiotensin|RAS inhib": r"pril\b|sartan|entresto|zestril",
    r"angiotensin-converting": r"pril\b|zestril",
    r"calcium (channel|antag)": r"dipine|diltiazem|verapamil|norvasc",
    r"mineralocorticoid|MRAs": r"spironolactone|eplerenone|aldactone",
    r"anticoag": r"apixaban|eliquis|xarelto|rivaroxaban|warfarin|coumadin|heparin",
    r"antiplatelet|platelet aggregation": r"aspirin|clopidogrel|plavix|ticagrelor",
    r"thyroid hormone": r"levothyroxine|synthroid",
    r"antiseizure|antiepileptic": r"topiramate|valpro|levetiracetam|keppra|lamotrigine|topamax",
    r"gabapentinoid": r"gabapentin|pregabalin|lyrica|neurontin",
    r"antipsychotic|neuroleptic": r"quetiapine|olanzapine|risperidone|seroquel|haloperidol",
    r"inhaled cortico": r"fluticasone|budesonide|flovent|pulmicort",
    r"hormonal contracep": r"sprintec|ethinyl|yaz\b",
    r"triptan": r"triptan|imitrex|maxalt",
    r"phosphate binder": r"calcium acetate|sevelamer|renvela|phoslo",
    r"iron chelat": r"deferasirox|jadenu|exjade|deferoxamine",
}

FACTS = {
    r"asthma": r"asthma",
    r"depressi": r"PHQ-9 of (1\d|2\d)",
    r"hypertension|high blood pressure": r"pressure pills|for pressure|hypertensi",
    r"atrial fibrillation": r"irregularly irregular|atrial fib",
    r"type 2 diabetes": r"Sugars have run high|for sugars|type 2 diab",
    r"sleep apn": r"CPAP|apnea",
    r"hypothyroid": r"levothyroxine|synthroid|thyroid (failed|gave)",
    r"smok|tobacco|vaper": r"pack a day|cigarettes|vapes daily|smokes",
    r"malignancy|cancer": r"cancer of .* is treated|tumou?r was (removed|found)",
    r"claustrophobia": r"claustrophob|panics? in",
    r"needle phobia": r"faints at the sight of blood|cannot look at a syringe",
    r"seizure|epilep": r"convulsions years ago|seizures?\b",
    r"HIV infection": r"HIV (antigen and )?antibody reactive|HIV positive",
    r"hepatitis B": r"surface antigen (positive|reactive)|core antibody (positive|reactive)",
    r"reflux": r"heartburn|burning behind",
    r"illicit|recreational|cannabis": r"smokes weed|marijuana|cocaine",
    r"magnetic resonance|MRI-cond": r"metal slivers|pacemaker|cochlear",
    r"swallow": r"crush|cannot get pills|tablets stick",
    r"cohabit|caregiver or partner": r"(wife|husband|partner|daughter|son) (lives|at home|helps)",
    r"stroke|transient isch|cerebro": r"stroke|droop",
    r"thrombo(sis|embol)|DVT": r"clot in|embol",
}
EVENTS = {
    r"surgery": r"hernia was closed|appendix out|operat|under the knife",
    r"vaccination": r"shot|vaccin",
    r"transfusion": r"bags? of (red cells|blood)",
    r"infection (other|treated)|of an infection": r"cellulitis|pneumonia|kidney infection|last infection",
    r"investigational|study drug|another trial": r"blinded study|study at the university",
    r"concussion|head injur": r"knocked out",
}
NEGATED = r"\b(no|not|never|without|negative|denies|normal|clean|clear|nobody|absent|none|nonreactive)\b"
ROUTINE = (
    r"consent|visits|investigator|telephone|study (plan|team|procedures)|insurance|venous access|sponsor|length of the"
)
ROUTINE += r"|judge?ment|sign a"
HEADS_OUT = r"ineligible|cannot join|not be|xclu"
HEADS_IN = r"eligible|can join|inclusion|to be enrolled|section|appendix|limits|required"


def sentences() -> list[str]:
    """Return what the note says, a fact a piece; medication entries are pieces of their own."""
    return [piece.strip() for piece in re.split(r"(?<=[a-z)\d])\.\s+|;\s|\n", NOTE) if piece.strip()]


SAID = sentences()
AGE = int((re.search(r"(\d+)-year-old", NOTE) or ["", "50"])[1])
SEX = "Female" if re.search(r"\b(woman|girl|lady)\b", NOTE) else "Male"


def said(pattern: str) -> bool | None:
    """Return True where a sentence affirms, False where only negated ones speak of it, None where none does."""
    hits = [(piece, found) for piece in SAID if (found := re.search(pattern, piece, I))]
    if not hits:
        return None
    return any(not re.search(NEGATED, piece[: found.start()], I) for piece, found in hits)


def span(text: str) -> float | None:
    """Return the days of the first time span in a text."""
    found = re.search(r"(\d+)[ -](day|week|month|year)s?", text)
    return int(found[1]) * DAYS[found[2]] if found else None


def compared(value: float, text: str) -> bool | None:
    """Compare a value with the limit a text gives, by its words."""
    number = re.findall(r"(?:<=|>=|<|>|of|than|least|most|below|above|be|exceeding|is) (\d+(?:\.\d+)?)", text)
    if not number:
        return None
    limit = float(number[-1])
    if re.search(r"<=|at most|not exceed|no (more|higher|greater) than|or (less|lower)|not above", text):
        return value <= limit
    if re.search(r">=|at least|not below|no (less|lower) than|or (more|higher)", text):
        return value >= limit
    if re.search(r"<|below|less than|lower than", text):
        return value < limit
    return value > limit if re.search(r">|above|(greater|higher|more) than|exceed", text) else None


def numeric(text: str) -> tuple[bool, bool | None]:
    """Return whether a text is about a number of the note, and the answer."""
    if re.search(r"body mass|\bBMI\b", text):
        size = re.search(r"(\d+) kg at (\d+) cm", NOTE)
        return True, compared(int(size[1]) / (int(size[2]) / 100) ** 2, text) if size else None
    for name, pattern in LABS.items():
        if not re.search(name, text, I):
            continue
        found = re.search(pattern, NOTE, I)
        if not found:
            return True, None
        value = float(found[1].replace(",", "")) / (1000 if "," in found[1] else 1)
        if re.search(r"ULN|upper limit", text):
            limit = re.match(r"[^,.]*?" + LIMIT, NOTE[found.end() :])
            return True, compared(value / float(limit[1]), text) if limit else None
        for unit, what, factor in TO_NOTE_UNITS:
            if unit in text and re.search(what, text, I):
                value /= factor
        return True, compared(value, text)
    return False, None


def drug(text: str) -> tuple[bool, bool | None]:
    """Return whether a text is about a drug class, and the answer: the medication list is complete."""
    for name, members in CLASSES.items():
        if not re.search(name, text, I):
            continue
        entries = [piece for piece in SAID if re.search(members, piece, I) and not re.search(NEGATED, piece, I)]
        stopped = [piece for piece in entries if re.search(r"ago|until", piece, I)]
        current, wanted = [piece for piece in entries if piece not in stopped], span(text)
        if re.search(r"dose|stable|unchanged", text, I) and wanted is not None:
            return True, any((span(piece) or 1e4) >= wanted for piece in current)
        if wanted is not None:
            return True, bool(current) or any((span(piece) or 0) <= wanted for piece in stopped)
        return True, bool(current)
    return False, None


def atom(text: str) -> bool | None:
    """Judge one statement."""
    years = [int(n) for n in re.findall(r"\d+", text)]
    if years and re.search(r"years old|^aged? |years of age", text, I):
        return years[0] <= AGE <= (years[1] if len(years) > 1 else 120)
    for about, answer in (drug(text), numeric(text)):
        if about:
            return answer
    for name, pattern in EVENTS.items():
        if re.search(name, text, I) and span(text):
            hits = [p for p in SAID if re.search(pattern, p, I) and not re.search(NEGATED, p, I) and span(p)]
            return any((span(p) or 1e6) <= (span(text) or 0) for p in hits) if hits or said(pattern) is False else None
    for name, pattern in FACTS.items():
        if re.search(name, text, I):
            return said(pattern)
    words = [w for w in re.findall(r"[a-z]{6,}", text.lower()) if w not in NOISE]
    return said("|".join(w[:7] for w in words)) if words else None


NOISE = {"patients", "presence", "documentation", "history", "documented", "confirmed", "disease", "diagnosed"}
NOISE |= {"diagnosis", "established", "specialist", "previous", "current", "active", "before", "screening", "within"}


def judged(block: str) -> bool | None:
    """Judge a criterion with its parts under Kleene logic."""
    head, *parts = re.split(r"\n\s*(?:[ivx]+\.|\([a-z]\))\s+", block)
    flat = " ".join(block.split())
    for pattern, join in COMPOSED:
        found = re.match(pattern, flat, I) if not parts else None
        if found:
            first, second = atom(found[1]), atom(found[2])
            if join == "if" and first is not None:
                first = not first
            if join == "unless" and second is not None:
                second = not second
            return kleene([first, second], "or" if join in ("if", "or") else "and")
    if not parts:
        return atom(flat)
    answers = [atom(" ".join(part.split())) for part in parts]
    return kleene(answers, "and" if re.search(r"combination|all of", head, I) else "or")


COMPOSED = (
    (r"in the presence of (.+?) a further condition holds: (.+)", "if"),
    (r"(?:patients with )?both of these at once: (.+?), plus (.+)", "and"),
    (
        r"(.+?)(?:; this does not apply in case of|, except in participants with|, although they are welcome if there is) (.+)",
        "unless",
    ),
    (r"(?:either|one of these must be true:) ?(.+?),? or (.+)", "or"),
)


def kleene(answers: list[bool | None], join: str) -> bool | None:
    """Join three-valued answers."""
    decisive = join == "or"
    return decisive if decisive in answers else None if None in answers else not decisive


def failures(root: ET.Element, target: set[str]) -> float:
    """Return how many criteria stand in the way; what is open weighs less than what fails."""
    if root.findtext(".//gender") not in ("All", SEX, None):
        return 50.0
    text = root.findtext(".//criteria/textblock") or ""
    condition = root.findtext("condition") or ""
    failed = 0.0 if condition in target else 0.0 if atom(condition) else 8.0
    bounds = [root.findtext(f".//{name}_age") or "" for name in ("minimum", "maximum")]
    low, high = (int(bound.split()[0]) if bound[:1].isdigit() else None for bound in bounds)
    if not re.search(r"years old|\bage", text, I) and not (low or 0) <= AGE <= (high or 120):
        failed += 8.0
    excluding = False
    for block in re.split(r"\n\s*\n", text):
        plain = re.sub(r"^\s*(?:-|\*|\d+\.)\s*", "", block.strip("\n"))
        flat = " ".join(plain.split())
        if flat.endswith(":") and "\n" not in plain.strip() and not re.search(r"following:$|combination", flat):
            if re.search(HEADS_OUT, flat, I):
                excluding = True
            elif re.search(HEADS_IN, flat, I):
                excluding = False
        elif flat and not re.search(ROUTINE, flat, I) and any(target_ in flat for target_ in target) is False:
            answer = judged(plain)
            failed += float(answer is True) if excluding else float(answer is False) + 0.5 * (answer is None)
    return failed


def main() -> None:
    """Rank the pool by failures and hand in the first fifty."""
    trials = {path.stem: ET.parse(path).getroot() for path in sorted((DATA / "trials").glob("*.xml"))}
    common = Counter(root.findtext("condition") for root in trials.values())
    target = {str(name) for name, count in common.items() if count > 20}
    ranked = sorted(trials, key=lambda name: failures(trials[name], target))
    (SUBMISSION / "eligible_trials.txt").write_text("\n".join(ranked[:50]), encoding="utf-8")


if __name__ == "__main__":
    main()
