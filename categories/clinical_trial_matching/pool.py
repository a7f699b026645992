"""Plan the pool: which protocols the patient fits, which fail by one criterion, by several, or by their target."""

import random
from collections import Counter
from dataclasses import dataclass, field

from categories.clinical_trial_matching.bank import Bank, Library
from categories.clinical_trial_matching.catalogue import Catalogue, Criterion
from categories.clinical_trial_matching.patient import Patient

Window = tuple[int, int]
MIX = {
    "num": 17, "uln": 3, "class": 15, "stable": 6, "event": 12, "flag": 28, "cat": 6, "dur": 2, "comp": 11, "unsaid": 4,
}  # fmt: skip
"""Weights of criterion kinds in any protocol."""
DECIDING = {
    "num": 13, "uln": 2, "class": 13, "stable": 8, "event": 14, "flag": 27, "cat": 8, "dur": 3, "comp": 14, "unsaid": 5,
}  # fmt: skip
"""Weights of the kind that decides a near-miss; every protocol, eligible ones too, gets one slot drawn by them."""
AGE_SHARE, SEX_SHARE, NEGATED_SHARE = 0.11, 0.02, 0.55
"""Quotas among near-misses: decided by age, by sex, and (of the others) by a fact the note documents as absent."""
COMORBID_SHARE, RESTRICTED_SHARE = 0.07, 0.03
FIELD_ONLY, DISAGREE = 0.20, 0.07
"""Protocols whose text says nothing of age, and those whose text and structured field disagree."""


ATTEMPTS = 50


@dataclass(frozen=True)
class Size:
    """How many protocols of each bucket."""

    eligible: tuple[int, int]
    near: int
    multi: int
    off_target: tuple[int, int]


SIZES = {
    "full": Size(eligible=(5, 9), near=285, multi=36, off_target=(36, 70)),
    "small": Size(eligible=(6, 8), near=150, multi=16, off_target=(24, 34)),
}


@dataclass(frozen=True)
class Limits:
    """Age and sex as the text and as the structured fields have them; the text governs where it speaks."""

    text_age: Window | None
    field_age: Window
    text_sex: str
    field_sex: str

    def age(self) -> Window:
        return self.field_age if self.text_age is None else self.text_age

    def sex(self) -> str:
        return self.text_sex or self.field_sex


@dataclass
class Protocol:
    """A drawn trial, before it is worded."""

    bucket: str
    target: str
    """``main``, or the name of a topic."""
    has_target: bool
    limits: Limits
    criteria: list[Criterion]
    failing: list[str] = field(default_factory=list)
    """Kinds of what fails: ``target``, ``age``, ``sex`` or a criterion's kind."""


def fits(window: Window, age: int) -> bool:
    """Return whether an age lies in a window; 0 is no limit."""
    return window[0] <= age and (window[1] == 0 or age <= window[1])


