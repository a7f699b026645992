"""Folders -> categories -> tasks. Nothing is registered by hand: a folder with a ``category.toml`` is a category."""

import hashlib
import tomllib
from collections.abc import Container, Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from categories.spec import Category, Task

ROOT = Path(__file__).parent


class CatalogError(Exception):
    """A file of a category is wrong, or a name names nothing; the message says where and what next."""


@cache
def load_catalog(root: Path = ROOT) -> tuple[Category, ...]:
    """Return all categories, by name."""
    return tuple(load_category(path.parent) for path in sorted(root.glob("*/category.toml")))


def load_category(folder: Path) -> Category:
    """Read ``category.toml`` and ``cases.toml``."""
    document = _read(folder / "category.toml")
    cases = _read(folder / "cases.toml")
    try:
        category = Category.model_validate({**document, "id": folder.name, "folder": folder, "cases": cases})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        file = "cases.toml" if first["loc"] and first["loc"][0] == "cases" else "category.toml"
        raise CatalogError(f"{folder / file}: {where}: {first['msg']}") from None
    for name, case in category.cases.items():
        if case.draw_as is not None and case.draw_as not in category.cases:
            raise CatalogError(f"{folder / 'cases.toml'}: {name}.draw_as: no case {case.draw_as!r}")
    return category


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CatalogError(f"{path} is missing") from None
    except tomllib.TOMLDecodeError as error:
        raise CatalogError(f"{path}: {error}") from None


def all_tasks(categories: Iterable[Category] | None = None) -> list[Task]:
    """Return every task, in the order of categories and of ``cases.toml``."""
    found = load_catalog() if categories is None else categories
    return [Task(category=category, case=case) for category in found for case in category.cases]


def find_task(task_id: str) -> Task:
    """Return the task of that id."""
    tasks = {task.id: task for task in all_tasks()}
    if task_id not in tasks:
        raise CatalogError(f"no task {task_id!r}.{_near(task_id, tasks)} `hab-suite list` shows all.")
    return tasks[task_id]


def select_tasks(globs: Iterable[str] = (), categories: Iterable[str] = ()) -> list[Task]:
    """Return the tasks that match any glob (on the id, or on either half of it) and are in one of the categories.

    Raises:
        CatalogError: a glob or a category matches nothing; the message names it.
    """
    tasks = all_tasks()
    known = sorted({task.category.id for task in tasks})
    wanted = list(categories)
    for name in wanted:
        if name not in known:
            raise CatalogError(
                f"--category {name}: no such category.{_near(name, known)} There are: {', '.join(known)}."
            )
    if wanted:
        tasks = [task for task in tasks if task.category.id in wanted]
    patterns = list(globs)
    if not patterns:
        return tasks
    chosen: list[Task] = []
    for pattern in patterns:
        hits = [task for task in tasks if _matches(task, pattern)]
        if not hits:
            within = f" within --category {' '.join(wanted)}" if wanted else ""
            near = _near(pattern, [t.id for t in tasks])
            raise CatalogError(f"--tasks {pattern}: matches no task{within}.{near} `hab-suite list` shows all.")
        chosen += [task for task in hits if task not in chosen]
    return sorted(chosen, key=tasks.index)


def _matches(task: Task, pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in (task.id, task.category.id, task.case))


def _near(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def folder_digest(folder: Path, besides: Container[str] = ()) -> str:
    """Return the SHA-256 over names and contents of a folder's files, but for those named: a version of code."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in besides and "__pycache__" not in path.parts and path.suffix != ".pyc":
            digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
