"""Start hab-suite from the source tree or from the wheel, where the rooms are nested under this package."""

import sys
from pathlib import Path


def main() -> None:
    """Put the folder that holds the rooms first on the import path and hand over to the command line."""
    home = next(parent for parent in Path(__file__).parents if (parent / "suite" / "cli.py").is_file())
    sys.path.insert(0, str(home))
    from suite.cli import main as run  # noqa: PLC0415  (the path must be set before the rooms can be imported)

    run()
