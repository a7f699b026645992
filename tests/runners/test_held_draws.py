"""Prepared data are held for as long as a trial works with them, and no longer: without containers."""

import fcntl
import json
from dataclasses import replace

import pytest

from categories.catalog import load_category
from categories.spec import Task
from categories.staging import StageRequest
from categories.store import entries, prune
from containers.box import EngineError
from containers.scripted_engine import Asked, Reply
from results.records import Outcome
from runners.harness import HarnessOptions
from runners.place import Place
from runners.run import Pool
from suite.plan import Contender, plan_trials

CASES = ("one", "two", "three", "four", "five")


def answer(asked: Asked) -> Reply:
    asked.write("/workspace/submission/answer.txt", b"yes")
    return Reply()


def test_a_draw_in_use_is_not_evicted_and_is_let_go_when_its_trial_ends(yard) -> None:
    cache = yard.tmp / "cache"
    left = []

    def agent(asked: Asked) -> Reply:
        prune(cache, 0)
        left.append([entry.folder.name for entry in entries(cache)])
        return answer(asked)

    yard.agent = agent
    yard.run("command")
    assert yard.records[0].outcome is Outcome.PASSED
    assert left == [[StageRequest(yard.task, "s", 0, "full").cache_key()]]
    assert len(prune(cache, 0)) == 1
    assert entries(cache) == []


def test_a_broken_trial_lets_its_draw_go_too(yard) -> None:
    yard.fail = {"open": [EngineError("no room")] * 3}
    yard.run("oracle")
    assert yard.records[0].outcome is Outcome.ENVIRONMENT_ERROR
    prune(yard.tmp / "cache", 0)
    assert entries(yard.tmp / "cache") == []


@pytest.fixture
def five(yard):
    """The toy category with five cases; returns place and jobs of the plan for two agents and two attempts each."""
    (yard.task.category.folder / "cases.toml").write_text("".join(f'[{c}]\ntitle = "Case {c}"\n' for c in CASES))
    category = load_category(yard.task.category.folder)
    tasks = [Task(category=category, case=case) for case in CASES]
    about = {"about": "toy", "content_digest": "d", "seconds": 0.0, "peak_memory_mb": 1.0, "variant": ""}
    for task in tasks:
        draw = yard.tmp / "cache" / "staged" / StageRequest(task, "s", 0, "full").cache_key()
        (draw / "public").mkdir(parents=True)
        (draw / "gold").mkdir()
        (draw / "staged.json").write_text(json.dumps(about))
    agents = [Contender(name, HarnessOptions(command="true")) for name in ("command", "oracle")]
    trials = tuple(plan_trials(tasks, agents, instances=1, attempts=2))
    plan = yard.plan().model_copy(update={"trials": trials, "task_versions": {task.id: "v" for task in tasks}})
    place = replace(yard.place(plan), box_images={task.id: "box" for task in tasks})
    by_id = {task.id: task for task in tasks}
    return place, [replace(job, task=by_id[job.plan.task]) for job in yard.jobs(place)]


def held(place: Place) -> int:
    """Return how many draws somebody holds the lock of."""
    count = 0
    for path in place.cache.staged.glob("*.lock"):
        with path.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                count += 1
    return count


@pytest.mark.parametrize("workers", [1, 2])
def test_no_more_draws_are_held_than_trials_run(yard, five, workers: int) -> None:
    place, jobs = five
    seen = []

    def agent(asked: Asked) -> Reply:
        seen.append(held(place))
        return answer(asked)

    yard.agent = agent
    Pool(place, workers=workers, stop=yard.stop, observer=yard.seen.append).run(jobs)
    assert [record.outcome for record in yard.records] == [Outcome.PASSED] * 20
    assert len(seen) == 10
    assert 1 <= min(seen) <= max(seen) <= workers
    assert held(place) == 0


def test_one_after_another_the_trials_of_a_draw_end_before_the_next_is_made(yard, five) -> None:
    place, jobs = five
    yard.agent = answer
    Pool(place, workers=1, stop=yard.stop, observer=yard.seen.append).run(jobs)
    started = [event.trial_id.split("/")[1] for event in yard.seen if event.kind == "trial_started"]
    assert started == [case for case in CASES for _ in range(4)]
