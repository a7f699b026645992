"""An honest screener: reads the note and each criterion with tables of clinical knowledge. Runs alone in the box.

It knows general medicine and two of the nine specialties (benign hematology, movement disorders). Trials are ranked by
the number of criteria that surely fail, then by how many were not understood.
"""

import os
import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
OUT = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))

CLASSES = """
antidepressant = sertraline citalopram fluoxetine zoloft duloxetine venlafaxine triptyline mirtazapine bupropion
antiepileptic|antiseizure = topira valpro levetirac lamotrig topamax gabapentin carbamaz phenytoin pregabalin
systemic antibiotic|antibacterial = cillin floxacin mycin cephalexin doxycycline augmentin cefepime
corticosteroids \\(|glucocorticoid|systemic corticosteroid = prednis methylpred dexameth medrol ; l-glutamine = endari
opioid analgesic|opioids = oxycodone tramadol codone morphine oxycontin hydromorphone ; proton pump|ppi = prazole nexium
ssri|selective serotonin reup = sertraline escitalopram fluoxetine zoloft citalopram ; biguanide = metformin glucophage
antiplatelet|platelet aggregation = clopidogrel ticagrelor plavix prasugrel aspirin ; p-selectin = crizanlizumab adakveo
nsaid|nonsteroidal anti = naproxen ibuprofen diclofenac meloxicam aleve ketorolac ; oxygen-affinity = voxelotor oxbryta
cyp3a4 inhib = clarithromycin itraconazole posaconazole ketoconazole ritonavir ; nmda = amantadine gocovri memantine
orthostatic hypotension$|raise blood pressure = midodrine fludrocort droxidopa ; catechol|comt = capone comtan
antipsychotic|neuroleptic = quetiapine olanzapine risperidone seroquel ; cholinesterase = rivastigmine donepezil aricept
cyp3a4 induc|inducers of cyp3a4 = rifampin carbamazepine phenytoin ; gabapentinoid = gabapentin pregabalin lyrica
monoamine oxidase|mao-b = rasagiline selegiline azilect safinamide ; iron chelat = deferasirox jadenu deferiprone
dopamine agonist = pramipexole ropinirole mirapex rotigotine ; anticoag = xaban warfarin eliquis enoxaparin dabigatran
beta-blocker|beta-adrenergic block = olol carvedilol toprol ; renin-angiotensin|ras inhib = pril zestril sartan entresto
ribonucleotide|hydroxycarbamide = hydroxyurea droxia siklos ; levodopa with|dopamine precursor = levodopa sinemet rytary
centrally acting anticholin = trihexy benztropine cogentin ; phosphodiesterase|pde5 = sildenafil tadalafil cialis
alpha-1 adren = tamsulosin doxazosin flomax ; thyroid hormone = levothyroxine synthroid
benzodiazepine = azepam ativan alprazolam ; statins|hmg-coa = statin crestor lipitor
"""
FINDINGS = """
arterial hypertension|high blood pressure req = pressure pills|treated hyp|pressures were|hypertension ! were norm
stroke|cerebrovascular = facial droop|infarct at|neck and brain|brain images|strokes ! unremarkable|without infarcts
albuminuria|nephropathy|albumin-to-creatinine ratio of 30 = urine albumin [0-9]+ mg per ! albumin 6 mg
tobacco|smoker or vap = cigarette|vapes|no plans to quit|tobacco|carbon monoxide ! never|breath 1 ppm
magnetic resonance|mri-cond = cochlear implant|metal slivers|hour of mri ! without trouble ; priapism = erection ! never
atrial fib = irregularly|weeks of monitor|atrial fibrillation ! sinus rhythm through ; orthostatic = on standing ! rises
caregiver|cohabiting = sister, who|spouse keeps|divorce|lives alone ! nobody|alone ; iron overload = liver iron ! 1\\.6
failure on hydroxy|response to hydroxy = crises went|teens droxia ! without harm ; dyskinesia = writh ! no writh
recreational|illicit = joint most|cocaine|toxicology|recreational drugs ! clean ; drool|sialorr = drool|collar and ! dry
coronary artery disease = stents in|ct angiogram|heart disease ! without plaque ; freezing = doorways ! without
deep vein|venous throm = clot in the|clot plugged|duplex|blood clots ! clean ; gout = big toe|uric acid|gout ! low, toes
relative with park|history of park = shuffled and shook|siblings ! siblings ; tremor = soup|early shaking ! all but gone
heart failure|ventricular dysf = dilated left|left ventricle sq ! squeezes ; leg ulcer = sore above|ankles whole ! whole
malignancy|recent cancer = melanoma of|screens for tumors|cancer ! clear ; chronic pain = aches on|free of pain ! free
deep brain stim|functional neuros = two leads|without leads ! without ; insomnia = lies awake|sleeps seven ! sleeps
avascular|osteonecrosis = collapsed and dead|hip and should ! smooth ; melanoma = black mole|skin check|melanoma ! clean
night-shift|sleep-wake = 10 pm|midnight until|office hours ! office ; suicid = psychiatric unit|self-harm|ending ! never
exchange program|red cell exchange = apheresis|no program ! only in ; dementia = lost on the way|company's books ! still
alcohol = beers|vodka|glass of wine|had a drink ! at most|not had ; depressi = crying|phq-9 ! phq-9 of 1 |never treated
hypothyroidism = hashimoto|thyroid tests|thyroid disease ! normal ; hypophonia|speech imp = lean in|calls out ! calls
aerobic exercise|exercise program = cycles|every sport ! given up ; rem sleep = boxes and|silent nights ! still
alloimmun|red cell antib = anti-kell|antibody screens ! negative ; swallow = crushed|applesauce|by the handful ! handful
gene therapy = marrow took|marrow was|marrow transplants ! never ; gastroesophageal reflux = heartburn|ph study ! normal
asthma = wheezes|childhood asthma|methacholine|asthma ! normal ; seizure|epilepsy = convuls|seizures ! normal|never conv
splenectomy|asplenia = spleen taken|shrunken spleen ! shrunken ; sickle retino|sea-fan = sea fans|retinal edges ! quiet
dat-spect|transporter imaging = transporter scan ! full commas ; overactive|urinary urg = rushes to|holds urine ! holds
impulse control|gambling = slot machines|no gambling ! no gam ; sleep apnea = cpap|breathing pauses|sleep study ! normal
psychosis|halluc = small children|sees and hears ! only what ; pulmonary hyper = pulmonary artery pressure ! pressure 16
type 2 diabetes = sugars have|fasting glucose|diabetes ! 84 ; sulfonamide = trimethoprim|sulfonamides|bactrim ! has ever
constipation = bowels ! daily
"""
EVENTS = """
interventional trial|investigational prod = blinded study|considers research|drug studies ; acute chest = new infiltrate
infection other|of an infection = cellulitis|kidney infection|pneumonia|antimicrobial in ; botulinum = botox
transfusion = bags of red|bag of red|blood products|given red cells|recent transfusions
major surgery = gallbladder out|appendix out|hernia|under the knife|recent operations
hospital admission|unplanned hosp = kidney stone|hospital bed ; stimulation surgery|stimulator impl = leads were placed
therapy course|rehabilitation = lsvt|never worked with ; vaso-occl|painful crisis = pain pump|for pain in four
bleeding = black stools|never showed blood|bleeding ; fall with|injurious fall = rug and|no tumbles
donation = red cross|never gave blood ; vaccination = shots [0-9]+ |no shots
"""
VALUES = """
levodopa-equiv|daily levod = adds up to {v} ; (?<!fetal )hemoglobin(?! [go])|\\bhb\\b = (?:hb|hemoglobin) {v}
heart rate|pulse rate = (?:pulse|heart rate) {v} ; education years = {v} years of school ; crises in = twelve months {v}
systolic = (?:bp|blood pressure) {v} ; neutrophil|anc\\b = neutrophils {v} ; \\binr|normalized ratio = inr {v}
saturation|spo2 = saturation {v} ; serum albumin = \\balbumin {v} ; alanine|\\balt\\b = \\balt {v} ; updrs = updrs {v}
reticulo = reticulocytes {v} ; ejection|lvef = fraction {v} ; lactate dehyd|ldh = ldh {v} ; glomerular|egfr = egfr {v}
qtc|corrected qt = qtc {v} ; potassium = potassium {v} ; bilirubin = bilirubin {v} ; fetal hemo|hbf = hbf {v}
platelet(?! agg) = platelets {v} ; beck|bdi = inventory {v} ; ferritin = ferritin {v} ; tricuspid|trv = jet {v}
nt-probnp = probnp {v} ; off time = diary: {v}
"""
STAGES = """
hoehn = 1:confined to one side, 2:recovers from a backward, 3:would fall on a backward
genotype = hbss:both parents carriers, hbsc:s and c bands, hbs/beta0-thalassemia:one parent carries a silenced
side of onset = left:began on the left, right:began on the right
"""
FORMS = r"""
or = (?:any of|at least one of the following|one or both of the following):\s*..(?:;| \(b\)| ii\.) ..
or = (?:either|one of these must be true:) ..(?:, or| or) ..
if = (?:if|for participants with|in the presence of) ..(?:, the following .* addition| a further .* holds)?: ..
only for = .. \(applies only to participants with ..\)
unless = (?:patients with )?..(?:, unless| \(allowed if|, except in participants with) ..
unless = (?:patients with )?..(?:; this does not apply in case of|, although they are welcome if there is) ..
and = (?:the combination of|patients with both of these at once:|both)\s*..(?: with \(b\)|, plus| and(?! o| d)) ..
and = .. and at once ..
"""
UNITS = {"g/l": 10.0, "/mm3": 1000.0, "umol/l": 17.1, "pmol/l": 0.118, "mg/mmol": 0.113}
WEEKS = {"day": 1 / 7, "week": 1.0, "month": 4.345, "year": 52.14}
HOPE = "consent|comply|attend|venous acc|insuran|telephone|investigat|follow|employee|relative of a |appendix b|end of"


