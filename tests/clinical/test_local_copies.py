"""A copy on this machine: used in place, and a draw is made anew once what it was made of has changed."""

import gzip
import io
import os
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace

import ehrshot
import mimic
import pytest

from categories.catalog import find_task
from categories.sources import download
from categories.sources.errors import NoRoomError, SourceError
from categories.sources.readiness import sources_digest
from categories.sources.settings import Settings
from categories.sources.spec import find_source
from categories.staging import StageRequest, staged

TASK = "ehr_data_quality/inconsistency"
DEMO = find_source("mimic_iv_demo")


def lay_out(files: dict[str, bytes], folder: Path) -> Path:
    for name, body in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)
    return folder


@pytest.fixture
def digest(tmp_path):
    """Return a function that returns what the cache's key says of the sources now."""
    return lambda: sources_digest(find_task(TASK), Settings.load(), tmp_path / "cache" / "sources")


def test_a_changed_copy_makes_a_new_draw_and_an_unchanged_one_none(user, tmp_path, monkeypatch) -> None:
    copy = lay_out(mimic.files(), tmp_path / "copy")
    monkeypatch.setenv(DEMO.folder_variable, str(copy))
    request = StageRequest(find_task(TASK), "0", 0, "small", "clinical")

    def made() -> tuple[str, str]:
        with staged(request, tmp_path / "cache") as draw:
            return draw.folder.name, draw.content_digest

    first = made()
    (copy / "notes.txt").write_text("a file that no draw is made of")
    assert made() == first
    table = copy / "hosp" / "d_labitems.csv.gz"
    table.write_bytes(gzip.compress(gzip.decompress(table.read_bytes()).replace(b"Blood", b"Serum")))
    second = made()
    assert second[0] != first[0]
    assert second[1] != first[1]
    assert made() == second


def test_copy_and_download_are_two_draws(user, tmp_path, monkeypatch, digest) -> None:
    fetched = digest()
    monkeypatch.setenv(DEMO.folder_variable, str(tmp_path / "one"))
    one = digest()
    monkeypatch.setenv(DEMO.folder_variable, str(tmp_path / "other"))
    assert len({fetched, one, digest()}) == 3
    monkeypatch.delenv(DEMO.folder_variable)
    assert digest() == fetched


def test_a_file_that_is_older_now_has_changed_and_one_that_is_away_has_not(
    user, tmp_path, monkeypatch, digest, shelf
) -> None:
    copy = lay_out({"hosp/a.csv.gz": b"rows"}, tmp_path / "copy")
    monkeypatch.setenv(DEMO.folder_variable, str(copy))
    unused = digest()
    shelf().file("mimic_iv_demo", "hosp/a.csv.gz")
    assert digest() == unused, "using it changes nothing"
    told = [unused]
    os.utime(copy / "hosp" / "a.csv.gz", (1, 1))
    told.append(digest())
    assert told[0] != told[1]
    copy.rename(tmp_path / "unplugged")
    assert digest() == told[-1]
    (tmp_path / "unplugged").rename(copy)
    assert digest() == told[-1]


def test_another_table_of_hashes_is_another_draw(user, tmp_path, digest) -> None:
    task = find_task("xray_report_correction/case_01")
    table = tmp_path / "hashes.csv"
    with (user / "sources.toml").open("a") as file:
        file.write(f'[mimic_cxr_jpg]\ntable = "{table}"\n')
    told = []
    for body in ("kind,real,hash\n", "kind,real,hash\nsubject,1,a\n"):
        table.write_text(body)
        told.append(sources_digest(task, Settings.load(), tmp_path))
    assert told[0] != told[1]


def test_members_of_a_copys_archive_are_unpacked_once_also_by_two_at_once(user, shelf, tmp_path, monkeypatch) -> None:
    copy = lay_out({ehrshot.ARCHIVE: ehrshot.archive()}, tmp_path / "copy")
    monkeypatch.setenv("HAB_SUITE_EHRSHOT_DIR", str(copy))
    found: list[dict[str, Path]] = []
    wanted = ["data/ehrshot.csv", "splits/person_id_map.csv"]
    threads = [
        threading.Thread(target=lambda: found.append(shelf().unpacked("ehrshot", ehrshot.ARCHIVE, wanted)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    with zipfile.ZipFile(io.BytesIO(ehrshot.archive())) as archive:
        for name in wanted:
            inner = next(n for n in archive.namelist() if n.endswith(name))
            assert {paths[name].read_bytes() for paths in found} == {archive.read(inner)}
            assert found[0][name].stat().st_mode & 0o077 == 0
    times = {name: path.stat().st_mtime_ns for name, path in found[0].items()}
    again = shelf().unpacked("ehrshot", ehrshot.ARCHIVE, wanted)
    assert {name: path.stat().st_mtime_ns for name, path in again.items()} == times
    os.utime(copy / ehrshot.ARCHIVE, (1, 1))
    assert not set(shelf().unpacked("ehrshot", ehrshot.ARCHIVE, wanted).values()) & set(found[0].values())


def test_a_damaged_archive_and_a_small_disk_are_said(user, shelf, tmp_path, monkeypatch) -> None:
    copy = lay_out({ehrshot.ARCHIVE: b"PK\x03\x04 cut off"}, tmp_path / "copy")
    monkeypatch.setenv("HAB_SUITE_EHRSHOT_DIR", str(copy))
    with pytest.raises(SourceError, match=r"is no whole zip archive .*replace it with the published one"):
        shelf().unpacked("ehrshot", ehrshot.ARCHIVE, ["data/ehrshot.csv"])
    (copy / ehrshot.ARCHIVE).write_bytes(ehrshot.archive())
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(NoRoomError, match="point HAB_SUITE_CACHE at a larger disk"):
        shelf().unpacked("ehrshot", ehrshot.ARCHIVE, ["data/ehrshot.csv"])
    assert not list((tmp_path / "cache").rglob("ehrshot.csv*"))
