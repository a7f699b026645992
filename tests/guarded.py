"""What the guard tests run over: found in the folders, never listed by hand."""

from categories.catalog import load_catalog

PRIVATE_SEEDS = ("a private seed", "another private seed")
CATEGORIES = [category.id for category in load_catalog()]
TASKS = [f"{category.id}/{case}" for category in load_catalog() for case in category.cases]
DRAWS = [
    f"{category.id}/{case}" for category in load_catalog() for case, spec in category.cases.items() if not spec.draw_as
]
"""Tasks with data of their own: a twin shares another's."""
