"""Downloads under the faults of real networks: cut, refused, changed, slow, full, doubled."""

import hashlib
import json
import multiprocessing
import os
import random
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hosts import BucketHost, PhysioNetHost, Reply, WebHost

from categories.sources import download
from categories.sources.errors import ChangedError, CutError, NoRoomError, NotReadyError, RefusedError, SourceError
from categories.sources.settings import Settings
from categories.sources.spec import find_source

BODY = random.Random(5).randbytes(3_000_000)
SLIDE = "images/tumor_076.tif"


@pytest.fixture
def bucket(serve, agree):
    agree("camelyon16")
    return serve("camelyon16", BucketHost({f"CAMELYON16/{SLIDE}": BODY}))


@pytest.fixture
def demo(serve, agree):
    agree("mimic_iv_demo")
    return serve("mimic_iv_demo", PhysioNetHost("mimic-iv-demo/2.2", {"hosp/patients.csv.gz": BODY[:400_000]}))


def leftovers(root: Path) -> list[str]:
    """Return the names of all data files under a cache, whole or not; locks and records are none."""
    kinds = (".lock", "manifest.json")
    files = (p for p in root.rglob("*") if p.is_file() and p.parent.name != "progress")
    return sorted(p.name for p in files if not p.name.endswith(kinds))


@pytest.mark.parametrize("most", [20, 900_000])
def test_three_cuts_at_random_are_gone_on_from_and_the_digest_is_right(bucket, shelf, most: int) -> None:
    cuts = [random.Random(os.urandom(8)).randrange(1, most) for _ in range(3)]
    bucket.faults.cuts = list(cuts)
    path = shelf().file("camelyon16", SLIDE)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == hashlib.sha256(BODY).hexdigest(), cuts
    asked = [one.headers.get("range") for one in bucket.gets()]
    assert len(asked) == 4, cuts
    assert asked[0] is None
    starts = [int(text.removeprefix("bytes=").rstrip("-")) for text in asked[1:]]
    assert starts == sorted(starts)
    assert starts[0] > 0
    assert bucket.sent_bytes < len(BODY) + sum(cuts), "what had come was not asked for again"


def test_a_killed_process_is_gone_on_from_by_the_next(bucket, shelf, tmp_path) -> None:
    bucket.faults.slow_s = 0.2
    child = multiprocessing.get_context("fork").Process(target=lambda: shelf().file("camelyon16", SLIDE))
    child.start()
    part = None
    while part is None or part.stat().st_size < 500_000:
        part = next(iter((tmp_path / "cache").rglob("*.part")), None)
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    had = part.stat().st_size
    bucket.faults.slow_s = 0.0
    path = shelf().file("camelyon16", SLIDE)
    assert path.read_bytes() == BODY
    assert bucket.gets()[-1].headers["range"] == f"bytes={had}-"
    assert leftovers(tmp_path / "cache") == ["tumor_076.tif"]


def test_a_server_without_ranges_sends_all_again(bucket, shelf) -> None:
    bucket.faults.cuts = [700_000]
    bucket.faults.no_ranges = True
    assert shelf().file("camelyon16", SLIDE).read_bytes() == BODY


def test_two_at_once_are_one_download(bucket, shelf) -> None:
    bucket.faults.slow_s = 0.005
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=lambda: shelf().file("camelyon16", SLIDE)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0]
    assert len(bucket.gets()) == 1
    assert shelf().file("camelyon16", SLIDE).read_bytes() == BODY


def test_a_small_disk_is_refused_before_the_first_byte_with_the_number(bucket, shelf, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: SimpleNamespace(free=102_000_000))
    with pytest.raises(NoRoomError, match=r"needs 0\.003 GB .* 0\.102 GB are free"):
        shelf().file("camelyon16", SLIDE)
    assert bucket.gets() == []
    assert leftovers(tmp_path / "cache") == []


@pytest.mark.parametrize(("extra", "missing"), [(100, 0), (0, 100)])
def test_a_wrong_length_is_an_error_and_nothing_stays(bucket, shelf, tmp_path, extra: int, missing: int) -> None:
    bucket.faults.extra, bucket.faults.missing = extra, missing
    with pytest.raises(ChangedError):
        shelf().file("camelyon16", SLIDE)
    assert leftovers(tmp_path / "cache") == []
    bucket.faults.extra = bucket.faults.missing = 0
    assert shelf().file("camelyon16", SLIDE).read_bytes() == BODY


