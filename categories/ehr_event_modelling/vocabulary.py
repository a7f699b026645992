"""The words the timelines are written in: codes, laboratory items, panels and the six diseases."""

import csv
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parent
SLOTS = 1 << 14
"""Length of a look-up table: a uniform integer below it draws one code of a topic."""
VISITS = ("Visit/OP", "Visit/ER", "Visit/IP")
OFFICE, EMERGENCY, INPATIENT = range(3)
RACES = ("Race/5", "Race/3", "Race/2", "Race/1", "Race/4")
RACE_SHARES = (0.60, 0.09, 0.24, 0.03, 0.04)
BIRTH, DEATH = "SNOMED/3950001", "SNOMED/419620001"

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Labs:
    """Laboratory items and vital signs, as arrays over the rows of ``labs.csv``."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    mean: Floats
    """(2, items): women's and men's."""
    sd: Floats
    log: NDArray[np.bool_]
    decimals: Ints
    low: Floats
    high: Floats
    panels: dict[str, tuple[int, ...]]

    def at(self, code: str) -> int:
        """Return the row of a LOINC code."""
        return self.names.index(f"LOINC/{code}")


@dataclass(frozen=True)
class Vocabulary:
    """Every code that may stand in ``events.csv``, with the table it comes from."""

    codes: tuple[str, ...]
    tables: tuple[str, ...]
    topics: tuple[str, ...]
    """Topic of each code; empty for laboratory items and fixed events."""
    sexes: tuple[str, ...]
    weights: Floats
    labs: Labs
    lab_start: int
    diseases: dict[str, dict[str, Any]]

    def index(self, code: str) -> int:
        """Return the place of a code with its vocabulary prefix."""
        return self.codes.index(code)

    def below(self, prefixes: list[str]) -> Ints:
        """Return the places of all ICD-10-CM codes under any of the prefixes."""
        wanted = tuple(f"ICD10CM/{prefix}" for prefix in prefixes)
        return np.array([i for i, code in enumerate(self.codes) if code.startswith(wanted)], dtype=np.int64)


def _rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _labs() -> Labs:
    rows = _rows("labs.csv")
    panels: dict[str, tuple[int, ...]] = {}
    for place, row in enumerate(rows):
        panels[row["panel"]] = (*panels.get(row["panel"], ()), place)
    numbers = {name: np.array([float(row[name]) for row in rows]) for name in ("women", "men", "sd", "low", "high")}
    return Labs(
        names=tuple(f"LOINC/{row['code']}" for row in rows),
        units=tuple(row["unit"] for row in rows),
        mean=np.stack([numbers["women"], numbers["men"]]),
        sd=numbers["sd"],
        log=np.array([row["log"] == "1" for row in rows]),
        decimals=np.array([int(row["decimals"]) for row in rows]),
        low=numbers["low"],
        high=numbers["high"],
        panels=panels,
    )


def load_vocabulary() -> Vocabulary:
    """Read ``codes.csv``, ``labs.csv`` and ``diseases.toml``."""
    diseases = tomllib.loads((FOLDER / "diseases.toml").read_text(encoding="utf-8"))
    labs, rows = _labs(), _rows("codes.csv")
    fixed = [(name, "visit_occurrence") for name in VISITS]
    fixed += [(name, "person") for name in ("Gender/F", "Gender/M", *RACES, BIRTH)]
    fixed += [(DEATH, "death")]
    fixed += [(f"SNOMED/{disease['snomed']}", "condition_occurrence") for disease in diseases.values()]
    coded = [(f"{row['vocabulary']}/{row['code']}", row["table"]) for row in rows]
    everything = [*fixed, *((name, "measurement") for name in labs.names), *coded]
    blank = len(everything) - len(coded)
    return Vocabulary(
        codes=tuple(code for code, _ in everything),
        tables=tuple(table for _, table in everything),
        topics=("",) * blank + tuple(row["topic"] for row in rows),
        sexes=("",) * blank + tuple(row["sex"] for row in rows),
        weights=np.array([0.0] * blank + [float(row["weight"]) for row in rows]),
        labs=labs,
        lab_start=len(fixed),
        diseases=diseases,
    )


def look_up_table(places: Ints, weights: Floats) -> Ints:
    """Return ``SLOTS`` code places in which each code stands about as often as it weighs."""
    share = np.cumsum(weights) / weights.sum()
    spots = (np.arange(SLOTS) + 0.5) / SLOTS
    chosen: Ints = places[np.minimum(np.searchsorted(share, spots), len(places) - 1)]
    return chosen


@dataclass(frozen=True)
class Topics:
    """What may be coded at a visit: look-up tables by sex, and where each kind of topic begins."""

    tables: Ints
    """(2, topics, SLOTS) places in the vocabulary."""
    background: int
    prodrome: int
    telling: int
    treatment: int


def build_topics(vocabulary: Vocabulary) -> Topics:
    """Return background topics (one per chapter), then for each disease complaints, telling signs and treatment."""
    topic = np.array(vocabulary.topics)
    chapters = sorted(set(vocabulary.topics) - {"", "treatment"})
    six = list(vocabulary.diseases.values())
    banned = vocabulary.below([prefix for disease in six for prefix in disease["banned"]])
    allowed = np.ones(len(topic), dtype=bool)
    allowed[banned] = False
    pools: list[tuple[Ints, Floats]] = []
    for chapter in chapters:
        places = np.flatnonzero((topic == chapter) & allowed)
        pools.append((places, vocabulary.weights[places]))
    for kind in ("common", "telling"):
        for disease in six:
            pools.append(
                _families(vocabulary, disease[kind], disease["medicines"] if kind == "common" else [], allowed)
            )
    for disease in six:
        after = [*vocabulary.below(disease["banned"]), *(vocabulary.index(f"RxNorm/{c}") for c in disease["treatment"])]
        places = np.array(after, dtype=np.int64)
        pools.append((places, np.ones(len(places))))
    sexes = np.array(vocabulary.sexes)
    tables = []
    for other in ("M", "F"):
        fits = [(places[sexes[places] != other], weights[sexes[places] != other]) for places, weights in pools]
        tables.append(np.stack([look_up_table(places, weights) for places, weights in fits]))
    n = len(chapters)
    return Topics(tables=np.stack(tables), background=n, prodrome=n, telling=n + 6, treatment=n + 12)


def _families(
    vocabulary: Vocabulary, prefixes: list[str], medicines: list[str], allowed: NDArray[np.bool_]
) -> tuple[Ints, Floats]:
    """Give every family the same weight and spread it over its leaf codes, so that a leaf alone is rare."""
    places, weights = [], []
    for prefix in prefixes:
        leaves = vocabulary.below([prefix])
        leaves = leaves[allowed[leaves]]
        spread = np.sqrt(vocabulary.weights[leaves])
        places.append(leaves)
        weights.append(spread / spread.sum())
    if medicines:
        places.append(np.array([vocabulary.index(f"RxNorm/{code}") for code in medicines]))
        weights.append(np.full(len(medicines), 0.5))
    return np.concatenate(places), np.concatenate(weights)
