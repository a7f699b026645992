"""What was fetched and verified: name, SHA-256, size, date, and how the digest was known. Never a secret."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from categories.sources.download import held
from categories.sources.errors import ChangedError
from categories.sources.spec import SourceSpec

Known = Literal["pinned", "source", "first use"]


@dataclass(frozen=True)
class Entry:
    """One verified file."""

    name: str
    sha256: str
    bytes: int
    known: Known
    """Whether the digest is pinned in the suite, published by the source, or recorded when first used."""


class Manifest:
    """``manifest.json`` of one version of a source."""

    def __init__(self, folder: Path, source: SourceSpec, endpoint: str) -> None:
        self.file = folder / "manifest.json"
        self.source = source
        self.endpoint = endpoint

    def entries(self) -> dict[str, dict[str, Any]]:
        """Return what is recorded, by name."""
        try:
            found: dict[str, dict[str, Any]] = json.loads(self.file.read_text(encoding="utf-8"))["files"]
        except (OSError, ValueError, KeyError):
            return {}
        return found

    def check(self, entries: Iterable[Entry]) -> None:
        """Compare with what was recorded at an earlier use.

        Raises:
            ChangedError: a file is another than then.
        """
        known = self.entries()
        for entry in entries:
            old = known.get(entry.name)
            if old is not None and old["sha256"] != entry.sha256:
                raise ChangedError(
                    f"{self.source.title}: {entry.name} changed at the source since {old['at'][:10]} (SHA-256 was "
                    f"{old['sha256']}, is {entry.sha256}). To accept the new one, remove "
                    f"its entry from {self.file} and run `hab-suite cache prune --keep-gb 0`."
                )

    def record(self, entries: Iterable[Entry]) -> None:
        """Add verified files."""
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        with held(self.file.with_suffix(".lock")):
            files = self.entries()
            for entry in entries:
                files[entry.name] = {"at": now, **{k: v for k, v in asdict(entry).items() if k != "name"}}
            about = {"source": self.source.id, "path": self.source.path, "revision": self.source.revision}
            document = {**about, "endpoint": self.endpoint, "files": files}
            fresh = self.file.with_suffix(".new")
            fresh.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            fresh.replace(self.file)
