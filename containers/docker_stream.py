"""A hijacked engine connection: standard input goes in, demultiplexed output comes out."""

import select
import socket
import time
from collections.abc import Callable
from typing import Any

from containers.box import EngineError, Sink, Stream

STREAMS: dict[int, Stream] = {1: "stdout", 2: "stderr"}
HEADER_BYTES = 8
CHUNK_BYTES = 1 << 16
FIRST_CHECK_S, LONGEST_CHECK_S = 0.1, 2.0
LINGER_S = 0.2
"""How long output may still arrive after its command has ended."""


class Conversation:
    """Both directions of one attached command. Close it: the engine keeps its end open otherwise."""

    def __init__(self, hijacked: Any) -> None:
        """Take over what the SDK's ``exec_start(socket=True)`` or ``attach_socket`` returned."""
        self._response = hijacked._response  # noqa: SLF001  (the SDK has no public way to a two-way stream)
        self.socket: socket.socket = getattr(hijacked, "_sock", hijacked)
        self.socket.settimeout(0)
        # Output that came in one packet with the response's headers waits in the header reader's buffer.
        self._early: bytes = self._response.raw._fp.fp.peek()  # noqa: SLF001
        self._header = bytearray()
        self._stream: Stream = "stdout"
        self._left = 0

    def close(self) -> None:
        self._response.close()
        self.socket.close()

    def receive(self) -> bytes | None:
        """Return what has arrived, ``b""`` at the end, None where nothing is there yet."""
        if self._early:
            data, self._early = self._early, b""
            return data
        try:
            return self.socket.recv(CHUNK_BYTES)
        except BlockingIOError:
            return None
        except ConnectionError:
            return b""

    def pump(self, stdin: bytes, sink: Sink | None, *, timeout_s: float | None, ended: Callable[[], bool]) -> bool:
        """Carry both directions until the output ends; return whether the time ran out first.

        ``ended`` is asked now and then: a child left in the background may hold the output open for ever.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        pause = FIRST_CHECK_S
        check_at = time.monotonic() + pause
        to_send = memoryview(stdin)
        while True:
            to_send = self._send(to_send)
            data = self.receive()
            if data is not None:
                if not data:
                    return False
                self._demultiplex(data, sink)
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                return True
            if now >= check_at:
                if ended():
                    self._drain(sink)
                    return False
                pause = min(2 * pause, LONGEST_CHECK_S)
                check_at = time.monotonic() + pause
            if data is None:
                self.wait(check_at if deadline is None else min(check_at, deadline), sending=bool(to_send))

    def wait(self, until: float, *, sending: bool = False) -> None:
        """Sleep until something can be read (or sent), or until that time on the monotonic clock."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN | (select.POLLOUT if sending else 0))
        poll.poll(max(0, int(1000 * (until - time.monotonic())) + 1))

    def _send(self, to_send: memoryview) -> memoryview:
        """Send what fits; half-close after the last byte. Returns the rest."""
        if not to_send:
            return to_send
        try:
            rest = to_send[self.socket.send(to_send[:CHUNK_BYTES]) :]
            if not rest:
                self.socket.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return to_send
        except OSError:
            # The command ended without reading its input: its output and exit code tell more than this.
            return to_send[:0]
        return rest

    def _drain(self, sink: Sink | None) -> None:
        until = time.monotonic() + LINGER_S
        while time.monotonic() < until:
            data = self.receive()
            if data == b"":
                return
            if data is None:
                self.wait(until)
            else:
                self._demultiplex(data, sink)

    def _demultiplex(self, data: bytes, sink: Sink | None) -> None:
        view = memoryview(data)
        while view:
            if self._left:
                piece, view = view[: self._left], view[self._left :]
                self._left -= len(piece)
                if sink is not None:
                    sink(self._stream, bytes(piece))
                continue
            missing = HEADER_BYTES - len(self._header)
            self._header += view[:missing]
            view = view[missing:]
            if len(self._header) == HEADER_BYTES:
                if self._header[0] not in STREAMS:
                    raise EngineError(f"The engine sent a frame of an unknown stream ({self._header[0]}).")
                self._stream = STREAMS[self._header[0]]
                self._left = int.from_bytes(self._header[4:], "big")
                self._header.clear()
