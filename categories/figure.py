"""Pictures of a task's data, drawn by the categories that have some."""

import importlib
from pathlib import Path

from categories.catalog import CatalogError
from categories.spec import Category


def draws_figures(category: Category) -> bool:
    """Whether the category has pictures."""
    return (category.folder / "figure.py").is_file()


def require_figures(category: Category) -> None:
    """Return if the category has pictures.

    Raises:
        CatalogError: it has none.
    """
    if not draws_figures(category):
        raise CatalogError(f"{category.id} draws no pictures; look at its files with `hab-suite shell`")


def draw_figure(category: Category, public: Path, gold: Path | None, out: Path, submission: Path | None = None) -> None:
    """Write a PNG of a draw; the gold and a trial's submission folder are drawn only where they are given.

    A submission is an agent's: it may be missing, damaged or hostile, and then less of it is drawn.

    Raises:
        CatalogError: the category draws no pictures.
    """
    require_figures(category)
    module = importlib.import_module(f"categories.{category.id}.figure")
    module.draw_figure(public, gold, out, submission)
