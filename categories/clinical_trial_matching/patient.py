"""Draw a patient of one disease: facts, what the note will say of them, and which of them must be inferred."""

import math
import random
from dataclasses import dataclass, field

from categories.clinical_trial_matching.bank import Bank, Category, Common, Drug, Event, Fact, Flag, Num, Section, Words
from categories.clinical_trial_matching.criteria import Definitions, Facts, Medication, evaluate, parse_rule

WEEKS_PER_MONTH = 30.44 / 7
HEIGHTS_CM = {"F": (156, 161, 166, 171), "M": (168, 173, 178, 184)}


@dataclass(frozen=True)
class Sentence:
    """One statement of the note; an empty fact is part of every note of the disease."""

    section: Section
    text: str
    fact: tuple[str, str]
    denied: bool = False
    """Belongs into the list of things the note denies."""


@dataclass
class Patient:
    """A drawn patient: the facts as printed, the sentences, and how each fact is documented."""

    facts: Facts
    known: Definitions
    sentences: list[Sentence]
    inferred: set[tuple[str, str]] = field(default_factory=set)
    """Facts (kind, key) that the note does not state in the protocol's words."""
    negated: set[tuple[str, str]] = field(default_factory=set)
    """Facts that the note documents as absent."""

    def inferred_facts(self) -> set[tuple[str, str]]:
        """Return what must be inferred; drug classes always are, the note names products."""
        return self.inferred | {("class", name) for m in self.facts.medications for name in m.classes}

    def forget(self, kind: str, key: str) -> None:
        """Make a fact unknown and the note silent about it."""
        tables: dict[str, dict[str, object]] = {
            "flag": self.facts.flags,  # type: ignore[dict-item]
            "event": self.facts.events,  # type: ignore[dict-item]
            "num": self.facts.nums,  # type: ignore[dict-item]
            "cat": self.facts.categories,  # type: ignore[dict-item]
        }
        tables[kind].pop(key, None)
        self.sentences = [s for s in self.sentences if s.fact != (kind, key)]


def definitions(bank: Bank, common: Common) -> Definitions:
    """Return the facts of a disease, its own and the common ones it uses, in the order they are drawn."""
    used = set(bank.use)
    return Definitions(
        flags={**{k: v for k, v in common.flags.items() if k in used}, **bank.flags},
        events={**{k: v for k, v in common.events.items() if k in used}, **bank.events},
        nums={**{k: v for k, v in common.nums.items() if k in used}, **bank.nums},
        categories=dict(bank.categories),
    )


