"""Trials from plan to record, without containers."""

import json
import os
import threading
from pathlib import Path

import pytest

from containers.box import EngineError
from containers.scripted_engine import Asked, Reply
from results.records import Outcome
from runners.archive import HostFolder, members
from runners.collect import collect_submission
from runners.run import Budget, Pool


def answer(word: bytes):
    def agent(asked: Asked) -> Reply:
        asked.write("/workspace/submission/answer.txt", word)
        return Reply(stdout=b"done\n")

    return agent


def test_oracle_passes_and_nop_fails(yard) -> None:
    end = yard.run("oracle", "nop")
    oracle, nop = yard.records
    assert not end.interrupted
    assert (oracle.outcome, oracle.reward) == (Outcome.PASSED, 1)
    assert (nop.outcome, nop.reward, nop.reason) == (Outcome.FAILED, 0, "missing_submission")
    assert [phase.name for phase in oracle.phases] == ["stage", "open_box", "run_agent", "collect", "verify"]
    assert oracle.content_digest == "d"
    assert list(yard.engine.find({})) == []
    assert list((yard.tmp / "cache" / "mnt" / "r1").iterdir()) == []


def test_a_command_sees_data_and_instruction_but_no_telling_mount(yard) -> None:
    seen = {}

    def agent(asked: Asked) -> Reply:
        seen["question"] = asked.read("/workspace/data/question.txt")
        seen["instruction"] = asked.env["HAB_INSTRUCTION"]
        seen["file"] = asked.read(asked.env["HAB_INSTRUCTION_FILE"]).decode()
        return answer(b"yes")(asked)

    yard.agent = agent
    yard.run("command")
    assert yard.records[0].outcome is Outcome.PASSED
    assert seen["question"] == b"?"
    assert (
        seen["instruction"]
        == seen["file"]
        == "Write the word to `/workspace/submission/answer.txt` within 5 minutes.\n"
    )
    box = next(spec for spec in yard.engine.record.specs if spec.image == "box")
    assert box.network == "none"
    assert box.read_only_root
    names = " ".join(str(mount.source.relative_to(yard.tmp)) for mount in box.mounts)
    assert not any(word in names for word in ("toy", "one", "synthetic", "small", "staged", "gold"))
    assert "gold" not in " ".join(mount.target for mount in box.mounts)


def test_timeout_is_judged_but_is_no_pass(yard) -> None:
    def agent(asked: Asked) -> Reply:
        asked.write("/workspace/submission/answer.txt", b"yes")
        return Reply(stdout=b"working\n", hangs=True)

    yard.agent, yard.scale = agent, "small"
    yard.run("command")
    record = yard.records[0]
    assert (record.outcome, record.reason, record.reward) == (Outcome.AGENT_TIMEOUT, "timeout", 1)
    assert record.agent is not None
    assert record.agent.timed_out
    assert (yard.folder.trial(record.plan).agent / "stdout.log").read_bytes() == b"working\n"


def test_a_failing_command_is_an_agent_error_with_its_verdict(yard) -> None:
    yard.agent = lambda asked: (answer(b"yes")(asked), Reply(exit_code=7))[1]
    yard.run("command")
    record = yard.records[0]
    assert (record.outcome, record.reason, record.reward) == (Outcome.AGENT_ERROR, "crash", 1)
    assert record.agent is not None
    assert record.agent.error_class == "crash"


def test_environment_errors_are_retried_and_kept(yard) -> None:
    yard.fail = {"open": [EngineError("no room"), EngineError("no room")]}
    yard.run("oracle")
    record = yard.records[0]
    assert (record.outcome, record.tries) == (Outcome.PASSED, 3)
    assert [event.kind for event in yard.seen].count("trial_retried") == 2
    assert len(yard.folder.trial(record.plan).tries) == 2


def test_three_broken_tries_are_broken_not_failed(yard) -> None:
    yard.fail = {"open": [EngineError("no room")] * 3}
    yard.run("oracle")
    record = yard.records[0]
    assert (record.outcome, record.reason, record.tries, record.reward) == (
        Outcome.ENVIRONMENT_ERROR,
        "open_box",
        3,
        None,
    )
    assert "no room" in record.message