def test_a_file_replaced_during_the_download_is_never_joined(bucket, shelf) -> None:
    fresh = bytes(reversed(BODY))

    def replace() -> None:
        bucket.files[f"CAMELYON16/{SLIDE}"] = fresh

    bucket.faults.cuts, bucket.faults.then = [1_000_000], replace
    assert shelf().file("camelyon16", SLIDE).read_bytes() == fresh


def test_a_file_changed_since_its_first_use_is_refused(bucket, shelf, tmp_path) -> None:
    path = shelf().file("camelyon16", SLIDE)
    path.unlink()
    bucket.files[f"CAMELYON16/{SLIDE}"] = bytes(reversed(BODY))
    with pytest.raises(ChangedError, match="changed at the source since"):
        shelf().file("camelyon16", SLIDE)
    assert leftovers(tmp_path / "cache") == []


def test_content_that_differs_from_the_published_sums_is_refused(demo, shelf, tmp_path) -> None:
    true = hashlib.sha256(demo.files["hosp/patients.csv.gz"]).hexdigest()
    demo.files["SHA256SUMS.txt"] = f"{true} hosp/patients.csv.gz\n".encode()
    demo.files["hosp/patients.csv.gz"] = b"damaged" * 100
    with pytest.raises(ChangedError, match="the source says"):
        shelf().file("mimic_iv_demo", "hosp/patients.csv.gz")
    assert len(demo.gets("patients.csv.gz")) == 2, "tried once more, then given up"
    assert [name for name in leftovers(tmp_path / "cache") if "patients" in name] == []


def test_the_record_says_how_a_digest_is_known(demo, shelf, tmp_path) -> None:
    shelf().file("mimic_iv_demo", "hosp/patients.csv.gz")
    record = json.loads(next((tmp_path / "cache").rglob("manifest.json")).read_text())
    assert record["source"] == "mimic_iv_demo"
    entry = record["files"]["hosp/patients.csv.gz"]
    assert entry["known"] == "source"
    assert entry["sha256"] == hashlib.sha256(demo.files["hosp/patients.csv.gz"]).hexdigest()


def test_busy_servers_are_waited_for_as_they_ask(bucket, shelf) -> None:
    bucket.faults.first = [Reply(429, {"Retry-After": "0"}), Reply(503), Reply(429, {"Retry-After": "1"})]
    began = time.monotonic()
    assert shelf().file("camelyon16", SLIDE).read_bytes() == BODY
    assert time.monotonic() - began >= 1


def test_a_server_that_stays_busy_is_given_up_with_a_word(bucket, shelf) -> None:
    bucket.faults.first = [Reply(503)] * 10
    with pytest.raises(CutError, match="status 503"):
        shelf().file("camelyon16", SLIDE)
    assert len(bucket.asked) == 4


def test_a_silent_connection_is_cut_and_gone_on_from(bucket, shelf) -> None:
    bucket.faults.silent = 1
    assert shelf().file("camelyon16", SLIDE).read_bytes() == BODY
    assert "range" in bucket.gets()[-1].headers


def test_a_line_that_never_lasts_is_given_up_and_what_came_stays(bucket, shelf, tmp_path) -> None:
    bucket.faults.cuts = [200_000, 0, 0, 0, 0, 0]
    with pytest.raises(CutError):
        shelf().file("camelyon16", SLIDE)
    assert leftovers(tmp_path / "cache") == ["tumor_076.tif.part", "tumor_076.tif.part.json"]
    bucket.faults.cuts = []
    assert shelf().file("camelyon16", SLIDE).read_bytes() == BODY


def test_no_more_connections_than_politeness_allows(serve, agree, shelf) -> None:
    agree("camelyon16")
    files = {f"CAMELYON16/images/{number}.tif": BODY[: 300_000 + number] for number in range(9)}
    host = serve("camelyon16", BucketHost(files))
    host.faults.slow_s = 0.02
    paths = shelf().files("camelyon16", [f"images/{number}.tif" for number in range(9)])
    assert [path.stat().st_size for path in paths] == [300_000 + number for number in range(9)]
    assert host.most_at_once <= 3


