"""The agent's output, written as it comes and cut at a cap."""

import threading
from pathlib import Path
from typing import BinaryIO, Self

from containers.box import Stream

LOG_CAP_BYTES = 200 << 20
CUT_MARK = b"\n[hab-suite: the log reached its cap; the rest was dropped]\n"


class AgentLog:
    """``agent/stdout.log`` and ``agent/stderr.log``; together they hold at most ``cap`` bytes."""

    def __init__(self, folder: Path, cap: int = LOG_CAP_BYTES) -> None:
        self._folder = folder
        self._cap = cap
        self._lock = threading.Lock()
        self._files: dict[Stream, BinaryIO] = {}
        self.written = 0
        self.cut = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            for file in self._files.values():
                file.close()
            self._files.clear()

    def sink(self, stream: Stream, data: bytes) -> None:
        """Append to the stream's file; beyond the cap nothing is kept, and the file says so once."""
        with self._lock:
            if self.cut:
                return
            if stream not in self._files:
                self._files[stream] = (self._folder / f"{stream}.log").open("ab", buffering=0)
            file = self._files[stream]
            kept = data[: self._cap - self.written]
            file.write(kept)
            self.written += len(kept)
            if len(kept) < len(data):
                file.write(CUT_MARK)
                self.cut = True
