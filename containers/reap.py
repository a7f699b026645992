"""Clearing up after runs of this host whose orchestrator is dead: containers, mounts, loop devices, doors."""

import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

from containers.box import Engine
from containers.disk import Shell, reap_disks
from containers.lease import HOST_LABEL, LEASE_LABEL, RunLease, claimed, is_held, is_ours, remove_folder


@dataclass(frozen=True)
class Reaped:
    """How many things of dead runs were removed."""

    containers: int
    disks: int
    folders: int


def reap(engine: Engine | None, mnt_root: Path, helper: Shell | None = None) -> Reaped:
    """Remove what dead runs left behind; living runs, and other hosts on a shared engine or cache, lose nothing.

    Without an engine, disks and folders alone.
    """
    containers = 0
    for box in engine.find({HOST_LABEL: socket.gethostname(), LEASE_LABEL: ""}) if engine else []:
        if not is_held(Path(box.labels[LEASE_LABEL])):
            assert engine is not None
            engine.remove(box.id)
            containers += 1
    disks = folders = 0
    for folder in sorted(path for path in mnt_root.glob("*") if path.is_dir() and is_ours(path)):
        with claimed(folder) as dead:
            if dead:
                disks += reap_disks(folder, helper)
                remove_folder(folder)
                folders += not folder.exists()
    return Reaped(containers, disks, folders)


def reap_predecessor(engine: Engine, lease: RunLease, helper: Shell | None = None) -> Reaped:
    """Remove what an earlier orchestrator of the same run left, once its lease is ours: for ``resume``."""
    containers = 0
    for box in engine.find({LEASE_LABEL: lease.labels[LEASE_LABEL]}):
        engine.remove(box.id)
        containers += 1
    disks = reap_disks(lease.folder, helper)
    folders = 0
    for path in lease.folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            folders += 1
    return Reaped(containers, disks, folders)
