"""A run's claim to what it makes on the host: alive while its lock is held, which the kernel ends with the process."""

import fcntl
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from containers.box import LABEL, EngineError
from containers.locks import try_lock

LOCK = "lock"
OWNER = "owner.json"
TRIES, PAUSE_S = 20, 0.05
HOST_LABEL = f"{LABEL}.host"
LEASE_LABEL = f"{LABEL}.lease"
"""The path of the lock: containers of runs under another cache folder are judged by their own."""


class RunLease:
    """Context manager: holds ``<mnt_root>/<run id>/``, where a run's disks and doors live; removes it at the end."""

    def __init__(self, mnt_root: Path, run_id: str) -> None:
        self.folder = mnt_root.resolve() / run_id
        self.run_id = run_id
        self.owner = {
            "host": socket.gethostname(),
            "boot": boot_id(),
            "pid": str(os.getpid()),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        self._descriptor: int | None = None

    @property
    def labels(self) -> dict[str, str]:
        """What every container of this run must carry, so that a later run can remove it if this one dies."""
        return {
            f"{LABEL}.run": self.run_id,
            HOST_LABEL: self.owner["host"],
            f"{LABEL}.boot": self.owner["boot"],
            f"{LABEL}.started": self.owner["started"],
            LEASE_LABEL: str(self.folder / LOCK),
        }

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            EngineError: another orchestrator drives this run.
        """
        for _ in range(TRIES):
            try:
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o755)
                self._descriptor = try_lock(self.folder / LOCK)
            except FileNotFoundError:
                continue  # a reaper removed the folder between the two: once more
            if self._descriptor is not None:
                (self.folder / OWNER).write_text(json.dumps(self.owner), encoding="utf-8")
                return self
            if is_held(self.folder / LOCK):
                break
            time.sleep(PAUSE_S)
        raise EngineError(
            f"Run {self.run_id} is being driven already, by {_owner(self.folder)}. Wait for it, or end it."
        )

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Remove the folder (a disk still mounted in it stays for the reaper) and release the lock."""
        assert self._descriptor is not None
        remove_folder(self.folder)
        os.close(self._descriptor)
        self._descriptor = None


def is_ours(folder: Path) -> bool:
    """Return whether a run's folder was made on this host: a cache may be shared, and locks do not always travel."""
    try:
        owner = json.loads((folder / OWNER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return True  # torn by a crash before it was written
    return bool(owner.get("host") == socket.gethostname())


def is_held(lock: Path) -> bool:
    """Return whether a living process holds a lease; one that this user may not look at counts as held."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return True
    except OSError:
        return False
    return False


@contextmanager
def claimed(folder: Path) -> Iterator[bool]:
    """Hold a dead run's folder while it is tidied, so that a resumed run waits; yields false where it is not dead."""
    try:
        descriptor = try_lock(folder / LOCK)
    except OSError:
        descriptor = None
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def remove_folder(folder: Path) -> None:
    """Remove a run's folder, by the holder of its lock; where a disk is left in it, it stays for the next reaping."""
    if any(folder.glob("*.img")):
        return
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != LOCK:
            path.unlink()
    if [path.name for path in folder.iterdir()] == [LOCK]:
        # The lock last: while it exists and is held, nobody else takes the folder.
        (folder / LOCK).unlink()
        with suppress(OSError):
            folder.rmdir()


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _owner(folder: Path) -> str:
    try:
        owner = json.loads((folder / OWNER).read_text(encoding="utf-8"))
        return f"process {owner['pid']} on {owner['host']} since {owner['started']}"
    except (OSError, ValueError, KeyError):
        return "another process"
