"""The run folder: durable, tolerant of crashes, and closed to a second orchestrator."""

import json
import random
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import pytest
import simulate

from results.files import write_atomically
from results.folder import RunFolder, RunFolderError
from results.records import SCHEMA_VERSION, Event, Outcome
from results.schemas import FOLDER, MODELS, schema_text

SMALL = {"ehr_data_quality": simulate.CATEGORIES["ehr_data_quality"]}
HOUSE = Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path):
    plan = simulate.run_plan(simulate.trial_plans(simulate.AGENTS[:1], 1, 2, SMALL))
    return RunFolder.create(tmp_path / "runs" / plan.run_id, plan, "secret seed")


def make(run, number, outcome=Outcome.PASSED, **changes):
    return simulate.record(run.plan, run.plan.trials[number], outcome, random.Random(number), **changes)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_create_and_open(run):
    again = RunFolder.open(run.path)
    assert again.plan == run.plan
    assert again.seed() == "secret seed"
    assert mode(run.seed_file) == 0o600
    assert (run.path / ".gitignore").read_text() == "*\n"
    assert not (run.path / "CONTAINS-REAL-DATA").exists()
    with pytest.raises(RunFolderError, match="exists already"):
        RunFolder.create(run.path, run.plan, "x")


def test_clinical_runs_are_closed_to_others(tmp_path):
    plan = simulate.run_plan(simulate.trial_plans(categories=SMALL), edition="clinical")
    run = RunFolder.create(tmp_path / "r", plan, "0")
    assert mode(run.path) == 0o700
    assert "real patients" in (run.path / "CONTAINS-REAL-DATA").read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no run.json"),
        ("{", "damaged"),
        ("[]", "damaged"),
        ('{"schema_version": 1}', "damaged"),
        (json.dumps({"schema_version": SCHEMA_VERSION + 1}), "update it"),
    ],
)
def test_unreadable_runs_say_why(tmp_path, content, message):
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunFolderError, match=message):
        RunFolder.open(tmp_path)


def test_records_are_the_last_of_each_trial(run):
    first, rescored = make(run, 0, Outcome.FAILED), make(run, 0, Outcome.PASSED)
    run.finish(first)
    run.finish(make(run, 1, Outcome.ENVIRONMENT_ERROR))
    run.append(Event(at=simulate.START, kind="rescored", trial_id=rescored.plan.trial_id, record=rescored))
    records = run.records()
    assert len(records) == 2
    assert records[first.plan.trial_id].outcome is Outcome.PASSED
    assert run.trial(first.plan).read_record() == first, "trial.json is never rewritten"
    assert [t.trial_id for t in run.unfinished()] == [t.trial_id for t in run.plan.trials[2:]]
    assert [event.kind for event in run.events()] == ["trial_ended", "trial_ended", "rescored"]


@pytest.mark.parametrize("cut", [1, 40, 400])
def test_a_torn_line_spoils_only_itself(run, cut):
    run.finish(make(run, 0))
    run.append(Event(at=simulate.START, kind="trial_ended", trial_id=run.plan.trials[1].trial_id, record=make(run, 1)))
    torn = run.events_file.read_bytes()[:-cut]
    run.events_file.write_bytes(torn)
    whole = 2 if cut == 1 else 1
    assert len(RunFolder.open(run.path).records()) == whole
    run.finish(make(run, 2))
    assert len(run.records()) == whole + 1
    assert run.events_file.read_bytes().startswith(torn + b"\n")


def test_a_closed_trial_whose_event_was_lost_is_found(run):
    record = make(run, 3)
    run.trial(record.plan).write_record(record)
    assert run.records() == {record.plan.trial_id: record}
    assert record.plan not in run.unfinished()


def test_threads_append_whole_lines(run):
    event = Event(at=simulate.START, kind="trial_retried", detail="x" * 20_000)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: run.append(event), range(64)))
    assert list(run.events()) == [event] * 64


def test_the_second_orchestrator_is_refused(run):
    code = (
        "import sys; from pathlib import Path; from results.folder import RunFolder\n"
        "with RunFolder.open(Path(sys.argv[1])).lock():\n    print('in', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(run.path)]
    with subprocess.Popen(command, cwd=HOUSE, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"in\n"
        with pytest.raises(RunFolderError, match=rf"process {holder.pid} on "), run.lock():
            pytest.fail("two orchestrators at once")
        holder.kill()
        holder.wait()
    with run.lock():
        pass


def test_unfinished_tries_are_put_aside(run):
    trial = run.trial(run.plan.trials[0])
    trial.begin()
    (trial.agent / "log.txt").write_text("first")
    trial.begin()
    (trial.agent / "log.txt").write_text("second")
    trial.begin()
    assert [path.name for path in trial.tries] == ["1", "2"]
    assert (trial.tries[1] / "agent" / "log.txt").read_text() == "second"
    assert not list(trial.agent.iterdir())
    trial.write_record(make(run, 0))
    for forbidden in (trial.begin, trial.shelve, lambda: trial.write_record(make(run, 0))):
        with pytest.raises(FileExistsError):
            forbidden()


def test_rescoring_gets_a_folder_of_its_own(run):
    trial = run.trial(run.plan.trials[0])
    trial.begin()
    names = []
    for number in range(12):
        folder = trial.next_verifier()
        names.append(folder.name)
        (folder / "verdict.json").write_text(
            json.dumps({"reward": 0, "reason": str(number), "headline": None, "metrics": {}})
        )
    assert names == ["verifier", *(f"verifier.{n}" for n in range(1, 12))]
    assert trial.read_verdict().reason == "11"


@pytest.mark.parametrize("trial_id", ["../x", "/etc/x", "a//b", "a/../../b", "", "a/\0"])
def test_ids_never_lead_out_of_the_folder(run, trial_id):
    with pytest.raises(RunFolderError, match="no trial id"):
        run.trial(trial_id)


def test_a_failed_write_leaves_the_old_file(run, monkeypatch):
    before = run.plan_file.read_bytes()

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(RunFolderError):
        RunFolder.create(run.path, run.plan, "x")
    with pytest.raises(OSError, match="disk full"):
        write_atomically(run.plan_file, "{}")
    assert run.plan_file.read_bytes() == before
    assert not list(run.path.glob(".run.json.*"))


@pytest.mark.parametrize("name", MODELS)
def test_published_schemas_are_those_of_the_models(name):
    assert (FOLDER / f"{name}.schema.json").read_text() == schema_text(name), "run: python -m results.schemas"


def test_files_on_disk_follow_the_schemas(run):
    record = make(run, 0)
    run.finish(record)
    files = {"run": run.plan_file, "trial": run.trial(record.plan).record_file, "event": run.events_file}
    for name, file in files.items():
        jsonschema.validate(json.loads(file.read_text()), json.loads((FOLDER / f"{name}.schema.json").read_text()))
