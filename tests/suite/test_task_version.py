"""What a score depends on has another version once it changes; what it does not depend on has not."""

import shutil

import pytest

from categories.catalog import ROOT, load_category
from categories.spec import Task
from suite.plan import task_version


@pytest.mark.parametrize(
    ("name", "another"),
    [("README.md", False), ("reference.py", True), ("probes.py", True), ("synthetic.py", True), ("cases.toml", True)],
)
def test_solver_and_generator_are_in_the_version_and_the_card_is_not(tmp_path, name, another) -> None:
    shutil.copytree(ROOT / "ehr_data_quality", tmp_path / "ehr_data_quality")
    shutil.copy(ROOT / "closing.md.j2", tmp_path)
    category = load_category(tmp_path / "ehr_data_quality")
    task = Task(category=category, case=next(iter(category.cases)))
    before = task_version(task)
    with (category.folder / name).open("a") as file:
        file.write("\n# edited\n")
    assert (task_version(task) != before) is another
