"""Disks of a limited size for what a box may write: three folders that share one limit."""

import os
import secrets
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from containers.box import BoxLimits, BoxSpec, Engine, EngineError

Mode = Literal["loop", "helper", "watched"]
"""``loop``: a mounted file, by root. ``helper``: the same, by a container that may mount. ``watched``: a plain folder
whose size is looked at; what is written between two looks is not limited."""
FOLDERS = ("workspace", "home", "tmp")
LOOK_EVERY_S = 1.0
HELPER_TIMEOUT_S = 60
HELPER_LIMITS = BoxLimits(cpus=1, memory_mb=256, pids=64)

MAKE = r"""
set -eu
truncate -s "$2MB" "$1.img"
mkfs.ext4 -q -F -m 0 -O ^has_journal -E lazy_itable_init=1,nodiscard "$1.img"
mkdir "$1"
mount -o loop,nosuid,nodev,noatime,noinit_itable "$1.img" "$1"
rmdir "$1/lost+found"
cd "$1"
mkdir workspace home tmp
chown "$3:$4" workspace home
chmod 1777 tmp
"""
"""Arguments: mount point, size in MB, uid, gid. No journal and no table initialisation: nobody needs the disk after a
crash, and making it takes milliseconds."""
DROP = r"""
set -eu
if mountpoint -q "$1"; then umount "$1" 2>/dev/null || umount -l "$1"; fi
devices() { losetup -nO NAME -j "$1.img"; }
if test -e "$1.img"; then
    devices "$1" | while read -r device; do losetup -d "$device" || test -z "$(devices "$1")"; done
fi
rm -rf --one-file-system "$1" "$1.img"
"""
"""Argument: mount point. Lazily where something still looks at it; right for a disk in any state and a plain folder.
The kernel detaches an unmounted device by itself, a moment later: one that went meanwhile is no error."""

Shell = Callable[[str, tuple[str, ...]], None]
"""Runs a script with arguments as root in the host's mount namespace; raises ``EngineError``."""


class Disk:
    """``path`` holds ``workspace``, ``home`` (both the user's) and ``tmp`` (everyone's)."""

    def __init__(self, path: Path, mode: Mode, shell: Shell, watcher: "Watcher | None" = None) -> None:
        self.path = path
        self.mode = mode
        self._shell = shell
        self._watcher = watcher

    def close(self) -> None:
        """Unmount and delete it. Remove the boxes that use it first. Idempotent."""
        if self._watcher:
            self._watcher.stop()
        try:
            self._shell(DROP, (str(self.path),))
        except EngineError:
            if self.mode != "watched":
                raise
            # Files of the box's user, whom this one may not overrule: what is left waits for a reaper who may.
            shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Watcher:
    """Looks at a folder's size every second and calls ``over`` once when it is larger than it may be."""

    def __init__(self, path: Path, size_mb: int, over: Callable[[], None]) -> None:
        self._path = path
        self._limit = size_mb * 1_000_000
        self._over = over
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"watch {path.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(LOOK_EVERY_S):
            if used_bytes(self._path) > self._limit:
                self._over()
                return


def used_bytes(folder: Path) -> int:
    """Return the space that a tree takes on its disk; what vanishes meanwhile or cannot be read counts nothing."""
    total = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                except OSError:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    total += used_bytes(Path(entry.path))
    except OSError:
        pass
    return total


