"""Every refusal says what next: a command, a variable, a page, or to try again; none is a riddle to who meets it."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hosts import BucketHost, HubHost, PhysioNetHost, RedivisHost, Reply, WebHost
from test_local_copies import lay_out

from categories.catalog import find_task
from categories.clinical_trial_matching.clinical import read_grades, read_topic
from categories.clinical_trial_matching.registry import rename
from categories.ct_abnormality.clinical import REPORTS, report_of
from categories.ct_abnormality.nifti import read_volume
from categories.ehr_data_quality.world import TABLES
from categories.sources.errors import SourceError
from categories.sources.spec import find_source
from categories.staging import StageRequest, StagingError, staged
from categories.tumor_area_selection.mask import read_mask
from categories.xray_report_correction.clinical import known_hashes, read_film

NEXT = re.compile(r"try again|run again|`hab-suite|HAB_SUITE_\w+|https://\S+|mend|sources\.toml|be removed|remove ")
SLIDE = "images/tumor_076.tif"


def no_file(make: Callable[..., object], source: str, name: str):
    """A host of the source that holds nothing of that name."""

    def of(serve, agree, shelf) -> None:
        agree(source)
        serve(source, make())
        shelf().file(source, name)

    return of


def bucket(faults: Callable[[BucketHost], None]):
    def of(serve, agree, shelf) -> None:
        agree("camelyon16")
        host = serve("camelyon16", BucketHost({f"CAMELYON16/{SLIDE}": b"slide" * 50_000}))
        faults(host)
        shelf().file("camelyon16", SLIDE)

    return of


def members(body: bytes):
    def of(serve, agree, shelf) -> None:
        agree("clinicaltrials_2021")
        serve("clinicaltrials_2021", WebHost({"part1.zip": body}))
        shelf().members("clinicaltrials_2021", ["part1.zip"], ["NCT00000001.xml"])

    return of


PROVOKED = {
    "404 of a bucket": no_file(lambda: BucketHost({}), "camelyon16", SLIDE),
    "404 of PhysioNet": no_file(lambda: PhysioNetHost("mimic-iv-demo/2.2", {}), "mimic_iv_demo", "hosp/none.csv.gz"),
    "404 of the web": no_file(lambda: WebHost({}), "trec_ct_2021", "topics2021.xml"),
    "404 of the hub": no_file(lambda: HubHost("ibrahimhamamci/CT-RATE", {}, token="t"), "ct_rate", REPORTS),
    "not in the listing": no_file(
        lambda: RedivisHost(find_source("ehrshot").path, {"b": b""}, token="t"), "ehrshot", "a"
    ),
    "410": bucket(lambda host: host.faults.first.append(Reply(410))),
    "always busy": bucket(lambda host: host.faults.first.extend([Reply(503)] * 9)),
    "never lasts": bucket(lambda host: host.faults.cuts.extend([0] * 9)),
    "too long": bucket(lambda host: setattr(host.faults, "extra", 9)),
    "too short": bucket(lambda host: setattr(host.faults, "missing", 9)),
    "no archive": members(b"<html>log in</html>" * 99),
    "terms not accepted": lambda serve, agree, shelf: shelf().file("camelyon16", SLIDE),
    "no such source": lambda serve, agree, shelf: shelf().file("camelyon17", SLIDE),
}


@pytest.mark.parametrize("name", PROVOKED)
def test_what_a_source_refuses_says_what_next(name: str, serve, agree, shelf, monkeypatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "t")
    monkeypatch.setenv("REDIVIS_API_TOKEN", "t")
    with pytest.raises(SourceError) as caught:
        PROVOKED[name](serve, agree, shelf)
    assert NEXT.search(str(caught.value)), caught.value
    if name.startswith(("404", "not in")):
        for word in (
            r"HAB_SUITE_\w+_URL",
            r"HAB_SUITE_\w+_DIR",
            r"its page: https://",
            r"Tasks affected: \w+ \(\d+ tasks",
        ):
            assert re.search(word, str(caught.value)), word


def test_offline_and_a_file_missing_in_a_copy_say_what_next(user, shelf, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HAB_SUITE_OFFLINE", "1")
    with pytest.raises(SourceError, match=r"run once without, or name a copy in HAB_SUITE_CAMELYON16_DIR"):
        shelf().file("camelyon16", SLIDE)
    monkeypatch.setenv("HAB_SUITE_CAMELYON16_DIR", str(tmp_path))
    with pytest.raises(SourceError, match=r"HAB_SUITE_CAMELYON16_DIR names the folder .*or unset it to fetch"):
        shelf().file("camelyon16", SLIDE)


TEXT = b"neither table nor picture"
UNREADABLE: dict[str, Callable[[Path], object]] = {
    "reports": lambda path: report_of(path, "valid_1_a_1"),
    "topics": lambda path: read_topic(path, "1"),
    "judgements": lambda path: read_grades(path, "1"),
    "trial": lambda path: rename(path, str),
    "volume": read_volume,
    "mask": lambda path: read_mask(path, 4096, 4096),
    "film": lambda path: read_film(path, small=False),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_of_another_form_names_its_page_tasks_and_what_next(name: str, tmp_path) -> None:
    path = tmp_path / "file"
    path.write_bytes(TEXT)
    with pytest.raises(SourceError) as caught:
        UNREADABLE[name](path)
    for word in ("file ", "https://", "is then fetched anew", "HAB_SUITE_", "Tasks affected: "):
        assert word in str(caught.value), word
    assert "neither table" not in str(caught.value), "no content is quoted"


def test_a_wrong_table_of_hashes_says_how_to_do_without(tmp_path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n")
    with pytest.raises(SourceError, match=r"mend it, or take `table` out of sources\.toml"):
        known_hashes(tmp_path / "t.csv")


def test_a_crash_of_a_preparation_tells_its_way_and_what_next_and_no_record(user, tmp_path, monkeypatch) -> None:
    names = [f"{folder}/{name}.csv.gz" for folder, tables in TABLES.items() for name in tables]
    body = gzip.compress(b"subject_id,gender\n10,Zebediah\n", mtime=0)
    copy = lay_out(dict.fromkeys(names, body), tmp_path / "copy")
    monkeypatch.setenv("HAB_SUITE_MIMIC_IV_DEMO_DIR", str(copy))
    request = StageRequest(find_task("ehr_data_quality/combined"), "0", 0, "small", "clinical")
    with pytest.raises(StagingError) as caught, staged(request, tmp_path / "cache"):
        pass
    message = str(caught.value)
    assert re.search(r"Error at clinical\.py, line \d+ > \w+\.py, line \d+", message), message
    assert find_source("mimic_iv_demo").agreement in message
    assert "report this line" in message
    assert "Zebediah" not in message
