"""Stage a draw: run ``prepare`` once in a process of its own, keep the result in the cache, hand out what it made."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from categories.assets import AssetError, Derived, ready
from categories.catalog import ROOT, folder_digest
from categories.seed import case_key, fingerprint
from categories.sources.readiness import sources_digest
from categories.sources.settings import Settings
from categories.spec import Edition, Scale, Task
from categories.store import MAKING

GOLD_SEAL = "sha256.json"
NO_DATA = frozenset(
    {"README.md", "instruction.md.j2", "reference.py", "reference.npz", "reference.toml", "probes.py", "figure.py"}
)
"""Files of a category that no byte of a draw depends on: editing them leaves prepared data as they are."""
LAYOUT = "2"
"""Raised when a staged folder holds other files than before: older entries of the cache are then not used."""
HOUSE = Path(__file__).parent.parent
DOWNLOAD_S = 12 * 3600
"""Added to the time limit of a clinical preparation: a download that stalls is given up by itself, long before."""
SETTLED_TIME = 1_600_000_000
"""Modification time of all staged files: 2020-09-13."""


class StagingError(Exception):
    """The data of a task could not be made; the message holds the generator's last words."""


@dataclass(frozen=True)
class StageRequest:
    """Which data are wanted."""

    task: Task
    seed: str
    instance: int
    scale: Scale
    edition: Edition = "synthetic"

    def cache_key(self, variant: str = "") -> str:
        """Return the name of the folder in the cache: generator, draw, scale, edition and variant decide it."""
        category = self.task.category
        draw = case_key(self.seed, category.id, self.task.data_case, self.instance).hex()
        parts = [LAYOUT, generator_digest(self.task), draw, self.scale, self.edition, variant]
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Staged:
    """One draw on disk: ``public`` is what the agent sees, ``workspace`` is copied in writable, ``gold`` stays out."""

    folder: Path
    about: str
    """Task, instance, scale, edition and the seed's fingerprint, for people."""
    content_digest: str
    seconds: float
    peak_memory_mb: float
    variant: str

    @property
    def public(self) -> Path:
        return self.folder / "public"

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def gold(self) -> Path:
        return self.folder / "gold"


def generator_digest(task: Task) -> str:
    """Return the digest of all code and data that decide the bytes of a draw."""
    shared = (ROOT / name for name in ("draw.py", "seed.py", "spec.py"))
    own = hashlib.sha256(folder_digest(task.category.folder, NO_DATA).encode())
    for path in shared:
        own.update(path.read_bytes())
    for share in task.category.shares:  # its asset.toml holds the digest of what it stands on
        own.update(folder_digest(ROOT / share, NO_DATA).encode())
    return own.hexdigest()


@contextlib.contextmanager
def staged(request: StageRequest, cache: Path, cancel: threading.Event | None = None) -> Iterator[Staged]:
    """Yield the draw, made now or before; it is not evicted while it is in use.

    What the category stands on is fetched and derived first, if need be.
    Concurrent requests for one draw wait for the first; a killed preparation leaves nothing that looks finished.
    """
    root = cache / "staged"
    root.mkdir(parents=True, exist_ok=True)
    clinical = request.edition == "clinical"
    try:
        derived = None if clinical else ready(request.task.category, cache)
    except AssetError as error:
        raise StagingError(str(error)) from None
    sources = cache / "sources"
    variant = derived.variant if derived else ""
    if clinical:
        variant = sources_digest(request.task, Settings.load(), sources)
    folder = root / request.cache_key(variant)
    with (root / f"{folder.name}.lock").open("w") as lock:
        while True:
            fcntl.flock(lock, fcntl.LOCK_SH)
            if (folder / "staged.json").exists():
                break
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "staged.json").exists():
                try:
                    _prepare(request, folder, derived, sources, cancel)
                except BaseException:
                    shutil.rmtree(folder.with_name(f"{folder.name}{MAKING}"), ignore_errors=True)
                    raise
        os.utime(folder)
        document = json.loads((folder / "staged.json").read_text(encoding="utf-8"))
        yield Staged(folder=folder, **document)


