"""The honest solver: carries out the change request on a copy of the configuration and runs the package with it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

Config = dict[str, Any]
DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
SUBMISSION = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
SOURCE = Path(os.environ.get("HAB_SOURCE", "/workspace/MIMIC_IV_MEDS/src/MIMIC_IV_MEDS"))
FIELD = re.compile(r"^- `(\w+)`: code `(\w+)//<\w+>`$", re.MULTILINE)
HOST = re.compile(r"The event `([\w/]+)\.(\w+)` no longer carries")
WHEN = re.compile(r"happens at `(\w+)` \(written as (.+?)\) and carries exactly two columns: (.+?)\. It has")
COLUMN = re.compile(r"`(\w+)` \(from `(\w+)`\)")
PREFIX = re.compile(r"^- (`[^:]+): first part `(\w+)`", re.MULTILINE)
CARRIED = re.compile(r"^- `([\w/]+)\.(\w+)` also carries `(\w+)` \(from `(\w+)`\)", re.MULTILINE)
MOVED = re.compile(r"^- `([\w/]+)\.(\w+)` happens at `(\w+)` instead of", re.MULTILINE)


def changed(config: Config, request: str) -> Config:
    """Apply each sentence of the request."""
    for section in request.split("\n## "):
        host, how = HOST.search(section), WHEN.search(section)
        if host and how:
            table, event = host.groups()
            when, forms, columns = how.groups()
            for field, prefix in FIELD.findall(section):
                del config[table][event][field]
                config[table][f"{event}_{field}"] = {
                    "code": [prefix, f"col({field})"],
                    "time": f"col({when})",
                    "time_format": re.findall(r"`([^`]+)`", forms),
                    **dict(COLUMN.findall(columns)),
                }
    for names, prefix in PREFIX.findall(request):
        for table, event in re.findall(r"`([\w/]+)\.(\w+)`", names):
            parts = config[table][event]["code"]
            config[table][event]["code"] = [prefix, parts] if isinstance(parts, str) else [prefix, *parts[1:]]
    for table, event, name, column in CARRIED.findall(request):
        config[table][event][name] = column
    for table, event, when in MOVED.findall(request):
        config[table][event]["time"] = f"col({when})"
    return config


def convert(config: Path, raw: Path, out: Path) -> None:
    """Run the package's pipeline with a configuration; the code is the package's, only the path is another."""
    code = (
        "import sys; from pathlib import Path; import MIMIC_IV_MEDS.__main__ as package; "
        "package.EVENT_CFG = Path(sys.argv.pop(1)); package.main()"
    )
    words = [f"root_output_dir={out}", f"raw_input_dir={raw}", "do_download=False"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(
        [sys.executable, "-c", code, str(config), *words],
        check=True,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(SOURCE.parent)},
        stdout=sys.stderr,
    )


def submit(cohort: Path, package: Path) -> None:
    """Copy what is asked for."""
    target = SUBMISSION / "MEDS_cohort"
    shutil.copytree(cohort / "data", target / "data", ignore=shutil.ignore_patterns(".*"))
    shutil.copytree(cohort / "metadata", target / "metadata", ignore=shutil.ignore_patterns(".*"))
    shutil.copytree(package, target / "package" / "MIMIC_IV_MEDS", ignore=shutil.ignore_patterns("__pycache__"))


def main() -> None:
    """Solve the task."""
    default = yaml.safe_load((SOURCE / "configs" / "event_configs.yaml").read_text())
    request = (DATA / "change_request.md").read_text()
    custom = SOURCE / "configs" / "custom_event_configs.yaml"
    custom.write_text(yaml.safe_dump(changed(default, request), sort_keys=False))
    with tempfile.TemporaryDirectory() as scratch:
        convert(custom, DATA / "raw_input", Path(scratch))
        submit(Path(scratch) / "MEDS_cohort", SOURCE)


if __name__ == "__main__":
    main()
