"""The protocols of the sources: where a file lies, what is known of it, and how a list is asked for."""

import base64
import hashlib
import html
import io
import re
from functools import cached_property
from urllib.parse import quote, urlencode, urljoin

import pyarrow as pa
import requests

from categories.sources.errors import SourceError
from categories.sources.fetcher import LINKED, Fetcher, HttpFetcher, Remote, elsewhere
from categories.sources.settings import Settings
from categories.sources.spec import SourceSpec

REDIRECTS = 5


class PhysioNet(HttpFetcher):
    """``<endpoint>/files/<project>/<version>/<name>``, basic authentication, ``SHA256SUMS.txt`` beside the files."""

    def url(self, name: str) -> str:
        return f"{self.endpoint}/files/{self.source.path}/{quote(name)}"

    @cached_property
    def _sums(self) -> dict[str, str]:
        if not self.source.sums:
            return {}
        text = self.wire.ask("GET", self.url(self.source.sums)).text
        lines = (line.split(maxsplit=1) for line in text.splitlines() if line.strip())
        return {name.strip().lstrip("*"): digest for digest, name in lines}

    def list(self, prefix: str = "") -> list[str]:
        return sorted(name for name in self._sums if name.startswith(prefix))

    def head(self, name: str) -> Remote:
        found = super().head(name)
        digest = self._sums.get(name, "") if name != self.source.sums else ""
        return Remote(found.name, found.url, found.size, found.validator, f"sha256:{digest}" if digest else "")

    def why(self, answer: requests.Response) -> str:
        if answer.status_code == 401:
            return "user name or password is wrong"
        return "this account has not signed the project's data use agreement, or lacks the training it asks for"


class HuggingFace(HttpFetcher):
    """A data set of the hub: ``resolve`` answers with size and digest and leads to where the bytes lie."""

    def url(self, name: str) -> str:
        return f"{self.endpoint}/datasets/{self.source.path}/resolve/{self.source.revision}/{quote(name)}"

    def list(self, prefix: str = "") -> list[str]:
        folder = prefix.rpartition("/")[0]
        tail = f"/{quote(folder)}" if folder else ""
        url = f"{self.endpoint}/api/datasets/{self.source.path}/tree/{self.source.revision}{tail}?recursive=true"
        names: list[str] = []
        while url:
            answer = self.wire.ask("GET", url)
            names += [entry["path"] for entry in answer.json() if entry["type"] == "file"]
            url = answer.links.get("next", {}).get("url", "")
        return sorted(name for name in names if name.startswith(prefix))

    def head(self, name: str) -> Remote:
        """The hub's own answer tells size and digest; the store it leads to is asked only for bytes.

        The store's addresses are signed for that, and its own ETag is another.
        """
        url = self.url(name)
        for _ in range(REDIRECTS):
            answer = self.wire.ask("HEAD", url, follow=False)
            onward = urljoin(url, answer.headers.get("Location", ""))
            if not answer.is_redirect or "X-Linked-Etag" in answer.headers or not onward.startswith(self.endpoint):
                break
            url = onward  # a data set that was renamed
        tag = (answer.headers.get("X-Linked-Etag") or answer.headers.get("ETag") or "").strip('"')
        told = answer.headers.get("X-Linked-Size") or (
            "" if answer.is_redirect else answer.headers.get("Content-Length")
        )
        digest = f"sha256:{tag}" if re.fullmatch(r"[0-9a-f]{64}", tag) else ""
        return Remote(name, self.url(name), int(told) if told else None, f"{LINKED}{tag}" if tag else "", digest)

    def why(self, answer: requests.Response) -> str:
        code = answer.headers.get("X-Error-Code", "")
        if code == "GatedRepo" or answer.status_code == 403:
            return "this account has not accepted the data set's conditions"
        return "the token is wrong or out of date"


class Bucket(HttpFetcher):
    """A public bucket over HTTPS, unsigned; lists come as pages of XML."""

    def list(self, prefix: str = "") -> list[str]:
        words = {"list-type": "2", "prefix": f"{self.source.path}/{prefix}"}
        names: list[str] = []
        while True:
            text = self.wire.ask("GET", f"{self.endpoint}/?{urlencode(words)}").text
            names += [html.unescape(key) for key in re.findall(r"<Key>(.*?)</Key>", text)]
            more = re.search(r"<NextContinuationToken>(.*?)</NextContinuationToken>", text)
            if more is None:
                break
            words["continuation-token"] = html.unescape(more[1])
        return sorted(name.removeprefix(f"{self.source.path}/") for name in names)


class Redivis(HttpFetcher):
    """A table of files: the listing is an Arrow stream with ids, sizes and MD5; bytes lie under ``rawFiles/<id>``."""

    @cached_property
    def _files(self) -> dict[str, Remote]:
        url = f"{self.endpoint}/tables/{quote(self.source.path)}/rawFiles?format=arrow"
        content = self.wire.ask("GET", url).content
        try:
            rows = pa.ipc.open_stream(io.BytesIO(content)).read_all().to_pylist()
        except pa.ArrowInvalid:
            raise SourceError(
                f"{self.source.title}: {self.endpoint} sent a listing that is no Arrow stream. {elsewhere(self.source)}"
            ) from None
        found = {}
        for row in rows:
            url = f"{self.endpoint}/rawFiles/{quote(row['file_id'], safe='')}"
            md5 = base64.b64decode(row["md5_hash"]).hex() if row.get("md5_hash") else ""
            found[row["file_name"]] = Remote(row["file_name"], url, row.get("size"), "", f"md5:{md5}" if md5 else "")
        return found

    def list(self, prefix: str = "") -> list[str]:
        return sorted(name for name in self._files if name.startswith(prefix))

    def head(self, name: str) -> Remote:
        if name not in self._files:
            raise SourceError(
                f"{self.source.title}: {self.source.path} holds no {name}, but {', '.join(sorted(self._files)[:5])}. "
                f"{elsewhere(self.source)}"
            )
        return self._files[name]


PROTOCOLS: dict[str, type[HttpFetcher]] = {
    "physionet": PhysioNet,
    "huggingface": HuggingFace,
    "bucket": Bucket,
    "web": HttpFetcher,
    "redivis": Redivis,
}


def make_fetcher(source: SourceSpec, settings: Settings, credentials: tuple[str, ...]) -> Fetcher:
    """Return what fetches a source's files, told the credentials once."""
    headers = {}
    if credentials and source.protocol == "physionet":
        headers["Authorization"] = "Basic " + base64.b64encode(":".join(credentials).encode()).decode()
    elif credentials:
        headers["Authorization"] = f"Bearer {credentials[0]}"
    return PROTOCOLS[source.protocol](source, settings.endpoint(source), settings.manners, headers)


def version_of(source: SourceSpec) -> str:
    """Return a short name for what is cached apart: another path or revision is another version."""
    return hashlib.sha256(f"{source.path}@{source.revision}".encode()).hexdigest()[:8]
