"""Stops a box at its time limit, on cancellation, or for a reason given from outside: the first one counts."""

import threading
import time
from collections.abc import Callable
from typing import Self

from containers.box import EngineError

POLL_S = 0.1
STOP_RETRIES_S = (1.0, 5.0, 15.0)
"""Pauses after a stop that the engine did not do: an agent must not go on beyond its limit."""


class Watchdog:
    """While it is entered, stops the box at most once; ``reason`` says why (empty: it did not)."""

    def __init__(self, stop: Callable[[], None], *, limit_s: float, cancel: threading.Event) -> None:
        self._stop = stop
        self._limit_s = limit_s
        self._cancel = cancel
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="watchdog")
        self.reason = ""
        self.message = ""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def bark(self, reason: str, message: str) -> None:
        """Stop the box now for this reason, unless it was stopped before."""
        with self._lock:
            if self.reason or self._over.is_set():
                return
            self.reason, self.message = reason, message
        for pause_s in STOP_RETRIES_S:
            try:
                self._stop()
            except EngineError:
                time.sleep(pause_s)
            else:
                return
        self._stop()

    def _watch(self) -> None:
        deadline = time.monotonic() + self._limit_s
        while not self._over.wait(min(POLL_S, max(deadline - time.monotonic(), 0.0))):
            if self._cancel.is_set():
                self.bark("cancelled", "cancelled")
                return
            if time.monotonic() >= deadline:
                self.bark("timeout", f"reached the time limit of {self._limit_s:g} s")
                return
