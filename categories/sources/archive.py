"""Single members of a remote zip archive, by ranges: the archive itself is never fetched whole."""

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from categories.sources.errors import ChangedError, SourceError
from categories.sources.fetcher import AGAIN, Fetcher, Remote, elsewhere
from categories.sources.spec import SourceSpec

LOCAL_HEADER = struct.Struct("<4s5H3I2H")
TAIL = 1 << 20
BLOCK = 1 << 20


@dataclass(frozen=True)
class Member:
    """Where one member lies in its archive."""

    name: str
    start: int
    stop: int
    """Where the next member or the directory begins."""
    packed: int
    size: int
    crc: int
    method: int


class RangeReader(io.RawIOBase):
    """A remote file as ``zipfile`` wants it: seekable, reading in large blocks."""

    def __init__(self, fetcher: Fetcher, remote: Remote, size: int) -> None:
        self._fetcher = fetcher
        self._remote = remote
        self._size = size
        self._at = 0
        self._block = (0, b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        want = min(len(view), self._size - self._at)
        if want <= 0:
            return 0
        data = self._bytes(self._at, want)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _bytes(self, start: int, count: int) -> bytes:
        first, block = self._block
        if not first <= start <= start + count <= first + len(block):
            stop = min(self._size, start + max(count, TAIL))
            first = max(0, min(start, self._size - TAIL)) if stop == self._size else start
            block = b"".join(self._fetcher.fetch(self._remote, first, stop))
            self._block = (first, block)
        return block[start - first : start - first + count]


def read_index(fetcher: Fetcher, remote: Remote, source: SourceSpec) -> list[Member]:
    """Return the members of a remote archive of a source.

    Raises:
        SourceError: it is no zip archive, or the source does not say its size.
    """
    if remote.size is None:
        raise SourceError(
            f"{remote.url}: the server does not say how large it is, so no part of it can be read. {elsewhere(source)}"
        )
    try:
        with zipfile.ZipFile(io.BufferedReader(RangeReader(fetcher, remote, remote.size), BLOCK)) as archive:
            infos = sorted((i for i in archive.infolist() if not i.is_dir()), key=lambda info: info.header_offset)
            ends = [*(info.header_offset for info in archive.infolist()), archive.start_dir]
    except zipfile.BadZipFile as error:
        raise SourceError(f"{remote.url}: is no whole zip archive ({error}). {elsewhere(source)}") from None
    after = sorted(ends)
    stops = dict(pairwise(after))
    return [
        Member(
            info.filename,
            info.header_offset,
            stops[info.header_offset],
            info.compress_size,
            info.file_size,
            info.CRC,
            info.compress_type,
        )
        for info in infos
    ]


def match(names: Iterable[str], wanted: Iterable[str]) -> dict[str, str]:
    """Return wanted path ends -> names of members that end so; of several the first.

    Raises:
        SourceError: a wanted name would leave the folder it is unpacked to.
    """
    by_file: dict[str, list[str]] = {}
    for name in names:
        by_file.setdefault(name.rpartition("/")[2], []).append(name)
    found: dict[str, str] = {}
    for end in wanted:
        if any(part in ("", ".", "..") for part in end.split("/")):
            raise SourceError(f"{end!r} is no name of a member")
        for name in by_file.get(end.rpartition("/")[2], []):
            if f"/{name}".endswith(f"/{end}"):
                found.setdefault(end, name)
    return found


def choose(members: list[Member], wanted: Iterable[str]) -> dict[str, Member]:
    """Return wanted path ends -> members."""
    by_name = {member.name: member for member in members}
    return {end: by_name[name] for end, name in match(by_name, wanted).items()}


def save_index(members: list[Member], remote: Remote, file: Path) -> None:
    """Keep an index, with what identified the archive."""
    rows = [list(asdict(member).values()) for member in members]
    document = {"size": remote.size, "validator": remote.validator, "members": rows}
    fresh = file.with_suffix(".new")
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh.write_text(json.dumps(document), encoding="utf-8")
    fresh.replace(file)


def load_index(file: Path) -> tuple[int, str, list[Member]]:
    """Return size and validator of the archive, and its members."""
    document = json.loads(file.read_text(encoding="utf-8"))
    return document["size"], document["validator"], [Member(*row) for row in document["members"]]


def unpack(part: Path, member: Member, target: Path) -> None:
    """Write the content of one member whose bytes, local header included, lie in ``part``.

    Raises:
        ChangedError: the bytes are not that member, or its check sum differs.
    """
    fresh = target.with_name(f"{target.name}.new")
    crc = size = 0
    with part.open("rb") as raw, fresh.open("wb") as out:
        head = LOCAL_HEADER.unpack(raw.read(LOCAL_HEADER.size))
        if head[0] != b"PK\x03\x04":
            raise ChangedError(f"{member.name}: no member of the archive lies where its directory says. {AGAIN}")
        raw.seek(head[-2] + head[-1], io.SEEK_CUR)
        inflate = zlib.decompressobj(-zlib.MAX_WBITS) if member.method == zipfile.ZIP_DEFLATED else None
        left = member.packed
        while left:
            block = raw.read(min(BLOCK, left))
            if not block:
                break
            left -= len(block)
            data = inflate.decompress(block) if inflate else block
            out.write(data)
            crc, size = zlib.crc32(data, crc), size + len(data)
        data = inflate.flush() if inflate else b""
        out.write(data)
        crc, size = zlib.crc32(data, crc), size + len(data)
    if (crc, size) != (member.crc, member.size):
        fresh.unlink()
        raise ChangedError(f"{member.name}: its check sum is not the archive's. {AGAIN}")
    fresh.chmod(0o600)
    fresh.replace(target)
