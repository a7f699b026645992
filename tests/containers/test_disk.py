"""Disks of a limited size, in each of their modes."""

import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from containers.box import EngineError
from containers.disk import FOLDERS, best_mode, helper_shell, make_disk, reap_disks, used_bytes
from tests.containers.loops import loops_under


def mounts_under(folder: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4] for line in lines if line.split()[4].startswith(str(folder))]


def check_layout(path: Path) -> None:
    assert sorted(entry.name for entry in path.iterdir()) == sorted(FOLDERS)
    for name in ("workspace", "home"):
        assert (path / name).stat().st_uid == 1000 and (path / name).stat().st_gid == 1000
    assert (path / "tmp").stat().st_mode & 0o7777 == 0o1777


@pytest.fixture(params=["loop", "helper"])
def mounting(request):
    """Keyword arguments of ``make_disk`` for the two modes that mount."""
    if request.param == "loop":
        return {"mode": "loop"}
    engine, base = request.getfixturevalue("engine"), request.getfixturevalue("base")
    return {"mode": "helper", "helper": helper_shell(engine, base)}


@pytest.mark.engine
def test_limit_is_the_kernels(tmp_path, mounting):
    with make_disk(tmp_path, 30, 1000, 1000, **mounting) as disk:
        assert disk.mode == mounting["mode"]
        check_layout(disk.path)
        assert mounts_under(tmp_path) == [str(disk.path)]
        with pytest.raises(OSError, match="No space left"):
            (disk.path / "workspace" / "x").write_bytes(bytes(40_000_000))
        flags = os.statvfs(disk.path).f_flag
        assert flags & os.ST_NOSUID and flags & os.ST_NODEV
    assert not mounts_under(tmp_path) and not loops_under(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.engine
def test_a_large_disk_costs_nothing_until_it_is_used(tmp_path):
    with make_disk(tmp_path, 10_000, 1000, 1000, mode="loop"):
        assert used_bytes(tmp_path) < 30_000_000


@pytest.mark.engine
def test_closing_twice_and_while_in_use(tmp_path):
    disk = make_disk(tmp_path, 20, 1000, 1000, mode="loop")
    with (disk.path / "workspace" / "open").open("w"):
        disk.close()
        assert not mounts_under(tmp_path)
    disk.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.engine
def test_reaping_of_whatever_is_left(tmp_path):
    whole = make_disk(tmp_path, 20, 1000, 1000, mode="loop")
    (tmp_path / "unfinished.img").write_bytes(b"")
    watched = tmp_path / "plain"
    (watched / "workspace").mkdir(parents=True)
    # Attached, and unmounted behind its back: what a reboot of the engine's host half-way leaves.
    detached = tmp_path / "attached.img"
    detached.write_bytes(bytes(1_000_000))
    subprocess.run(["losetup", "-f", str(detached)], check=True)
    assert loops_under(tmp_path)
    assert reap_disks(tmp_path) == 4
    assert not mounts_under(tmp_path) and not loops_under(tmp_path) and list(tmp_path.iterdir()) == []
    whole.close()


@pytest.mark.engine
@pytest.mark.parametrize("really", [True, False])
def test_a_device_that_went_by_itself_is_no_error(tmp_path, monkeypatch, really):
    folder, tools = tmp_path / "run", tmp_path / "bin"
    folder.mkdir()
    tools.mkdir()
    (folder / "a.img").write_bytes(bytes(1_000_000))
    subprocess.run(["losetup", "-f", str(folder / "a.img")], check=True)
    real = shutil.which("losetup")
    detach = f'{real} "$@"; exit 1' if really else "exit 1"
    (tools / "losetup").write_text(f'#!/bin/sh\nif test "$1" = -d; then {detach}; fi\nexec {real} "$@"\n')
    (tools / "losetup").chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
        assert reap_disks(folder) == int(really)
    reap_disks(folder)
    assert not loops_under(folder)


def test_watched(tmp_path):
    over = threading.Event()
    with make_disk(tmp_path, 2, os.getuid(), os.getgid(), mode="watched", over=over.set) as disk:
        (disk.path / "home" / "small").write_bytes(bytes(1_000_000))
        assert not over.wait(1.5)
        (disk.path / "tmp" / "large").write_bytes(bytes(3_000_000))
        assert over.wait(300)
    assert list(tmp_path.iterdir()) == []


def test_watched_may_be_closed_by_what_it_calls(tmp_path):
    closed = threading.Event()
    disk = make_disk(tmp_path, 1, os.getuid(), os.getgid(), mode="watched", over=lambda: (disk.close(), closed.set()))
    (disk.path / "home" / "large").write_bytes(bytes(3_000_000))
    assert closed.wait(300)


def test_watched_is_closed_as_far_as_this_user_may(tmp_path, monkeypatch):
    def refuses(script, arguments):
        raise EngineError("rm: Permission denied")

    monkeypatch.setattr("containers.disk.host_shell", refuses)
    make_disk(tmp_path, 10, 1000, 1000, mode="watched").close()
    assert list(tmp_path.iterdir()) == []


def test_best_mode_is_found_by_trying(tmp_path, monkeypatch):
    def refuses(script, arguments):
        raise EngineError("no loop devices here")

    monkeypatch.setattr("containers.disk.os.geteuid", lambda: 1000)
    assert best_mode(tmp_path) == "watched"
    with pytest.raises(EngineError, match=r"helper: no loop devices here"):
        make_disk(tmp_path, 16, 1000, 1000, mode="helper", helper=refuses)
    with pytest.raises(EngineError, match="none was given"):
        make_disk(tmp_path, 16, 1000, 1000, mode="helper")


@pytest.mark.engine
def test_root_gets_the_strictest(tmp_path):
    assert best_mode(tmp_path) == "loop"
