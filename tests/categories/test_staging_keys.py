"""The key of prepared data changes with what decides its bytes, and with nothing else."""

import ast
import shutil
from pathlib import Path

import pytest

from categories.catalog import ROOT, folder_digest, load_catalog
from categories.instruction import render_instruction, size_words
from categories.spec import Task
from categories.staging import NO_DATA


@pytest.mark.parametrize("category", load_catalog(), ids=lambda category: category.id)
def test_what_is_left_out_of_the_key_makes_no_data(category) -> None:
    left_out = {Path(name).stem for name in NO_DATA}
    for path in category.folder.rglob("*.py"):
        if path.name in NO_DATA:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            assert not {part for name in names for part in name.split(".")} & left_out, path


def test_a_card_may_be_edited_and_a_generator_may_not(tmp_path: Path) -> None:
    folder = tmp_path / "category"
    shutil.copytree(ROOT / "ehr_data_quality", folder, ignore=shutil.ignore_patterns("__pycache__"))
    before, whole = folder_digest(folder, NO_DATA), folder_digest(folder)
    for name in ("README.md", "reference.py", "probes.py", "instruction.md.j2"):
        (folder / name).write_text("edited")
    assert folder_digest(folder, NO_DATA) == before
    assert folder_digest(folder) != whole
    for name in ("synthetic.py", "cases.toml", "category.toml"):
        (folder / name).write_text("edited")
        assert folder_digest(folder, NO_DATA) != before
        shutil.copyfile(ROOT / "ehr_data_quality" / name, folder / name)


def test_the_largest_submission_is_told_in_a_unit_it_fills() -> None:
    assert [size_words(n) for n in (0, 5, 65536, 1 << 20, 268435456, 3 << 30)] == [
        "0 bytes",
        "5 bytes", "64 KiB", "1 MiB", "256 MiB", "3 GiB",
    ]  # fmt: skip
    for category in load_catalog():
        task = Task(category=category, case=next(iter(category.cases)))
        text = render_instruction(task, category.resources["full"])
        assert f"At most {size_words(category.submission.max_bytes)} in" in text
