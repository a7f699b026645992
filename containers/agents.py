"""The agent CLIs: fetched once, pinned, mounted read-only into every box that needs one. A trial installs nothing."""

import json
import os
import platform
import secrets
import shutil
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from containers.box import BoxLimits, BoxSpec, Engine, Mount
from containers.locks import file_lock
from containers.npm import Progress, Registry, RegistryError

TABLE = Path(__file__).parent / "agents.toml"
AGENTS = "/opt/agents"
MANIFEST = "agent.json"
CERTIFICATES = "ca-certificates.crt"
PREPARE_S = 120.0
DECLARED: dict[str, Any] = {}
"""Agents that a user's harness file adds to the table, for the life of the process."""
PROCESSORS = {"x86_64": ("x64", "x86_64-unknown-linux-musl"), "aarch64": ("arm64", "aarch64-unknown-linux-musl")}
"""Machine -> npm's word, the compiler's word."""


class AgentError(Exception):
    """An agent CLI is not known, or cannot be brought here; the message says what to do."""


@dataclass(frozen=True)
class Package:
    """One npm package of an agent, for this machine."""

    name: str
    version: str
    source: str
    """The folder of the package that is kept."""
    into: str
    drop: tuple[str, ...]
    integrity: str
    """``sha512-...`` as pinned; empty where the registry's own count must do."""


@dataclass(frozen=True)
class Release:
    """One version of an agent."""

    cli: str
    version: str
    pinned: bool
    """Whether this is the version whose checksums stand in the table."""
    binary: str
    packages: tuple[Package, ...]
    certificates: bool = False
    prepare: tuple[str, ...] = ()
    prepare_env: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder_name(self) -> str:
        return f"{self.cli}-{self.version}"

    @property
    def home(self) -> str:
        """The agent's folder in a box."""
        return f"{AGENTS}/{self.cli}"


def table() -> dict[str, Any]:
    """Return ``agents.toml``, and what was declared."""
    return DECLARED | tomllib.loads(TABLE.read_text(encoding="utf-8"))


def declare(cli: str, entry: Mapping[str, Any]) -> None:
    """Add an agent in the words of the table.

    Raises:
        AgentError: the name is taken.
    """
    if cli in tomllib.loads(TABLE.read_text(encoding="utf-8")):
        raise AgentError(f"{cli} is an agent of the suite; give yours another name")
    DECLARED[cli] = dict(entry)


def release(cli: str, version: str | None = None) -> Release:
    """Return an agent's release: the pinned one, or another by its number.

    Raises:
        AgentError: no such agent, or not for this machine.
    """
    known = table()
    if cli not in known:
        raise AgentError(f"no agent is called {cli}; there are {', '.join(known)}")
    if platform.machine() not in PROCESSORS:
        raise AgentError(f"{cli}: no package is made for this processor ({platform.machine()})")
    arch, triple = PROCESSORS[platform.machine()]
    entry = known[cli]
    wanted = version or str(entry["version"])
    pinned = wanted == entry["version"]
    words = {"version": wanted, "arch": arch, "triple": triple}
    packages = [_package(raw, words, pinned=pinned) for raw in entry["packages"]]
    if pinned and cli not in DECLARED and not all(package.integrity for package in packages):
        raise AgentError(f"{cli} {wanted}: no package is pinned for this processor; name one by --agent-version")
    return Release(
        cli=cli,
        version=wanted,
        pinned=pinned,
        binary=entry["binary"],
        packages=tuple(packages),
        certificates=bool(entry.get("certificates")),
        prepare=tuple(entry.get("prepare", ())),
        prepare_env=entry.get("prepare_env", {}),
    )


def _package(raw: Mapping[str, Any], words: Mapping[str, str], *, pinned: bool) -> Package:
    own = "{version}" not in raw["version"]  # then its checksum holds for all versions of the agent
    integrity = raw.get(words["arch"]) or raw.get("any") or ""
    return Package(
        name=raw["name"].format(**words),
        version=raw["version"].format(**words),
        source=raw["from"].format(**words),
        into=raw.get("into", ""),
        drop=tuple(raw.get("drop", ())),
        integrity=integrity if pinned or own else "",
    )


