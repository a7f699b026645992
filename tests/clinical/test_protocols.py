"""Each source's protocol as the provider documents it: lists, heads, refusals, redirects, archives by ranges."""

import hashlib
import io
import random
import sys
import types
import zipfile

import pytest
from hosts import BucketHost, HubHost, PhysioNetHost, RedivisHost, WebHost

from categories.sources.credentials import find_credentials
from categories.sources.errors import ChangedError, NotReadyError, RefusedError, SourceError
from categories.sources.settings import Settings
from categories.sources.spec import find_source, load_sources, tasks_of

VOLUME = "dataset/valid_fixed/valid_1/valid_1_a/valid_1_a_1.nii.gz"
REPORTS = "dataset/radiology_text_reports/validation_reports.csv"
BODY = random.Random(6).randbytes(900_000)
SECRET = "hf_not-a-real-token"


@pytest.fixture
def hub(serve, agree, monkeypatch):
    agree("ct_rate")
    monkeypatch.setenv("HF_TOKEN", SECRET)
    files = {VOLUME: BODY, REPORTS: b"VolumeName,Findings_EN\n", VOLUME.replace("valid_1_a_1", "valid_1_a_2"): b"x" * 9}
    return serve("ct_rate", HubHost("ibrahimhamamci/CT-RATE", files, token=SECRET))


def test_the_hub_leads_to_a_store_that_never_sees_the_token(hub, shelf) -> None:
    assert shelf().file("ct_rate", VOLUME).read_bytes() == BODY
    assert shelf().file("ct_rate", REPORTS).read_bytes().startswith(b"VolumeName")
    assert hub.store.asked
    assert all("authorization" not in one.headers for one in hub.store.asked)
    assert all(one.headers["authorization"] == f"Bearer {SECRET}" for one in hub.asked)
    entry = shelf().manifest(find_source("ct_rate")).entries()[VOLUME]
    assert (entry["known"], entry["sha256"]) == ("source", hashlib.sha256(BODY).hexdigest())


def test_the_hub_resumes_at_the_store(hub, shelf) -> None:
    hub.store.faults.cuts = [300_000]
    assert shelf().file("ct_rate", VOLUME).read_bytes() == BODY
    assert hub.store.gets()[-1].headers["range"].startswith("bytes=")


def test_a_data_set_that_was_renamed_is_followed_to(hub, shelf) -> None:
    hub.former, hub.repository = hub.repository, "someone/CT-RATE-2"
    assert shelf().file("ct_rate", VOLUME).read_bytes() == BODY
    assert shelf().file("ct_rate", REPORTS).read_bytes().startswith(b"VolumeName")


def test_the_hub_lists_page_by_page(hub, shelf) -> None:
    assert shelf().listing("ct_rate", "dataset/valid_fixed/") == sorted(n for n in hub.files if "valid_fixed" in n)
    assert shelf().listing("ct_rate") == sorted(hub.files)


def test_a_gate_that_was_not_passed_is_no_wrong_token(hub, shelf) -> None:
    hub.accepted = False
    with pytest.raises(RefusedError, match="has not accepted the data set's conditions"):
        shelf().file("ct_rate", VOLUME)
    hub.accepted, hub.token = True, "another"
    with pytest.raises(RefusedError, match="the token is wrong or out of date") as caught:
        shelf().file("ct_rate", VOLUME)
    assert "HF_TOKEN" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_nothing_on_the_disk_holds_a_credential(hub, shelf, tmp_path) -> None:
    shelf().file("ct_rate", VOLUME)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


def test_physionet_tells_a_wrong_password_from_a_missing_signature(serve, agree, shelf, monkeypatch) -> None:
    agree("mimic_cxr_jpg")
    host = serve("mimic_cxr_jpg", PhysioNetHost("mimic-cxr-jpg/2.1.0", {"files/p10/x.jpg": b"jpg"}, users={"ada": "w"}))
    with pytest.raises(NotReadyError, match=r"PN_USER and PN_PASS \(or PHYSIONET_USERNAME and PHYSIONET_PASSWORD"):
        shelf().file("mimic_cxr_jpg", "files/p10/x.jpg")
    assert host.asked == []
    monkeypatch.setenv("PHYSIONET_USERNAME", "ada")
    monkeypatch.setenv("PHYSIONET_PASSWORD", "no")
    with pytest.raises(RefusedError, match="user name or password is wrong"):
        shelf().file("mimic_cxr_jpg", "files/p10/x.jpg")
    monkeypatch.setenv("PHYSIONET_PASSWORD", "w")
    host.signed.clear()
    with pytest.raises(RefusedError, match="has not signed the project's data use agreement"):
        shelf().file("mimic_cxr_jpg", "files/p10/x.jpg")
    host.signed.add("ada")
    assert shelf().file("mimic_cxr_jpg", "files/p10/x.jpg").read_bytes() == b"jpg"