def make_disk(
    folder: Path,
    size_mb: int,
    uid: int,
    gid: int,
    *,
    mode: Mode | None = None,
    helper: Shell | None = None,
    over: Callable[[], None] = lambda: None,
) -> Disk:
    """Make a disk in ``folder`` (a run's, from its lease), in the strictest mode that works here or in the one given.

    ``helper`` comes from ``helper_shell``. ``over`` is called, in another thread, where a ``watched`` disk grows too
    large: stop the box there.

    Raises:
        EngineError: the mode given does not work here.
    """
    root = os.geteuid() == 0
    best: tuple[Mode, ...] = (*(("loop",) if root else ()), *(("helper",) if helper else ()), "watched")
    failures = []
    for candidate in (mode,) if mode else best:
        path = folder / secrets.token_hex(8)
        try:
            if candidate == "watched":
                return _watched(path, size_mb, uid, gid, host_shell if root or not helper else helper, over)
            return _mounted(path, size_mb, uid, gid, candidate, host_shell if candidate == "loop" else helper)
        except EngineError as error:
            failures.append(f"{candidate}: {error}")
    raise EngineError(
        f"No size-limited disk could be made in {folder}. {' '.join(failures)} `hab-suite doctor` says what would help."
    )


def best_mode(folder: Path, helper: Shell | None = None) -> Mode:
    """Return the strictest mode that works in ``folder``, tried with a small disk."""
    with make_disk(folder, 16, os.getuid(), os.getgid(), helper=helper) as disk:
        return disk.mode


def _mounted(path: Path, size_mb: int, uid: int, gid: int, mode: Mode, shell: Shell | None) -> Disk:
    if shell is None:
        raise EngineError("a helper container is needed, and none was given.")
    try:
        shell(MAKE, (str(path), str(size_mb), str(uid), str(gid)))
    except EngineError:
        shell(DROP, (str(path),))
        raise
    return Disk(path, mode, shell)


def _watched(path: Path, size_mb: int, uid: int, gid: int, shell: Shell, over: Callable[[], None]) -> Disk:
    for name in FOLDERS:
        folder = path / name
        folder.mkdir(parents=True)
        if name == "tmp":
            folder.chmod(0o1777)
        elif os.geteuid() == 0:
            os.chown(folder, uid, gid)
        elif uid != os.getuid():
            folder.chmod(0o777)
    return Disk(path, "watched", shell, Watcher(path, size_mb, over))


def host_shell(script: str, arguments: tuple[str, ...]) -> None:
    """Run a script as the orchestrator's own user."""
    command = ["sh", "-c", script, "disk", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise EngineError(f"{' '.join(answer.stderr.split())} (exit {answer.returncode}).")


def helper_shell(engine: Engine, image: str, labels: Mapping[str, str] | None = None) -> Shell:
    """Return a shell that runs in a container with the right to mount, for a user who has the engine but is not root.

    It enters the mount namespace of this very process, so that a disk appears where the orchestrator and the engine
    look, whatever the propagation of the host's mounts, and uses the host's own mkfs and mount. ``image`` needs
    ``nsenter``.
    """

    def shell(script: str, arguments: tuple[str, ...]) -> None:
        inside = ("sh", "-c", f"PATH=/usr/sbin:/usr/bin:/sbin:/bin\n{script}", "disk", *arguments)
        spec = BoxSpec(
            image=image,
            command=("nsenter", "--target", str(os.getpid()), "--mount", "--", *inside),
            user="0:0",
            limits=HELPER_LIMITS,
            host_helper=True,
            labels=labels or {},
        )
        answer = engine.run(spec, timeout_s=HELPER_TIMEOUT_S)
        if answer.exit_code:
            raise EngineError(f"{' '.join(answer.stderr.decode(errors='replace').split())} (exit {answer.exit_code}).")
        if answer.exit_code is None:
            raise EngineError(f"the helper container did not end within {HELPER_TIMEOUT_S} s.")

    return shell


def reap_disks(folder: Path, helper: Shell | None = None) -> int:
    """Unmount, detach and delete all disks in a dead run's folder, however far they got; return how many.

    What this user may not remove without a helper stays.
    """
    shell = host_shell if os.geteuid() == 0 or helper is None else helper
    images = {path.with_suffix("") for path in folder.glob("*.img")}
    plain = {path for path in folder.iterdir() if (path / FOLDERS[0]).is_dir()}
    reaped = 0
    for path in sorted(images | plain):
        try:
            shell(DROP, (str(path),))
        except EngineError:
            continue
        reaped += 1
    return reaped
