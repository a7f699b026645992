"""The reference reads what an agent reads: it answers every label at small scale and solves a task at full scale."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from categories.catalog import load_category

FOLDER = Path(__file__).parents[2] / "categories" / "ct_abnormality"


def solved(public: Path, out: Path) -> dict[str, str]:
    env = {**os.environ, "HAB_DATA": str(public), "HAB_SUBMISSION": str(out)}
    subprocess.run([sys.executable, FOLDER / "reference.py"], env=env, check=True)
    lines = (out / "predictions.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ") for line in lines)


@pytest.mark.parametrize("case", ["scan_01", "scan_03"])
def test_reference_answers_every_label_of_either_format(case: str, stage, tmp_path: Path) -> None:
    public = stage(f"ct_abnormality/{case}", "0", "small").public
    answers = solved(public, tmp_path)
    assert sorted(answers) == sorted((public / "labels.txt").read_text(encoding="utf-8").split("\n")[:17])
    assert set(answers.values()) <= {"yes", "no"}


@pytest.mark.full
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("seed", ["0", "a private seed"])
def test_reference_solves_a_task(seed: str, stage, judge, tmp_path: Path) -> None:
    category, passed = load_category(FOLDER), []
    for case in category.cases:
        draw = stage(f"ct_abnormality/{case}", seed, "full")
        solved(draw.public, tmp_path / case)
        passed.append(judge(category, tmp_path / case, draw.gold)["reward"])
        if any(passed):
            break
    assert any(passed)
