"""The synthetic edition: generated timelines, labels, and the gold with every test patient's true risk."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from categories.draw import Draw
from categories.ehr_event_modelling.cohort import SIZES, SPLITS, YEAR, Cohort, build_cohort
from categories.ehr_event_modelling.events import NO_END, Block, make_block
from categories.ehr_event_modelling.gate import GRID, Counter, embedding_scores, gate_scores, with_age
from categories.ehr_event_modelling.measures import expected_auroc
from categories.ehr_event_modelling.plain import best_plain
from categories.ehr_event_modelling.visits import DAY
from categories.ehr_event_modelling.vocabulary import VISITS, Ints, build_topics, load_vocabulary
from categories.ehr_event_modelling.writing import EventFile, write_examples, write_gold

TEST = SPLITS.index("test")


def prepare(draw: Draw, *, public: Path, gold: Path, workspace: Path) -> str:  # noqa: ARG001 (the contract)
    """Write events and examples for the agent, gold and gate for the verifier. Every task has a world of its own."""
    world = World.of(draw, public / "events.csv")
    for place, split in enumerate(SPLITS):
        name = "test_examples.csv" if split == "test" else f"{split}_labels.csv"
        rows = world.rows_of(place)
        write_examples(draw, public / name, world.cohort, rows, with_label=split != "test")
    settings = {name: draw.spec.parameters[f"gate_{name}"] for name in GRID[0]}
    _write_gold(gold, world, settings)
    return "hazard"


@dataclass(frozen=True)
class World:
    """The patients and the gate's features of all examples."""

    cohort: Cohort
    features: sparse.csr_matrix
    """(examples, codes + 1): counts before the prediction time, and the age."""

    @property
    def codes(self) -> int:
        """Return the number of code columns."""
        return int(self.features.shape[1]) - 1

    @classmethod
    def of(cls, draw: Draw, events: Path) -> "World":
        """Make all timelines, write them to ``events``, keep what the gate needs."""
        vocabulary = load_vocabulary()
        cohort = build_cohort(draw, vocabulary.diseases)
        counter = Counter(codes=len(vocabulary.codes))
        with EventFile(draw, events, vocabulary, cohort.ids) as file:
            for block, rows in _blocks(draw, cohort):
                for row in rows:
                    patient, day, _ = cohort.rows[row]
                    counter.add(block, int(row), int(patient), prediction_minute(int(day)))
                file.write(block)
        age = (cohort.rows[:, 1] - cohort.birth[cohort.rows[:, 0]]) / YEAR
        return cls(cohort, with_age(counter.matrix(len(cohort.rows)), age))

    def rows_of(self, split: int) -> Ints:
        """Return the places of a split's examples."""
        return np.flatnonzero(self.cohort.split[self.cohort.rows[:, 0]] == split)


def prediction_minute(day: int) -> int:
    """Return 23:59 of a day, in minutes since 1970-01-01."""
    return day * DAY + DAY - 1


def _blocks(draw: Draw, cohort: Cohort) -> Iterator[tuple[Block, Ints]]:
    """Yield blocks of events, test patients cut, with the examples of their patients."""
    vocabulary = load_vocabulary()
    topics = build_topics(vocabulary)
    until = np.full(len(cohort.ids), np.iinfo(np.int64).max)
    tested = cohort.rows[cohort.split[cohort.rows[:, 0]] == TEST]
    until[tested[:, 0]] = tested[:, 1] * DAY + DAY - 1
    step = SIZES[draw.scale].block
    for first in range(0, len(cohort.ids), step):
        last = min(first + step, len(cohort.ids))
        block = cut(make_block(draw, vocabulary, topics, cohort, first, last), until)
        rows = np.flatnonzero((cohort.rows[:, 0] >= first) & (cohort.rows[:, 0] < last))
        yield block, rows


def cut(block: Block, until: Ints) -> Block:
    """Drop each patient's events from a minute on, and blank the ends that lie there."""
    block = block.select(block.minute < until[block.patient])
    late = block.end >= until[block.patient]
    return Block(block.patient, block.minute, np.where(late, NO_END, block.end), block.code, block.value, block.visit)


def _write_gold(gold: Path, world: World, settings: Mapping[str, object]) -> None:
    """Write each test patient's true risk, label and the baselines' scores, and the best plain ordering."""
    cohort = world.cohort
    train, test = world.rows_of(0), world.rows_of(TEST)
    features, wanted, tested = world.features[train], cohort.rows[train, 2], world.features[test]
    scores = {
        "gate": gate_scores(features, wanted, tested, settings),
        "embedding": embedding_scores(features, wanted, tested),
    }
    write_gold(gold / "gold.csv", cohort, test, scores)
    risk = np.round(cohort.risk[test], 6)
    patient, day, _ = cohort.rows[test].T
    counts = tested[:, : world.codes]
    columns = {
        "events": np.asarray(counts.sum(axis=1)).ravel(),
        "visits": np.asarray(counts[:, : len(VISITS)].sum(axis=1)).ravel(),
        "length of the record": (day - cohort.opens[patient]).astype(np.float64),
        "prediction time": day.astype(np.float64),
        "first event": cohort.opens[patient].astype(np.float64),
        "id": cohort.ids[patient].astype(np.float64),
    }
    age, male = (day - cohort.birth[patient]) / YEAR, cohort.male[patient].astype(np.float64)
    name, reached = best_plain(columns, age, male, risk, lambda score: expected_auroc(score, risk))
    document = {"ordering": name, "auroc": round(reached, 4)}
    (gold / "plain.json").write_text(json.dumps(document) + "\n", encoding="utf-8")