@pytest.mark.parametrize(
    "reply",
    [
        Reply(exit_code=3, stderr=b"gold gold.json: missing"),
        Reply(stdout=b"not json"),
        Reply(stdout=b""),
        Reply(stdout=b'{"reward": 0.5}'),
    ],
)
def test_a_verifier_without_a_verdict_is_broken(yard, reply: Reply) -> None:
    yard.agent = answer(b"yes")
    yard.verifier = lambda _: reply
    yard.run("command")
    record = yard.records[0]
    assert (record.outcome, record.reward, record.tries) == (Outcome.VERIFIER_ERROR, None, 3)


def test_second_cancel_stops_running_trials_and_resume_finds_them(yard) -> None:
    started = threading.Event()

    def agent(asked: Asked) -> Reply:
        started.set()
        return Reply(hangs=True)

    yard.agent = agent
    thread = threading.Thread(target=lambda: (started.wait(300), yard.stop.now()))
    thread.start()
    end = yard.run("command", attempts=3)
    thread.join()
    assert end.interrupted
    assert yard.records == []
    assert len(yard.folder.unfinished()) == 3
    assert [event.kind for event in yard.seen].count("trial_cancelled") == 1
    assert list(yard.engine.find({})) == []


def test_first_stop_lets_running_trials_finish(yard) -> None:
    def agent(asked: Asked) -> Reply:
        yard.stop.no_more.set()
        return answer(b"yes")(asked)

    yard.agent = agent
    end = yard.run("command", attempts=3)
    assert end.interrupted
    assert [record.outcome for record in yard.records] == [Outcome.PASSED]
    assert len(yard.folder.unfinished()) == 2


def test_an_unexpected_error_keeps_its_traceback(yard) -> None:
    def agent(asked: Asked) -> Reply:
        raise KeyError("surprise")

    yard.agent = agent
    yard.run("command")
    record = yard.records[0]
    assert record.outcome is Outcome.ENVIRONMENT_ERROR
    assert record.reason == "run_agent"
    assert "KeyError" in record.message
    assert "Traceback" in (yard.folder.trial(record.plan).path / "error.txt").read_text()


def test_the_journal_holds_every_record(yard) -> None:
    yard.run("oracle", "nop", attempts=2, workers=2)
    lines = (yard.folder.path / "events.jsonl").read_text().splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds[0] == "run_started"
    assert kinds[-1] == "run_ended"
    assert kinds.count("trial_ended") == 4


@pytest.mark.parametrize(
    ("plant", "reason"),
    [
        (lambda s: (s / "answer.txt").symlink_to("/etc/shadow"), "symlink"),
        (lambda s: os.mkfifo(s / "answer.txt"), "not_regular_file"),
        (lambda s: (s / "answer.txt").mkdir(), "not_regular_file"),
        (lambda s: (s / "answer.txt").write_bytes(b"y" * 101), "too_large"),
        (lambda s: (s / "Answer.txt").write_text("yes"), "missing_submission"),
        (lambda s: (s.rmdir(), s.symlink_to("/etc"))[1], "symlink"),
        (lambda s: (s.rmdir(), s.write_text("yes"))[1], "not_regular_file"),
    ],
)
def test_hostile_submissions_are_refused_with_a_reason(yard, plant, reason: str) -> None:
    def agent(asked: Asked) -> Reply:
        folder: Path = asked.box.host_path("/workspace/submission")
        folder.mkdir()
        plant(folder)
        return Reply()

    yard.agent = agent
    yard.run("command")
    record = yard.records[0]
    assert (record.outcome, record.reward, record.reason) == (Outcome.FAILED, 0, reason)
    assert record.submission is not None
    assert record.submission.refused == reason
    if reason == "missing_submission":
        assert "Answer.txt" in record.submission.message


def test_a_sparse_file_is_refused_by_its_header_alone(yard, tmp_path: Path) -> None:
    folder = tmp_path / "handed-in"
    folder.mkdir()
    with (folder / "answer.txt").open("wb") as file:
        file.truncate(1 << 40)  # to read it would take most of an hour
    into = tmp_path / "into"
    collected = collect_submission(HostFolder(folder, "/workspace/submission"), yard.task.category.submission, into)
    assert collected.refused == "too_large"


