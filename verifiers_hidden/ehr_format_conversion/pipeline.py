"""Run an event configuration through the pristine, pinned ETL on the hidden input."""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from verifiers_hidden.ehr_format_conversion.cohort import Submitted, read_cohort
from verifiers_hidden.kit import GoldError, Refused

ENVIRONMENT = "HAB_MEDS_ENV"
"""Where the pinned ETL is, if not beside this interpreter: a virtual environment's folder."""
LIMIT_S = 240
STAGES = Path(__file__).with_name("stages.py")


@dataclass(frozen=True)
class Outcome:
    """What the ETL made of a configuration."""

    cohort: Submitted | None
    message: str


@lru_cache(maxsize=16)
def run(config: str, raw_input: Path) -> Outcome:
    """Convert the raw input by a configuration (plain YAML text); the same question is answered once per process.

    Raises:
        GoldError: the pinned ETL is not installed here.
    """
    binaries = Path(os.environ.get(ENVIRONMENT, sys.prefix)) / "bin"
    if not (binaries / "MEDS_transform-runner").exists():
        raise GoldError(f"the pinned ETL is not installed in {binaries}; {ENVIRONMENT} can name its environment")
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch) / "work"
        work.mkdir()
        (Path(scratch) / "events.yaml").write_text(config, encoding="utf-8")
        words = (binaries / "python", "-I", STAGES, raw_input.resolve(), work, Path(scratch) / "events.yaml")
        command = [str(word) for word in words]
        clean = {"PATH": f"{binaries}:/usr/bin:/bin", "HOME": scratch, "LANG": "C.UTF-8", "TZ": "UTC"}
        try:
            done = subprocess.run(command, cwd=work, env=clean, capture_output=True, timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return Outcome(None, f"the conversion took more than {LIMIT_S} s")
        if done.returncode != 0:
            return Outcome(None, _last_words(done.stderr + done.stdout))
        try:
            return Outcome(read_cohort(work / "MEDS_cohort", 10_000_000), "")
        except Refused as refusal:
            return Outcome(None, str(refusal))


def _last_words(log: bytes) -> str:
    lines = [line.strip() for line in log.decode(errors="replace").splitlines() if "Error" in line]
    return (lines[-1] if lines else "the conversion failed")[:300]