class PoolDrawer:
    """Draws protocols one by one, each from nothing but the patient, its bucket and its own numbers."""

    def __init__(self, rng: random.Random, patient: Patient, bank: Bank, library: Library) -> None:
        self.rng, self.patient, self.bank, self.library = rng, patient, bank, library
        self.main = Catalogue(patient, bank, library.common)
        self.general = Catalogue(patient, bank, library.common, general=True)
        flags = patient.facts.flags
        topics = {f.topic: flags.get(k) is True for k, f in patient.known.flags.items() if f.topic}
        self.comorbid = sorted(topic for topic, present in topics.items() if present)
        foreign = [topic for topic, present in topics.items() if not present]
        self.foreign = sorted({*bank.related, *foreign} - set(self.comorbid))

    def draw(self, size: Size) -> list[Protocol]:
        """Return the pool in random order."""
        plan: list[tuple[str, list[str]]] = [("eligible", []) for _ in range(self.rng.randint(*size.eligible))]
        plan += [("near", [kind]) for kind in self._deciding(size.near)]
        kinds = {**DECIDING, "age": 14, "sex": 2}
        for _ in range(size.multi):
            drawn = self.rng.choices(list(kinds), list(kinds.values()), k=self.rng.choice((2, 3, 4)))
            once = [k for k in drawn if k not in ("age", "sex")] + [k for k in ("age", "sex") if k in drawn]
            plan.append(("multi", once if len(once) > 1 else [*once, "flag"]))
        plan += [("off", []) for _ in range(self.rng.randint(*size.off_target))]
        pool = [self._protocol(bucket, failing) for bucket, failing in plan]
        self.rng.shuffle(pool)
        return pool

    def _deciding(self, count: int) -> list[str]:
        ages, sexes = round(AGE_SHARE * count), round(SEX_SHARE * count)
        can_fail = self.main.kinds(passes=False)
        weights = {kind: weight for kind, weight in DECIDING.items() if kind in can_fail}
        rest = self.rng.choices(list(weights), list(weights.values()), k=count - ages - sexes)
        return ["age"] * ages + ["sex"] * sexes + rest

    def _protocol(self, bucket: str, failing: list[str]) -> Protocol:
        rng = self.rng
        own = bucket != "off"
        topic = rng.choice(self.comorbid) if own and self.comorbid and rng.random() < COMORBID_SHARE else ""
        if bucket == "off":
            topic = rng.choice(self.foreign)
        least, most = {"eligible": (0, 0), "near": (1, 1), "multi": (2, 99), "off": (1, 99)}[bucket]
        for _ in range(ATTEMPTS):
            protocol = self._attempt(bucket, failing, topic)
            if least <= len(protocol.failing) <= most:
                return protocol
            topic = topic if bucket == "off" else ""
            failing = [*failing, "flag"] if bucket == "multi" else failing
        raise RuntimeError(f"no {bucket} protocol that fails by {failing} in {ATTEMPTS} attempts")

    def _attempt(self, bucket: str, failing: list[str], topic: str) -> Protocol:
        rng = self.rng
        catalogue = self.general if topic else self.main
        seen = {("flag", key) for key, flag in self.patient.known.flags.items() if topic and flag.topic == topic}
        criteria: list[Criterion] = []
        outcomes = [(kind, False) for kind in failing if kind not in ("age", "sex")]
        forced = rng.choices(list(DECIDING), list(DECIDING.values()))[0]
        if not outcomes:
            outcomes = [(forced, True)]
        slots = rng.choices(list(MIX), list(MIX.values()), k=rng.randint(9, 14))
        outcomes += [(kind, bucket != "off" or rng.random() < 0.8) for kind in slots]
        for kind, passes in outcomes:
            want = "negated" if not passes and rng.random() < NEGATED_SHARE else ""
            drawn = self._slot(catalogue, kind, passes=passes, seen=seen, want=want)
            if drawn is not None:
                criteria.append(drawn)
                seen |= drawn.tags
        limits = self._limits(
            self.library.topics[topic].sex if topic else "", fail_age="age" in failing, fail_sex="sex" in failing
        )
        protocol = Protocol(bucket, topic or "main", bucket != "off", limits, criteria)
        if not protocol.has_target:
            protocol.failing.append("target")
        if not fits(limits.age(), self.patient.facts.age):
            protocol.failing.append("age")
        if limits.sex() not in ("", self.patient.facts.sex):
            protocol.failing.append("sex")
        protocol.failing += [c.kind for c in criteria if not c.passes]
        return protocol

    def _slot(
        self, catalogue: Catalogue, kind: str, *, passes: bool, seen: set[tuple[str, str]], want: str
    ) -> Criterion | None:
        """Fill a slot; where the patient has nothing of the kind, a flag takes its place (not so if it must fail)."""
        drawn = catalogue.draw(self.rng, kind, passes=passes, seen=seen, want=want)
        if drawn is None and passes:
            drawn = catalogue.draw(self.rng, "flag", passes=True, seen=seen)
        return drawn

    def _limits(self, topic_sex: str, *, fail_age: bool, fail_sex: bool) -> Limits:
        rng, age, sex = self.rng, self.patient.facts.age, self.patient.facts.sex
        apart = [w for w in self.bank.windows if age not in w]
        window = rng.choice([w for w in apart if fits(w, age) is not fail_age])
        text: Window | None = window
        shown = window
        draw = rng.random()
        if draw < FIELD_ONLY:
            text = None
        elif draw < FIELD_ONLY + DISAGREE:
            shown = rng.choice([w for w in self.bank.windows if w != window])
        other = "M" if sex == "F" else "F"
        only = sex if rng.random() < RESTRICTED_SHARE else ""
        only = topic_sex or (other if fail_sex else only)
        where = rng.random()
        return Limits(text, shown, only if where < 0.75 else "", only if where > 0.25 else "")


def quotas(pool: list[Protocol], patient: Patient) -> dict[str, float]:
    """Return what near-misses hang on: shares of inferred and negated facts, distinct and weighted, of age or sex."""
    near = [p for p in pool if p.bucket == "near"]
    decisive = [c for p in near for c in p.criteria if not c.passes]
    facts = {fact for c in decisive for fact in c.facts}
    kinds = Counter(p.failing[0] for p in near)
    return {
        "inferred": sum(c.inferred for c in decisive) / len(decisive),
        "negated": sum(c.negated for c in decisive) / len(decisive),
        "inferred_distinct": len(facts & patient.inferred_facts()) / len(facts),
        "negated_distinct": len(facts & patient.negated) / len(facts),
        "age_sex": (kinds["age"] + kinds["sex"]) / len(near),
        "kinds": len(kinds),
    }
