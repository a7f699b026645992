"""Chest radiograph report correction: the honest solver runs alone, reads claims, and mends what the films contradict."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image
from scipy import signal

from categories.catalog import load_category

FOLDER = Path(__file__).parents[2] / "categories" / "xray_report_correction"
REPORT = """TECHNIQUE: Portable AP view of the chest.

FINDINGS: The trachea is midline. Median sternotomy wires are intact. The endotracheal tube has been removed.
"""


@pytest.fixture(scope="module")
def solver() -> ModuleType:
    spec = importlib.util.spec_from_file_location("xray_reference", FOLDER / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shows(solver: ModuleType, *, portable: bool = True, **true):
    """Return what a network would say that is sure of these outputs (a pair: right and left) and of nothing else there."""
    halves, whole = [{}, {}], {"portable": np.array([portable])}
    for name, count in solver.KNOWN["network"]["half"].items():
        for half, value in zip(halves, true.pop(name, (0, 0)), strict=True):
            half[name] = said(count, value)
    for name, count in solver.KNOWN["network"]["whole"].items():
        whole[name] = said(count, true.pop(name, -0.5 if name == "ctr_x" else 0))
    assert not true
    return halves, whole


def said(count: int, value: float) -> np.ndarray:
    return np.array([value]) if count == 1 else np.log(np.where(np.arange(count) == value, 0.98, 0.02 / (count - 1)))


def usually(solver: ModuleType, *, portable: bool = True):
    halves, whole = shows(solver, portable=portable, ctr_x=np.nan)
    for part in (*halves, whole):
        part |= {name: np.log(np.full(len(row), 1 / len(row))) for name, row in part.items() if len(row) > 1}
    return halves, whole


def test_runs_alone_and_hands_in_what_is_never_wrong_word_for_word(tmp_path) -> None:
    folder = tmp_path / "data" / "study_01"
    folder.mkdir(parents=True)
    grey = np.random.default_rng(3).integers(0, 255, (560, 512)).astype(np.uint8)
    Image.fromarray(grey).save(folder / "view_01.png", dpi=(25.4 / 0.7,) * 2)
    (folder / "report.txt").write_text(REPORT)
    env = {**os.environ, "HAB_DATA": str(tmp_path / "data"), "HAB_SUBMISSION": str(tmp_path / "out")}
    subprocess.run([sys.executable, FOLDER / "reference.py"], env=env, check=True)
    assert (tmp_path / "out" / "findings.txt").read_text().splitlines() == [
        "The trachea is midline.",
        "Median sternotomy wires are intact.",
        "The endotracheal tube has been removed.",
    ]


def test_a_film_is_shown_at_its_true_size_whatever_its_pixels(solver) -> None:
    wide = np.zeros((520, 500))
    wide[200:320, 150:350] = 1000.0
    first, second = solver.shown(wide, 0.7), solver.shown(wide.repeat(2, 0).repeat(2, 1), 0.35)
    assert first.shape == (2, 352, 352)
    assert np.abs(first - second).mean() < 0.01
    rows, columns = np.nonzero(first[0] > 0.5)
    assert abs(np.ptp(columns) * 1.15 - 140) < 4
    assert abs(np.ptp(rows) * 1.15 - 84) < 4


@pytest.mark.parametrize("step", [1, 2])
def test_a_layer_is_a_convolution(solver, step) -> None:
    rng = np.random.default_rng(5)
    network = solver.Network(FOLDER / "reference.npz")
    weights, picture = rng.normal(size=(3, 2, 3, 3)), rng.normal(size=(2, 12, 12))
    network.held |= {"own.w": weights.astype(np.float32), "own.b": np.zeros(3, np.float32)}
    full = [sum(signal.correlate2d(picture[i], row[i], "same") for i in (0, 1)) for row in weights]
    want = np.maximum(np.stack(full)[:, ::step, ::step], 0)
    assert np.allclose(network.layer("own", picture.astype(np.float32), step), want, atol=1e-5)


@pytest.mark.parametrize(
    ("draft", "true", "corrected"),
    [
        (
            "Enteric tube with its tip in the lower esophagus.",
            {"ent": 1},
            "There is enteric tube with its tip in the stomach.",
        ),
        ("Enteric tube with its tip in the lower esophagus.", {"ent": 2}, None),
        ("Severe pulmonary edema.", {"ede": 1}, "There is mild pulmonary edema."),
        ("Severe pulmonary edema.", {"ede": 3}, None),
        ("There is a hiatus hernia.", {"her": 0}, "There is no hiatal hernia."),
        ("A large left pneumothorax is seen.", {"ptx": (0, 0)}, "There is no pneumothorax."),
        ("A large left pneumothorax is seen.", {"ptx": (3, 0)}, "There is large right pneumothorax."),
        ("No pleural effusion.", {"eff": (0, 3)}, "There is large left pleural effusion."),
        ("Moderate pleural effusions on both sides.", {"eff": (0, 2)}, "There is moderate left pleural effusion."),
        ("Left dual-lead pacemaker.", {"pac": 2, "pac_s": (1, 0)}, "There is dual-lead right pacemaker."),
        ("The heart is severely enlarged.", {"ctr_x": 0.45}, "There is mild cardiomegaly."),
        ("Mild cardiomegaly.", {"ctr_x": -0.5}, "Heart size is normal."),
        ("Heart size is normal.", {"ctr_x": -0.5}, None),
        (
            "Two nodules in the right upper lung zone.",
            {"nod": (1, 0), "nod_n": (2, 0)},
            "There is three right nodules in the upper zone.",
        ),
        (
            "Right upper zone consolidation.",
            {"con": (3, 0)},
            "There is right consolidation in the lower zone.",
        ),
        (
            "There is no pneumothorax or consolidation.",
            {"con": (0, 2)},
            "There is no pneumothorax. There is left consolidation in the mid zone.",
        ),
        (
            "A right chest tube with its tip at the apex.",
            {"tub": (2, 0), "tub_t": (0, 0)},
            "There is two right chest tubes with its tip in the apex.",
        ),
    ],
)
def test_rewrites_what_the_film_contradicts(solver, draft, true, corrected) -> None:
    assert solver.corrected(draft, usually(solver), [shows(solver, **true)]) == (corrected or draft)


def test_places_are_lobes_where_two_views_are_taken(solver) -> None:
    film, usual = shows(solver, portable=False, lob=(2, 0)), usually(solver, portable=False)
    told = solver.corrected("Consolidation in the right lower lobe.", usual, [film])
    assert told == "There is right consolidation in the middle lobe."


def test_judges_a_change_by_the_film_before(solver) -> None:
    draft = "Left pleural effusion has increased since the prior study."
    large, small = (shows(solver, eff=(0, 2), eff_x=(0, np.log(volume))) for volume in (1100, 500))
    usual = usually(solver)
    assert solver.corrected(draft, usual, [small, large]) == draft
    assert solver.corrected(draft, usual, [large, small]) == "There is left pleural effusion, decreased."
    assert solver.corrected(draft, usual, [large, large]) == "There is left pleural effusion, unchanged."


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        (
            "A new small left pneumothorax.",
            {"finding": "pneumothorax", "side": "left", "change": "new", "present": True},
        ),
        ("Endotracheal tube in the right main bronchus.", {"side": None, "tip": "right main bronchus"}),
        ("Interval enlargement of the effusion on the right.", {"change": "increased", "severity": None}),
        ("Effusions on both sides, not significantly changed.", {"present": True, "side": "bilateral"}),
        ("Interval resolution of the effusion.", {"present": False, "change": "resolved"}),
        ("Focal airspace opacity in the right middle lobe.", {"location": "mid", "side": "right"}),
    ],
)
def test_reads_the_slots_of_a_sentence(solver, text: str, slots: dict[str, object]) -> None:
    (found,) = solver.claims(text)
    assert {slot: found[slot] for slot in slots} == slots


def test_leaves_alone_what_it_cannot_read(solver) -> None:
    for text in ("A left chest tube.", "Right effusion and a small left pneumothorax.", "The hila are normal."):
        assert solver.claims(text) == []


def counted(seed: str, stage, judge, tmp_path) -> tuple[int, int, int]:
    """Return over a seed's ten tasks how many the solver solves, errors it mends, true statements it damages."""
    category, solved, fixed, damaged = load_category(FOLDER), 0, 0, 0
    for case in category.cases:
        draw, out = stage(f"xray_report_correction/{case}", seed, "full"), tmp_path / case
        env = {**os.environ, "HAB_DATA": str(draw.public), "HAB_SUBMISSION": str(out)}
        subprocess.run([sys.executable, FOLDER / "reference.py"], env=env, check=True)
        verdict = judge(category, out, draw.gold)
        solved, metrics = solved + verdict["reward"], verdict["metrics"]
        fixed, damaged = fixed + metrics["fixed"], damaged + metrics["damaged"]
    return solved, fixed, damaged


@pytest.mark.full
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", ["0", "a private seed"])
def test_solves_a_task(seed: str, stage, judge, tmp_path) -> None:
    assert counted(seed, stage, judge, tmp_path)[0] >= 1


@pytest.mark.full
@pytest.mark.timeout(7200)
def test_mends_four_times_as_much_as_it_breaks(stage, judge, tmp_path) -> None:
    _, fixed, damaged = counted("reference development", stage, judge, tmp_path)
    assert fixed >= 15
    assert damaged <= fixed / 4