def test_the_log_is_cut_at_its_cap(yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runners.agent_log.AgentLog.__init__.__defaults__", (1000,), raising=True)
    yard.agent = lambda _: Reply(stdout=b"x" * 5000)
    yard.run("command")
    record = yard.records[0]
    assert record.agent is not None
    assert record.agent.log_cut
    assert record.agent.log_bytes == 1000
    log = (yard.folder.trial(record.plan).agent / "stdout.log").read_bytes()
    assert log.startswith(b"x" * 1000)
    assert b"dropped" in log
    assert len(log) < 1200


def test_budget_admits_by_cpu_and_memory_but_always_one(never: threading.Event) -> None:
    budget = Budget(cpus=2, memory_mb=1000)
    assert budget.take(4, 5000, never)
    done = threading.Event()
    thread = threading.Thread(target=lambda: (budget.take(1, 100, never), done.set()))
    thread.start()
    assert not done.wait(0.4)
    budget.give_back(4, 5000)
    assert done.wait(300)
    thread.join()
    assert budget.take(1, 900, never)
    full = threading.Event()
    threading.Timer(0.3, full.set).start()
    assert not budget.take(1, 1, full)


def test_a_mess_that_cannot_be_cleaned_up_costs_no_verdict(yard) -> None:
    yard.fail = {"remove": [EngineError("the engine is busy")]}
    yard.run("oracle")
    record = yard.records[0]
    assert record.outcome is Outcome.PASSED
    assert any("the box could not be cleaned up" in warning for warning in record.warnings)


def test_text_that_cannot_be_written_is_shown_and_kept_from_the_terminal(yard) -> None:
    def verifier(asked: Asked) -> Reply:
        document = json.loads(yard.judge(asked).stdout) | {
            "message": "\ud83d and \x1b[31mred",
            "details": {"\ud800": ["\ud800"]},
        }
        return Reply(stdout=json.dumps(document).encode())

    yard.agent = answer(b"yes")
    yard.verifier = verifier
    yard.run("command")
    record = yard.records[0]
    assert record.outcome is Outcome.PASSED
    assert "\x1b" not in record.message
    assert "red" in record.message


def test_one_lost_record_does_not_end_the_others(yard, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = yard.plan("oracle", "nop")
    place = yard.place(plan)
    finish = place.folder.finish

    def full(record) -> None:
        if record.plan.harness == "oracle":
            raise OSError("No space left on device")
        finish(record)

    monkeypatch.setattr(place.folder, "finish", full)
    end = Pool(place, workers=1, stop=yard.stop, observer=yard.seen.append).run(yard.jobs(place))
    assert [record.plan.harness for record in yard.records] == ["nop"]
    assert len(end.lost) == 1
    assert "No space left" in end.lost[0]


def test_an_observer_that_breaks_costs_nothing(yard) -> None:
    def broken(_event) -> None:
        raise BrokenPipeError

    yard.seen = type("Sink", (list,), {"append": lambda _self, event: broken(event)})()
    yard.run("oracle")
    assert yard.records[0].outcome is Outcome.PASSED


def test_tries_keep_their_records(yard) -> None:
    yard.fail = {"open": [EngineError("no room")]}
    yard.run("oracle")
    (first,) = yard.folder.trial(yard.records[0].plan).tries
    kept = json.loads((first / "try.json").read_text())
    assert kept["outcome"] == "environment_error"
    assert yard.records[0].tries == 2


def test_a_stop_during_a_retry_leaves_the_trial_to_resume(yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runners.run.QUICK_RETRY_S", (7777.0, 7777.0))
    yard.fail = {"open": [EngineError("no room")]}
    stop = yard.stop.no_more

    class Seen(list):
        def append(self, event) -> None:
            super().append(event)
            if event.kind == "trial_retried":
                threading.Timer(0.2, stop.set).start()  # when it waits, or just before

    yard.seen = Seen()
    end = yard.run("oracle")
    assert end.interrupted
    assert [event.kind for event in yard.seen].count("trial_retried") == 1
    assert yard.records == []
    assert len(yard.folder.unfinished()) == 1


class Cut:
    """A box whose archive breaks off."""

    def __init__(self, whole: bytes, length: int) -> None:
        self.data = whole[:length]

    def get(self, path: str):
        yield self.data


@pytest.mark.parametrize("blocks", [0, 1, 2, 3])
def test_an_archive_that_breaks_off_is_the_engines_fault(tmp_path: Path, yard, blocks: int) -> None:
    folder = tmp_path / "submission"
    folder.mkdir()
    (folder / "answer.txt").write_text("yes" * 300)
    whole = b"".join(HostFolder(folder, "/workspace/submission").get("/workspace/submission"))
    with pytest.raises(EngineError):
        list(members(Cut(whole, blocks * 512), "/workspace/submission"))
    assert len(list(members(Cut(whole, len(whole)), "/workspace/submission"))) == 2
