"""The synthetic edition: generated timelines, labels, and the gold with every test patient's true risk."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from scipy import sparse

from categories.draw import Draw
from categories.ehr_event_modelling.cohort import SIZES, SPLITS, YEAR, Cohort, build_cohort
from categories.ehr_event_modelling.counting import Counter, Counting
from categories.ehr_event_modelling.events import NO_END, Block, make_block
from categories.ehr_event_modelling.gate import GRID, embedding_scores, gate_scores, with_age
from categories.ehr_event_modelling.measures import expected_auroc
from categories.ehr_event_modelling.plain import best_plain
from categories.ehr_event_modelling.visits import DAY
from categories.ehr_event_modelling.vocabulary import VISITS, Floats, Ints, build_topics, load_vocabulary
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
    """The patients, and what was counted in the history of every example."""

    cohort: Cohort
    counts: sparse.csr_matrix
    """(examples, codes): how often each code stands there."""
    features: sparse.csr_matrix
    """(examples, columns): what the gate goes by."""

    @classmethod
    def of(cls, draw: Draw, events: Path) -> "World":
        """Make all timelines, write them to ``events``, keep what the baselines need."""
        vocabulary = load_vocabulary()
        cohort = build_cohort(draw, vocabulary.diseases)
        blocks = _blocks(draw, cohort)
        first, rows_of_first = next(blocks)
        counting = Counting.of(vocabulary.codes, first.code, first.value)
        counter = Counter(counting)
        with EventFile(draw, events, vocabulary, cohort.ids) as file:
            for block, rows in chain([(first, rows_of_first)], blocks):
                for row in rows:
                    patient, day, _ = cohort.rows[row]
                    counter.add(int(row), *block.history(int(patient), prediction_minute(int(day))))
                file.write(block)
        cells = counter.matrix(len(cohort.rows))
        return cls(cohort, counting.per_code(cells), counting.features(cells, ages(cohort)))

    def rows_of(self, split: int) -> Ints:
        """Return the places of a split's examples."""
        return np.flatnonzero(self.cohort.split[self.cohort.rows[:, 0]] == split)


def ages(cohort: Cohort) -> Floats:
    """Return the age at each example, in years."""
    years: Floats = (cohort.rows[:, 1] - cohort.birth[cohort.rows[:, 0]]) / YEAR
    return years


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
    test = world.rows_of(TEST)
    known = np.setdiff1d(np.arange(len(cohort.rows)), test)
    wanted, age = cohort.rows[known, 2], ages(cohort)
    simple = with_age(world.counts, age)
    scores = {
        "gate": gate_scores(world.features[known], wanted, world.features[test], settings),
        "embedding": embedding_scores(simple[known], wanted, simple[test]),
    }
    write_gold(gold / "gold.csv", cohort, test, scores)
    risk = np.round(cohort.risk[test], 6)
    patient, day, _ = cohort.rows[test].T
    counts = world.counts[test]
    columns = {
        "events": np.asarray(counts.sum(axis=1)).ravel(),
        "visits": np.asarray(counts[:, : len(VISITS)].sum(axis=1)).ravel(),
        "length of the record": (day - cohort.opens[patient]).astype(np.float64),
        "prediction time": day.astype(np.float64),
        "first event": cohort.opens[patient].astype(np.float64),
        "id": cohort.ids[patient].astype(np.float64),
    }
    male = cohort.male[patient].astype(np.float64)
    name, reached = best_plain(columns, age[test], male, risk, lambda score: expected_auroc(score, risk))
    document = {"ordering": name, "auroc": round(reached, 4)}
    (gold / "plain.json").write_text(json.dumps(document) + "\n", encoding="utf-8")
