"""A toy category, and a place for trials on the scripted engine."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from categories.catalog import load_category
from categories.spec import Task
from categories.staging import StageRequest
from containers.box import BoxLimits, EngineInfo
from containers.disk import make_disk
from containers.scripted_engine import Asked, Reply, ScriptedEngine
from results.folder import RunFolder
from results.records import Event, Host, RunPlan, TrialPlan, TrialRecord
from runners.cache import Cache
from runners.harness import HarnessOptions, load_harness
from runners.place import Job, Place, clamp
from runners.run import Pool, RunEnd, Stop
from runners.scene import MAKE_ENV

CATEGORY = """
title = "Toy"
image = "tabular"
editions = ["synthetic"]
[axes]
modality = "text"
workflow_stage = "none"
output_shape = "one word"
scope = "none"
data_access = "one file"
[resources.full]
cpus = 1
memory_mb = 256
storage_mb = 16
agent_timeout_s = 300
verifier_timeout_s = 30
prepare_timeout_s = 30
[resources.small]
cpus = 1
memory_mb = 256
storage_mb = 16
agent_timeout_s = 2
verifier_timeout_s = 30
prepare_timeout_s = 30
[headline]
metric = "right"
direction = "higher"
missing = 0.0
[pass_rule]
numbers = { at_least = 1 }
words = "the word is right at least {at_least} time."
[published_rule]
numbers = { at_least = 0 }
words = "anything."
[submission]
path = "answer.txt"
description = "The word."
max_bytes = 100
"""


@dataclass
class Yard:
    """Everything a runner's test needs, and what it saw."""

    tmp: Path
    task: Task
    agent: Callable[[Asked], Reply] = lambda _: Reply()
    verifier: Callable[[Asked], Reply] | None = None
    fail: dict[str, list[Exception]] = field(default_factory=dict)
    scale: str = "full"
    """At ``small`` an agent has two seconds: for those that are to be stopped."""
    seen: list[Event] = field(default_factory=list)
    stop: Stop = field(default_factory=Stop)
    folder: RunFolder | None = None
    engine: ScriptedEngine | None = None

    def script(self, asked: Asked) -> Reply:
        if "verifiers_hidden" in asked.argv:
            return (self.verifier or self.judge)(asked)
        return Reply() if asked.argv == (MAKE_ENV,) else self.agent(asked)

    def judge(self, asked: Asked) -> Reply:
        """The toy's verifier: the right word is ``yes``."""
        if "perfect" in asked.argv:
            asked.write("/out/answer.txt", b"yes")
            return Reply()
        refused = asked.argv[asked.argv.index("--refused") + 1] if "--refused" in asked.argv else ""
        right = not refused and asked.read("/submission/answer.txt") == b"yes"
        verdict = {
            "schema_version": 1,
            "reward": int(right),
            "reason": refused or ("passed" if right else "below_threshold"),
            "message": "",
            "headline": float(right),
            "metrics": {"right": float(right)},
            "details": {},
        }
        return Reply(stdout=json.dumps(verdict).encode() + b"\n")

    def plan(self, *harnesses: str, attempts: int = 1) -> RunPlan:
        trials = tuple(
            TrialPlan(
                trial_id=f"{self.task.id}/i0/{name}@-/t{attempt}",
                category=self.task.category.id,
                case=self.task.case,
                instance=0,
                harness=name,
                model="-",
                attempt=attempt,
            )
            for attempt in range(1, attempts + 1)
            for name in harnesses
        )
        return RunPlan(
            run_id="r1",
            created_at=datetime.now(UTC),
            suite_version="0",
            edition="synthetic",
            scale=self.scale,
            seed_fingerprint="f" * 12,
            public_seed=True,
            network="model",
            task_versions={self.task.id: "v"},
            trials=trials,
            jobs=1,
            host=Host(name="h", cpus=2, memory_mb=8000, kernel="k", engine="scripted 1", python="3"),
        )

    def place(self, plan: RunPlan) -> Place:
        self.engine = ScriptedEngine(self.script, fail=self.fail)
        cache = Cache(self.tmp / "cache")
        self.folder = self.folder or RunFolder.create(self.tmp / "r1", plan, "s")
        mounts = cache.mounts / "r1"
        mounts.mkdir(parents=True, exist_ok=True)
        return Place(
            engine=self.engine,
            machine=EngineInfo("scripted", "1", 2, 8000),
            cache=cache,
            folder=self.folder,
            plan=plan,
            seed="s",
            mounts=mounts,
            labels={},
            box_images={self.task.id: "box"},
            verifier_images={self.task.category.id: "verifier"},
            make_disk=lambda *args, over: make_disk(*args, mode="watched", over=over),
        )

    def jobs(self, place: Place, options: HarnessOptions | None = None) -> list[Job]:
        resources, limits = clamp(self.task.category.resources[place.plan.scale], place.machine)
        found = []
        for trial in place.plan.trials:
            name, _, argument = trial.harness.partition(":")
            given = options or HarnessOptions(argument=argument, command="true")
            found.append(Job(trial, self.task, load_harness(name, given), given, "", resources, limits))
        return found

    def run(self, *harnesses: str, attempts: int = 1, workers: int = 1) -> RunEnd:
        plan = self.plan(*harnesses, attempts=attempts)
        place = self.place(plan)
        pool = Pool(place, workers=workers, stop=self.stop, observer=self.seen.append)
        return pool.run(self.jobs(place))

    @property
    def records(self) -> list[TrialRecord]:
        assert self.folder is not None
        return list(self.folder.records().values())


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    monkeypatch.setattr("runners.run.QUICK_RETRY_S", (0.0, 0.0))
    home = tmp_path / "categories" / "toy"
    home.mkdir(parents=True)
    (home / "category.toml").write_text(CATEGORY)
    (home / "cases.toml").write_text('[one]\ntitle = "The one case"\n')
    (home / "instruction.md.j2").write_text("Write the word to `{{ submission_path }}` within {{ box.time }}.\n")
    task = Task(category=load_category(home), case="one")
    for scale in ("small", "full"):
        request = StageRequest(task, "s", 0, scale)
        draw = tmp_path / "cache" / "staged" / request.cache_key()
        (draw / "public").mkdir(parents=True)
        (draw / "gold").mkdir()
        (draw / "public" / "question.txt").write_text("?")
        (draw / "gold" / "gold.json").write_text("{}")
        about = {"about": "toy", "content_digest": "d", "seconds": 0.0, "peak_memory_mb": 1.0, "variant": ""}
        (draw / "staged.json").write_text(json.dumps(about))
    return Yard(tmp_path, task)


@pytest.fixture
def limits() -> BoxLimits:
    return BoxLimits(cpus=1, memory_mb=256, pids=64)


@pytest.fixture
def never() -> threading.Event:
    return threading.Event()
