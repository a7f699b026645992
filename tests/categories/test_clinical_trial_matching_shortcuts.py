"""Trial matching: what a pool must not give away, measured over many draws; and what the honest screener reaches.

An AUROC near 0.5 says that a feature does not tell eligible trials from near-misses. Acceptance is by equivalence:
the whole 95 % interval of the mean over draws must lie within 0.45 to 0.55.
"""

import json
import math
import os
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from categories.catalog import load_catalog
from categories.clinical_trial_matching import probes
from categories.clinical_trial_matching.bank import load_library
from categories.clinical_trial_matching.pool import SIZES, Protocol
from categories.clinical_trial_matching.synthetic import draw_task, prepare
from categories.draw import Draw
from categories.seed import case_key
from verifiers_hidden import clinical_trial_matching as verifier

CATEGORY = next(c for c in load_catalog() if c.id == "clinical_trial_matching")
LIBRARY = load_library()
RULE = {"top": 50, "recall": 1.0}
DRAWS_A_CASE = 34
"""34 x 9 = 306 draws: F58 asks for at least 300."""


def draw_of(case: str, seed: str) -> Draw:
    return Draw(case, CATEGORY.cases[case], case_key(seed, CATEGORY.id, case, 0), "full")


def stage(draw: Draw, folder: Path) -> Path:
    for part in ("public", "gold"):
        (folder / part).mkdir(parents=True)
    prepare(draw, public=folder / "public", gold=folder / "gold", workspace=folder)
    return folder


def auroc(positive: list[float], negative: list[float]) -> float:
    wins = sum((a > b) + 0.5 * (a == b) for a in positive for b in negative)
    return wins / (len(positive) * len(negative))


def interval(values: list[float]) -> tuple[float, float]:
    half = 1.96 * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values) - half, statistics.mean(values) + half


def structure(pool: list[Protocol]) -> dict[str, float]:
    """AUROC of what a protocol's plan shows: number of criteria, share of inclusions."""
    features = {
        "criteria": lambda p: float(len(p.criteria)),
        "inclusions": lambda p: sum(c.side == "inc" for c in p.criteria) / len(p.criteria),
        "silent_about_age": lambda p: float(p.limits.text_age is None),
    }
    by_bucket = {b: [p for p in pool if p.bucket == b] for b in ("eligible", "near")}
    return {
        n: auroc([f(p) for p in by_bucket["eligible"]], [f(p) for p in by_bucket["near"]]) for n, f in features.items()
    }


def text_scores(folder: Path) -> dict[str, float]:
    """AUROC of what the texts show: length, file size, similarity to all others and to the note."""
    gold = json.loads((folder / "gold" / "gold.json").read_text())
    probes.DATA = folder / "public"
    trials = [probes.Trial(path) for path in sorted((folder / "public" / "trials").iterdir())]
    kept = [t for t in trials if gold["trials"][t.id]["bucket"] in ("eligible", "near")]
    is_eligible = [gold["trials"][t.id]["bucket"] == "eligible" for t in kept]
    vectors, idf = probes.vectors(kept)
    total: Counter[str] = Counter()
    for vector in vectors:
        total.update(vector)
    query = {word: idf.get(word, 0.0) for word in set(probes.words(probes.note()))}
    features = {
        "length": [float(len(t.criteria)) for t in kept],
        "size": [float(t.path.stat().st_size) for t in kept],
        "items": [float(len(t.items())) for t in kept],
        "centrality": [sum(total[w] * x for w, x in v.items()) for v in vectors],
        "tfidf": [sum(query.get(w, 0.0) * x for w, x in v.items()) for v in vectors],
    }
    return {
        name: auroc(
            [s for s, e in zip(scores, is_eligible, strict=True) if e],
            [s for s, e in zip(scores, is_eligible, strict=True) if not e],
        )
        for name, scores in features.items()
    }


def test_the_plan_of_a_protocol_says_nothing() -> None:
    found = defaultdict(list)
    for case, spec in CATEGORY.cases.items():
        for seed in ("p", "q", "r"):
            _, _, pool = draw_task(
                draw_of(case, seed), LIBRARY.banks[str(spec.parameters["disease"])], LIBRARY, SIZES["full"]
            )
            for name, value in structure(pool).items():
                found[name].append(value)
    for name, values in found.items():
        assert 0.43 <= statistics.mean(values) <= 0.57, (name, statistics.mean(values))


@pytest.mark.full
@pytest.mark.timeout(7200)
def test_no_shortcut_over_300_draws(tmp_path: Path) -> None:
    found = measure(tmp_path, DRAWS_A_CASE)
    for name, values in found.items():
        low, high = interval(values)
        assert 0.45 <= low <= high <= 0.55, (name, low, high)


def measure(folder: Path, draws: int) -> dict[str, list[float]]:
    """Return every feature's AUROC, draw by draw."""
    found = defaultdict(list)
    for case, spec in CATEGORY.cases.items():
        for number in range(draws):
            draw = draw_of(case, f"shortcut {number}")
            _, _, pool = draw_task(draw, LIBRARY.banks[str(spec.parameters["disease"])], LIBRARY, SIZES["full"])
            scores = structure(pool) | text_scores(stage(draw, folder / case / str(number)))
            for name, value in scores.items():
                found[name].append(value)
    return found


def solve(script: str, arguments: list[str], folder: Path, out: Path) -> int:
    out.mkdir()
    env = {**os.environ, "HAB_DATA": str(folder / "public"), "HAB_SUBMISSION": str(out)}
    subprocess.run([sys.executable, CATEGORY.folder / script, *arguments], env=env, check=True)
    return verifier.judge(out, folder / "gold", RULE).reward


@pytest.fixture(scope="module", params=["0", "a private seed"])
def staged_cases(request, tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("staged")
    return {case: stage(draw_of(case, request.param), root / case) for case in CATEGORY.cases}


@pytest.mark.full
def test_the_honest_screener_passes_two(staged_cases: dict[str, Path], tmp_path: Path) -> None:
    passed = [case for case, folder in staged_cases.items() if solve("reference.py", [], folder, tmp_path / case)]
    assert len(passed) >= 2


@pytest.mark.slow
def test_the_honest_screener_passes_a_case_of_seed_0(tmp_path: Path) -> None:
    folder = stage(draw_of("neurology", "0"), tmp_path / "neurology")
    assert solve("reference.py", [], folder, tmp_path / "out") == 1


@pytest.mark.full
@pytest.mark.parametrize("probe", [*probes.ZERO, *probes.BOUND])
def test_probes_and_baselines_stay_within_their_bounds(
    staged_cases: dict[str, Path], tmp_path: Path, probe: str
) -> None:
    passed = sum(solve("probes.py", [probe], folder, tmp_path / case) for case, folder in staged_cases.items())
    assert passed <= (0 if probe in probes.ZERO else probes.BOUND[probe][1])


def test_chance_is_small() -> None:
    """50 random trials of the smallest pool with the fewest eligible ones, exactly."""
    smallest = SIZES["full"].near + SIZES["full"].multi + SIZES["full"].off_target[0]
    fewest = SIZES["full"].eligible[0]
    assert math.comb(smallest, 50 - fewest) / math.comb(smallest + fewest, 50) < 1e-4
