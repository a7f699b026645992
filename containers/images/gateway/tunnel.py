"""``CONNECT`` to the hosts that the user listed, and to no other."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from .settings import Refusal

CHUNK = 1 << 16
HEAD_S = 10.0
CONNECT_S = 15.0


class Tunnel:
    """An HTTP proxy that knows one method."""

    def __init__(
        self, hosts: frozenset[str], *, gate: Callable[[], None], journal: Callable[[Any], None], trial: str
    ) -> None:
        self._hosts = hosts
        self._gate = gate
        self._journal = journal
        self._trial = trial

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            try:
                await self._serve(reader, writer)
            finally:
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_S)
        method, _, rest = head.decode("latin-1").partition(" ")
        target = rest.split(" ", 1)[0].lower()
        try:
            self._gate()
            if method != "CONNECT" or target not in self._hosts:
                listed = ", ".join(sorted(self._hosts)) or "none"
                raise Refusal("unknown_host", f"{method} {target[:200]}: only CONNECT to listed hosts ({listed})")
            host, _, port = target.rpartition(":")
            far_reader, far_writer = await asyncio.wait_for(asyncio.open_connection(host, int(port)), CONNECT_S)
        except Refusal as refusal:
            self._journal({"trial": self._trial, "refused": refusal.kind, "message": str(refusal)})
            await say(writer, "403 Forbidden", str(refusal))
            return
        except OSError as error:
            await say(writer, "502 Bad Gateway", f"{target}: {type(error).__name__}")
            return
        self._journal({"trial": self._trial, "connect": target})
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))
        finally:
            far_writer.close()


async def say(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    """Answer and be done."""
    body = f"hab-suite gateway: {text}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes one way until their end."""
    while chunk := await reader.read(CHUNK):
        writer.write(chunk)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
