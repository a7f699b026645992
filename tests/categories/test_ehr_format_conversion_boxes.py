"""In real boxes: the perfect, the honest and the cheating conversions; the ETL's source in the workspace is what runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from categories.catalog import find_task
from results.folder import RunFolder
from results.records import Outcome
from runners.harnesses.script import list_probes

pytestmark = [pytest.mark.engine, pytest.mark.slow]

TASK = find_task("ehr_format_conversion/mimic_iv_to_meds")


def run(out: Path, *words: str) -> RunFolder:
    command = [
        sys.executable,
        "-m",
        "hab_suite",
        "run",
        "--tasks",
        TASK.id,
        "--scale",
        "small",
        "--out",
        str(out),
        *words,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return RunFolder.open(out / done.stdout.splitlines()[-1])


def test_perfect_and_honest_pass_and_every_probe_fails(tmp_path: Path) -> None:
    probes = [f"probe:{probe['name']}" for probe in list_probes(TASK.category.folder)]
    names = ["oracle", "nop", "reference", *probes]
    words = [word for name in names for word in ("--harness", name)]
    folder = run(tmp_path, *words, "--seed", "a private seed", "--jobs", "2")
    records = {record.plan.harness: record for record in folder.records().values()}
    assert set(records) == set(names)
    for name in ("oracle", "reference"):
        assert records[name].outcome is Outcome.PASSED, (name, records[name].message)
    assert records["nop"].reason == "missing_submission"
    for name in probes:
        assert (records[name].reward, records[name].reason) == (0, "check_failed"), (name, records[name].message)


def test_the_workspace_source_is_what_the_command_runs(tmp_path: Path) -> None:
    command = (
        "python -c 'import MIMIC_IV_MEDS, polars; print(MIMIC_IV_MEDS.__file__, MIMIC_IV_MEDS.__version__, polars.__version__)'; "
        "echo 'raise SystemExit(\"mine\")' >> MIMIC_IV_MEDS/src/MIMIC_IV_MEDS/__init__.py; MEDS_extract-MIMIC_IV; true"
    )
    folder = run(tmp_path, "--harness", "command", "--command", command)
    (record,) = folder.records().values()
    agent = folder.trial(record.plan).agent
    assert "/workspace/MIMIC_IV_MEDS/src/MIMIC_IV_MEDS/__init__.py 0.0.7 1.27.1" in (agent / "stdout.log").read_text()
    assert "mine" in (agent / "stderr.log").read_text()
    assert record.reason == "missing_submission"
