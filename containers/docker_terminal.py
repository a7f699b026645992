"""The caller's terminal, joined to a command in a box."""

import os
import select
import shutil
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from containers.docker_stream import CHUNK_BYTES, Conversation


@contextmanager
def raw_mode(fd: int) -> Iterator[None]:
    """Hand every key over as it is struck; a descriptor that is no terminal is left alone."""
    if not os.isatty(fd):
        yield
        return
    before = termios.tcgetattr(fd)
    try:
        tty.setraw(fd)
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


@contextmanager
def resizing(resize: Callable[[int, int], None]) -> Iterator[None]:
    """Call ``resize(rows, columns)`` now and whenever the window changes (in the main thread alone: signals)."""

    def tell(*_: object) -> None:
        size = shutil.get_terminal_size()
        resize(size.lines, size.columns)

    tell()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGWINCH, tell)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


def join(conversation: Conversation, resize: Callable[[int, int], None]) -> None:
    """Carry keys in and screen out until the command ends."""
    keys, screen = sys.stdin.fileno(), sys.stdout.fileno()
    with raw_mode(keys), resizing(resize):
        poll = select.poll()
        poll.register(keys, select.POLLIN)
        poll.register(conversation.socket, select.POLLIN)
        while True:
            data = conversation.receive()
            if data == b"":
                return
            if data is not None:
                write_all(screen, data)
                continue
            if any(fd == keys for fd, _ in poll.poll()):
                typed = os.read(keys, CHUNK_BYTES)
                if typed:
                    conversation.socket.settimeout(None)
                    conversation.socket.sendall(typed)
                    conversation.socket.settimeout(0)
                else:
                    poll.unregister(keys)


def write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
