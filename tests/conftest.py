"""What guard tests of all rooms share: draws of real tasks, verdicts, and the categories themselves."""

import contextlib
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import meds_env
import pytest

from categories.catalog import find_task
from categories.spec import Category, Scale
from categories.staging import Staged, StageRequest, staged
from runners.cache import default_cache
from verifiers_hidden.__main__ import main as verifier

Stage = Callable[..., Staged]
Judge = Callable[[Category, Path, Path], dict[str, Any]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep together, on one worker, what shares its draws: a category's guards, else a file's tests."""
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        named = params.get("category_id") or str(params.get("task_id", "")).partition("/")[0]
        item.add_marker(pytest.mark.xdist_group(named or item.path.name))


def pytest_configure() -> None:
    """Tests that stage into a cache of their own share the user's assets: they are fetched and derived once."""
    os.environ.setdefault("HAB_SUITE_ASSETS", str(default_cache().root / "assets"))


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    """Return a function that stages a task in the user's cache (keyed by the generator's digest) and holds it."""
    with ExitStack() as stack:

        def of(task_id: str, seed: str = "0", scale: Scale = "small", instance: int = 0) -> Staged:
            request = StageRequest(find_task(task_id), seed, instance, scale)
            return stack.enter_context(staged(request, default_cache().root))

        yield of


@pytest.fixture(scope="session")
def judge() -> Judge:
    """Return a function that runs a verifier by its contract: arguments in, one JSON verdict out."""

    def of(category: Category, submission: Path, gold: Path) -> dict[str, Any]:
        if category.verifier_image != "verifier":
            meds_env.ensure()
        numbers = dict(category.pass_rule.numbers)
        numbers |= {f"published_{name}": value for name, value in category.published_rule.numbers.items()}
        words = [
            "judge",
            category.id,
            "--gold",
            str(gold),
            "--submission",
            str(submission),
            "--rule",
            json.dumps(numbers),
        ]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert verifier(words) == 0
        verdict: dict[str, Any] = json.loads(out.getvalue().splitlines()[-1])
        return verdict

    return of


@pytest.fixture
def perfect() -> Callable[[Category, Path, Path], Path]:
    """Return a function that writes the perfect submission of a draw's gold into an empty folder."""

    def of(category: Category, gold: Path, out: Path) -> Path:
        out.mkdir(parents=True)
        assert verifier(["perfect", category.id, "--gold", str(gold), "--out", str(out)]) == 0
        return out

    return of
