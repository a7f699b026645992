"""Pictures of a task's data, drawn by the categories that have some."""

import importlib
from pathlib import Path

from categories.catalog import CatalogError
from categories.spec import Category


def draw_figure(category: Category, public: Path, gold: Path | None, out: Path) -> None:
    """Write a picture of a draw; the gold is drawn only where it is given.

    Raises:
        CatalogError: the category draws no pictures.
    """
    if not (category.folder / "figure.py").is_file():
        raise CatalogError(f"{category.id} draws no pictures; look at its files with `hab-suite shell`")
    module = importlib.import_module(f"categories.{category.id}.figure")
    module.draw_figure(public, gold, out)
