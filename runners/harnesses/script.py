"""Solvers that come with a category: the honest reference, and probes that must earn 0; run in the box."""

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

from containers.box import Finished
from runners.harness import HarnessError, HarnessOptions, Seat
from runners.harnesses.plain import PlainHarness, completed

PYTHON = "/opt/env/bin/python"
UNPACK = """import io, runpy, sys, tempfile, zipfile
with tempfile.TemporaryDirectory() as folder:
    zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read())).extractall(folder)
    sys.argv = sys.argv[1:]
    runpy.run_path(f"{folder}/{sys.argv[0]}", run_name="__main__")
"""
DATA = (".toml", ".npz")
"""Endings of the files that a script may have beside it under its own name: tables, fitted weights."""


class Reference(PlainHarness):
    """Runs the category's ``reference.py``, which sees only what an agent sees."""

    def drive(self, seat: Seat) -> Finished:
        return _run(seat, seat.task.category.folder / "reference.py")


class Probe(PlainHarness):
    """Runs one of the category's dumb or cheating solvers, named after the colon: ``probe:everything``."""

    def __init__(self, options: HarnessOptions) -> None:
        super().__init__(options)
        if not options.argument:
            raise HarnessError("--harness probe: which one? `probe:NAME`; `hab-suite show TASK` lists the names.")

    def drive(self, seat: Seat) -> Finished:
        return _run(seat, seat.task.category.folder / "probes.py", self.options.argument)


def list_probes(category_folder: Path) -> list[dict[str, object]]:
    """Return what ``probes.py --list`` says: name, expectation, bound and reason of each probe."""
    answer = subprocess.run(
        [sys.executable, category_folder / "probes.py", "--list"], capture_output=True, text=True, check=True
    )
    probes: list[dict[str, object]] = json.loads(answer.stdout)
    return probes


def packed(script: Path) -> bytes:
    """Return an archive of a script and of the data files beside it that bear its name."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as held:
        for path in (script, *map(script.with_suffix, DATA)):
            if path.is_file():
                held.write(path, path.name)
    return archive.getvalue()


def _run(seat: Seat, script: Path, *arguments: str) -> Finished:
    """Hand the script over standard input, so that the box holds nothing that an agent's box does not."""
    return completed(seat.exec((PYTHON, "-c", UNPACK, script.name, *arguments), stdin=packed(script)), script.name)
