"""What a bank file says: the facts a patient of one disease can have, their words in a note and in a protocol.

``banks/<disease>.toml`` holds one disease, ``banks/common.toml`` the facts and drug classes that any adult may have.
A sentence that begins with ``=`` states its fact in the protocol's own words; all others leave it to be inferred.
"""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from categories.spec import Frozen

BANKS = Path(__file__).parent / "banks"
Section = Literal["open", "hpi", "pmh", "med", "soc", "exam", "lab", "neg"]
Side = Literal["inc", "exc"]
Words = tuple[str, ...]


class Fact(Frozen):
    """What all kinds of facts share."""

    names: Words
    """How protocols call it."""
    told: float = 1.0
    """Chance that the note says anything about it; else it is unknown."""
    given: str = ""
    """A criterion over earlier facts; where it does not hold the fact is unknown and the note silent."""
    section: Section = "pmh"
    group: str = ""
    """Facts of one group never meet in one protocol."""


class Flag(Fact):
    """Present or absent."""

    present: Words = ()
    absent: Words = ()
    deny: str = ""
    """A noun phrase for the list of things the note denies."""
    chance: float = 0.5
    side: Literal["inc", "exc", "both"] = "both"
    rule: str = ""
    """A criterion over earlier facts that decides the flag; the note then has no sentence of its own."""
    topic: str = ""
    """The trial topic that this comorbidity makes a target of."""


class Event(Fact):
    """Something that happened once, some time ago, or never."""

    ago: tuple[int, ...]
    unit: Literal["weeks", "months"] = "weeks"
    present: Words
    """With ``{ago}``, for instance ``5 weeks``."""
    absent: Words = ()
    deny: str = ""
    chance: float = 0.6
    exc: tuple[int, ...] = ()
    """Windows in weeks of protocols that exclude it."""
    inc: tuple[int, ...] = ()


class Unit(Frozen):
    """A printed unit: value = note value x factor + offset."""

    label: str
    factor: float = 1.0
    offset: float = 0.0
    menu: tuple[float, ...]
    """Thresholds that protocols really use."""


class Num(Fact):
    """A measured value, printed in the note as ``{v}``."""

    section: Section = "lab"
    values: tuple[float, ...]
    say: Words
    units: tuple[Unit, ...]
    ops: tuple[Literal[">=", "<="], ...]
    uln: float | None = None
    """Upper limit of normal, printed in the note; protocols may then speak in multiples of it."""
    explicit: bool = True


class Category(Fact):
    """One of several classes: a stage, a genotype, a performance status."""

    options: dict[str, Words]
    """Class -> sentences."""
    inc: tuple[Words, ...] = ()
    exc: tuple[Words, ...] = ()


class Drug(Frozen):
    """A place on the medication list. The note names the product, protocols the class."""

    products: Words
    why: Words
    now: tuple[int, ...] = ()
    """Weeks at an unchanged dose."""
    ended: tuple[int, ...] = ()
    """Days since the last dose."""
    chance: float = 0.8
    given: str = ""


class DrugClass(Frozen):
    """A class of drugs, its products, and the windows by which protocols ask for it."""

    names: Words
    products: Words
    within: tuple[int, ...] = ()
    """Wash-out windows in days; 0 is current use."""
    stable: tuple[int, ...] = ()
    """Weeks of unchanged dose that a protocol may demand."""


class Onset(Frozen):
    """How long the disease has been known, in months."""

    months: tuple[int, ...]
    say: Words
    """With ``{years}``, ``{months}`` or ``{onset_age}``."""
    at_least: tuple[int, ...] = ()
    at_most: tuple[int, ...] = ()


class Topic(Frozen):
    """The target of a trial about another disease, with criteria of its own that no note here speaks of."""

    sex: Literal["", "F", "M"] = ""
    """Where only one sex has the disease."""
    names: Words
    mesh: str
    inc: Words
    exc: Words


class Bank(Frozen):
    """One disease."""

    names: Words
    mesh: str
    opening: Words
    ages: tuple[int, ...]
    """Years, lowest and highest."""
    sexes: Words
    windows: tuple[tuple[int, int], ...]
    """Age windows of protocols; 0 is no limit."""
    onset: Onset
    flags: dict[str, Flag]
    events: dict[str, Event]
    nums: dict[str, Num]
    categories: dict[str, Category]
    drugs: tuple[Drug, ...] = ()
    classes: Words = ()
    """Classes that protocols of this disease speak of."""
    compositions: Words = ()
    unsaid: dict[str, Words]
    """``inc`` and ``exc``: criteria about things that no note of this disease mentions."""
    use: Words = ()
    """Facts taken from the common bank."""
    likely: dict[str, float]
    """Chance of a common flag or event in this disease, where it differs."""
    related: Words = ()
    """Topics that lie near this disease; the patient never has them."""
    endpoints: Words
    """What trials of this disease measure."""
    background: Words
    """Sentences of background for brief summaries."""

    def dependent(self, common: "Common") -> set[tuple[str, str]]:
        """Return the facts (kind, key) that other facts or drugs hang on: a note may not drop them."""
        facts = [*self.flags.values(), *self.events.values(), *self.nums.values(), *self.categories.values()]
        drugs = [*self.drugs, *common.drugs.values()]
        rules = [fact.given for fact in facts] + [drug.given for drug in drugs]
        return {(kind, key) for rule in rules for kind, key in re.findall(r"(\w+):(\w+)", rule)}


class Common(Frozen):
    """What all diseases draw from."""

    flags: dict[str, Flag]
    events: dict[str, Event]
    nums: dict[str, Num]
    classes: dict[str, DrugClass]
    drugs: dict[str, Drug]
    unsaid: dict[str, Words]


class Library(Frozen):
    """Every bank, read once."""

    common: Common
    topics: dict[str, Topic]
    banks: dict[str, Bank] = Field(default_factory=dict)


@cache
def load_library(folder: Path = BANKS) -> Library:
    """Read and check all banks."""
    diseases = [p for p in sorted(folder.glob("*.toml")) if p.stem not in ("common", "classes", "topics")]
    return Library.model_validate(
        {
            "common": {**_read(folder / "common.toml"), "classes": _read(folder / "classes.toml")},
            "topics": _read(folder / "topics.toml"),
            "banks": {path.stem: _read(path) for path in diseases},
        }
    )


def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
