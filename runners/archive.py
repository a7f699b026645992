"""Read files out of a box, one by one, from a stream that may be dropped at any point."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Protocol

from containers.box import EngineError

KEEP_BYTES = 200 << 20
KEEP_FILES = 2_000


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
    """Copy the regular files of a path into ``into``; links are not followed. Return warnings on what was left out."""
    left = KEEP_BYTES
    kept = 0
    try:
        for archive, member in members(box, path):
            name = PurePosixPath(member.name)
            if not member.isreg() or ".." in name.parts or name.is_absolute():
                continue
            if member.size > left or kept == KEEP_FILES:
                return [f"{path}: more than {KEEP_FILES} files or {KEEP_BYTES >> 20} MiB; the rest was left out"]
            content = archive.extractfile(member)
            data = content.read() if content else b""
            target = into / PurePosixPath(*name.parts[1:]) if len(name.parts) > 1 else into
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            left -= len(data)
            kept += 1
    except FileNotFoundError:
        return []
    except EngineError as error:
        return [f"{path}: the archive could not be read: {error}"]
    return []
