"""What ``prepare`` of the clinical edition is given: files of sources by name, fetched once and verified."""

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from categories.sources import archive
from categories.sources.agreements import Agreements
from categories.sources.copies import LocalCopy
from categories.sources.credentials import find_credentials, variables_in_words
from categories.sources.download import Span, check_room, fetch_bytes, forget_part, held, keep, slot
from categories.sources.errors import ChangedError, NotReadyError, SourceError
from categories.sources.fetcher import Fetcher, Remote, page_of
from categories.sources.manifest import Entry, Known, Manifest
from categories.sources.progress import Reporter
from categories.sources.providers import make_fetcher, version_of
from categories.sources.settings import Settings
from categories.sources.spec import SourceSpec, find_source, tasks_of


class Shelf:
    """The cache of all sources: ``<root>/<source>/<version>/files/<name>``, and the ways to fill it."""

    def __init__(self, root: Path, settings: Settings) -> None:
        self.root = root
        self.settings = settings
        self._fetchers: dict[str, Fetcher] = {}

    def file(self, source: str, name: str) -> Path:
        """Return one file of a source; see ``files``."""
        return self.files(source, [name])[0]

    def files(self, source: str, names: Sequence[str]) -> list[Path]:
        """Return files of a source by name, in order: fetched and verified now, or before.

        Raises:
            SourceError: a file cannot be had; the message says why and what next.
        """
        spec = find_source(source)
        if (copy := self._copy(spec)) is not None:
            return [copy.file(name) for name in names]
        targets = {name: self._target(spec, name) for name in names}
        missing = [name for name in targets if not self._there(spec, name)]
        if missing:
            fetcher = self.fetcher(spec)
            remotes = [fetcher.head(name) for name in missing]
            need = sum(remote.size or 0 for remote in remotes)
            check_room(self._folder(spec), need, self.settings.manners, f"{spec.title} ({len(missing)} files)")
            with ThreadPoolExecutor(self.settings.manners.parallel) as threads:
                list(threads.map(lambda remote: self._fetch(spec, fetcher, remote), remotes))
        return [targets[name] for name in names]

    def listing(self, source: str, prefix: str = "") -> list[str]:
        """Return the names of a source's files that begin so: from the local copy, else asked for."""
        spec = find_source(source)
        if (copy := self._copy(spec)) is not None:
            return copy.list(prefix)
        return self.fetcher(spec).list(prefix)

    def members(self, source: str, archives: Sequence[str], wanted: Iterable[str]) -> dict[str, Path]:
        """Return members of a source's zip archives, those that exist, by the end of their path (``b/a.xml``).

        Only the directory of each archive and the members themselves are fetched.
        """
        spec = find_source(source)
        left, found = set(wanted), dict[str, Path]()
        for name in archives:
            if left:
                found |= self._members_of(spec, name, left)
                left -= set(found)
        return found

    def unpacked(self, source: str, name: str, wanted: Sequence[str]) -> dict[str, Path]:
        """Return members of an archive; a copy on this machine may hold them unpacked."""
        copy = self._copy(find_source(source))
        if copy is not None and (found := copy.unpacked(name, wanted)) is not None:
            return found
        return self.members(source, [name], wanted)

    def own_table(self, source: str) -> Path | None:
        """Return the table of the user's own that the settings name beside a source."""
        return self.settings.table(find_source(source))

    def accepted(self, source: str) -> bool:
        """Whether the user has accepted a source's terms: what an optional source depends on."""
        return bool(Agreements(self.settings.config).accepted(find_source(source)))

    def fetcher(self, spec: SourceSpec) -> Fetcher:
        """Return what asks a source.

        Raises:
            NotReadyError: offline, not agreed to, or without its credential.
        """
        if self.settings.offline:
            raise NotReadyError(
                f"{spec.title}: not all of it is on this machine, and --offline (HAB_SUITE_OFFLINE) forbids to fetch "
                f"it: run once without, or name a copy in {spec.folder_variable}. Tasks affected: {tasks_of(spec)}."
            )
        if not self.accepted(spec.id):
            raise NotReadyError(
                f"{spec.title}: its terms ({spec.licence}; {spec.agreement}) were not accepted yet: "
                f"`hab-suite sources --accept {spec.id}`. Tasks affected: {tasks_of(spec)}."
            )
        credentials = find_credentials(spec, self.settings.env_file)
        if credentials is None:
            raise NotReadyError(
                f"{spec.title}: {variables_in_words(spec)} not set (environment, .env or keyring); access and "
                f"agreement: {spec.agreement}. Tasks affected: {tasks_of(spec)}."
            )
        if spec.id not in self._fetchers:
            self._fetchers[spec.id] = make_fetcher(spec, self.settings, credentials)
        return self._fetchers[spec.id]

    def manifest(self, spec: SourceSpec) -> Manifest:
        """Return the record of what was verified."""
        return Manifest(self._folder(spec), spec, self.settings.endpoint(spec))

    def _copy(self, spec: SourceSpec) -> LocalCopy | None:
        folder = self.settings.folder(spec)
        return None if folder is None else LocalCopy(spec, folder, self.settings.pins(spec), self.root)

    def _folder(self, spec: SourceSpec) -> Path:
        return self.root / spec.id / version_of(spec)

    def _target(self, spec: SourceSpec, name: str) -> Path:
        parts = name.split("/")
        if any(part in ("", ".", "..") for part in parts):
            raise SourceError(f"{spec.title}: {name!r} is no name of a file")
        return self._folder(spec).joinpath("files", *parts)

    def _there(self, spec: SourceSpec, name: str) -> bool:
        path, entry = self._target(spec, name), self.manifest(spec).entries().get(name)
        return entry is not None and path.is_file() and path.stat().st_size == entry["bytes"]

    def _fetch(self, spec: SourceSpec, fetcher: Fetcher, remote: Remote) -> None:
        """Fetch one file unless another process has done so meanwhile."""
        target = self._target(spec, remote.name)
        with held(self._lock(spec, remote.name)):
            if self._there(spec, remote.name):
                return
            with slot(self.root / spec.id / "slots", self.settings.manners.parallel):
                try:
                    entry = self._fetch_and_verify(spec, fetcher, remote, target)
                except ChangedError:
                    # A damaged copy on the way, or a file replaced meanwhile: once more, from the beginning.
                    entry = self._fetch_and_verify(spec, fetcher, fetcher.head(remote.name), target)
            self.manifest(spec).record([entry])

    def _fetch_and_verify(self, spec: SourceSpec, fetcher: Fetcher, remote: Remote, target: Path) -> Entry:
        wanted = self.settings.pins(spec).get(remote.name, "")
        with Reporter(self.root, spec.title, remote.name, remote.size or 0) as report:
            part = fetch_bytes(fetcher, remote, target, self.settings.manners, report)
        known: Known = "pinned" if wanted else "source" if remote.digest else "first use"
        try:
            digest = fetcher.verify(remote, part, wanted)
            entry = Entry(remote.name, digest, part.stat().st_size, known)
            self.manifest(spec).check([entry])
        except ChangedError:
            forget_part(target)
            raise
        keep(part, target)
        return entry

    def _lock(self, spec: SourceSpec, name: str) -> Path:
        return self.root / spec.id / "locks" / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.lock"

    def _members_of(self, spec: SourceSpec, name: str, wanted: set[str]) -> dict[str, Path]:
        if (copy := self._copy(spec)) is not None:
            return copy.members(name, wanted, self.settings.manners)
        place = self._folder(spec) / "members" / name
        found = {file: place / file for file in wanted if (place / file).is_file()}
        if len(found) == len(wanted):
            return found
        with held(self._lock(spec, name)):
            chosen = archive.choose(self._index(spec, name), wanted)
            todo = {file: member for file, member in chosen.items() if not (place / file).is_file()}
            if todo:
                self._fetch_members(spec, name, todo, place)
        return {file: place / file for file in chosen}

    def _index(self, spec: SourceSpec, name: str) -> list[archive.Member]:
        file = self._folder(spec) / "indexes" / f"{name}.json"
        if not file.is_file():
            fetcher = self.fetcher(spec)
            remote = fetcher.head(name)
            archive.save_index(archive.read_index(fetcher, remote, spec), remote, file)
        return archive.load_index(file)[2]

    def _fetch_members(self, spec: SourceSpec, name: str, todo: dict[str, archive.Member], place: Path) -> None:
        fetcher = self.fetcher(spec)
        remote = fetcher.head(name)
        size, validator, _ = archive.load_index(self._folder(spec) / "indexes" / f"{name}.json")
        if (remote.size, remote.validator) != (size, validator):
            raise ChangedError(
                f"{remote.url}: the archive changed at the source since its directory was read. To accept the new one, "
                f"remove {self._folder(spec)}; {page_of(spec)}"
            )
        need = sum(member.packed + member.size for member in todo.values())
        check_room(place, need, self.settings.manners, f"{spec.title} ({len(todo)} members of {name})")

        def bring(item: tuple[str, archive.Member]) -> Entry:
            file, member = item
            target = place / file
            with (
                slot(self.root / spec.id / "slots", self.settings.manners.parallel),
                Reporter(self.root, spec.title, member.name, member.stop - member.start) as report,
            ):
                span = Span(member.start, member.stop)
                part = fetch_bytes(fetcher, remote, target, self.settings.manners, report, span)
            try:
                archive.unpack(part, member, target)
            finally:
                forget_part(target)
            digest = hashlib.sha256()
            with target.open("rb") as content:
                while block := content.read(1 << 20):
                    digest.update(block)
            return Entry(f"{name}!/{member.name}", digest.hexdigest(), member.size, "first use")

        with ThreadPoolExecutor(self.settings.manners.parallel) as threads:
            entries = list(threads.map(bring, todo.items()))
        manifest = self.manifest(spec)
        try:
            manifest.check(entries)
        except ChangedError:
            for file in todo:
                (place / file).unlink(missing_ok=True)
            raise
        manifest.record(entries)
