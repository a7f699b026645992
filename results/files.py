"""Writes that survive a crash: a file is there whole or not at all, a line is on the disk when the call returns."""

import os
import tempfile
from pathlib import Path
from threading import Lock


def write_atomically(path: Path, data: str | bytes, mode: int = 0o644) -> None:
    """Write to a neighbour, flush it to the disk, then rename over ``path``; readers never see half a file."""
    content = data.encode() if isinstance(data, str) else data
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries: without it a rename may be lost with the power."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Journal:
    """An append-only file of lines. Threads and processes may append at the same time; lines never mix."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()

    def append(self, line: str) -> None:
        """Write one line (without its newline) and flush it to the disk.

        A line that an earlier crash tore is closed first, so that it spoils nothing but itself.
        """
        with self._lock:
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                size = os.fstat(handle).st_size
                torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
                data = b"\n" * torn + line.encode() + b"\n"
                written = os.write(handle, data)
                if written != len(data):
                    raise OSError(f"{self.path}: only {written} of {len(data)} bytes written; is the disk full?")
                os.fsync(handle)
            finally:
                os.close(handle)
