"""Take what the agent wrote out of the stopped box: regular files of the declared path, judged before they are read."""

import hashlib
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from categories.instruction import SUBMISSION_FOLDER
from categories.spec import Submission
from results.records import Collected
from runners.archive import Archived, members

MEMBERS_PER_FILE = 10
"""Folders count too: so many entries are looked at for each file that may be submitted."""
LISTING_BYTES = 8 << 20
"""How much of the submission folder's archive is read to name the files that are there when the declared one is not."""


class _RefusedError(Exception):
    """A rule of the collection is broken."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def collect_submission(box: Archived, declared: Submission, into: Path) -> Collected:
    """Copy the declared file or folder into ``into`` (empty or absent); a broken rule is a reason, not an error.

    Raises:
        EngineError: the engine did not give the archive.
    """
    into.mkdir(parents=True, exist_ok=True)
    try:
        _check_folder(box)
        written = _copy(box, declared, into)
    except _RefusedError as refused:
        return Collected(files=0, bytes=0, sha256="", refused=refused.reason, message=str(refused))
    digest = hashlib.sha256()
    size = 0
    for path in sorted(written):
        data = path.read_bytes()
        size += len(data)
        digest.update(f"{path.relative_to(into).as_posix()}\0{len(data)}\0".encode() + data)
    return Collected(files=len(written), bytes=size, sha256=digest.hexdigest())


def _check_folder(box: Archived) -> None:
    """Refuse a submission folder that is a link or no folder: the engine would follow it."""
    try:
        first = next(members(box, SUBMISSION_FOLDER), None)
    except FileNotFoundError:
        first = None
    if first is None:
        raise _RefusedError("missing_submission", f"there is no {SUBMISSION_FOLDER}")
    if first[1].issym():
        raise _RefusedError("symlink", f"{SUBMISSION_FOLDER} is a symbolic link")
    if not first[1].isdir():
        raise _RefusedError("not_regular_file", f"{SUBMISSION_FOLDER} is no folder")


def _copy(box: Archived, declared: Submission, into: Path) -> list[Path]:
    path = declared.path.rstrip("/")
    try:
        entries = members(box, f"{SUBMISSION_FOLDER}/{path}")
        return _take(entries, declared, into, path)
    except FileNotFoundError:
        found = ", ".join(_listing(box)) or "nothing"
        message = f"{path} was not submitted; {SUBMISSION_FOLDER} holds: {found}"
        raise _RefusedError("missing_submission", message) from None


def _take(
    entries: Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]], declared: Submission, into: Path, path: str
) -> list[Path]:
    written: list[Path] = []
    left = declared.max_bytes
    folder = declared.path.endswith("/")
    parent = PurePosixPath(path).parent
    for number, (archive, member) in enumerate(entries):
        if number > MEMBERS_PER_FILE * declared.max_files:
            raise _RefusedError("too_many_files", "the submission holds too many folders")
        name = parent / member.name.rstrip("/")
        _check_member(member, name, is_root=number == 0, folder=folder)
        if member.isdir():
            if len(name.parts) - len(parent.parts) > declared.max_depth:
                raise _RefusedError("too_many_files", f"folders are nested deeper than {declared.max_depth} levels")
            continue
        if member.size > left:
            raise _RefusedError("too_large", f"the submission exceeds {declared.max_bytes} bytes at {name}")
        if len(written) == declared.max_files:
            raise _RefusedError("too_many_files", f"the submission holds more than {declared.max_files} files")
        content = archive.extractfile(member)
        data = content.read() if content else b""
        left -= len(data)
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        written.append(target)
    return written


def _check_member(member: tarfile.TarInfo, name: PurePosixPath, *, is_root: bool, folder: bool) -> None:
    if name.is_absolute() or ".." in name.parts or not str(name).isprintable() or not str(name).isascii():
        raise _RefusedError("bad_token", "a file name holds characters outside printable ASCII, or climbs out")
    if member.issym():
        raise _RefusedError("symlink", f"{name} is a symbolic link")
    if member.islnk():
        raise _RefusedError("not_regular_file", f"{name} is a hard link to another file of the submission")
    if not (member.isdir() or member.isreg()) or (is_root and member.isdir() != folder):
        raise _RefusedError("not_regular_file", f"{name} is no {'folder' if folder and is_root else 'regular file'}")


def _listing(box: Archived) -> list[str]:
    """Return up to twenty names in the submission folder, for a hint."""
    names: list[str] = []
    seen = 0
    for _, member in members(box, SUBMISSION_FOLDER):
        seen += member.size + 512
        if len(names) == 20 or seen > LISTING_BYTES:
            break
        if not member.isdir():
            names.append(ascii(member.name.partition("/")[2])[1:-1][:80])
    return names