@cache
def rows(table: str) -> list[tuple[str, str, str]]:
    """Rows of a table: criterion pattern, note pattern, pattern of absence."""
    split = [entry.partition(" = ") for entry in re.split(r"\n| ; ", table.strip())]
    return [(name, *rest.partition(" ! ")[::2]) for name, _, rest in split]


class Patient:
    """The note, in sentences; drugs with weeks at the dose or days since the last one."""

    def __init__(self, note: str) -> None:
        self.text = " ".join(note.lower().split())
        self.sentences = re.split(r"(?<!\d)[.]\s|(?<=\d)[.]\s(?=[A-Za-z])", self.text)
        self.denied = [s for s in self.sentences if re.search(r"no history of |denies |negative for ", s)]
        self.age = int(re.search(r"(\d+)-year-old", self.text).group(1))  # type: ignore[union-attr]
        self.sex = "female" if re.search(r"\b(woman|girl)\b", self.text) else "male"
        onset = re.search(r"(\d+) months (?:ago|now|have)|for (\d+) months", self.text)
        self.months = float(onset.group(1) or onset.group(2)) if onset else None
        dated = r"days ago|unchanged \d|same dose|dose steady"
        self.drugs = [d for d in re.split(r"[;.]\s", self.text) if re.search(dated, d)]

    def drug(self, stems: list[str], ask: str) -> bool:
        """Whether a class was taken in the window, or is taken unchanged for long enough."""
        mine = [d for d in self.drugs if any(stem in d for stem in stems)]
        ended = [float(m.group(1)) for d in mine if (m := re.search(r"(\d+) days ago", d))]
        weeks = [float(m.group(1)) for d in mine if (m := re.search(r"(\d+) weeks?", d)) and "days ago" not in d]
        window = span(ask)
        if re.search(r"stable|unchanged|without change|no dose adj", ask):
            return any(w >= (window or 0) for w in weeks)
        return bool(weeks) or (window is not None and any(e / 7 <= window for e in ended))

    def said(self, where: str) -> str:
        """The sentence that speaks of something, or nothing."""
        return next((sentence for sentence in self.sentences if re.search(where, sentence)), "")

    def finding(self, where: str, absent: str) -> bool | None:
        """Present, absent, or not documented."""
        sentence = self.said(where)
        gone = sentence in self.denied or (absent and re.search(absent, sentence))
        return not gone if sentence else None

    def event(self, where: str, ask: str) -> bool | None:
        """Whether it happened in the window."""
        sentence = self.said(where)
        ago = re.search(r"(\d+) (week|month)s?", sentence)
        happened = ago is not None and float(ago.group(1)) * WEEKS[ago.group(2)] <= (span(ask) or 1e9)
        return happened if sentence else None


