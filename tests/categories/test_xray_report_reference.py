"""Chest radiograph report correction: the honest solver runs alone, leaves true sentences, mends more than it breaks."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from categories.catalog import load_category

FOLDER = Path(__file__).parents[2] / "categories" / "xray_report_correction"
REPORT = """TECHNIQUE: Frontal and lateral views of the chest were obtained.

FINDINGS: The trachea is midline. The heart is {heart}. Enteric tube with its tip in the {tip}. There is no effusion.
"""


def drawn_chest(heart_mm: int, tube: bool) -> Image.Image:
    """Return a chest of grey shapes at 1 mm a pixel: body, two lungs 260 mm across, heart, spine, a tube's line."""
    y, x = np.mgrid[:400, :360].astype(float)
    x -= 180
    grey = np.where(abs(x) < 165, 0.55, 0.0)
    lungs = (abs(x) < 130) & (((y - 260) / 220) ** 2 + (x / 130) ** 2 < 1) & (y < 260 + abs(x) / 8)
    grey[lungs] = 0.15
    grey[(((y - 215) / 70) ** 2 + ((x - 20) / (heart_mm / 2)) ** 2 < 1) & lungs] = 0.6
    grey[abs(x) < 18] = 0.85
    if tube:
        grey[(abs(x - (y - 230).clip(0) * 0.9) < 2) & (y < 385)] = 1.2
    noisy = grey + np.random.default_rng(0).normal(0, 0.005, grey.shape)
    return Image.fromarray((noisy.clip(0, 1.2) / 1.2 * 255).astype(np.uint8)).resize((1440, 1600))


def corrected(tmp_path: Path, picture: Image.Image, heart: str, tip: str) -> list[str]:
    folder = tmp_path / "data" / "study_01"
    folder.mkdir(parents=True, exist_ok=True)
    picture.save(folder / "view_01.png", dpi=(101.6, 101.6))
    (folder / "report.txt").write_text(REPORT.format(heart=heart, tip=tip))
    env = {**os.environ, "HAB_DATA": str(tmp_path / "data"), "HAB_SUBMISSION": str(tmp_path / "out")}
    subprocess.run([sys.executable, FOLDER / "reference.py"], env=env, check=True)
    return (tmp_path / "out" / "findings.txt").read_text().splitlines()


def test_measures_the_heart_and_follows_a_tube(tmp_path) -> None:
    picture = drawn_chest(110, tube=True)
    true = corrected(tmp_path, picture, "normal in size", "stomach")
    assert true[1:3] == ["The heart is normal in size.", "Enteric tube with its tip in the stomach."]
    false = corrected(tmp_path, picture, "severely enlarged", "distal esophagus")
    assert false[1:3] == ["The heart size is normal.", "There is enteric tube with its tip in the stomach."]
    wide = corrected(tmp_path, drawn_chest(200, tube=False), "normal in size", "stomach")
    assert "cardiomegaly" in wide[1]
    for lines in (true, false, wide):
        assert (lines[0], lines[3]) == ("The trachea is midline.", "There is no effusion.")


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        (
            "A new small left pneumothorax.",
            {"finding": "pneumothorax", "side": "left", "change": "new", "present": True},
        ),
        ("Endotracheal tube in the right main bronchus.", {"side": None, "tip": "right main bronchus"}),
        ("No significant change in the right middle lobe consolidation.", {"present": True, "zone": "mid"}),
        ("Interval resolution of the effusion.", {"present": False, "change": "resolved"}),
    ],
)
def test_reads_the_slots_of_a_sentence(text: str, slots: dict[str, object]) -> None:
    spec = importlib.util.spec_from_file_location("xray_reference", FOLDER / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.claim(text)
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
