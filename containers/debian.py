"""The root that every image starts from: Debian bookworm, pulled, or built where there is no registry."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from containers.box import LABEL, Engine, EngineError

SUITE = "bookworm"
PULLED = f"debian:{SUITE}-slim"
ROOT_TAG = f"{LABEL}/debian:{SUITE}"
MIRROR_VARIABLE = "HAB_DEBIAN_MIRROR"
APT = Path("/etc/apt")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
LAST_LINES = 15


@dataclass(frozen=True)
class Source:
    """A package source of the host."""

    uri: str
    suites: tuple[str, ...]


def ensure_root(engine: Engine, work: Path, progress: Callable[[str], None]) -> str:
    """Return the tag of a bookworm root, made if it is not there yet; ``work`` holds the files of a build meanwhile.

    Raises:
        EngineError: it can neither be pulled nor built; the message says what would help.
    """
    if engine.has_image(ROOT_TAG):
        return ROOT_TAG
    if not engine.has_image(PULLED):
        progress(f"pulling {PULLED}")
    if engine.has_image(PULLED) or engine.pull(PULLED):
        engine.tag(PULLED, ROOT_TAG)
        return ROOT_TAG
    main, others = mirrors(APT)
    progress(f"no registry gives {PULLED}: building it with debootstrap (a minute or two)")
    with tempfile.TemporaryDirectory(dir=work) as folder:
        engine.load_root(_debootstrap(Path(folder), main, others), tag=ROOT_TAG, labels={})
    return ROOT_TAG


def mirrors(apt: Path) -> tuple[str, list[str]]:
    """Return the URI of a Debian mirror, and sources.list lines for bookworm's updates as far as the host has them.

    Raises:
        EngineError: debootstrap cannot be used here.
    """
    chosen = os.environ.get(MIRROR_VARIABLE, "")
    sources = [source for source in apt_sources(apt) if source.uri.startswith(("http://", "https://", "file:/"))]
    plain = [source.uri for source in sources if any(re.fullmatch(r"[a-z]+", suite) for suite in source.suites)]
    missing = [
        "be root" if os.geteuid() else "",
        "" if shutil.which("debootstrap") else "install debootstrap (`apt-get install debootstrap`)",
        "" if chosen or (plain and is_debian()) else f"set {MIRROR_VARIABLE} to the address of a Debian mirror",
    ]
    if any(missing):
        raise EngineError(
            f"{PULLED} is not on this engine and cannot be pulled. Either load it (`docker pull {PULLED}` through your "
            f"registry mirror, or `docker load`), or let it be built here: {'; '.join(filter(None, missing))}."
        )
    others = sorted(
        {
            f"deb {source.uri} {suite} main"
            for source in sources
            for suite in source.suites
            if is_debian() and suite.startswith(f"{SUITE}-") and not suite.endswith("-backports")
        }
    )
    return chosen or plain[0], others


def is_debian() -> bool:
    """Return whether this host's package sources are Debian's own: a derivative's mirror has no bookworm."""
    release = Path("/etc/os-release")
    return release.exists() and "ID=debian" in release.read_text(encoding="utf-8").splitlines()


def apt_sources(apt: Path) -> list[Source]:
    """Return the host's binary package sources, of both file formats."""
    found = []
    for path in sorted([*apt.glob("sources.list"), *apt.glob("sources.list.d/*.list")]):
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = re.match(r"\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", line)
            if entry:
                found.append(Source(entry[1].rstrip("/"), (entry[2],)))
    for path in sorted(apt.glob("sources.list.d/*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
            fields = dict(re.findall(r"^([A-Za-z-]+):[ \t]*(.*)$", stanza, re.MULTILINE))
            if "deb" in fields.get("Types", "").split() and fields.get("Enabled", "yes").strip() != "no":
                for uri in fields.get("URIs", "").split():
                    found.append(Source(uri.rstrip("/"), tuple(fields.get("Suites", "").split())))
    return found


def _debootstrap(folder: Path, mirror: str, others: list[str]) -> Path:
    root, tar = folder / "root", folder / "root.tar"
    keyring = [f"--keyring={KEYRING}"] if KEYRING.exists() else []
    _run(["debootstrap", "--variant=minbase", *keyring, SUITE, str(root), mirror])
    lines = [f"deb {mirror} {SUITE} main", *others]
    (root / "etc/apt/sources.list").write_text("\n".join(lines) + "\n", encoding="utf-8")
    shutil.rmtree(root / "var/cache/apt")
    _run(["tar", "-C", str(root), "--numeric-owner", "--one-file-system", "-cf", str(tar), "."])
    return tar


def _run(command: list[str]) -> None:
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if answer.returncode:
        tail = "\n".join(answer.stdout.splitlines()[-LAST_LINES:])
        raise EngineError(
            f"{command[0]} failed (exit {answer.returncode}) building {PULLED}. Set {MIRROR_VARIABLE} to use another "
            f"mirror. Its last lines:\n{tail}"
        )