def _prepare(
    request: StageRequest, folder: Path, derived: Derived | None, sources: Path, cancel: threading.Event | None
) -> None:
    making = folder.with_name(f"{folder.name}{MAKING}")
    for leftover in (making, folder):
        shutil.rmtree(leftover, ignore_errors=True)
    for name in ("public", "workspace", "gold"):
        (making / name).mkdir(parents=True)
    started = time.monotonic()
    words = {
        "folder": str(request.task.category.folder),
        "case": request.task.data_case,
        "key": case_key(request.seed, request.task.category.id, request.task.data_case, request.instance).hex(),
        "scale": request.scale,
        "edition": request.edition,
        "into": str(making),
        "assets": str(derived.folder) if derived else "",
        "sources": str(sources),
    }
    answer = _run_worker(request, words, cancel)
    if not any((making / "workspace").iterdir()):
        (making / "workspace").rmdir()
    _seal(making / "gold")
    _settle(making)
    about = (request.task.id, f"i{request.instance}", request.scale, request.edition, fingerprint(request.seed))
    document = {
        "about": " ".join(about),
        "content_digest": _content_digest(making),
        "seconds": round(time.monotonic() - started, 3),
        "peak_memory_mb": answer["peak_memory_mb"],
        "variant": derived.variant if derived else answer["variant"],
    }
    (making / "staged.json").write_text(json.dumps(document), encoding="utf-8")
    if request.edition == "clinical":
        making.chmod(0o700)  # records of real people; boxes get links of their own
    making.rename(folder)


def _seal(gold: Path) -> None:
    """Write the digests of the gold's files beside them: a verifier never judges by damaged gold."""
    files = sorted(path for path in gold.rglob("*") if path.is_file())
    digests = {path.relative_to(gold).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    (gold / GOLD_SEAL).write_text(json.dumps(digests, indent=1), encoding="utf-8")


def _settle(folder: Path) -> None:
    """Give every staged file the same times and modes, so that neither tells anything."""
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (SETTLED_TIME, SETTLED_TIME))


def _run_worker(request: StageRequest, words: dict[str, str], cancel: threading.Event | None) -> dict[str, object]:
    """Run the generator in a child: its memory goes with it, it can be stopped, the key stays off its command line."""
    limit_s = request.task.category.resources[request.scale].prepare_timeout_s
    limit_s += DOWNLOAD_S if request.edition == "clinical" else 0
    child = subprocess.Popen(
        [sys.executable, "-m", "categories.worker"],
        cwd=HOUSE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HOUSE), "PYTHONHASHSEED": "0", **Settings.load().for_child()},
    )
    ended = threading.Event()
    stopped: list[str] = []

    def watch() -> None:
        deadline = time.monotonic() + limit_s
        while not ended.wait(0.2):
            if time.monotonic() > deadline:
                stopped.append(f"took more than {limit_s} s")
            elif cancel is not None and cancel.is_set():
                stopped.append("was cancelled")
            if stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        out, err = child.communicate(json.dumps(words))
    except BaseException:  # Ctrl-C: the child has a session of its own and would go on alone
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        raise
    finally:
        ended.set()
        watcher.join()
    if stopped or child.returncode != 0:
        why = f"preparation {stopped[0]}" if stopped else f"preparation ended with status {child.returncode}"
        last = "\n".join(err.strip().splitlines()[-12:])
        raise StagingError(f"{request.task.id} ({request.edition}, {request.scale}): {why}\n{last}".strip())
    answer: dict[str, object] = json.loads(out.splitlines()[-1])
    return answer


def _content_digest(folder: Path) -> str:
    """Return the SHA-256 over every staged file's name and bytes, gold included."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        inner = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                inner.update(block)
        digest.update(f"{path.relative_to(folder).as_posix()}\0{inner.hexdigest()}\n".encode())
    return digest.hexdigest()
