"""Bytes from a source to the disk: resumed after a cut, never more than asked for, whole or not there at all."""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from categories.sources.errors import ChangedError, CutError, NoRoomError
from categories.sources.fetcher import AGAIN, RESUMES, Fetcher, Remote
from categories.sources.progress import Reporter
from categories.sources.settings import Manners

GB = 1e9


@dataclass(frozen=True)
class Span:
    """Which bytes of a remote file are wanted: all, or a part of an archive."""

    start: int = 0
    stop: int | None = None

    def size(self, remote: Remote) -> int | None:
        """Return how many bytes that is; null where the source does not say."""
        stop = remote.size if self.stop is None else self.stop
        return None if stop is None else stop - self.start


def part_of(target: Path) -> Path:
    """Return where the bytes of an unfinished download lie."""
    return target.with_name(f"{target.name}.part")


def fetch_bytes(
    fetcher: Fetcher,
    remote: Remote,
    target: Path,
    manners: Manners,
    report: Reporter,
    span: Span = Span(),
    sleep: Callable[[float], None] = time.sleep,
) -> Path:
    """Bring ``<target>.part`` to its full length and return it; what an earlier try left is gone on from.

    Raises:
        CutError: the line broke too often without progress; the part stays and is gone on from next time.
        ChangedError: length or validator are not what the source said; nothing stays.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part, total = part_of(target), span.size(remote)
    have = _resume_at(part, remote, span, total)
    quiet = 0
    with part.open("r+b" if have else "wb") as file:
        file.seek(have)
        while total is None or have < total:
            before = have
            try:
                for block in fetcher.fetch(remote, span.start + have, span.stop):
                    file.write(block)
                    have += len(block)
                    report.at(have)
                    if total is not None and have > total:
                        raise ChangedError(f"{remote.url}: more bytes came than the {total} it said. {AGAIN}")
                if total is None:
                    break
                if have < total:
                    raise CutError(f"{remote.url}: ended at byte {have} of {total}. {RESUMES}")
            except ChangedError:
                forget_part(target)
                raise
            except CutError:
                file.flush()
                quiet = 0 if have > before else quiet + 1
                if quiet >= manners.attempts:
                    raise
                sleep(manners.backoff_s * 2 ** min(quiet, 5))
        file.flush()
        os.fsync(file.fileno())
    return part


def _resume_at(part: Path, remote: Remote, span: Span, total: int | None) -> int:
    """Return the byte to go on from; a part of another version of the file is thrown away."""
    state = part.with_name(f"{part.name}.json")
    mark = {"validator": remote.validator, "size": remote.size, "start": span.start}
    try:
        same = json.loads(state.read_text(encoding="utf-8")) == mark and bool(remote.validator or remote.digest)
        have = part.stat().st_size if same else 0
    except (OSError, ValueError):
        have = 0
    if total is not None and have > total:
        have = 0
    if have == 0:
        part.unlink(missing_ok=True)
        state.write_text(json.dumps(mark), encoding="utf-8")
    return have


def forget_part(target: Path) -> None:
    """Remove what an unfinished download left."""
    part = part_of(target)
    for path in (part, part.with_name(f"{part.name}.json")):
        path.unlink(missing_ok=True)


def keep(part: Path, target: Path) -> None:
    """Give a verified download its name, at once."""
    part.with_name(f"{part.name}.json").unlink(missing_ok=True)
    part.chmod(0o600)
    part.replace(target)


def check_room(folder: Path, need: int, manners: Manners, what: str) -> None:
    """Refuse before the first byte where the disk is too small.

    Raises:
        NoRoomError: with what is needed and what is free.
    """
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if need and free < need + manners.spare_gb * GB:
        raise NoRoomError(
            f"{what} needs {need / GB:.3g} GB on the disk of {folder}, where {free / GB:.3g} GB are free "
            f"({manners.spare_gb:g} GB are kept spare): free some, or point HAB_SUITE_CACHE at a larger disk"
        )


@contextmanager
def held(lock: Path) -> Iterator[None]:
    """Hold a file lock; the kernel lets go when the process ends, however it ends."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def slot(folder: Path, count: int) -> Iterator[None]:
    """Hold one of the connections that all processes of this machine share to one source."""
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        for number in range(count):
            with (folder / f"slot-{number}.lock").open("w") as handle:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield
                return
        time.sleep(0.05)