def span(text: str) -> float | None:
    """The last time span of a text, in weeks."""
    found = re.findall(r"(\d+) (day|week|month|year)s?\b", text)
    return float(found[-1][0]) * WEEKS[found[-1][1]] if found else None


def row(table: str, ask: str) -> tuple[str, str] | None:
    """What a table knows of a criterion."""
    return next(((where, absent) for name, where, absent in rows(table) if re.search(name, ask)), None)


def value_of(patient: Patient, ask: str) -> float | None:
    """The note's value that a criterion asks for, in the criterion's unit."""
    if re.search("body mass|bmi", ask):
        size = re.search(r"(\d+) kg at (\d+) cm", patient.text)
        return float(size.group(1)) / (float(size.group(2)) / 100) ** 2 if size else None
    known = row(VALUES, ask)
    match = re.search(known[0].replace("{v}", r"(\d[\d,]*(?:\.\d+)?)"), patient.text) if known else None
    if match is None:
        return None
    value = float(match.group(1).replace(",", "")) / (1000 if "platelet" in ask else 1)
    value *= next((f for unit, f in UNITS.items() if re.search(rf"\d ?{re.escape(unit)}", ask)), 1.0)
    upper = re.search(rf"{re.escape(match.group(0))}[^,]*upper limit ([\d.]+)", patient.text)
    return value / float(upper.group(1)) if upper and re.search("uln|upper limit", ask) else value


