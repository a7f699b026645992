"""A plain client for the user's npm registry: settings as npm reads them, metadata, checked downloads.

Neither node nor npm is needed. Where npm is there, its own word on the registry counts last.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, urlsplit

import certifi
import requests

Progress = Callable[[int, int], None]
"""``progress(bytes so far, bytes in all)``; the second is 0 where the registry does not say."""
TIMEOUT_S = (15, 60)
TRIES = 3
CHUNK = 1 << 20
PREFIX = "npm_config_"


class RegistryError(Exception):
    """The registry is not known, not reached, or gave something else; the message says what to do."""


@dataclass(frozen=True)
class Dist:
    """Where a package's archive is, and its checksum by the registry's count."""

    tarball: str
    integrity: str


def npmrc_files(environ: Mapping[str, str]) -> list[Path]:
    """Return the files that npm would read, the most particular first."""
    user = environ.get("NPM_CONFIG_USERCONFIG") or environ.get("npm_config_userconfig")
    everyone = environ.get("NPM_CONFIG_GLOBALCONFIG") or environ.get("npm_config_globalconfig")
    return [
        Path(user) if user else Path.home() / ".npmrc",
        Path(everyone) if everyone else Path("/usr/local/etc/npmrc"),
        Path("/usr/etc/npmrc"),
        Path("/etc/npmrc"),
    ]


def npm_says(key: str) -> str:
    """Return npm's own word on a setting; empty where npm is not installed or does not know."""
    npm = shutil.which("npm")
    if npm is None:
        return ""
    try:
        done = subprocess.run([npm, "config", "get", key], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    word = done.stdout.strip()
    return "" if done.returncode or word in ("undefined", "null") else word


def read_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return npm's settings: environment before files, a particular file before a general one."""
    settings: dict[str, str] = {}
    for path in reversed(npmrc_files(environ)):
        if path.is_file():
            settings |= dict(parse_npmrc(path.read_text(encoding="utf-8", errors="replace"), environ))
    for name, value in environ.items():
        if name.lower().startswith(PREFIX) and value:
            key = name[len(PREFIX) :]
            # npm's own rule: `_` stands for `-`, except where a scope or an address is named
            settings[key if key.startswith(("@", "//")) else key.lower().replace("_", "-")] = value
    return settings


def parse_npmrc(text: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield a file's settings, ``${NAME}`` filled in from the environment."""
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and not key.startswith(("#", ";")):
            filled = re.sub(r"\$\{(\w+)\??\}", lambda match: environ.get(match[1], ""), value.strip())
            yield key.strip(), filled.strip("\"'")


class Registry:
    """The user's registry."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._settings = read_settings(environ)
        self._session = requests.Session()
        for scheme in ("https", "http"):
            proxy = self._settings.get(f"{scheme}-proxy" if scheme == "https" else "proxy")
            if proxy and not any(environ.get(name) for name in (f"{scheme}_proxy", f"{scheme.upper()}_PROXY")):
                self._session.proxies[scheme] = proxy
        trust = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")
        files = [self._settings.get("cafile"), *(environ.get(name) for name in trust)]
        files.append("/etc/ssl/certs/ca-certificates.crt")
        self.certificates = next((file for file in files if file and Path(file).is_file()), certifi.where())
        """The certificates trusted on this host."""

    def address(self, package: str) -> str:
        """Return the registry's address for a package, without a slash at its end.

        Raises:
            RegistryError: none is configured.
        """
        scope = package.partition("/")[0] if package.startswith("@") else ""
        found = (scope and self._settings.get(f"{scope}:registry")) or self._settings.get("registry")
        found = found or npm_says("registry")
        if not found:
            raise RegistryError(
                "no npm registry is configured. Set npm_config_registry to its address, or write "
                "`registry=<address>` in ~/.npmrc."
            )
        return found.rstrip("/")

    def dist(self, package: str, version: str) -> Dist:
        """Look a package version up.

        Raises:
            RegistryError: it is not there, or the registry is not.
        """
        base = f"{self.address(package)}/{quote(package, safe='@')}"
        answer = self._get(f"{base}/{version}")
        entry = self._json(answer) if answer.ok else {}
        if not entry.get("dist") and answer.status_code in (400, 404, 405):  # a mirror that serves whole documents only
            answer = self._get(base)
            entry = (self._json(answer).get("versions") or {}).get(version, {}) if answer.ok else {}
        dist = entry.get("dist")
        if not isinstance(dist, dict) or not dist.get("tarball"):
            raise RegistryError(
                f"{package}@{version}: the registry answers {answer.status_code}; is the version right?"
            )
        return Dist(str(dist["tarball"]), str(dist.get("integrity") or ""))

    def download(self, url: str, target: BinaryIO, *, integrity: str, progress: Progress | None = None) -> None:
        """Fetch an archive and check it.

        Raises:
            RegistryError: it did not come, or is not what its checksum says.
        """
        for attempt in range(TRIES):
            target.seek(0)
            target.truncate()
            try:
                found = self._fetch(url, target, progress)
            except requests.RequestException as error:
                if attempt == TRIES - 1:
                    raise RegistryError(
                        f"{_bare(url)}: {type(error).__name__}, {TRIES} times; see your proxy and npm_config_registry"
                    ) from error
            else:
                break
        if found != integrity:
            raise RegistryError(
                f"{_bare(url)}: the checksum is {found}, expected {integrity or '(none)'}; "
                "this registry gives another file than the pinned one: name another by npm_config_registry"
            )

    def _fetch(self, url: str, target: BinaryIO, progress: Progress | None) -> str:
        digest, size = hashlib.sha512(), 0
        with self._get(url, stream=True) as answer:
            answer.raise_for_status()
            total = int(answer.headers.get("Content-Length") or 0)
            for chunk in answer.iter_content(CHUNK):
                target.write(chunk)
                digest.update(chunk)
                size += len(chunk)
                if progress:
                    progress(size, total)
        return "sha512-" + base64.b64encode(digest.digest()).decode()

    def _get(self, url: str, *, stream: bool = False) -> requests.Response:
        try:
            return self._session.get(
                url, headers=self._credentials(url), timeout=TIMEOUT_S, stream=stream, verify=self.certificates
            )
        except requests.RequestException as error:
            if stream:
                raise
            raise RegistryError(
                f"{_bare(url)} is not reached: {type(error).__name__}; see your proxy and npm_config_registry"
            ) from error

    def _credentials(self, url: str) -> dict[str, str]:
        """Return the login for an address: npmrc names it ``//host/path/:_authToken``, the longest path wins."""
        parts = urlsplit(url)
        path = parts.path
        while True:
            path = path.rpartition("/")[0]
            where = f"//{parts.netloc}{path}/"
            if token := self._settings.get(f"{where}:_authToken"):
                return {"Authorization": f"Bearer {token}"}
            if login := self._settings.get(f"{where}:_auth"):
                return {"Authorization": f"Basic {login}"}
            user, password = (self._settings.get(f"{where}:{key}") for key in ("username", "_password"))
            if user and password:
                pair = f"{user}:{base64.b64decode(password).decode()}"
                return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
            if not path:
                return {}

    def _json(self, answer: requests.Response) -> dict[str, Any]:
        try:
            found = answer.json()
        except ValueError as error:
            raise RegistryError(f"{_bare(answer.url)}: the registry does not answer with JSON") from error
        return found if isinstance(found, dict) else {}


def _bare(url: str) -> str:
    """Return an address without the login that may stand in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{parts.path}"
