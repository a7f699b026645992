"""The clinical edition as a user meets it: sources, refusals before anything starts, whole runs in real boxes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from ehrshot import ARCHIVE
from hosts import RedivisHost
from test_clinical_guards import CLINICAL, DRAWS

from categories.catalog import all_tasks, find_task, load_catalog
from categories.sources.agreements import Agreements
from categories.sources.errors import NotReadyError
from categories.sources.settings import Settings
from categories.sources.spec import find_source, load_sources
from containers.endpoints import Upstream
from results.folder import RunFolder
from results.records import Outcome
from runners.harness import HarnessOptions
from runners.harnesses.script import list_probes
from suite.plan import Contender, plan_trials
from suite.scoring import rescore
from suite.sourcing import endpoints_of, require_consent, require_sources
from tests.results import simulate

TITLES = {"category", "source", "access", "GB", "state", "agreement"}


def hab(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hab_suite", *words], capture_output=True, text=True, check=False)


@pytest.fixture
def tasks():
    return {category: find_task(next(t for t in DRAWS if t.startswith(f"{category}/"))) for category in CLINICAL}


def test_sources_prints_the_table_and_says_what_to_do(user) -> None:
    answer = hab("sources")
    assert answer.returncode == 2, "nothing is accepted yet"
    head, *lines = answer.stdout.splitlines()
    assert set(head.split()) >= TITLES
    for category in load_catalog():
        for name in category.clinical_sources:
            source = find_source(name)
            (line,) = (text for text in lines if text.startswith(f"{category.id} ") and f" {name} " in text)
            assert source.access in line
            assert f" {source.size_gb:g} " in line
            assert source.agreement in line
            assert "not ready" in line or source.optional
    assert "hab-suite sources --accept camelyon16" in answer.stdout


def test_terms_are_accepted_once_with_date(user) -> None:
    assert hab("sources", "--accept", "camelyon16").returncode == 2
    kept = json.loads((user / "agreements.json").read_text())["accepted"]["camelyon16"]
    assert kept["at"].endswith("Z")
    assert kept["licence"] == find_source("camelyon16").licence
    rows = {row["source"]: row for row in json.loads(hab("sources", "--json").stdout)}
    assert rows["camelyon16"]["ready"]
    assert rows["camelyon16"]["state"].startswith(f"ready: accepted {kept['at'][:10]}")
    assert not rows["ehrshot"]["ready"]
    assert hab("sources", "--accept", "nonsense").returncode == 2
    assert "no source 'nonsense'" in hab("sources", "--accept", "nonsense").stderr


def test_a_credential_makes_a_source_ready_and_is_shown_nowhere(user, tmp_path, monkeypatch) -> None:
    (tmp_path / ".env").write_text("REDIVIS_API_TOKEN=very-secret-word\n")
    answer = hab("sources", "--accept", "all", "--json")
    rows = {row["source"]: row for row in json.loads(answer.stdout)}
    assert rows["ehrshot"]["ready"]
    doctor = hab("doctor", "--json")
    check = next(c for c in json.loads(doctor.stdout) if c["name"] == "source ehrshot")
    assert check["ok"]
    assert "ehr_event_modelling (6 tasks)" in check["detail"]
    assert " GB" in check["detail"]
    for text in (answer.stdout, answer.stderr, doctor.stdout, (user / "agreements.json").read_text()):
        assert "very-secret-word" not in text


def test_doctor_names_variable_page_tasks_and_size_of_what_is_missing(user) -> None:
    checks = {c["name"]: c for c in json.loads(hab("doctor", "--json").stdout)}
    for source in load_sources().values():
        check = checks[f"source {source.id}"]
        assert f"{source.size_gb:g} GB" in check["detail"]
        if not source.optional:
            assert not check["ok"]
            assert source.agreement in check["repair"]
        for name in source.variables[0] if source.variables else ():
            assert name in check["detail"]


@pytest.mark.engine
def test_a_run_that_is_not_ready_starts_nothing_and_offers_what_is(user, tmp_path) -> None:
    hab("sources", "--accept", "camelyon16")
    out = tmp_path / "runs"
    words = ("--edition", "clinical", "--category", "ehr_event_modelling", "--category", "tumor_area_selection")
    answer = hab("run", "--harness", "oracle", *words, "--out", str(out))
    assert answer.returncode == 2
    for word in ("REDIVIS_API_TOKEN", find_source("ehrshot").agreement, "ehr_event_modelling (6 tasks)"):
        assert word in answer.stderr
    assert "Ready now (10 tasks): --category tumor_area_selection" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not out.exists()


def test_show_says_what_each_edition_is_made_of_and_under_which_licence(user) -> None:
    shown = hab("show", "ehr_format_conversion/mimic_iv_to_meds").stdout
    assert "synthetic: MIMIC-IV-MEDS 0.0.7, source distribution (MIT)" in shown
    for name in ("mimic_iv_demo", "mimic_code"):
        assert f"{find_source(name).title} ({find_source(name).licence})" in shown


def test_a_disk_too_small_for_the_whole_run_is_refused_before_anything_is_asked(
    user, agree, tmp_path, monkeypatch
) -> None:
    agree("camelyon16")
    slides = [task for task in all_tasks() if task.category.id == "tumor_area_selection"]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=20e9))
    with pytest.raises(NotReadyError, match=r"about 25 GB .*\(camelyon16\), 20 GB are free .*HAB_SUITE_CACHE"):
        require_sources(slides)
    require_sources(slides[:7])
    held = tmp_path / "cache" / "sources" / "camelyon16" / "v" / "files"
    held.mkdir(parents=True)
    with (held / "slide.tif").open("wb") as file:
        file.truncate(6_000_000_000)
    require_sources(slides)
    (tmp_path / "copy").mkdir()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    monkeypatch.setenv(find_source("camelyon16").folder_variable, str(tmp_path / "copy"))
    require_sources(slides)


@pytest.mark.engine
def test_a_dry_run_says_what_a_run_would_lack_and_fetches_nothing(user, tmp_path, monkeypatch, agree, serve) -> None:
    host = serve("ehrshot", RedivisHost(find_source("ehrshot").path, {ARCHIVE: b"PK"}, token="word"))
    words = (
        "--edition",
        "clinical",
        "--tasks",
        "ehr_event_modelling/lupus",
        "--dry-run",
        "--out",
        str(tmp_path / "runs"),
    )
    answer = hab("run", "--harness", "oracle", *words)
    assert answer.returncode == 2
    assert "1 trials on 1 tasks" in answer.stdout
    assert "ehrshot: terms not accepted, REDIVIS_API_TOKEN not set; get access at https://" in answer.stderr
    agree("ehrshot")
    monkeypatch.setenv("REDIVIS_API_TOKEN", "word")
    assert hab("run", "--harness", "oracle", *words).returncode == 0
    assert host.asked == []
    assert not (tmp_path / "runs").exists()


@pytest.mark.engine
def test_a_wrong_credential_is_one_message_before_anything_starts(user, serve, tmp_path, monkeypatch, agree) -> None:
    agree("ehrshot")
    host = serve("ehrshot", RedivisHost(find_source("ehrshot").path, {ARCHIVE: b"PK"}, token="the right word"))
    monkeypatch.setenv("REDIVIS_API_TOKEN", "wrong-word")
    out = tmp_path / "runs"
    words = ("--edition", "clinical", "--tasks", "ehr_event_modelling/lupus", "--scale", "small")
    answer = hab("run", "--harness", "oracle", *words, "--out", str(out))
    assert answer.returncode == 2
    assert host.asked
    for word in ("REDIVIS_API_TOKEN", find_source("ehrshot").agreement, "ehr_event_modelling", "(401)"):
        assert word in answer.stderr
    assert "wrong-word" not in answer.stderr + answer.stdout
    assert answer.stderr.count("REDIVIS_API_TOKEN") == answer.stderr.count(find_source("ehrshot").agreement) == 1
    assert not out.exists()
    left = [p for p in (tmp_path / "cache").rglob("*") if p.is_file() and p.suffix not in (".lock", ".json")]
    assert left == []


def plan_of(edition: str = "clinical", **changes):
    task = find_task("ehr_event_modelling/lupus")
    agent = Contender("oracle", options=HarnessOptions())
    trials = tuple(plan_trials([task], [agent], instances=1, attempts=1))
    return simulate.run_plan(trials, edition=edition).model_copy(update={"trials": trials, **changes})


REMOTE = Upstream("openai", "openai", "https://api.example.org/v1", "bearer", key="k")
LOCAL = Upstream("openai", "openai", "http://127.0.0.1:8000/v1", "none")


def test_gated_records_leave_the_house_only_where_that_was_acknowledged(user) -> None:
    plan = plan_of()
    with pytest.raises(NotReadyError, match=r"hab-suite sources --allow ehrshot=api\.example\.org") as caught:
        require_consent(plan, [REMOTE])
    assert "on this machine" in str(caught.value), "the alternative is named"
    require_consent(plan, [LOCAL])
    require_consent(plan, [])
    assert hab("sources", "--allow", "ehrshot=api.example.org").stderr.startswith("acknowledged")
    require_consent(plan, [REMOTE])
    other = Upstream("x", "openai", "https://other.example.org", "bearer")
    with pytest.raises(NotReadyError, match=r"ehrshot=other\.example\.org"):
        require_consent(plan, [REMOTE, other])
    assert Agreements(Settings.load().config).may_send(find_source("ehrshot"), "api.example.org")


def test_an_open_network_is_a_place_that_records_can_go_to(user) -> None:
    plan = plan_of(network="open")
    assert endpoints_of(plan, [LOCAL]) == ["any-host"]
    with pytest.raises(NotReadyError, match="ehrshot=any-host"):
        require_consent(plan, [])
    listed = plan_of(network="packages", options={"package_hosts": "files.example.org mirror.example.org"})
    assert endpoints_of(listed, []) == ["files.example.org", "mirror.example.org"]


def test_a_report_judge_needs_the_reports_sources_acknowledged_and_no_others(user, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.example.org/v1")
    tasks = [find_task("xray_report_correction/case_01"), find_task("ehr_event_modelling/lupus")]
    agent = Contender("oracle", options=HarnessOptions())
    trials = tuple(plan_trials(tasks, [agent], instances=1, attempts=1))
    folder = RunFolder.create(tmp_path / "run", plan_of(trials=trials), "0")
    with pytest.raises(NotReadyError, match=r"--allow mimic_cxr=api\.example\.org") as caught:
        rescore(folder.path, [], llm_judge="gpt-9")
    assert "ehrshot" not in str(caught.value), "their records are not shown to it"


def test_open_records_may_go_anywhere(user) -> None:
    task = find_task("ehr_data_quality/combined")
    agent = Contender("oracle", options=HarnessOptions())
    trials = tuple(plan_trials([task], [agent], instances=1, attempts=1))
    require_consent(plan_of(trials=trials), [REMOTE])


def test_offline_is_ready_where_something_is_here(clinic, stage, monkeypatch, tasks) -> None:
    stage(tasks["ehr_data_quality"].id)
    monkeypatch.setenv("HAB_SUITE_OFFLINE", "1")
    require_sources([tasks["ehr_data_quality"]])
    monkeypatch.setenv("HAB_SUITE_CACHE", "/nonexistent")
    with pytest.raises(NotReadyError, match="offline"):
        require_sources([tasks["ehr_data_quality"]])


@pytest.mark.engine
@pytest.mark.parametrize("category", CLINICAL)
def test_a_run_in_real_boxes(category: str, clinic, tasks, tmp_path) -> None:
    task = tasks[category]
    clinic.open_for(task)
    probes: list[str] = []
    if task.category.image not in ("tabular", "imaging"):  # else the guards run them on the host
        probes = [f"probe:{probe['name']}" for probe in list_probes(task.category.folder)]
    extra = [word for name in ("reference", *probes) for word in ("--harness", name)] if probes else []
    words = ("--harness", "oracle", "--harness", "nop", *extra, "--edition", "clinical", "--scale", "small")
    answer = hab("run", *words, "--tasks", task.id, "--out", str(tmp_path), "--jobs", "2")
    assert answer.returncode == 0, answer.stderr
    folder = RunFolder.open(tmp_path / answer.stdout.splitlines()[-1])
    records = {record.plan.harness: record for record in folder.records().values()}
    assert records["oracle"].outcome is Outcome.PASSED, records["oracle"].message
    assert records["nop"].reason == "missing_submission"
    if probes:  # an honest conversion passes, a cheating one does not
        assert records["reference"].outcome is Outcome.PASSED, records["reference"].message
    for name in probes:
        assert (records[name].outcome, records[name].reward) == (Outcome.FAILED, 0), (name, records[name].message)
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert "real patients" in (folder.path / "CONTAINS-REAL-DATA").read_text()
    secrets = [os.environ[name].encode() for name in ("HF_TOKEN", "PN_PASS", "REDIVIS_API_TOKEN")]
    for path in folder.path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(secret in content for secret in secrets), path
    run = str(folder.path)
    for command in (
        ("report", run),
        ("site", run, "--out", f"{tmp_path}/site"),
        ("export", "parquet", run, "--out", "x"),
    ):
        refused = hab(*command)
        assert refused.returncode == 2
        assert "--redact" in refused.stderr
    rows = json.loads(hab("report", run, "--redact", "--format", "json").stdout)
    assert {row["edition"] for row in rows} == {"clinical"}
    assert Path(tmp_path / "site").exists() is False
