"""A user of their own for every test: configuration, settings, cache; nothing of the real one is touched."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from categories.sources.agreements import Agreements
from categories.sources.settings import Settings
from categories.sources.shelf import Shelf
from categories.sources.spec import load_sources

QUICK = """[download]
attempts = 4
backoff_s = 0.01
timeout_s = 0.6
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
    monkeypatch.delenv("HAB_SUITE_SOURCES", raising=False)
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
