"""A line to the gateway: one JSON object each way, over a Unix socket."""

import contextlib
import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

ANSWER_S = 30.0


class ControlLine:
    """Safe to use from several threads: one question at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._lock = threading.Lock()
        self._connection = connection
        self._lines = connection.makefile("rb")

    @classmethod
    def to(cls, path: Path) -> "ControlLine | None":
        """Connect; null where nobody listens yet. The path may be longer than a socket's 108 bytes."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(ANSWER_S)
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            connection.connect(f"/proc/self/fd/{folder}/{path.name}")
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            return None
        finally:
            os.close(folder)
        return cls(connection)

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        """Send an order and return the answer.

        Raises:
            OSError: the other end is gone.
            ValueError: what came is no answer.
        """
        with self._lock:
            self._connection.sendall(json.dumps(order).encode() + b"\n")
            line = self._lines.readline()
        if not line:
            raise ConnectionResetError("it closed the line")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Hang up, also on one who waits for an answer. Idempotent."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._lines.close()
        self._connection.close()
