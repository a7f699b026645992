"""Chest radiograph report correction: the honest solver runs alone, leaves true sentences, mends more than it breaks."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import pytest
from PIL import Image

from categories.catalog import load_category

FOLDER = Path(__file__).parents[2] / "categories" / "xray_report_correction"
REPORT = """TECHNIQUE: Portable AP view of the chest.

FINDINGS: The trachea is midline. The heart is normal in size. 9 mm nodule in the left upper zone.
"""
FRAME = (128.0, 95.0, 30.0, 160.0)


@pytest.fixture(scope="module")
def solver() -> ModuleType:
    spec = importlib.util.spec_from_file_location("xray_reference", FOLDER / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def mean_chest(solver: ModuleType, frame: tuple[float, float, float, float]) -> np.ndarray:
    """Return a film (0.7 mm a pixel) of the solver's own mean chest, laid into a frame of the coarse film."""
    mean = cv2.resize(solver.SIGNS[:224].reshape(16, 14) / 84, (28, 32))
    middle, half, apex, dome = frame
    y, x = np.mgrid[:256, :256].astype(np.float32)
    across = (((x - middle) / half + 1.1) / 2.2 * 27).astype(np.float32)
    down = (((y - apex) / (dome - apex) + 0.2) / 1.6 * 31).astype(np.float32)
    coarse = cv2.remap(mean, across, down, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    coarse[np.abs(x - middle) > 1.2 * half] = 0
    return np.asarray(cv2.resize(coarse, (512, 512)))


@pytest.mark.parametrize("shift", [0.0, 8.0])
def test_finds_the_frame_of_a_chest(solver, shift) -> None:
    frame = (FRAME[0] + shift / 2, FRAME[1] + shift / 4, FRAME[2], FRAME[3] + shift)
    found = solver.registered(mean_chest(solver, frame))
    assert np.allclose(found, frame, atol=4)


def test_runs_alone_and_hands_in_what_it_does_not_measure_word_for_word(solver, tmp_path) -> None:
    folder = tmp_path / "data" / "study_01"
    folder.mkdir(parents=True)
    picture = Image.fromarray((mean_chest(solver, FRAME) * 255).astype(np.uint8))
    picture.save(folder / "view_01.png", dpi=(25.4 / 0.7,) * 2)
    (folder / "report.txt").write_text(REPORT)
    env = {**os.environ, "HAB_DATA": str(tmp_path / "data"), "HAB_SUBMISSION": str(tmp_path / "out")}
    subprocess.run([sys.executable, FOLDER / "reference.py"], env=env, check=True)
    lines = (tmp_path / "out" / "findings.txt").read_text().splitlines()
    assert lines == [
        "The trachea is midline.",
        "The heart is normal in size.",
        "9 mm nodule in the left upper zone.",
    ]


def seen(solver: ModuleType, **true: float) -> dict[str, float]:
    """Return what the solver measures, on average, where this is true."""
    found = {}
    for name, value in true.items():
        key = name.replace("_", " ")
        offset, slope, _ = (float(number) for number in solver.LEARNED[key][1].split()[2:])
        found[key] = offset + slope * value
    return found


@pytest.mark.parametrize(
    ("draft", "true", "corrected"),
    [
        (
            "Enteric tube with its tip in the lower esophagus.",
            {"ent_stomach": 1},
            "There is enteric tube with its tip in the stomach.",
        ),
        ("Enteric tube with its tip in the lower esophagus.", {"ent_stomach": 0}, None),
        ("Severe pulmonary edema.", {"ede": 0.35}, "There is mild pulmonary edema."),
        ("Severe pulmonary edema.", {"ede": 0.95}, None),
        ("There is a hiatus hernia.", {"her": 0}, "There is no hiatal hernia."),
        ("A large left pneumothorax is seen.", {"ptx_left": 0, "ptx_right": 0}, "There is no pneumothorax."),
        ("No pleural effusion.", {"eff_left": 2.7, "eff_right": 0}, "There is large left pleural effusion."),
        (
            "Moderate pleural effusions on both sides.",
            {"eff_left": 2.0, "eff_right": 0},
            "There is moderate left pleural effusion.",
        ),
        ("Left dual-lead pacemaker.", {"pac_side": 0, "pac_count": 2}, "There is dual-lead right pacemaker."),
    ],
)
def test_rewrites_what_the_measurements_contradict(solver, draft, true, corrected) -> None:
    assert solver.corrected(draft, seen(solver, **true), {}) == (corrected or draft)


def test_judges_a_change_by_the_film_before(solver) -> None:
    draft = "Left pleural effusion has increased since the prior study."
    large, small = ({"eff_left": level, "eff_right": 0.0} for level in (2.7, 1.2))
    assert solver.corrected(draft, seen(solver, **large), seen(solver, **small)) == draft
    shrunk = solver.corrected(draft, seen(solver, **small), seen(solver, **large))
    assert shrunk == "There is left pleural effusion, decreased."


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
    ],
)
def test_reads_the_slots_of_a_sentence(solver, text: str, slots: dict[str, object]) -> None:
    found = solver.claim(text)
    assert {slot: found[slot] for slot in slots} == slots


@pytest.mark.full
def test_mends_four_times_as_much_as_it_breaks_at_full_scale(stage, judge, tmp_path) -> None:
    category, fixed, damaged = load_category(FOLDER), 0, 0
    for case in category.cases:
        draw, out = stage(f"xray_report_correction/{case}", "reference development", "full"), tmp_path / case
        env = {**os.environ, "HAB_DATA": str(draw.public), "HAB_SUBMISSION": str(out)}
        subprocess.run([sys.executable, FOLDER / "reference.py"], env=env, check=True)
        metrics = judge(category, out, draw.gold)["metrics"]
        fixed, damaged = fixed + metrics["fixed"], damaged + metrics["damaged"]
    assert fixed >= 15
    assert damaged <= fixed / 4
