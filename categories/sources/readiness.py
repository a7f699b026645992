"""Whether the sources of a task can be used now, and if not, what is to be done."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from categories.sources.agreements import Agreements
from categories.sources.copies import Notes
from categories.sources.credentials import find_credentials, variables_in_words
from categories.sources.errors import RefusedError, SourceError
from categories.sources.settings import Settings
from categories.sources.shelf import Shelf
from categories.sources.spec import SourceSpec, sources_of
from categories.spec import Task


@dataclass(frozen=True)
class State:
    """What can be said of a source."""

    word: Literal["ready", "skipped", "not ready"]
    """``skipped``: optional and not accepted, so tasks are made without it."""
    detail: str
    repair: str = ""
    here_gb: float = 0.0
    """How much of it is on this machine."""
    fetched: bool = False
    """Whether what is missing would be fetched now."""


def state_of(source: SourceSpec, settings: Settings, root: Path, *, ask: bool = False) -> State:
    """Return the state of a source; with ``ask`` a small question shows whether its credential is good.

    ``root`` is the cache of sources.
    """
    here = round(_bytes_here(root / source.id) / 1e9, 3)
    if not is_used(source, settings):
        return State("skipped", "terms not accepted; tasks are made without it", f"`{accept_command(source)}`", here)
    folder = settings.folder(source)
    if folder is not None and folder.is_dir():
        return State("ready", f"copy in {folder}", here_gb=here)
    if folder is not None:
        return State("not ready", f"no folder {folder}", f"mend {source.folder_variable}")
    if settings.offline:
        if here:
            return State("ready", "offline: what is here is used", here_gb=here)
        return State("not ready", "nothing of it is here, and offline", "run once without --offline")
    return _asked_for(source, settings, root, here, ask=ask)


def _asked_for(source: SourceSpec, settings: Settings, root: Path, here: float, *, ask: bool) -> State:
    """Return the state of a source that is to be fetched."""
    accepted = Agreements(settings.config).accepted(source)
    lacking = find_credentials(source, settings.env_file) is None
    if lacking or not accepted:
        missing = [] if accepted else ["terms not accepted"]
        first = f"read {source.agreement}"
        if lacking:
            missing.append(f"{' and '.join(source.variables[0])} not set")
            first = (
                f"get access at {source.agreement} and set {variables_in_words(source)} in environment, .env or keyring"
            )
        todo = first if accepted else f"{first}, then `{accept_command(source)}`"
        return State("not ready", ", ".join(missing), todo, here)
    if ask and source.probe:
        try:
            Shelf(root, settings).fetcher(source).head(source.probe)
        except RefusedError as error:
            look = variables_in_words(source) or source.url_variable
            return State("not ready", error.brief, f"look at {look}; access and agreement: {source.agreement}", here)
        except SourceError as error:
            return State("not ready", str(error), here_gb=here)
    return State("ready", f"accepted {accepted}", here_gb=here, fetched=True)


def is_used(source: SourceSpec, settings: Settings) -> bool:
    """Whether tasks are made of a source: of an optional one only once its terms were accepted."""
    return not source.optional or bool(Agreements(settings.config).accepted(source))


def accept_command(source: SourceSpec) -> str:
    """Return what a user types to accept a source's terms."""
    return f"hab-suite sources --accept {source.id}"


def _bytes_here(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0


def sources_digest(task: Task, settings: Settings, root: Path) -> str:
    """Return the digest of what decides which real records a draw is made of, and of what it leaves out.

    That is versions and pins, the copy on this machine and its state, and the user's own table. ``root`` is the cache
    of sources.
    """
    used = [
        {
            "source": source.id,
            "path": source.path,
            "revision": source.revision,
            "files": settings.pins(source),
            "copy": _copy_state(settings.folder(source), root),
            "table": _table_digest(settings.table(source)),
        }
        for source in sources_of(task)
        if is_used(source, settings)
    ]
    return hashlib.sha256(json.dumps(used, sort_keys=True).encode()).hexdigest()


def _copy_state(folder: Path | None, root: Path) -> list[str]:
    return [] if folder is None else [str(folder), Notes(root).version(folder)]


def _table_digest(path: Path | None) -> str:
    return "" if path is None or not path.is_file() else hashlib.sha256(path.read_bytes()).hexdigest()
