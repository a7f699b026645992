"""Loop devices of this host, of which those of other tests come and go at any moment."""

from contextlib import suppress
from pathlib import Path


def loops_under(folder: Path) -> list[str]:
    """Return the files below a folder that back a loop device."""
    found = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # detached since it was listed
            found.append(path.read_text())
    return [backing for backing in found if backing.startswith(str(folder))]
