"""The cache of staged draws and derived assets: what is in it, and how it is kept within bounds."""

import contextlib
import fcntl
import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from categories.assets import Asset, assets_folder, derived_folders, discard

MAKING = ".making"
"""Ending of the folder in which a draw is made."""


@dataclass(frozen=True)
class Entry:
    """One staged draw, or what was derived from one asset."""

    folder: Path
    about: str
    size_bytes: int
    used_at: datetime
    """When it was last handed out."""


def entries(cache: Path) -> list[Entry]:
    """Return all finished draws, the latest used first."""
    found = []
    for document in (cache / "staged").glob("*/staged.json"):
        folder = document.parent
        try:
            about = str(json.loads(document.read_text(encoding="utf-8"))["about"])
            found.append(_entry(folder, about))
        except FileNotFoundError:
            continue  # evicted by another process meanwhile
    return sorted(found, key=lambda entry: entry.used_at, reverse=True)


def _entry(folder: Path, about: str) -> Entry:
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Entry(folder, about, size, datetime.fromtimestamp(folder.stat().st_mtime, UTC))


def derived_entries(cache: Path, assets: Iterable[Asset]) -> list[Entry]:
    """Return what was derived from assets; what no generator uses any more says so."""
    found = []
    for asset, folder, used in derived_folders(assets_folder(cache), assets):
        with contextlib.suppress(FileNotFoundError):  # renamed or removed by another process meanwhile
            found.append(_entry(folder, f"asset: {asset.title}" + ("" if used else ", no longer used")))
    return found


def prune_derived(cache: Path, assets: Iterable[Asset]) -> list[Entry]:
    """Remove what was derived from assets and is no longer used. Return what was removed."""
    removed = []
    for asset, folder, used in list(derived_folders(assets_folder(cache), assets)):
        with contextlib.suppress(FileNotFoundError):
            entry = _entry(folder, f"asset: {asset.title}")
            if not used and discard(asset, folder):
                removed.append(entry)
    return removed


def prune(cache: Path, keep_bytes: int) -> list[Entry]:
    """Evict the longest unused draws until ``keep_bytes`` are left; those in use stay. Return what was evicted.

    What killed preparations left goes first, and whatever is to be kept.
    """
    evicted, kept = _swept(cache), entries(cache)
    total = sum(entry.size_bytes for entry in kept)
    for entry in reversed(kept):
        if total <= keep_bytes:
            break
        if _evict(entry.folder):
            total -= entry.size_bytes
            evicted.append(entry)
    return evicted


def _swept(cache: Path) -> list[Entry]:
    """Remove and return half-made draws that nobody is making."""
    removed = []
    for folder in (cache / "staged").glob(f"*{MAKING}"):
        with contextlib.suppress(FileNotFoundError):  # finished by another process meanwhile
            entry = _entry(folder, "left by a killed preparation")
            if _evict(folder):
                removed.append(entry)
    return removed


def _evict(folder: Path) -> bool:
    """Remove a draw unless somebody holds its lock. The lock file stays: removing it would split its holders."""
    with folder.with_name(f"{folder.name.removesuffix(MAKING)}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # The marker goes first: a half-removed draw must not look finished.
        (folder / "staged.json").unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
    return True