def test_a_login_page_is_never_taken_for_a_file(serve, agree, shelf, monkeypatch, tmp_path) -> None:
    agree("mimic_cxr")
    host = serve("mimic_cxr", PhysioNetHost("mimic-cxr/2.1.0", {"a.txt": b"report"}, users={"ada": "w"}))
    host.login_page = True
    monkeypatch.setenv("PN_USER", "ada")
    monkeypatch.setenv("PN_PASS", "wrong")
    with pytest.raises(RefusedError, match="a web page came instead") as caught:
        shelf().file("mimic_cxr", "a.txt")
    assert "PN_USER and PN_PASS" in str(caught.value)
    assert not list((tmp_path / "cache").rglob("a.txt*"))
    monkeypatch.setenv("PN_PASS", "w")
    assert shelf().file("mimic_cxr", "a.txt").read_bytes() == b"report"


def test_an_open_project_needs_no_password_and_ignores_netrc(serve, agree, shelf, monkeypatch, tmp_path) -> None:
    agree("mimic_iv_demo")
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login ada password from-netrc\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    host = serve("mimic_iv_demo", PhysioNetHost("mimic-iv-demo/2.2", {"hosp/a.csv.gz": b"1", "icu/b.csv.gz": b"2"}))
    assert shelf().listing("mimic_iv_demo", "hosp/") == ["hosp/a.csv.gz"]
    assert [path.read_bytes() for path in shelf().files("mimic_iv_demo", ["icu/b.csv.gz", "hosp/a.csv.gz"])] == [
        b"2",
        b"1",
    ]
    assert all("authorization" not in one.headers for one in host.asked)
    with pytest.raises(SourceError, match="is not there"):
        shelf().file("mimic_iv_demo", "hosp/none.csv.gz")


def test_a_bucket_is_listed_unsigned(serve, agree, shelf) -> None:
    agree("camelyon16")
    files = {f"CAMELYON16/masks/tumor_{n:03}_mask.tif": b"m" for n in range(5)} | {"CAMELYON16/a & b.txt": b"t"}
    serve("camelyon16", BucketHost(files))
    assert len(shelf().listing("camelyon16", "masks/")) == 5
    assert shelf().listing("camelyon16", "a ") == ["a & b.txt"]
    assert shelf().file("camelyon16", "a & b.txt").read_bytes() == b"t"
    with pytest.raises(SourceError, match="is not there"):
        shelf().file("camelyon16", "images/none.tif")


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for name, body in files.items():
            made.writestr(name, body)
    return out.getvalue()


@pytest.fixture
def snapshot(serve, agree):
    agree("clinicaltrials_2021")
    rng = random.Random(7)
    parts = {}
    for part in (1, 2):
        trials = {f"p{part}/NCT{part:04}xxxx/NCT{part:04}{n:04}.xml": rng.randbytes(20_000) for n in range(150)}
        parts[f"part{part}.zip"] = zipped(trials, zipfile.ZIP_STORED if part == 2 else zipfile.ZIP_DEFLATED)
    return serve("clinicaltrials_2021", WebHost(parts))


WANTED = ["NCT00010003.xml", "NCT00010149.xml", "NCT00020000.xml", "NCT00020149.xml"]


def test_members_come_by_ranges_and_the_archives_stay_where_they_are(snapshot, shelf) -> None:
    found = shelf().members("clinicaltrials_2021", ["part1.zip", "part2.zip"], [*WANTED, "NCT09999999.xml"])
    assert sorted(found) == sorted(WANTED)
    for name, path in found.items():
        part = "part1.zip" if name.startswith("NCT0001") else "part2.zip"
        with zipfile.ZipFile(io.BytesIO(snapshot.files[part])) as archive:
            inner = next(n for n in archive.namelist() if n.endswith(name))
            assert path.read_bytes() == archive.read(inner)
    assert snapshot.sent_bytes < sum(map(len, snapshot.files.values())) / 2
    assert all("range" in one.headers for one in snapshot.gets())
    before = len(snapshot.asked)
    assert shelf().members("clinicaltrials_2021", ["part1.zip"], WANTED[:2]).keys() == set(WANTED[:2])
    assert len(snapshot.asked) == before, "what is there is not asked for again"


def test_a_cut_member_is_gone_on_from(snapshot, shelf) -> None:
    shelf().members("clinicaltrials_2021", ["part1.zip"], WANTED[:1])
    snapshot.faults.cuts = [5_000]
    assert shelf().members("clinicaltrials_2021", ["part1.zip"], WANTED[:2]).keys() == set(WANTED[:2])