def installed(cli: str, cache: Path, version: str | None = None) -> Path | None:
    """Return the agent's folder in the cache; null where it was not fetched yet."""
    folder = cache / "agents" / release(cli, version).folder_name
    return folder if (folder / MANIFEST).is_file() else None


def mount(cli: str, folder: Path) -> Mount:
    """Return the mount that puts an agent into a box."""
    return Mount(folder, f"{AGENTS}/{cli}")


def install(
    cli: str,
    *,
    cache: Path,
    engine: Engine,
    image: str,
    version: str | None = None,
    registry: Registry | None = None,
    progress: Progress | None = None,
) -> Path:
    """Fetch an agent into the cache unless it is there, and return its folder.

    ``image`` runs what an agent must do once before its first start; safe under concurrent calls.

    Raises:
        AgentError: unknown, not reached, or not what its checksum says.
    """
    wanted = release(cli, version)
    agents = cache / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    with file_lock(agents / f".{wanted.folder_name}.lock"):  # another process may fetch the same
        done = installed(cli, cache, version)
        if done is not None:
            return done
        work = agents / f".{wanted.folder_name}.{secrets.token_hex(4)}"
        work.mkdir()
        try:
            try:
                found = registry or Registry()
                sums = {package.name: bring(package, work, found, progress) for package in wanted.packages}
            except RegistryError as error:
                raise AgentError(f"{cli} {wanted.version}: {error}") from error
            if wanted.certificates:
                shutil.copyfile(found.certificates, work / CERTIFICATES)
            if wanted.prepare:
                prepare(wanted, work, engine, image)
            manifest = {"cli": cli, "version": wanted.version, "pinned": wanted.pinned, "packages": sums}
            (work / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
            work.rename(agents / wanted.folder_name)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return agents / wanted.folder_name


def bring(package: Package, work: Path, registry: Registry, progress: Progress | None) -> str:
    """Fetch and unpack one package; returns its checksum."""
    dist = registry.dist(package.name, package.version)
    integrity = package.integrity or dist.integrity
    if not integrity.startswith("sha512-"):
        raise RegistryError(f"{package.name}@{package.version}: the registry gives no sha512 to check it by")
    with tempfile.TemporaryFile(dir=work) as archive:
        registry.download(dist.tarball, archive, integrity=integrity, progress=progress)
        archive.seek(0)
        unpack(archive, work / package.into, package)
    return integrity


def unpack(archive: BinaryIO, target: Path, package: Package) -> None:
    """Unpack the regular files below ``package.source``; links and devices are not needed and not made."""
    source = PurePosixPath(package.source)
    with tarfile.open(fileobj=archive, mode="r:gz") as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            if not member.isreg() or ".." in path.parts or not path.is_relative_to(source):
                continue
            inner = path.relative_to(source)
            if any(inner.is_relative_to(dropped) for dropped in package.drop):
                continue
            content = tar.extractfile(member)
            if content is None:
                continue
            file = target / inner
            file.parent.mkdir(parents=True, exist_ok=True)
            with content, file.open("wb") as out:
                shutil.copyfileobj(content, out, 1 << 20)
            file.chmod(0o755 if member.mode & 0o111 else 0o644)


def prepare(wanted: Release, work: Path, engine: Engine, image: str) -> None:
    """Let an agent unpack itself, in a box without a network."""
    spec = BoxSpec(
        image=image,
        command=(f"{wanted.home}/{wanted.prepare[0]}", *wanted.prepare[1:]),
        user=f"{os.getuid()}:{os.getgid()}",
        limits=BoxLimits(cpus=2, memory_mb=2048, pids=256),
        mounts=(Mount(work, wanted.home, read_only=False),),
        env={"HOME": "/tmp"}  # noqa: S108 - the box's own
        | {name: value.format(folder=wanted.home) for name, value in wanted.prepare_env.items()},
        tmpfs={"/tmp": "size=1g,mode=1777"},  # noqa: S108 - the box's own
    )
    done = engine.run(spec, timeout_s=PREPARE_S)
    if done.exit_code != 0:
        said = (done.stderr or done.stdout)[-500:].decode(errors="replace").strip()
        raise AgentError(
            f"{wanted.cli} {wanted.version}: its first start failed with {done.exit_code}; another version may do "
            f"(--agent-version). It said: {said}"
        )
