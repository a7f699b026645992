"""How far downloads are, in small files that any process can read: a worker writes them, the terminal shows them."""

import json
import os
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

EVERY_S = 0.3
STALE_S = 30.0


@dataclass(frozen=True)
class Step:
    """A download under way."""

    source: str
    name: str
    done: int
    total: int
    """0 where the source does not say."""


class Reporter:
    """Reports one download; its file goes when it ends, however it ends."""

    def __init__(self, root: Path, source: str, name: str, total: int) -> None:
        self.file = root / "progress" / f"{os.getpid()}-{threading.get_ident()}.json"
        self._step = (source, name, total)
        self._last = 0.0

    def __enter__(self) -> Self:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.file.unlink(missing_ok=True)

    def at(self, done: int) -> None:
        """Tell how many bytes are there."""
        now = time.monotonic()
        if now - self._last < EVERY_S:
            return
        self._last = now
        source, name, total = self._step
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(Step(source, name, done, total))), encoding="utf-8")
        fresh.replace(self.file)


def under_way(root: Path) -> list[Step]:
    """Return the downloads under way on this machine, by source and name."""
    found = []
    for file in (root / "progress").glob("*.json"):
        try:
            if time.time() - file.stat().st_mtime > STALE_S:  # of a process that was killed
                file.unlink()
                continue
            found.append(Step(**json.loads(file.read_text(encoding="utf-8"))))
        except (OSError, ValueError, TypeError):
            continue  # replaced or removed meanwhile
    return sorted(found, key=lambda step: (step.source, step.name))
