"""Where the suite keeps what it makes on this machine, outside any checkout."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cache:
    """The cache folder::

        staged/<digest>/        prepared data: public/, workspace/, gold/ (evicted oldest first)
        mnt/<run id>/           disks, doors and data links of a run under way; gone when it ends
        agents/<cli>-<version>/ agent CLIs, mounted read-only into boxes
        sources/                downloads of the clinical edition
        meds-env/               the pinned ETL, which checks the gold of the format conversion
        assets/                 what generators stand on, fetched and derived (elsewhere by HAB_SUITE_ASSETS)
        locks/                  one orchestrator at a time builds an image
        history.jsonl           what trials cost and took, for forecasts

    Bind mounts show the path of their source inside the box, so the default name says nothing about the suite.
    """

    root: Path

    @property
    def mounts(self) -> Path:
        return self.root / "mnt"

    @property
    def agents(self) -> Path:
        return self.root / "agents"

    @property
    def locks(self) -> Path:
        return self.root / "locks"

    @property
    def sources(self) -> Path:
        return self.root / "sources"

    @property
    def staged(self) -> Path:
        return self.root / "staged"

    @property
    def history(self) -> Path:
        return self.root / "history.jsonl"

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield an empty folder that is gone afterwards."""
        self.root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.root, prefix="scratch-") as folder:
            yield Path(folder)


def cache_limit_bytes() -> int:
    """Return how much prepared data is kept when a run starts: ``HAB_SUITE_CACHE_GB``, else 40 GB."""
    return int(float(os.environ.get("HAB_SUITE_CACHE_GB", "40")) * 1e9)


def default_cache() -> Cache:
    """Return the cache that ``HAB_SUITE_CACHE`` names, else ``box-store`` in the user's cache folder."""
    if named := os.environ.get("HAB_SUITE_CACHE"):
        return Cache(Path(named).expanduser().resolve())
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Cache(Path(base).resolve() / "box-store")
