"""The pinned ETL of the format conversion in an environment of its own, by the lock file of its image."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from categories.ehr_format_conversion.pinned_etl import ENVIRONMENT, is_checked
from categories.sources.errors import NotReadyError
from categories.sources.readiness import sources_digest
from categories.sources.settings import Settings
from categories.spec import Edition, Scale, Task
from categories.staging import StageRequest
from containers.images import FOLDERS
from containers.locks import file_lock
from runners.cache import Cache

ROLE = "meds_etl"
PIP = ("install", "-q", "--require-hashes", "--no-deps", "--only-binary", ":all:")
FROM_SOURCE = "antlr4-python3-runtime"
"""Published as source only."""


def needs_etl(task: Task, scale: Scale, edition: Edition) -> bool:
    """Return whether the preparation of such a draw asks the pinned ETL."""
    return task.category.image == ROLE and is_checked(scale, edition)


def provide_etl(draws: Iterable[StageRequest], cache: Cache, say: Callable[[str], None], *, offline: bool) -> None:
    """Have the pinned ETL at hand where a draw still to be made needs it, and tell preparations where it is.

    Raises:
        NotReadyError: it is not there and cannot be had.
    """
    if ENVIRONMENT in os.environ:
        return
    if any(needs_etl(draw.task, draw.scale, draw.edition) and not _is_made(draw, cache) for draw in draws):
        os.environ[ENVIRONMENT] = str(ensure_environment(cache, say, offline=offline))


def _is_made(draw: StageRequest, cache: Cache) -> bool:
    """Return whether a draw is in the cache. The synthetic edition of this category stands on no asset."""
    clinical = draw.edition == "clinical"
    variant = sources_digest(draw.task, Settings.load(), cache.sources) if clinical else ""
    return (cache.staged / draw.cache_key(variant) / "staged.json").exists()


def ensure_environment(cache: Cache, say: Callable[[str], None] = lambda _: None, *, offline: bool = False) -> Path:
    """Return the environment's folder, made now if need be; the packages come through the user's own package client.

    Raises:
        NotReadyError: it cannot be made; the message holds the client's last words.
    """
    lock = FOLDERS / ROLE / "requirements.lock"
    root = cache.root / "meds-env"
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    folder = root / hashlib.sha256(version.encode() + lock.read_bytes()).hexdigest()[:16]
    with file_lock(root / "lock"):
        if (folder / "finished").exists():
            return folder
        if offline:
            raise NotReadyError(
                f"the pinned ETL, which checks the gold of the format conversion, is not in {folder}, and --offline "
                f"(HAB_SUITE_OFFLINE) forbids to fetch it: run once without"
            )
        say("making the pinned ETL's environment, once per machine")
        install = [str(folder / "bin" / "python"), "-m", "pip", *PIP, "--no-binary", FROM_SOURCE, "-r", str(lock)]
        for words in ([sys.executable, "-m", "venv", "--clear", str(folder)], install):
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                shutil.rmtree(folder, ignore_errors=True)
                last = (done.stderr.strip().splitlines() or done.stdout.strip().splitlines() or ["no message"])[-1]
                raise NotReadyError(
                    f"the pinned ETL's environment cannot be made in {folder}: {last}. Mend that (pip reads your "
                    f"own settings), name an environment made by {lock} in {ENVIRONMENT}, or choose other tasks "
                    f"(--category) or, of the synthetic edition, --scale small, which needs none"
                )
        (folder / "finished").touch()
    return folder