def measured(value: float, ask: str) -> bool | None:
    """Whether a statement about a value holds; a bare limit is not understood."""
    text = re.sub(r"\([^)]*\)|part iii|past 12 months|previous year|u/kg/day|kg/m2|10\^9/l|hba1c|6mwd|bdi-ii", "", ask)
    limits = re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w^])", text)
    if not limits:
        return None
    limit = float(limits[0].replace(",", ""))
    orders = {
        r">=|at least|or higher|or more|not below": value >= limit,
        r"<=|at most|or lower|or less|not exceeding|no higher|no more": value <= limit,
        r">|above|greater": value > limit,
        r"<|below|less": value < limit,
    }
    return next((truth for words, truth in orders.items() if re.search(words, text)), None)


def simple(patient: Patient, ask: str) -> tuple[bool | None, bool]:
    """Truth of a statement without parts, and whether it was understood."""
    if re.search(r"diagnosed (?:at least|no more)|disease duration|been known for|diagnosis that was made", ask):
        limit, months = (span(ask) or 0) / WEEKS["month"], patient.months
        longer = re.search("at least|>=|or longer|no less", ask)
        return (None if months is None else months >= limit if longer else months <= limit), True
    if stages := row(STAGES, ask):
        listed = [entry.split(":") for entry in stages[0].split(", ")]
        mine = next((stage for stage, words in listed if words in patient.text), None)
        return (None if mine is None else bool(re.search(rf"(?<![\w.]){re.escape(mine)}(?!\w)", ask))), True
    value = value_of(patient, ask)
    truth: bool | None = None if value is None else measured(value, ask)
    known = truth is not None
    if not known and span(ask) and (event := row(EVENTS, ask)):
        truth, known = patient.event(event[0], ask), True
    elif not known and (drugs := row(CLASSES, ask)):
        truth, known = patient.drug(drugs[0].split(), ask), True
    elif not known and (finding := row(FINDINGS, ask)):
        truth, known = patient.finding(*finding), True
    return truth, known


