"""The README says what the suite is."""

import os
import subprocess
import sys
from pathlib import Path

HOUSE = Path(__file__).parent.parent.parent


def test_the_task_table_is_the_catalogue() -> None:
    script = HOUSE / "scripts" / "readme_tasks.py"
    env = {**os.environ, "PYTHONPATH": str(HOUSE)}
    rows = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=env).stdout
    assert rows.strip() in (HOUSE / "README.md").read_text(encoding="utf-8")


def test_the_pages_it_names_exist() -> None:
    text = (HOUSE / "README.md").read_text(encoding="utf-8")
    for name in (
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/agents.md",
        "docs/run-folder.md",
        "docs/statistics.md",
        "docs/site.md",
    ):
        assert f"`{name}`" in text
        assert (HOUSE / name).is_file()
