"""A source's copy on this machine: used in place, never written to; what was used of it is noted.

By the notes a copy that changed makes new draws, and no data set of half a million files is walked at every start.
"""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from categories.sources import archive
from categories.sources.download import check_room, held
from categories.sources.errors import ChangedError, SourceError
from categories.sources.settings import Manners
from categories.sources.spec import SourceSpec


@dataclass(frozen=True)
class Notes:
    """``copies.json`` in the cache of sources: of each copy the files that were used, with size and time of change."""

    root: Path

    def add(self, folder: Path, path: Path) -> None:
        """Note a file of a copy before it is used; what is noted already stays as it was noted."""
        with held(self.root / "copies.lock"):
            document = self._read()
            files = document.setdefault(str(folder), {"version": "", "files": {}})["files"]
            if str(path) not in files:
                files[str(path)] = _identity(path)
                self._write(document)

    def version(self, folder: Path) -> str:
        """Return a word that is another one once any used file of a copy has changed."""
        with held(self.root / "copies.lock"):
            document = self._read()
            entry = document.get(str(folder), {"version": "", "files": {}})
            # A copy on a disk that is away for a while has not changed: who needs a file of it is told that it is gone.
            now = {name: _identity(Path(name)) or noted for name, noted in entry["files"].items()}
            if now != entry["files"]:
                told = json.dumps([entry["version"], now], sort_keys=True)
                entry = {"version": hashlib.sha256(told.encode()).hexdigest()[:16], "files": now}
                self._write({**document, str(folder): entry})
        return str(entry["version"])

    def _read(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.root / "copies.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        return found

    def _write(self, document: dict[str, Any]) -> None:
        fresh = self.root / "copies.json.new"
        fresh.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        fresh.replace(self.root / "copies.json")


def _identity(path: Path) -> list[int] | None:
    """Return size in bytes and time of change in ns; null for a file that is gone."""
    try:
        found = path.stat()
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns]


class LocalCopy:
    """One source's copy. ``root`` is the cache of sources, where members of the copy's archives are unpacked."""

    def __init__(self, source: SourceSpec, folder: Path, pins: Mapping[str, str], root: Path) -> None:
        self.source = source
        self.folder = folder
        self._pins = pins
        self._root = root

    def file(self, name: str) -> Path:
        """Return where a file lies.

        Raises:
            SourceError: it is not there, or not the pinned one.
        """
        path, variable = self.folder / name, self.source.folder_variable
        if not path.is_file():
            raise SourceError(
                f"{self.source.title}: {path} is not there. {variable} names the folder that holds {name}: point it "
                f"there, add the file, or unset it to fetch what is needed. Its page: {self.source.agreement}"
            )
        Notes(self._root).add(self.folder, path)
        wanted = self._pins.get(name)
        if wanted and hashlib.sha256(path.read_bytes()).hexdigest() != wanted:
            raise ChangedError(
                f"{path}: its SHA-256 is not the pinned {wanted}: replace it with the published file, or unset "
                f"{variable} to fetch that"
            )
        return path

    def list(self, prefix: str = "") -> list[str]:
        """Return the names of the copy's files that begin so."""
        paths = (path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file())
        return sorted(name for name in paths if name.startswith(prefix))

    def members(self, name: str, wanted: Iterable[str], manners: Manners) -> dict[str, Path]:
        """Return members of an archive of the copy by the end of their path, unpacked into the cache once.

        Raises:
            SourceError: the archive is not there or is none.
            NoRoomError: the members would not fit on the disk.
        """
        path = self.file(name)
        told = hashlib.sha256(f"{path} {_identity(path)}".encode()).hexdigest()[:16]
        place = self._root / self.source.id / "copies" / told
        try:
            with held(place.with_suffix(".lock")), zipfile.ZipFile(path) as opened:
                chosen = archive.match(opened.namelist(), wanted)
                todo = {file: opened.getinfo(inner) for file, inner in chosen.items() if not (place / file).is_file()}
                need = sum(info.file_size for info in todo.values())
                check_room(place, need, manners, f"{self.source.title} ({len(todo)} members of {path})")
                for file, info in todo.items():
                    _unpack(opened, info, place / file)
        except (zipfile.BadZipFile, EOFError) as error:
            raise SourceError(
                f"{path}: is no whole zip archive ({error}): replace it with the published one, or unset "
                f"{self.source.folder_variable} to fetch that"
            ) from None
        return {file: place / file for file in chosen}

    def unpacked(self, name: str, wanted: Sequence[str]) -> dict[str, Path] | None:
        """Return the members that the copy holds unpacked; null where it holds the archive itself."""
        if (self.folder / name).is_file():
            return None
        roots = (self.folder, self.folder / name.removesuffix(".zip"))
        found = {file: root / file for root in roots for file in wanted if (root / file).is_file()}
        for path in found.values():
            Notes(self._root).add(self.folder, path)
        return found


def _unpack(opened: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f"{target.name}.new")
    with opened.open(info) as inner, fresh.open("wb") as out:
        shutil.copyfileobj(inner, out, 1 << 20)
    fresh.chmod(0o600)
    fresh.replace(target)