def judged(patient: Patient, ask: str) -> tuple[bool | None, bool]:
    """Truth of an item, with its alternatives, conditions and exceptions."""
    for form, pattern, _ in rows(FORMS):
        if match := re.fullmatch(pattern.replace("..", "(.+?)"), ask.rstrip(".")):
            (a, known_a), (b, known_b) = (simple(patient, part) for part in match.groups())
            a, b = (b, a) if form == "only for" else (a, b)
            if form in ("if", "only for"):
                a = None if a is None else not a
            if form == "unless":
                b = None if b is None else not b
            stop = form in ("or", "if", "only for")
            return (stop if stop in (a, b) else None if None in (a, b) else not stop), known_a and known_b
    return simple(patient, ask)


def items(text: str) -> tuple[list[str], list[str]]:
    """Inclusion and exclusion items; nested lines belong to their item, the appendix to the inclusions."""
    sides: tuple[list[str], list[str]] = ([], [])
    side = 0
    for line in text.replace("aemi", "emi").replace("haem", "hem").splitlines():
        low = line.strip().lower().replace("oestr", "estr").replace("coeliac", "celiac").replace("apnoea", "apnea")
        if re.match(r"exclusion criteria|participants are excluded|a participant who|ineligible|who cannot", low):
            side = 1
        elif re.match(r"appendix 2|section 5", low):
            side = 0
        elif bullet := re.match(r"(?:-|\d+\.|\*)\s+(.+)", low):
            sides[side].append(
                bullet.group(1).replace(" and ", " and at once ") if " AND " in line else bullet.group(1)
            )
        elif low and sides[side] and re.match(r"\([ab]\)|i+\.", low):
            sides[side][-1] += " " + re.sub(r"^\(a\) |^i\. ", "", low)
    return sides


def limits(patient: Patient, root: ET.Element, inclusion: list[str]) -> tuple[int, list[str]]:
    """Whether age and sex fail, text before fields, and the inclusion items that are left to read."""
    field = {name: root.findtext(f"eligibility/{name}") or "" for name in ("minimum_age", "maximum_age", "gender")}
    low, high = (
        float(re.sub(r"\D", "", field[name]) or end) for name, end in (("minimum_age", 0), ("maximum_age", 999))
    )
    gender, rest = field["gender"].lower(), []
    for place, line in enumerate(inclusion[1:]):
        sex = re.match(r"(?:is |only )?(female|women|male|men)\b", line)
        if sex:
            gender = {"women": "female", "men": "male"}.get(sex.group(1), sex.group(1))
        elif (
            place < 2
            and re.search(r"\byears?\b", line)
            and re.match(r"age|at least \d+|no more than|patients (from|up to|\d)|\d", line)
        ):
            ages = [float(n) for n in re.findall(r"\d+", line)]
            upward = re.search(">=|older|over|at least", line)
            low, high = (ages[0], ages[1]) if len(ages) > 1 else (ages[0], 999) if upward else (0, ages[0])
        elif not re.search(HOPE, line):
            rest.append(line)
    return (not low <= patient.age <= high) + (gender not in ("all", patient.sex)), rest


def doubts(patient: Patient, path: Path) -> tuple[int, int]:
    """Criteria that surely fail, and inclusions that were not understood."""
    root = ET.parse(path).getroot()  # noqa: S314 (the task's own files)
    inclusion, exclusion = items(root.findtext("eligibility/criteria/textblock") or "")
    fails, rest = limits(patient, root, inclusion)
    judgments = [judged(patient, line) for line in rest]
    fails += sum(known and truth is not True for truth, known in judgments)
    fails += sum(judged(patient, line) == (True, True) for line in exclusion if not re.search(HOPE, line))
    return fails, sum(not known for _, known in judgments)


def main() -> None:
    """Rank the pool."""
    patient = Patient((DATA / "patient.txt").read_text(encoding="utf-8"))
    ranked = sorted((DATA / "trials").iterdir(), key=lambda path: (*doubts(patient, path), path.name))
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "eligible_trials.txt").write_text("".join(f"{path.stem}\n" for path in ranked[:50]), encoding="utf-8")


if __name__ == "__main__":
    main()
