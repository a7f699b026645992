"""How a box is furnished: its environment, its data under a name that tells nothing, its folders on the disk."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

HOME = "/home/agent"
BOX_ENV = {
    "HOME": HOME,
    "PATH": f"{HOME}/env/bin:/opt/env/bin:/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONDONTWRITEBYTECODE": "1",
}
ON_DISK = {"/workspace": "workspace", HOME: "home", "/tmp": "tmp"}  # noqa: S108 (in the box)
"""Where the box's writable folders lie on its disk."""
MAKE_ENV = "/opt/bin/make-env"
"""Makes ``~/env``: the agent's own Python, which sees the image's packages."""
SETUP_S = 60
SETUP_MARGIN_S = 120
"""The box ends by itself this long after the time limit, even if the orchestrator is gone."""
IMAGE_UID = 1000
"""The user ``agent`` of the images."""


def box_uid() -> int:
    """Return the user id in the box: without root only the caller's own can write to a disk that the caller made."""
    return os.getuid() or IMAGE_UID


def box_gid() -> int:
    """Return the group id in the box, by the same rule."""
    return os.getgid() if os.getuid() else IMAGE_UID


@contextlib.contextmanager
def link_data(public: Path, mounts: Path) -> Iterator[Path]:
    """Yield a folder of a random name that holds hard links to the staged files.

    Bind mounts show the path of their source inside the box; and evicting the cache cannot pull data from under it.
    """
    folder = mounts / os.urandom(8).hex()
    shutil.copytree(public, folder, copy_function=os.link)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def hand_over(source: Path, target: Path) -> None:
    """Copy a folder's content, if there is one, into a folder on the disk, owned by the box's user."""
    if not source.is_dir():
        return
    shutil.copytree(source, target, dirs_exist_ok=True)
    for path in (target, *target.rglob("*")):
        os.chown(path, box_uid(), box_gid())
        path.chmod(0o755 if path.is_dir() else 0o644)


def write_as_agent(disk: Path, path: PurePosixPath, content: bytes) -> None:
    """Write a file of the box from outside.

    Raises:
        ValueError: the path is not on the disk, or a link leads it elsewhere.
    """
    for mount, folder in ON_DISK.items():
        if path.is_relative_to(mount):
            root = (disk / folder).resolve()
            target = root / path.relative_to(mount)
            if not target.parent.resolve().is_relative_to(root):
                raise ValueError(f"{path}: a link leads out of the box's disk")
            made = [parent for parent in target.parents if not parent.exists()]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            target.write_bytes(content)
            for fresh in (target, *made):
                os.chown(fresh, box_uid(), box_gid())
            return
    raise ValueError(f"{path} is not under {', '.join(ON_DISK)}")
