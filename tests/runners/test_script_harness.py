"""Solvers that come with a category: the script reaches the box with its tables and weights, and with nothing else."""

import io
import subprocess
import sys
import zipfile

from runners.harnesses.script import UNPACK, packed

SCRIPT = """import sys
from pathlib import Path
print(sys.argv[1:], Path(__file__).with_suffix(".toml").read_text(), __name__)
print(sorted(path.name for path in Path(__file__).parent.iterdir()))
"""


def folder_of(tmp_path):
    for name, text in {"reference.py": SCRIPT, "reference.toml": "a = 1", "probes.py": "", "gold.npz": ""}.items():
        (tmp_path / name).write_text(text)
    return tmp_path / "reference.py"


def test_a_script_is_packed_with_the_data_that_bear_its_name(tmp_path) -> None:
    held = zipfile.ZipFile(io.BytesIO(packed(folder_of(tmp_path))))
    assert held.namelist() == ["reference.py", "reference.toml"]
    assert zipfile.ZipFile(io.BytesIO(packed(tmp_path / "probes.py"))).namelist() == ["probes.py"]


def test_a_packed_script_runs_with_its_words_and_leaves_nothing_behind(tmp_path) -> None:
    archive, temporary = packed(folder_of(tmp_path)), tmp_path / "tmp"
    temporary.mkdir()
    words = [sys.executable, "-c", UNPACK, "reference.py", "one", "two words"]
    done = subprocess.run(words, input=archive, env={"TMPDIR": str(temporary)}, capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == [
        "['one', 'two words'] a = 1 __main__",
        "['reference.py', 'reference.toml']",
    ]
    assert not list(temporary.iterdir())


def test_a_packed_script_that_fails_fails(tmp_path) -> None:
    (tmp_path / "reference.py").write_text("raise SystemExit(3)")
    words = [sys.executable, "-c", UNPACK, "reference.py"]
    assert subprocess.run(words, input=packed(tmp_path / "reference.py"), check=False).returncode == 3