class _Drawer:
    """Draws fact by fact; later facts may depend on earlier ones."""

    def __init__(self, rng: random.Random, bank: Bank, common: Common) -> None:
        self.rng, self.bank, self.common = rng, bank, common
        known = definitions(bank, common)
        age, sex = rng.randint(*bank.ages), rng.choice(bank.sexes)
        months = rng.choice([m for m in bank.onset.months if m < (age - 2) * 12])
        self.height = rng.choice(HEIGHTS_CM[sex])
        self.patient = Patient(Facts(age, sex, months, {}, {}, {}, {}, []), known, [])

    def draw(self) -> Patient:
        """Draw numbers first, then flags, events, categories and drugs; what depends on others comes after them."""
        patient, known = self.patient, self.patient.known
        self._say("open", self.bank.opening, ("", ""), days=str(self.rng.randint(2, 9)))
        years = patient.facts.months // 12
        words = {"months": str(patient.facts.months), "years": str(years)}
        self._say("hpi", self.bank.onset.say, ("", ""), **words)
        patient.inferred.add(("dur", ""))
        jobs: list[tuple[str, str, Fact]] = [("num", k, n) for k, n in known.nums.items() if not n.given]
        jobs += [("flag", k, f) for k, f in known.flags.items() if not f.given and not f.rule]
        jobs += [("event", k, e) for k, e in known.events.items() if not e.given]
        jobs += [("flag", k, f) for k, f in known.flags.items() if f.given]
        jobs += [("event", k, e) for k, e in known.events.items() if e.given]
        jobs += [("cat", k, c) for k, c in known.categories.items()]
        for kind, key, fact in jobs:
            self._fact(kind, key, fact)
        for drug in (*(d for k, d in self.common.drugs.items() if k in self.bank.use), *self.bank.drugs):
            self._drug(drug)
        for key, number in known.nums.items():
            if number.given:
                self._fact("num", key, number)
        for key, flag in known.flags.items():
            if flag.rule:
                self._by_rule(key, flag)
        return patient

    def _holds(self, rule: str) -> bool:
        return not rule or evaluate(parse_rule(rule), self.patient.facts, self.patient.known) is True

    def _fact(self, kind: str, key: str, fact: Fact) -> None:
        if not self._holds(fact.given) or self.rng.random() >= fact.told:
            return
        if isinstance(fact, Flag):
            self._flag(key, fact)
        elif isinstance(fact, Event):
            self._event(key, fact)
        elif isinstance(fact, Num):
            self._num(key, fact)
        elif isinstance(fact, Category):
            value = self.rng.choice(list(fact.options))
            self.patient.facts.categories[key] = value
            self._say(fact.section, fact.options[value], (kind, key))

    def _flag(self, key: str, flag: Flag) -> None:
        present = self.rng.random() < self.bank.likely.get(key, flag.chance)
        self.patient.facts.flags[key] = present
        if present:
            self._say(flag.section, flag.present, ("flag", key))
        else:
            self._absent(flag.section, flag.absent, flag.deny, ("flag", key))

    def _event(self, key: str, event: Event) -> None:
        if self.rng.random() >= self.bank.likely.get(key, event.chance):
            if event.absent or event.deny:
                self.patient.facts.events[key] = math.inf
                self._absent(event.section, event.absent, event.deny, ("event", key))
            return
        ago = self.rng.choice(event.ago)
        self.patient.facts.events[key] = ago if event.unit == "weeks" else ago * WEEKS_PER_MONTH
        unit = event.unit if ago > 1 else event.unit.removesuffix("s")
        self._say(event.section, event.present, ("event", key), ago=f"{ago} {unit}")

    def _num(self, key: str, number: Num) -> None:
        value = self.rng.choice(number.values)
        words = {"v": f"{value:g}", "dia": str(self.rng.randint(62, 88))}
        if key == "bmi":
            kg = round(value * self.height**2 / 1e4)
            value = kg / self.height**2 * 1e4
            words |= {"kg": str(kg), "cm": str(self.height)}
        elif key == "tdd":
            kg = round(self.patient.facts.nums.get("bmi", 24.0) * self.height**2 / 1e4)
            words["units"] = str(units := round(value * kg))
            value = units / kg
        self.patient.facts.nums[key] = value
        self._say(number.section, number.say, ("num", key), **words)
        if not number.explicit:
            self.patient.inferred.add(("num", key))
        else:
            self.patient.inferred.discard(("num", key))

    def _by_rule(self, key: str, flag: Flag) -> None:
        truth = evaluate(parse_rule(flag.rule), self.patient.facts, self.patient.known)
        if truth is not None:
            self.patient.facts.flags[key] = truth
            self.patient.inferred.add(("flag", key))

    def _drug(self, drug: Drug) -> None:
        if not self._holds(drug.given) or self.rng.random() >= drug.chance:
            return
        taken = {m.product for m in self.patient.facts.medications}
        taken_classes = {c for m in self.patient.facts.medications for c in m.classes}
        products = [p for p in drug.products if p not in taken and not (self._classes(p) & taken_classes)]
        if not products:
            return
        item = self.rng.choice(products)
        current = bool(drug.now) and (not drug.ended or self.rng.random() < 0.6)
        weeks = self.rng.choice(drug.now) if current else None
        ended = None if current else self.rng.choice(drug.ended)
        self.patient.facts.medications.append(Medication(item, self._classes(item), weeks, ended))
        self._say("med", (medication_words(self.rng, item, self.rng.choice(drug.why), weeks, ended),), ("drug", item))

    def _classes(self, item: str) -> frozenset[str]:
        return frozenset(name for name, spec in self.common.classes.items() if item in spec.products)

    def _absent(self, section: Section, sentences: Words, deny: str, fact: tuple[str, str]) -> None:
        self.patient.negated.add(fact)
        if deny and (not sentences or self.rng.random() < 0.4):
            self.patient.sentences.append(Sentence("neg", deny, fact, denied=True))
        else:
            self._say(section, sentences, fact)

    def _say(self, section: Section, choices: Words, fact: tuple[str, str], **words: str) -> None:
        text = self.rng.choice(choices)
        if not text.startswith("="):
            self.patient.inferred.add(fact)
        sex = self.patient.facts.sex
        he, his, him = ("she", "her", "her") if sex == "F" else ("he", "his", "him")
        young = self.patient.facts.age < 18
        man = {"F": "girl" if young else "woman", "M": "boy" if young else "man"}[sex]
        pronouns = {"he": he, "his": his, "him": him, "He": he.capitalize(), "His": his.capitalize(), "man": man}
        filled = text.removeprefix("=").format(**pronouns, age=self.patient.facts.age, **words)
        capital = filled if filled[1:2].isupper() else filled[0].upper() + filled[1:]
        self.patient.sentences.append(Sentence(section, capital, fact))


def medication_words(rng: random.Random, item: str, why: str, weeks: int | None, ended: int | None) -> str:
    """Return one line of the medication list."""
    if ended is not None:
        templates = (
            "{item} ({why}) stopped {n} days ago",
            "{item} {why}, last dose {n} days ago",
            "until {n} days ago {item} {why}",
        )
        return rng.choice(templates).format(item=item, why=why, n=ended)
    assert weeks is not None
    span = "1 week" if weeks == 1 else f"{weeks} weeks"
    templates = (
        "{item} {why}, same dose for {span}",
        "{item} {why} (unchanged {span})",
        "for {span} {item} {why}, dose steady",
    )
    return rng.choice(templates).format(item=item, why=why, span=span)


def draw_patient(rng: random.Random, bank: Bank, common: Common) -> Patient:
    """Return one patient of the disease."""
    return _Drawer(rng, bank, common).draw()
