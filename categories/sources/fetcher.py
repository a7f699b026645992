"""The one seam between the suite and its sources: list, head, ranged fetch, verify."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import requests
from urllib3.exceptions import HTTPError

from categories.sources.credentials import variables_in_words
from categories.sources.errors import ChangedError, CutError, RefusedError, SourceError
from categories.sources.settings import Manners
from categories.sources.spec import SourceSpec, tasks_of
from categories.sources.wire import Wire

BLOCK = 1 << 18
AGAIN = "Nothing of it was kept: try again, and if it stays so, later."
RESUMES = "What has come is kept: run again, and it is gone on from."
LINKED = "linked:"
"""Begins a validator that names a file's content, not the answer of the store that sends it."""


@dataclass(frozen=True)
class Remote:
    """What a source says of a file before it is fetched."""

    name: str
    url: str
    size: int | None
    """Bytes; null where the source does not say."""
    validator: str
    """Its ETag or date: parts of two different validators are never joined."""
    digest: str = ""
    """``sha256:<hex>`` or ``md5:<hex>`` where the source publishes one."""


class Fetcher(Protocol):
    """What every protocol offers."""

    def list(self, prefix: str = "") -> list[str]:
        """Return the names of the source's files that begin so."""
        ...

    def head(self, name: str) -> Remote:
        """Return what the source says of a file."""
        ...

    def fetch(self, remote: Remote, start: int, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes from ``start`` to ``stop`` (not included; to the end without it).

        Raises:
            CutError: the connection ended before all had come.
            ChangedError: the file is no longer that of ``remote``.
        """
        ...

    def verify(self, remote: Remote, path: Path, wanted: str) -> str:
        """Return the SHA-256 of a file on the disk.

        Raises:
            ChangedError: it differs from ``wanted`` (a SHA-256, if not empty) or from the source's own digest.
        """
        ...


class HttpFetcher:
    """What the protocols have in common; each says where a file lies and what it knows of it."""

    def __init__(self, source: SourceSpec, endpoint: str, manners: Manners, headers: Mapping[str, str]) -> None:
        self.source = source
        self.endpoint = endpoint
        self.wire = Wire(manners, self.refusal, headers)

    def list(self, prefix: str = "") -> list[str]:
        return sorted(name for name in self.source.files if name.startswith(prefix))

    def url(self, name: str) -> str:
        """Return the address of a file."""
        parts = [self.endpoint, *([self.source.path] if self.source.path else []), quote(name)]
        return "/".join(parts)

    def head(self, name: str) -> Remote:
        answer = self.wire.ask("HEAD", self.url(name))
        return self.remote(name, answer)

    def remote(self, name: str, answer: requests.Response) -> Remote:
        """Return what an answer's headers say of a file.

        Raises:
            RefusedError: a web page came instead, as a host sends to who is not let in.
        """
        if answer.headers.get("Content-Type", "").startswith("text/html") and not name.endswith((".html", ".htm")):
            raise refused(self.source, answer.status_code, "a web page came instead of the file, such as a login")
        size = answer.headers.get("Content-Length")
        validator = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        return Remote(name, self.url(name), int(size) if size and size.isdecimal() else None, validator)

    def fetch(self, remote: Remote, start: int, stop: int | None = None) -> Iterator[bytes]:
        whole = start == 0 and stop is None
        headers = {} if whole else {"Range": f"bytes={start}-{'' if stop is None else stop - 1}"}
        answer = self.wire.ask("GET", remote.url, headers, stream=True)
        with answer:
            skip = self._check_range(answer, remote, start, whole=whole)
            self._check_length(answer, remote, 0 if answer.status_code == 200 else start, stop)
            left = None if stop is None else stop - start
            try:
                # What has come is taken as it comes: a cut then costs nothing that had arrived.
                while block := answer.raw.read1(BLOCK):
                    piece = block[skip:]
                    skip = max(0, skip - len(block))
                    if left is not None:
                        piece = piece[:left]
                        left -= len(piece)
                    if piece:
                        yield piece
                    if left == 0:
                        return
            except (HTTPError, OSError) as error:
                raise CutError(f"{remote.url}: cut off ({type(error).__name__}). {RESUMES}") from None

    def _check_range(self, answer: requests.Response, remote: Remote, start: int, *, whole: bool) -> int:
        """Return how many bytes to pass over: a server that knows no ranges sends all from the beginning."""
        validator = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        comparable = validator and remote.validator and not remote.validator.startswith(LINKED)
        if comparable and _weak(validator) != _weak(remote.validator):
            raise ChangedError(f"{remote.url}: the file changed while it was being fetched. {AGAIN}")
        if answer.status_code == 416:
            raise ChangedError(f"{remote.url}: is shorter than it said. {AGAIN}")
        if whole or answer.status_code == 200:
            return 0 if whole else start
        told = answer.headers.get("Content-Range", "")
        if told and not told.startswith(f"bytes {start}-"):
            raise ChangedError(f"{remote.url}: sent another range than asked for ({told}). {AGAIN}")
        return 0

    def _check_length(self, answer: requests.Response, remote: Remote, start: int, stop: int | None) -> None:
        """An answer that announces another length than the file has will never be that file."""
        told = answer.headers.get("Content-Length", "")
        end = remote.size if stop is None or answer.status_code == 200 else stop
        if end is not None and told.isdecimal() and int(told) != end - start:
            raise ChangedError(
                f"{remote.url}: announces {told} bytes where {end - start} are left of {remote.size}. {AGAIN}"
            )

    def verify(self, remote: Remote, path: Path, wanted: str) -> str:
        sha, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
        use_md5 = remote.digest.startswith("md5:")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                sha.update(block)
                if use_md5:
                    md5.update(block)
        found = {"sha256": sha.hexdigest(), "md5": md5.hexdigest() if use_md5 else ""}
        kind, _, published = remote.digest.partition(":")
        if published and found[kind] != published:
            raise ChangedError(f"{remote.url}: {kind} is {found[kind]}, the source says {published}. {AGAIN}")
        if wanted and found["sha256"] != wanted:
            raise ChangedError(
                f"{remote.url}: SHA-256 is {found['sha256']}, known is {wanted}: it is not the file that was pinned. "
                f"If {self.source.url_variable} names a mirror, use another; {page_of(self.source)}"
            )
        return found["sha256"]

    def refusal(self, answer: requests.Response) -> SourceError:
        """Return the error of an answer of 400 or more, in words that hold no credential."""
        status = answer.status_code
        if status in (401, 403):
            return refused(self.source, status, self.why(answer))
        where = answer.url.partition("?")[0]
        if status == 404:
            return SourceError(f"{self.source.title}: {where} is not there (404). {elsewhere(self.source)}")
        return SourceError(f"{self.source.title}: {where} answered {status}: try again later. {elsewhere(self.source)}")

    def why(self, answer: requests.Response) -> str:
        """Return what a refusal means with this protocol."""
        return "the credential is wrong" if answer.status_code == 401 else "this account has no access"


def page_of(source: SourceSpec) -> str:
    """Return where to look, and whom it concerns."""
    return f"its page: {source.agreement}. Tasks affected: {tasks_of(source)}."


def elsewhere(source: SourceSpec) -> str:
    """Return what to do where a source does not have what it is asked for."""
    return (
        f"It may have moved: {source.url_variable} names another address, {source.folder_variable} a copy on this "
        f"machine; {page_of(source)}"
    )


def _weak(validator: str) -> str:
    return validator.removeprefix("W/")


def refused(source: SourceSpec, status: int, why: str) -> RefusedError:
    """Return the one message of a refused source: variable, page, tasks."""
    names = variables_in_words(source)
    look = f"Look at {names}" if names else "It is an open source; look at the endpoint"
    brief = f"refused access ({status}): {why}"
    return RefusedError(
        f"{source.title} ({source.id}) {brief}. {look}; access and agreement: {source.agreement}. "
        f"Tasks affected: {tasks_of(source)}.",
        brief,
    )
