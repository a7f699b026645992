"""Word a protocol's eligibility criteria in one of the grammar packs under ``packs/``.

A pack is a file: a site that wants a grammar nobody has seen adds one (see README.md) and every draw uses it too.
"""

import random
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from categories.clinical_trial_matching.bank import Common, Words
from categories.clinical_trial_matching.catalogue import Criterion
from categories.clinical_trial_matching.criteria import Definitions, Leaf, Node
from categories.clinical_trial_matching.pool import Limits
from categories.spec import Frozen

PACKS = Path(__file__).parent / "packs"
_OPS = {">=": "ge", "<=": "le", ">": "gt", "<": "lt"}
_NOT_PACKS = ("spelling", "boilerplate", "parts")
INDENT = "\n             "


class Pack(Frozen):
    """A grammar: templates per kind of criterion, and how the lists are laid out."""

    layout: Literal["dashes", "numbers", "headings"]
    inclusion: Words
    exclusion: Words
    appendix: Words = ()
    refer: Words = ()
    groups: Words = ()
    disease: Words
    flag: Words
    ge: Words
    le: Words
    gt: Words
    lt: Words
    uln_le: Words
    uln_gt: Words
    now: Words
    within: Words
    stable: Words
    event: Words
    category: Words
    alternatives: str
    dur_ge: Words
    dur_le: Words
    age_both: Words
    age_min: Words
    age_max: Words
    female: Words
    male: Words
    any: Words
    imply: Words
    both: Words
    unless: Words
    consent: Words
    refuse: Words


@cache
def load_packs(folder: Path = PACKS) -> dict[str, Pack]:
    """Read all grammar packs, by name."""
    packs = {}
    for path in sorted(folder.glob("*.toml")):
        if path.stem not in _NOT_PACKS:
            packs[path.stem] = Pack.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    return packs


@cache
def _spelling() -> dict[str, str]:
    return tomllib.loads((PACKS / "spelling.toml").read_text(encoding="utf-8"))


@cache
def _parts() -> dict[str, Words]:
    return tomllib.loads((PACKS / "parts.toml").read_text(encoding="utf-8"))


def british(text: str) -> str:
    """Return the text in British spelling."""
    for american, spelling in _spelling().items():
        text = text.replace(american, spelling)
    return text


class Wording:
    """Words criteria in one pack, drawing a paraphrase each time."""

    def __init__(self, rng: random.Random, pack: Pack, known: Definitions, common: Common) -> None:
        self.rng, self.pack, self.known, self.common = rng, pack, known, common

    def node(self, node: Node) -> str:
        """Return the words of a criterion."""
        if isinstance(node, Leaf):
            return self._leaf(node, self._templates())
        templates = {"or": self.pack.any, "if": self.pack.imply, "and": self.pack.both, "unless": self.pack.unless}
        first, second = (self._leaf(part, _parts()) for part in node.parts if isinstance(part, Leaf))
        return self.rng.choice(templates[node.form]).format(a=first, b=second, nl=INDENT)

    def _templates(self) -> dict[str, Words]:
        pack = self.pack
        names = ("flag", "event", "now", "within", "stable", "category", "ge", "le", "gt", "lt", "uln_le", "uln_gt")
        return {name: getattr(pack, name) for name in (*names, "dur_ge", "dur_le")}

    def _names(self, leaf: Leaf) -> Words:
        if leaf.kind in ("class", "stable"):
            return self.common.classes[leaf.key].names
        kind = {"uln": "num"}.get(leaf.kind, leaf.kind)
        tables = {
            "flag": self.known.flags,
            "event": self.known.events,
            "num": self.known.nums,
            "cat": self.known.categories,
        }
        names: Words = tables[kind][leaf.key].names  # type: ignore[index]
        return names

    def _leaf(self, leaf: Leaf, templates: dict[str, Words]) -> str:
        rng = self.rng
        if leaf.kind == "unsaid":
            return leaf.values[0]
        if leaf.kind == "dur":
            return rng.choice(templates[f"dur_{_OPS[leaf.op]}"]).format(w=months_words(rng, int(leaf.limit)))
        words = {"x": rng.choice(self._names(leaf))}
        template = leaf.kind
        if leaf.kind == "cat":
            template = "category"
            words["v"] = _listed(leaf.values, self.pack.alternatives)
        elif leaf.kind in ("event", "stable"):
            words["w"] = weeks_words(rng, int(leaf.limit))
        elif leaf.kind == "class":
            template = "within" if leaf.limit else "now"
            words["w"] = days_words(rng, int(leaf.limit))
        elif leaf.kind == "uln":
            template = f"uln_{_OPS[leaf.op]}"
            words["t"] = f"{leaf.limit:g}"
        elif leaf.kind == "num":
            template = _OPS[leaf.op]
            label = self.known.nums[leaf.key].units[leaf.unit].label
            number = f"{leaf.limit:,.0f}" if leaf.limit >= 10000 else f"{leaf.limit:g}"
            words["t"] = f"{number} {label}".strip()
        return rng.choice(templates[template]).format(**words)

    def age(self, limits: Limits) -> str:
        """Return the age criterion, or nothing where the text is silent about age."""
        if limits.text_age is None:
            return ""
        low, high = limits.text_age
        templates = self.pack.age_both if low and high else self.pack.age_min if low else self.pack.age_max
        return self.rng.choice(templates).format(a=low, b=high)

    def sex(self, limits: Limits) -> str:
        """Return the sex criterion, or nothing where the text is silent about sex."""
        if not limits.text_sex:
            return ""
        return self.rng.choice(self.pack.female if limits.text_sex == "F" else self.pack.male)


def _listed(values: Sequence[str], joint: str) -> str:
    if len(values) == 1 or joint != ", ":
        return joint.join(values)
    return ", ".join(values[:-1]) + " or " + values[-1]


def weeks_words(rng: random.Random, weeks: int) -> str:
    """Return a span of weeks as weeks, days or months; limits keep a distance that makes them equal for the patient."""
    choices = [f"{weeks} weeks", f"{weeks * 7} days"] if weeks < 20 else [f"{weeks} weeks"]
    if weeks % 13 == 0:
        choices += [f"{weeks // 13 * 3} months"] * 2
    elif weeks == 12:
        choices.append("3 months")
    return rng.choice(choices)


def days_words(rng: random.Random, days: int) -> str:
    """Return a span of days as days, weeks or months."""
    choices = [f"{days} days"]
    if days % 7 == 0:
        choices.append(f"{days // 7} weeks")
    if days >= 60 and days % 30 == 0:
        choices.append(f"{days // 30} months")
    return rng.choice(choices)


def months_words(rng: random.Random, months: int) -> str:
    """Return a span of months as months or years."""
    years = f"{months // 12} year{'s' if months > 12 else ''}"
    return rng.choice([f"{months} months", years]) if months % 12 == 0 else f"{months} months"


def group_of(criterion: Criterion) -> int:
    """Return which sub-heading a criterion stands under: disease, patient, or therapy."""
    if criterion.kind in ("class", "stable"):
        return 2
    return 0 if criterion.kind in ("cat", "dur", "comp") else 1
