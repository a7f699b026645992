"""The README says what the suite is."""

import os
import subprocess
import sys
from pathlib import Path

from categories.catalog import load_catalog

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
        "docs/clinical.md",
    ):
        assert f"`{name}`" in text
        assert (HOUSE / name).is_file()


def test_the_page_on_the_clinical_edition_names_every_category_and_its_sources() -> None:
    lines = (HOUSE / "docs" / "clinical.md").read_text(encoding="utf-8").splitlines()
    for category in load_catalog():
        if "clinical" in category.editions:
            sources, records = (line for line in lines if line.startswith(f"| `{category.id}` |"))
            assert all(f"`{name}`" in sources for name in category.clinical_sources)
            assert records.count("|") == 5
