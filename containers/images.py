"""Which Dockerfile serves which role, and when it is built: a tag is the digest of all that goes into an image."""

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from containers.box import LABEL, Engine, EngineError
from containers.build_host import build_files, proxy_args
from containers.debian import ensure_root
from containers.locks import file_lock

FOLDERS = Path(__file__).parent / "images"
"""One folder a role. Its Dockerfile begins with ``ARG PARENT=<role>``, or ``=debian:...`` for the first of all."""
PARENT = re.compile(r"^ARG PARENT=(\S+)$", re.MULTILINE)
SOURCES = "*.in"
"""What a lock file was made from: not part of what is built."""
TASK_DOCKERFILE = b"ARG PARENT\nFROM ${PARENT}\nCOPY files/ /\n"

Content = Mapping[str, bytes | Path]
"""Path in the build context -> content."""
Progress = Callable[[str], None]


def roles() -> list[str]:
    return sorted(dockerfile.parent.name for dockerfile in FOLDERS.glob("*/Dockerfile"))


def ensure_base(engine: Engine, locks: Path, progress: Progress = lambda _: None) -> str:
    return ensure_image(engine, "base", {}, locks, progress)


def ensure_image(
    engine: Engine, role: str, extra_files: Content, locks: Path, progress: Progress = lambda _: None
) -> str:
    """Return the tag of a role's image, built first where it is not there yet.

    ``extra_files`` lie under ``extra/`` in the build context. ``locks`` is a folder that all orchestrators of this
    host share: one builds, the others wait for it.

    Raises:
        EngineError: the build failed; its last lines are in the message.
    """
    tag = image_tag(role, extra_files)
    if engine.has_image(tag):
        return tag
    parent_role = parent_of(role)
    parent = "" if ":" in parent_role else ensure_image(engine, parent_role, {}, locks, progress)
    with file_lock(locks / "images.lock"):
        if not engine.has_image(tag):
            parent = parent or ensure_root(engine, locks, progress)
            progress(f"building image {role}")
            context = {**_folder(role), **_under("extra", extra_files), **build_files()}
            _build(engine, context, tag, role, parent)
    return tag


def ensure_task_image(
    engine: Engine, files: Content, parent: str, locks: Path, progress: Progress = lambda _: None
) -> str:
    """Return the tag of a task's own image: its files (path in the image -> content) over a role's image."""
    context = {"Dockerfile": TASK_DOCKERFILE, **_under("files", files)}
    tag = f"{LABEL}/task:{_digest(context, parent)}"
    if engine.has_image(tag):
        return tag
    with file_lock(locks / "images.lock"):
        if not engine.has_image(tag):
            progress(f"building {tag}")
            _build(engine, context, tag, "task", parent)
    return tag


def image_tag(role: str, extra_files: Content) -> str:
    """Return ``hab-suite/<role>:<digest>``: the same on every machine for the same sources."""
    parent = parent_of(role)
    above = parent if ":" in parent else image_tag(parent, {})
    return f"{LABEL}/{role}:{_digest({**_folder(role), **_under('extra', extra_files)}, above)}"


def parent_of(role: str) -> str:
    """Return the role, or the foreign image, that a role's image starts from."""
    dockerfile = FOLDERS / role / "Dockerfile"
    if not dockerfile.is_file():
        raise EngineError(f"No image for the role {role!r}. There are: {', '.join(roles())}.")
    named = PARENT.search(dockerfile.read_text(encoding="utf-8"))
    if not named:
        raise EngineError(f"{dockerfile}: write `ARG PARENT=<role>` first; roles: {', '.join(roles())}.")
    return named[1]


def prune(engine: Engine, keep: set[str]) -> list[str]:
    """Remove the suite's images that neither ``keep`` names nor stand for a role as it is now; return their tags.

    An image that a container uses stays.
    """
    current = {image_tag(role, {}) for role in roles()} | keep
    removed = []
    for tag in engine.images():
        if tag not in current and not tag.startswith(f"{LABEL}/debian:"):
            try:
                engine.remove_image(tag)
            except EngineError:
                continue
            removed.append(tag)
    return removed


def _build(engine: Engine, context: Content, tag: str, role: str, parent: str) -> None:
    engine.build(context, tag=tag, labels={f"{LABEL}.role": role}, args={"PARENT": parent, **proxy_args()})


def _folder(role: str) -> dict[str, bytes | Path]:
    folder = FOLDERS / role
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path for path in files if not path.match(SOURCES)}


def _under(folder: str, files: Content) -> dict[str, bytes | Path]:
    return {f"{folder}/{name.lstrip('/')}": content for name, content in files.items()}


def _digest(context: Content, parent: str) -> str:
    digest = hashlib.sha256(parent.encode())
    for name, content in sorted(context.items()):
        data = content if isinstance(content, bytes) else content.read_bytes()
        digest.update(f"\0{name}\0{hashlib.sha256(data).hexdigest()}".encode())
    return digest.hexdigest()[:16]
