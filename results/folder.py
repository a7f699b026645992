"""The run folder: a public format that reports, sites, resumption and notebooks read (docs/run-folder.md)."""

import fcntl
import json
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError
from pydantic_core import from_json

from results.files import Journal, write_atomically
from results.records import SCHEMA_VERSION, Event, RunPlan, TrialPlan, TrialRecord, first_fault
from results.trial_folder import TrialFolder

REAL_DATA_NOTE = """This folder holds data derived from real patients under data use agreements.
Do not copy, publish, commit or upload it; see the agreements of the sources named in run.json.
"""
CLOSING = ("trial_ended", "rescored")
"""The events that carry a record."""
COPY = "restore it from a copy"


class RunFolderError(Exception):
    """The folder cannot be used; the message says what, where and what next."""


class RunFolder:
    """``<out>/<run id>/``, mode 0700 for the clinical edition.

    ::

        run.json            the plan, versions, digests, host, edition, seed fingerprint, scale, limits
        events.jsonl        append-only journal; the closing event of a trial holds its whole record
        seed                the seed itself, mode 0600: whoever has it can draw the gold
        lock                held by the orchestrator at work; names its process and host
        trials/<category>/<case>/i<instance>/<harness>@<model>[@<effort>]/t<attempt>/     a ``TrialFolder``
        CONTAINS-REAL-DATA  only in the clinical edition
        .gitignore          ``*``: a run is never committed by accident
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = Journal(self.events_file)

    @property
    def plan_file(self) -> Path:
        return self.path / "run.json"

    @property
    def events_file(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def seed_file(self) -> Path:
        return self.path / "seed"

    @property
    def lock_file(self) -> Path:
        return self.path / "lock"

    @property
    def trials(self) -> Path:
        return self.path / "trials"

    @classmethod
    def create(cls, path: Path, plan: RunPlan, seed: str) -> Self:
        """Make the folder of a new run.

        Raises:
            RunFolderError: there is something at ``path`` already.
        """
        clinical = plan.edition == "clinical"
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.mkdir(mode=0o700 if clinical else 0o755)
        except FileExistsError:
            raise RunFolderError(f"{path} exists already; resume it, or choose another run id or --out") from None
        folder = cls(path)
        write_atomically(path / ".gitignore", "*\n")
        if clinical:
            write_atomically(path / "CONTAINS-REAL-DATA", REAL_DATA_NOTE)
        write_atomically(folder.seed_file, seed + "\n", mode=0o600)
        folder.trials.mkdir()
        # Last: a folder with a plan is complete.
        write_atomically(folder.plan_file, plan.model_dump_json(indent=1) + "\n")
        return folder

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open an existing run.

        Raises:
            RunFolderError: no run there, damaged, or written by a newer version of the format.
        """
        folder = cls(path)
        if not folder.plan_file.is_file():
            raise RunFolderError(
                f"{path} is no run folder: it holds no run.json; give one that `hab-suite run` made: OUT/<run id>"
            )
        try:
            head = from_json(folder.plan_file.read_bytes())
            version = head["schema_version"]
        except (ValueError, KeyError, TypeError) as error:
            raise RunFolderError(f"{folder.plan_file} is damaged: {error}; {COPY}") from None
        if not isinstance(version, int) or version > SCHEMA_VERSION:
            raise RunFolderError(
                f"{path} was written in format version {version}; this hab-suite reads up to "
                f"{SCHEMA_VERSION}: update it"
            )
        try:
            folder.plan = RunPlan.model_validate(head)
        except ValidationError as error:
            raise RunFolderError(f"{folder.plan_file} is damaged: {first_fault(error)}; {COPY}") from None
        return folder

    @cached_property
    def plan(self) -> RunPlan:
        return RunPlan.model_validate_json(self.plan_file.read_bytes())

    def seed(self) -> str:
        """Return the seed.

        Raises:
            RunFolderError: the file is not there, as in a copy that was made to be shown, or damaged.
        """
        try:
            return self.seed_file.read_text(encoding="utf-8").removesuffix("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise RunFolderError(
                f"{self.seed_file} cannot be read ({error}); without the seed a run's data cannot be made again: {COPY}"
            ) from None

    def trial(self, trial: TrialPlan | str) -> TrialFolder:
        """Return the folder of a trial, by its plan or id; an id that leads out of ``trials/`` is refused."""
        trial_id = trial if isinstance(trial, str) else trial.trial_id
        parts = trial_id.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise RunFolderError(f"{trial_id!r} is no trial id; they look like CATEGORY/CASE/i0/HARNESS@MODEL/t1")
        return TrialFolder(self.trials.joinpath(*parts))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder for one orchestrator; the kernel lets go when the process ends, however it ends.

        Raises:
            RunFolderError: another orchestrator holds it; the message names its process and host.
        """
        handle = os.open(self.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(handle, 4096, 0).decode(errors="replace").strip() or "an unnamed process"
                raise RunFolderError(f"{self.path} is in use by {holder}; wait for it or stop it first") from None
            note = f"process {os.getpid()} on {socket.gethostname()} since {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n"
            os.ftruncate(handle, 0)
            os.pwrite(handle, note.encode(), 0)
            yield
        finally:
            os.close(handle)

    def append(self, event: Event) -> None:
        """Add one line to the journal; it is on the disk when this returns."""
        self.journal.append(event.model_dump_json())

    def finish(self, record: TrialRecord) -> None:
        """Close a trial: ``trial.json`` first, then the journal, so that a crash between the two loses nothing."""
        self.trial(record.plan).write_record(record)
        now = datetime.now(UTC)
        self.append(Event(at=now, kind="trial_ended", trial_id=record.plan.trial_id, record=record))

    def events(self) -> Iterator[Event]:
        """Yield the journal's events in order; lines that a crash tore are left out."""
        for line in self._lines():
            try:
                yield Event.model_validate_json(line)
            except ValidationError:
                continue

    def raw_records(self) -> dict[str, dict[str, Any]]:
        """Return the last record of each trial id, as plain JSON values: the fast way for large runs.

        A trial whose folder is closed but whose event was lost is read from its ``trial.json``.
        """
        return dict(self.iter_raw_records())

    def iter_raw_records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (trial id, record) in the journal's order; a later one of the same id replaces the earlier.

        Raises:
            RunFolderError: something that no crash has torn is no record.
        """
        seen = set()
        for number, line in enumerate(self._lines(), 1):
            if b"trial_ended" not in line and b"rescored" not in line:
                continue
            try:
                event = from_json(line, cache_strings="keys")
            except ValueError:
                continue
            if not isinstance(event, dict):
                raise RunFolderError(f"{self.events_file}, line {number} is no event; {COPY}")
            if event.get("kind") in CLOSING and event.get("record"):
                trial_id = str(event.get("trial_id"))
                seen.add(trial_id)
                yield trial_id, event["record"]
        for trial in self.plan.trials:
            if trial.trial_id not in seen:
                file = self.trial(trial).record_file
                if file.is_file():
                    yield trial.trial_id, _document(file)

    def records(self) -> dict[str, TrialRecord]:
        """Return the last record of each trial id: ``trial_ended``, or the last ``rescored`` after it.

        Raises:
            RunFolderError: a record is damaged.
        """
        found = {}
        for trial_id, raw in self.raw_records().items():
            try:
                found[trial_id] = TrialRecord.model_validate(raw)
            except ValidationError as error:
                where = f"{self.events_file}: the record of {trial_id}"
                raise RunFolderError(f"{where} is damaged: {first_fault(error)}; {COPY}") from None
        return found

    def unfinished(self, plan: RunPlan | None = None) -> tuple[TrialPlan, ...]:
        """Return the planned trials that have no record, in the plan's order: what ``resume`` runs."""
        done = {trial_id for trial_id, _ in self.iter_raw_records()}
        return tuple(trial for trial in (plan or self.plan).trials if trial.trial_id not in done)

    def _lines(self) -> Iterator[bytes]:
        if self.events_file.is_file():
            with self.events_file.open("rb") as file:
                yield from file


def _document(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except ValueError as error:
        raise RunFolderError(f"{file} is damaged: {error}; {COPY}, or remove it and resume the run") from None
    if not isinstance(found, dict):
        raise RunFolderError(f"{file} is damaged: no JSON object; {COPY}, or remove it and resume the run")
    return found


def open_all(paths: Iterable[Path]) -> list[RunFolder]:
    """Open several runs; the first that cannot be read is an error."""
    return [RunFolder.open(path) for path in paths]
