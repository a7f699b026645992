"""What the user has agreed to: the terms of a source, and that its data may go to a model's endpoint. With dates."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from categories.sources.spec import SourceSpec


@dataclass(frozen=True)
class Agreements:
    """``agreements.json`` in the user's configuration folder."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "agreements.json"

    def accepted(self, source: SourceSpec) -> str:
        """Return the day on which the source's present terms were accepted; empty if they were not."""
        entry = self._read().get("accepted", {}).get(source.id, {})
        same = entry.get("licence") == source.licence and entry.get("agreement") == source.agreement
        return str(entry["at"])[:10] if same else ""

    def accept(self, source: SourceSpec) -> None:
        """Keep that the user accepts the terms, under today's date."""
        entry = {"at": _now(), "licence": source.licence, "agreement": source.agreement}
        with self._changing() as document:
            document.setdefault("accepted", {})[source.id] = entry

    def may_send(self, source: SourceSpec, endpoint: str) -> str:
        """Return the day on which sending a source's data to an endpoint was acknowledged; empty if it was not."""
        return str(self._read().get("sent", {}).get(source.id, {}).get(endpoint, ""))[:10]

    def allow(self, source: SourceSpec, endpoint: str) -> None:
        """Keep that the user lets a source's data go to an endpoint, under today's date."""
        with self._changing() as document:
            document.setdefault("sent", {}).setdefault(source.id, {})[endpoint] = _now()

    def _read(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "agreements.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            document = self._read()
            yield document
            fresh = self.file.with_suffix(".new")
            fresh.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            os.replace(fresh, self.file)  # noqa: PTH105 (atomic)


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
