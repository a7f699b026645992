"""Read files out of a box, one by one, from a stream that may be dropped at any point."""

import hashlib
import io
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Protocol

from containers.box import EngineError

KEEP_BYTES = 200 << 20
KEEP_FILES = 2_000
SEEN_FILES = 20_000
"""Members of an archive that are looked at, folders and links included."""
LONGEST_NAME, LONGEST_PATH = 200, 400
"""Bytes; the trial's folder comes before it, and a host may take 255 and 4096."""
WEIRD = (EngineError, tarfile.TarError, OSError, ValueError, ArithmeticError, LookupError, EOFError, RecursionError)
"""What an engine, tar, and a host's own files raise on names, times and headers that somebody made up."""


class Archived(Protocol):
    """What files can be read out of: a box, or a folder of the host in a box's place."""

    def get(self, path: str) -> Iterator[bytes]:
        """Stream a tar archive of a path, links unfollowed; FileNotFoundError where there is none."""
        ...


class HostFolder:
    """A folder of the host that stands for one in a box, so that both are read by the same rules."""

    def __init__(self, folder: Path, stands_for: str) -> None:
        self._folder = folder
        self._stands_for = PurePosixPath(stands_for)

    def get(self, path: str) -> Iterator[bytes]:
        start = self._folder / PurePosixPath(path).relative_to(self._stands_for)
        start.lstat()
        return self._stream(start)

    def _stream(self, start: Path) -> Iterator[bytes]:
        inner = sorted(start.rglob("*")) if start.is_dir() and not start.is_symlink() else []
        for path in (start, *inner):
            with tarfile.open(fileobj=io.BytesIO(), mode="w") as headers:
                member: tarfile.TarInfo | None = headers.gettarinfo(
                    path, arcname=path.relative_to(start.parent).as_posix()
                )
            if member is None:  # a socket: tar has no word for it
                member = tarfile.TarInfo(path.relative_to(start.parent).as_posix())
                member.type = tarfile.CHRTYPE
            yield member.tobuf()
            if member.isreg():
                with path.open("rb") as file:
                    while block := file.read(1 << 20):
                        yield block
                yield b"\0" * (-member.size % tarfile.BLOCKSIZE)
        yield b"\0" * (2 * tarfile.BLOCKSIZE)


def members(box: Archived, path: str) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield the members of a path's archive as they come; the rest of the stream is dropped with the iterator.

    Raises:
        FileNotFoundError: the box has no such path.
        EngineError: the archive is damaged or broke off: never the agent's doing, as the engine writes it.
    """
    chunks = box.get(path)
    source = _Chunks(chunks)
    try:
        with tarfile.open(fileobj=source, mode="r|") as archive:
            for member in archive:
                yield archive, member
        if source.tail.strip(b"\0") or len(source.tail) < tarfile.BLOCKSIZE:
            raise EngineError(f"{path}: the archive broke off")
    except (tarfile.TarError, ValueError, RecursionError) as error:
        raise EngineError(f"{path}: the archive is damaged: {error}") from None
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()


class _Chunks(io.RawIOBase):
    """A file to read from an iterator of bytes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""
        self.tail = b""
        """The last block that was handed out: zeros at the end of a whole archive."""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts = [self._rest]
        held = len(self._rest)
        while size < 0 or held < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            parts.append(chunk)
            held += len(chunk)
        data = b"".join(parts)
        self._rest = data[size:] if size >= 0 else b""
        data = data[:size] if size >= 0 else data
        self.tail = (self.tail + data)[-tarfile.BLOCKSIZE :]
        return data


def keep_files(box: Archived, path: str, into: Path) -> list[str]:
    """Copy the regular files of a path into ``into``; links are not followed. Return warnings on what was left out.

    Files keep their time, and their name where the host can have it. What an agent's box holds raises nothing.
    """
    keeper = _Keeper(path, into)
    try:
        for seen, (archive, member) in enumerate(members(box, path)):
            if seen >= SEEN_FILES or not keeper.take(archive, member):
                break
    except FileNotFoundError:
        return []
    except WEIRD as error:
        keeper.warnings.append(f"{path}: the archive could not be read: {error!a}"[:300])
    if keeper.unkept:
        keeper.warnings.append(f"{path}: {keeper.unkept} files could not be kept, one for {keeper.why!a}"[:300])
    return keeper.warnings


class _Keeper:
    """Writes the members of an archive to a folder of the host, within limits."""

    def __init__(self, path: str, into: Path) -> None:
        self._path = path
        self._into = into
        self._left = KEEP_BYTES
        self._kept = 0
        self.unkept = 0
        self.why = ""
        self.warnings: list[str] = []

    def take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bool:
        """Keep a member if it is a file to keep; false where the limits are reached."""
        name = PurePosixPath(member.name)
        if not member.isreg() or ".." in name.parts or name.is_absolute():
            return True
        if member.size > self._left or self._kept == KEEP_FILES:
            said = f"more than {KEEP_FILES} files or {KEEP_BYTES >> 20} MiB; the rest was left out"
            self.warnings.append(f"{self._path}: {said}")
            return False
        try:
            content = archive.extractfile(member)
            target = self._into.joinpath(*short(name.parts[1:]))
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                if content is not None:
                    shutil.copyfileobj(content, file, 1 << 20)
            os.utime(target, (member.mtime, member.mtime))
        except WEIRD as error:
            self.unkept += 1
            self.why = str(error)
        self._left -= member.size
        self._kept += 1
        return True


def short(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return a file's path as it can be on any host: where it is too long or odd, a name made of its checksum.

    What comes after the last dot of the name stays, and so does the name's end: readers look for both.
    """
    text = "/".join(parts)
    name = text.encode(errors="surrogatepass")
    if len(name) <= LONGEST_PATH and text.isprintable() and all(len(part.encode()) <= LONGEST_NAME for part in parts):
        return parts
    end = "".join(letter for letter in parts[-1][-40:] if letter.isprintable())
    return (f"{hashlib.sha256(name).hexdigest()[:16]}-{end}",)
