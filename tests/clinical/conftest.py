"""A user of their own for every test: configuration, settings, cache; nothing of the real one is touched."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import meds_env
import pytest
from clinic import CREDENTIALS, Clinic, settings
from ehrshot import users_cache

from categories.catalog import find_task
from categories.sources.agreements import Agreements
from categories.sources.settings import Settings
from categories.sources.shelf import Shelf
from categories.sources.spec import load_sources
from categories.spec import Scale
from categories.staging import Staged, StageRequest, staged
from containers.locks import file_lock
from suite.etl_environment import ROLE

QUICK = """[download]
attempts = 4
backoff_s = 0.01
timeout_s = 3.0
parallel = 3
spare_gb = 0.1
"""


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh user who has agreed to nothing and has no credentials; downloads are quick to try again."""
    config = tmp_path / "config"
    config.mkdir()
    (config / "sources.toml").write_text(QUICK, encoding="utf-8")
    monkeypatch.setenv("HAB_SUITE_CONFIG", str(config))
    monkeypatch.setenv("HAB_SUITE_ENV_FILE", str(tmp_path / ".env"))
    monkeypatch.setenv("HAB_SUITE_CACHE", str(tmp_path / "cache"))
    for source in load_sources().values():
        for name in (source.url_variable, source.folder_variable, *(v for group in source.variables for v in group)):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("HAB_SUITE_OFFLINE", raising=False)
    return config


@pytest.fixture
def agree(user: Path) -> Callable[..., None]:
    """Return a function that accepts the terms of sources."""

    def of(*sources: str) -> None:
        for name in sources:
            Agreements(user).accept(load_sources()[name])

    return of


@pytest.fixture
def shelf(user: Path, tmp_path: Path) -> Callable[[], Shelf]:
    """Return a function that makes a shelf as a worker would: settings read anew."""
    return lambda: Shelf(tmp_path / "cache" / "sources", Settings.load())


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., object]]:
    """Return a function that points a source at a host for the length of the test."""
    with ExitStack() as stack:

        def of(source: str, host):
            stack.enter_context(closing(host))
            monkeypatch.setenv(load_sources()[source].url_variable, host.url)
            return host

        yield of


@pytest.fixture(scope="session")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """All miniature sources, a user who may use them, and a cache of their own, for the whole session."""
    base = tmp_path_factory.getbasetemp()
    home = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "clinic"  # workers share one cache
    (home / "cache").mkdir(parents=True, exist_ok=True)
    (home / "config").mkdir(exist_ok=True)
    with file_lock(home / "lock"):
        if not (home / "config" / "sources.toml").exists():
            (home / "cache" / "meds-env").symlink_to(users_cache() / "meds-env")
            (home / "config" / "sources.toml").write_text(QUICK + settings(home), encoding="utf-8")
    environ = {
        "HAB_SUITE_CONFIG": str(home / "config"),
        "HAB_SUITE_ENV_FILE": str(home / "none"),
        "HAB_SUITE_CACHE": str(home / "cache"),
        **CREDENTIALS,
    }
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        for source in load_sources().values():
            patch.delenv(source.folder_variable, raising=False)
            patch.setenv(source.url_variable, "http://127.0.0.1:9")  # no test reaches a real host
            Agreements(home / "config").accept(source)
        for name, value in environ.items():
            patch.setenv(name, value)
        yield stack.enter_context(closing(Clinic()))


@pytest.fixture(scope="session")
def stage(clinic: Clinic) -> Iterator[Callable[..., Staged]]:
    """Return a function that stages a task's clinical edition; takes the place of the synthetic one of other tests."""
    with ExitStack() as stack:

        def of(task_id: str, seed: str = "0", scale: Scale = "small", instance: int = 0) -> Staged:
            task = find_task(task_id)
            clinic.open_for(task)
            if task.category.image == ROLE:
                meds_env.ensure()
            request = StageRequest(task, seed, instance, scale, "clinical")
            return stack.enter_context(staged(request, Path(os.environ["HAB_SUITE_CACHE"])))

        yield of
