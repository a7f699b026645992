"""The clinical edition: a TREC 2021 topic, the trials judged for it, and which of them the patient is eligible for."""

import json
import random
import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from categories.clinical_trial_matching.pool import SIZES
from categories.clinical_trial_matching.record import FIRST_NUMBER, LAST_NUMBER
from categories.clinical_trial_matching.registry import SNAPSHOT, limits_of, rename
from categories.draw import Draw
from categories.sources.shelf import Shelf
from categories.sources.spec import not_as_published

TRACK, AUDIT = "trec_ct_2021", "audited_trials"
PARTS = [f"ClinicalTrials.2021-04-27.part{number}.zip" for number in range(1, 6)]
ELIGIBLE, EXCLUDED = 2, 1
"""Grades of the track: 2 eligible, 1 on the topic but excluded, 0 not relevant."""
BUCKETS = {2: "eligible", 1: "excluded by a criterion", 0: "not relevant"}
DRAWN = (4, 9)
"""How many eligible trials are drawn where the audited ones are not wanted."""
DRAWN_VARIANT = "drawn-gold"


@dataclass(frozen=True)
class Pool:
    """Trials of the source by number, with their grade; and those that count as eligible."""

    grades: dict[str, int]
    gold: tuple[str, ...]


def prepare(draw: Draw, *, public: Path, gold: Path, workspace: Path, sources: Shelf) -> str | None:  # noqa: ARG001
    """Write the same files as the synthetic edition; return the variant where the audited trials were not taken.

    Raises:
        SourceError: a file cannot be had, or trials that were judged are not in the snapshot.
    """
    topic = str(draw.spec.clinical["trec_topic"])
    topics, judged = sources.files(TRACK, ["topics2021.xml", "qrels2021.txt"])
    note = read_topic(topics, topic)
    grades = read_grades(judged, topic)
    audited = audited_trials(sources, topic) if sources.accepted(AUDIT) else None
    pool = choose_pool(draw, grades, audited)
    paths = sources.members(SNAPSHOT, PARTS, [f"{trial}.xml" for trial in pool.grades])
    lacking = sorted(trial for trial in pool.grades if f"{trial}.xml" not in paths)
    if lacking:
        what = f"lack {len(lacking)} trials of the pool, first {lacking[0]}"
        raise not_as_published(SNAPSHOT, "the five archives of the snapshot", what)
    names = opaque_numbers(draw, list(pool.grades))
    (public / "trials").mkdir()
    entries = {}
    for trial, name in sorted(names.items(), key=lambda pair: pair[1]):
        record = rename(paths[f"{trial}.xml"], lambda number: names.get(number) or _foreign(draw, number))
        (public / "trials" / f"{name}.xml").write_bytes(record)
        grade = pool.grades[trial]
        failing = [] if trial in pool.gold else [BUCKETS[grade]]
        entry = {"bucket": BUCKETS[grade], "target": "main", "failing": failing, "limits": limits_of(record)}
        entries[name] = {**entry, "criteria": []}
    (public / "patient.txt").write_text(note, encoding="utf-8")
    document = {
        "eligible": sorted(names[trial] for trial in pool.gold),
        "pool": sorted(names.values()),
        "trials": entries,
        "patient": {},
    }
    (gold / "gold.json").write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return None if audited else DRAWN_VARIANT


def read_topic(path: Path, number: str) -> str:
    """Return a topic's note, white space collapsed.

    Raises:
        SourceError: the file holds no such topic.
    """
    try:
        root = ET.parse(path).getroot()  # noqa: S314 (expat resolves no external entity and bounds expansion)
    except ET.ParseError as error:
        raise not_as_published(TRACK, path, f"is no XML ({error})") from None
    found = next((topic for topic in root.iter("topic") if topic.get("number") == number), None)
    if found is None:
        raise not_as_published(TRACK, path, f"holds no topic {number}")
    return " ".join("".join(found.itertext()).split())


def read_grades(path: Path, topic: str) -> dict[str, int]:
    """Return trial -> grade of one topic.

    Raises:
        SourceError: nothing was judged for it.
    """
    rows = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    grades = {row[2].upper(): int(row[3]) for row in rows if len(row) == 4 and row[0] == topic}
    if not grades:
        raise not_as_published(TRACK, path, f"holds no judgement for topic {topic}")
    return grades


def audited_trials(sources: Shelf, topic: str) -> tuple[str, ...]:
    """Return the trials that the published benchmark's audit left as eligible; the file is pinned by its SHA-256."""
    path = sources.file(AUDIT, f"clinical_trial_matching_task_{topic}/tests/gold.txt")
    return tuple(re.findall(r"NCT\d{8}", path.read_text(encoding="utf-8").upper()))


def choose_pool(draw: Draw, grades: dict[str, int], audited: tuple[str, ...] | None) -> Pool:
    """Return all trials judged below eligible, and the eligible ones that count; other eligible ones are left out.

    At small scale the others are a draw, so that little is fetched.

    Raises:
        SourceError: an audited trial was not judged eligible.
    """
    rng = random.Random(int.from_bytes(draw.digest("pool"), "big"))
    eligible = sorted(trial for trial, grade in grades.items() if grade == ELIGIBLE)
    gold = audited or tuple(sorted(rng.sample(eligible, min(len(eligible), rng.randint(*DRAWN)))))
    if not set(gold) <= set(eligible):
        raise not_as_published(TRACK, "qrels2021.txt", "does not call all audited trials eligible")
    others = sorted(trial for trial, grade in grades.items() if grade < ELIGIBLE)
    if draw.scale == "small":
        others = rng.sample(others, min(len(others), SIZES["small"].near))
    return Pool({trial: grades[trial] for trial in sorted([*gold, *others])}, tuple(sorted(gold)))


def opaque_numbers(draw: Draw, trials: list[str]) -> dict[str, str]:
    """Return trial -> new number; none is the number of a trial of the pool."""
    rng = random.Random(int.from_bytes(draw.digest("ids"), "big"))
    taken = {int(trial[3:]) for trial in trials}
    free = (n for n in rng.sample(range(FIRST_NUMBER, LAST_NUMBER), 2 * len(trials)) if n not in taken)
    return {trial: f"NCT{number:08d}" for trial, number in zip(sorted(trials), free, strict=False)}


def _foreign(draw: Draw, trial: str) -> str:
    """Return another number for a trial that a record mentions and that is not in the pool."""
    span = LAST_NUMBER - FIRST_NUMBER
    return f"NCT{FIRST_NUMBER + int.from_bytes(draw.digest('mentioned', trial)[:8], 'big') % span:08d}"
