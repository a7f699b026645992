"""The wheel holds every file of the rooms, nested under one name."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent
ROOMS = ("suite", "categories", "containers", "runners", "results", "verifiers_hidden")


@pytest.mark.slow
def test_the_wheel_holds_all_files_of_the_rooms(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in (*ROOMS, "pyproject.toml", "setup.py", "README.md", "LICENSE"):
        tree.mkdir(exist_ok=True)
        if (HOUSE / name).is_dir():  # without what other tests compile meanwhile
            shutil.copytree(HOUSE / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(HOUSE / name, tree / name)
    words = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(tree)]
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    paths = (path for room in ROOMS for path in (HOUSE / room).rglob("*") if path.is_file())
    wanted = {path.relative_to(HOUSE).as_posix() for path in paths if "__pycache__" not in path.parts}
    launcher = {name for name in wanted if name.startswith("suite/launcher/")}
    assert {name.removeprefix("hab_suite/") for name in held} >= wanted - launcher
    assert "hab_suite/__init__.py" in held
    assert all(name.startswith("hab_suite/") for name in held)