def test_a_damaged_member_is_refused_and_nothing_of_it_stays(snapshot, shelf, tmp_path) -> None:
    shelf().members("clinicaltrials_2021", ["part2.zip"], [WANTED[2]])
    damaged = bytearray(snapshot.files["part2.zip"])
    at = damaged.rindex(b"NCT00020100.xml", 0, damaged.index(b"PK\x01\x02")) + 500
    damaged[at] ^= 255
    snapshot.etag = lambda _: "same"
    snapshot.files["part2.zip"] = bytes(damaged)
    index = next((tmp_path / "cache").rglob("part2.zip.json"))
    index.unlink()
    with pytest.raises(ChangedError, match="check sum"):
        shelf().members("clinicaltrials_2021", ["part2.zip"], ["NCT00020100.xml"])
    assert not list((tmp_path / "cache").rglob("NCT00020100*"))


def test_another_archive_under_the_same_name_is_refused(snapshot, shelf) -> None:
    shelf().members("clinicaltrials_2021", ["part1.zip"], WANTED[:1])
    snapshot.files["part1.zip"] = zipped({"x/NCT00010149.xml": b"other"})
    with pytest.raises(ChangedError, match="archive changed"):
        shelf().members("clinicaltrials_2021", ["part1.zip"], WANTED[:2])


def test_what_is_no_archive_is_said_to_be_none(snapshot, shelf) -> None:
    snapshot.files["part1.zip"] = b"<html>login</html>" * 100
    with pytest.raises(SourceError, match="not a zip file"):
        shelf().members("clinicaltrials_2021", ["part1.zip"], WANTED[:1])


@pytest.fixture
def redivis(serve, agree, monkeypatch):
    agree("ehrshot")
    monkeypatch.setenv("REDIVIS_API_TOKEN", "redivis-word")
    archive = zipped({"EHRSHOT_ASSETS/splits/person_id_map.csv": b"omop_person_id,split\n1,train\n" * 4000})
    host = RedivisHost(
        find_source("ehrshot").path, {"EHRSHOT_ASSETS.zip": archive, "b.txt": BODY}, token="redivis-word"
    )
    return serve("ehrshot", host)


def test_redivis_lists_files_by_id_and_gives_them_by_ranges(redivis, shelf) -> None:
    assert shelf().listing("ehrshot") == ["EHRSHOT_ASSETS.zip", "b.txt"]
    redivis.faults.cuts = [400_000]
    assert shelf().file("ehrshot", "b.txt").read_bytes() == BODY
    found = shelf().members("ehrshot", ["EHRSHOT_ASSETS.zip"], ["person_id_map.csv"])
    assert found["person_id_map.csv"].read_bytes().startswith(b"omop_person_id")


def test_redivis_refuses_in_words(redivis, shelf, monkeypatch) -> None:
    redivis.granted = False
    with pytest.raises(RefusedError, match="this account has no access"):
        shelf().listing("ehrshot")
    monkeypatch.setenv("REDIVIS_API_TOKEN", "wrong")
    with pytest.raises(RefusedError, match="REDIVIS_API_TOKEN"):
        shelf().listing("ehrshot")


def test_damage_on_the_way_from_redivis_is_noticed(redivis, shelf) -> None:
    listing = redivis._listing()
    redivis._listing = lambda: listing
    redivis.files["b.txt"] = bytes(reversed(BODY))
    with pytest.raises(ChangedError, match="md5 is"):
        shelf().file("ehrshot", "b.txt")


def test_a_credential_is_found_in_the_environment_then_the_file_then_the_keyring(user, tmp_path, monkeypatch) -> None:
    source = find_source("ct_rate")
    env_file = Settings.load().env_file
    assert find_credentials(source, env_file) is None
    ring = types.ModuleType("keyring")
    ring.get_password = lambda service, name: f"{service}-{name}"
    ring.__spec__ = types.SimpleNamespace(name="keyring")
    monkeypatch.setitem(sys.modules, "keyring", ring)
    assert find_credentials(source, env_file) == ("hab-suite-HF_TOKEN",)
    env_file.write_text("# mine\nexport HF_TOKEN='from file'\nbroken line\n")
    assert find_credentials(source, env_file) == ("from file",)
    monkeypatch.setenv("HF_TOKEN", "from environment")
    assert find_credentials(source, env_file) == ("from environment",)
    assert find_credentials(find_source("camelyon16"), env_file) == ()


def test_every_source_says_what_a_user_must_know() -> None:
    for source in load_sources().values():
        assert source.agreement.startswith("https://")
        assert source.endpoint.startswith("https://")
        assert source.size_gb > 0
        assert bool(source.variables) == (source.access != "open")
        assert source.leaves_the_house == (source.access != "open")
        assert tasks_of(source)
    assert len({source.url_variable for source in load_sources().values()}) == len(load_sources())
