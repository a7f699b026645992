"""``doctor``: what this machine can do, and how to repair what it cannot."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import packages_distributions

import typer

from categories.assets import assets_folder, needed, state
from categories.catalog import load_catalog
from containers.box import Engine, EngineError, EngineInfo
from containers.build_host import ca_bundle
from containers.disk import best_mode
from containers.docker_engine import DockerEngine
from containers.images import image_tag, roles
from containers.lease import RunLease
from runners.cache import Cache, default_cache
from runners.harness import HARNESSES
from runners.opening import host_helper
from runners.readiness import harness_state
from runners.verify import verifier_files
from suite.sourcing import source_checks

FREE_GB = 20
OPTIONAL = ("harness ", "source ", "asset ")
"""Checks of what a run may do without; marked ``--`` where it is not ready."""
ROOMS = ("suite", "categories", "containers", "runners", "results", "verifiers_hidden")


@dataclass(frozen=True)
class Check:
    """One finding."""

    name: str
    ok: bool
    detail: str
    repair: str = ""
    """What to do; empty where all is well."""


def doctor(*, as_json: bool) -> int:
    """Print all checks; exit status 2 where something that every run needs is missing."""
    checks = list(_checks())
    if as_json:
        typer.echo(json.dumps([asdict(check) for check in checks], indent=1))
    else:
        for check in checks:
            mark = "ok  " if check.ok else "--  " if check.name.startswith(OPTIONAL) else "FIX "
            typer.echo(f"{mark} {check.name:<28} {check.detail}")
            if check.repair:
                typer.echo(f"     {'':<28} -> {check.repair}")
    return 0 if all(check.ok for check in checks if not check.name.startswith(OPTIONAL)) else 2


def _checks() -> Iterator[Check]:
    cache = default_cache()
    yield Check("python", sys.version_info >= (3, 11), sys.version.split()[0], "")
    yield _names()
    engine: Engine | None = None
    try:
        engine = DockerEngine()
        yield _engine(engine.info())
    except EngineError as error:
        yield Check("engine", ok=False, detail=str(error), repair="`make engine`, or install and start Docker")
    yield _space(cache)
    if engine is not None:
        yield _disk(engine, cache)
        yield from _images(engine)
    yield from _assets(cache)
    yield from _harnesses(cache)
    yield from _sources()


def _names() -> Check:
    """A foreign package with the name of one of our rooms would shadow it, or be shadowed."""
    owners = packages_distributions()
    foreign = {room: owner for room in ROOMS for owner in owners.get(room, []) if owner != "hab-suite"}
    if not foreign:
        return Check("import names", ok=True, detail="no other package claims ours")
    clash = ", ".join(f"{room} ({owner})" for room, owner in foreign.items())
    return Check("import names", ok=False, detail=f"claimed by others: {clash}", repair="use an environment of its own")


def _engine(info: EngineInfo) -> Check:
    return Check("engine", ok=True, detail=f"{info.name} {info.version}, {info.cpus} CPUs, {info.memory_mb} MB")


def _space(cache: Cache) -> Check:
    place = next(path for path in (cache.root, *cache.root.parents) if path.exists())
    free_gb = shutil.disk_usage(place).free / 1e9
    repair = "" if free_gb >= FREE_GB else "free some, or point HAB_SUITE_CACHE at a larger disk"
    return Check("disk space", free_gb >= FREE_GB, f"{free_gb:.0f} GB free for {cache.root}", repair)


def _disk(engine: Engine, cache: Cache) -> Check:
    """Try it: the way that works is what trials will use."""
    try:
        with RunLease(cache.mounts, f"doctor-{os.getpid()}") as lease:
            mode = best_mode(lease.folder, host_helper(engine, cache, lambda _: None, lease.labels))
    except EngineError as error:
        return Check("box disks", ok=False, detail=str(error), repair="run as root, or as a user of the docker group")
    detail = {"loop": "hard limit by a loop device", "helper": "hard limit by a helper container"}
    repair = "as root or with a privileged container allowed the limit is hard" if mode == "watched" else ""
    return Check(
        "box disks", ok=True, detail=detail.get(mode, "watched only: a box is stopped when over"), repair=repair
    )


def _images(engine: Engine) -> Iterator[Check]:
    judges = {category.verifier_image for category in load_catalog()}
    for role in roles():
        tag = image_tag(role, verifier_files() if role in judges else {})
        there = engine.has_image(tag)
        detail = f"built, {engine.image_mb(tag):.0f} MB" if there else "not built yet; the first run builds it"
        yield Check(f"image {role}", ok=True, detail=detail, repair="" if there else "`hab-suite build images`")
    count = ca_bundle().count(b"BEGIN CERTIFICATE")
    yield Check("certificates", ok=True, detail=f"{count} trusted by builds")


def _assets(cache: Cache) -> Iterator[Check]:
    for asset in needed(load_catalog()).values():
        found = state(asset, assets_folder(cache.root))
        known = {"ready": "fetched and derived", "fetched": "fetched; derived at its first use, a minute or two"}
        detail = known.get(found, f"{asset.file} not fetched; without a registry a stand-in is used ({asset.stand_in})")
        yield Check(
            f"asset {asset.title}", found != "missing", detail, "" if found == "ready" else "`hab-suite build assets`"
        )


def _harnesses(cache: Cache) -> Iterator[Check]:
    for name in HARNESSES:
        state = harness_state(name, cache.root)
        yield Check(f"harness {name}", state.ready, state.detail, state.repair)


def _sources() -> Iterator[Check]:
    for found in source_checks():
        yield Check(found.name, found.ready, found.detail, found.repair)