def test_a_host_that_wants_a_name_gets_one(serve, agree, shelf) -> None:
    agree("trec_ct_2021")
    serve("trec_ct_2021", WebHost({"topics2021.xml": b"<topics/>"}))
    assert shelf().file("trec_ct_2021", "topics2021.xml").read_bytes() == b"<topics/>"


def test_a_pinned_file_must_be_the_pinned_one(serve, agree, shelf) -> None:
    agree("audited_trials")
    name = "clinical_trial_matching_task_6/tests/gold.txt"
    spec = find_source("audited_trials")
    serve("audited_trials", WebHost({f"{spec.path}/{name}": b"NCT00000000\n"}))
    with pytest.raises(ChangedError, match="known is"):
        shelf().file("audited_trials", name)


def test_nothing_is_asked_before_the_terms_are_accepted(serve, user, shelf) -> None:
    host = serve("camelyon16", BucketHost({f"CAMELYON16/{SLIDE}": BODY}))
    with pytest.raises(NotReadyError, match="sources --accept camelyon16"):
        shelf().file("camelyon16", SLIDE)
    assert host.asked == []


def test_offline_uses_what_is_there_and_asks_nothing(bucket, shelf, monkeypatch) -> None:
    monkeypatch.setenv("HAB_SUITE_OFFLINE", "1")
    with pytest.raises(NotReadyError, match="--offline"):
        shelf().file("camelyon16", SLIDE)
    assert bucket.asked == []
    monkeypatch.delenv("HAB_SUITE_OFFLINE")
    shelf().file("camelyon16", SLIDE)
    count = len(bucket.asked)
    monkeypatch.setenv("HAB_SUITE_OFFLINE", "1")
    assert shelf().file("camelyon16", SLIDE).read_bytes() == BODY
    assert len(bucket.asked) == count


def test_a_copy_on_this_machine_is_used_in_place(user, shelf, monkeypatch, tmp_path) -> None:
    copy = tmp_path / "copy" / "images"
    copy.mkdir(parents=True)
    (copy / "tumor_076.tif").write_bytes(b"slide")
    monkeypatch.setenv("HAB_SUITE_CAMELYON16_DIR", str(tmp_path / "copy"))
    assert shelf().file("camelyon16", SLIDE) == copy / "tumor_076.tif"
    assert shelf().listing("camelyon16", "images/") == [SLIDE]
    with pytest.raises(SourceError, match="is not there"):
        shelf().file("camelyon16", "images/tumor_001.tif")


@pytest.mark.parametrize("name", ["../secret", "a//b", "/etc/passwd", "a/./b"])
def test_a_name_stays_within_the_cache(bucket, shelf, name: str) -> None:
    with pytest.raises(SourceError, match="no name of a file"):
        shelf().file("camelyon16", name)


def test_a_settings_file_names_endpoints_and_mistakes_in_it_are_said(user, tmp_path, monkeypatch) -> None:
    (user / "sources.toml").write_text('[camelyon16]\nendpoint = "https://mirror.example/"\n')
    settings = Settings.load()
    source = find_source("camelyon16")
    assert settings.endpoint(source) == "https://mirror.example"
    (user / "sources.toml").write_text("[camelyon]\n")
    with pytest.raises(SourceError, match="no source 'camelyon'"):
        Settings.load()
    (user / "sources.toml").write_text('[download]\nattempts = "many"\n')
    with pytest.raises(SourceError, match=r"download|attempts"):
        Settings.load()


def test_a_wrong_password_names_variable_page_and_tasks_and_leaves_nothing(
    serve, agree, shelf, tmp_path, monkeypatch
) -> None:
    agree("mimic_cxr")
    serve("mimic_cxr", PhysioNetHost("mimic-cxr/2.1.0", {"a.txt": b"report"}, users={"ada": "right-word"}))
    monkeypatch.setenv("PN_USER", "ada")
    monkeypatch.setenv("PN_PASS", "wrong-word")
    with pytest.raises(RefusedError) as caught:
        shelf().file("mimic_cxr", "a.txt")
    message = str(caught.value)
    for word in ("PN_USER and PN_PASS", "https://physionet.org/content/mimic-cxr/2.1.0/", "Tasks affected", "401"):
        assert word in message
    assert "wrong-word" not in message
    assert leftovers(tmp_path / "cache") == []
    assert isinstance(caught.value, NotReadyError)
