"""The cache keeps finished draws within bounds, and nothing that a killed preparation has left."""

import fcntl
import json
from pathlib import Path

import pytest

from categories import staging
from categories.catalog import find_task
from categories.staging import StageRequest, StagingError, staged
from categories.store import entries, prune

TASK = find_task("ehr_data_quality/combined")


def half_made(cache: Path, name: str) -> Path:
    folder = cache / "staged" / f"{name}.making"
    (folder / "public").mkdir(parents=True)
    (folder / "public" / "events.csv").write_bytes(bytes(1000))
    return folder


def test_what_a_killed_preparation_left_is_removed_whatever_is_to_be_kept(tmp_path: Path) -> None:
    left = half_made(tmp_path, "0123")
    kept = tmp_path / "staged" / "4567"
    kept.mkdir()
    (kept / "staged.json").write_text(json.dumps({"about": "a draw"}))
    assert [(entry.about, entry.size_bytes) for entry in prune(tmp_path, 10**9)] == [
        ("left by a killed preparation", 1000)
    ]
    assert not left.exists()
    assert [entry.about for entry in entries(tmp_path)] == ["a draw"]


def test_a_draw_that_is_being_made_is_left_alone(tmp_path: Path) -> None:
    making = half_made(tmp_path, "0123")
    with (tmp_path / "staged" / "0123.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert prune(tmp_path, 0) == []
    assert making.exists()


def test_a_preparation_that_fails_leaves_nothing_half_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(request: StageRequest, words: dict[str, str], cancel: object) -> dict[str, object]:
        (Path(words["into"]) / "public" / "events.csv").write_bytes(bytes(1000))
        raise StagingError("no space")

    monkeypatch.setattr(staging, "_run_worker", fail)
    with pytest.raises(StagingError, match="no space"), staged(StageRequest(TASK, "0", 0, "small"), tmp_path):
        pass
    assert [path.name for path in (tmp_path / "staged").iterdir() if path.is_dir()] == []
