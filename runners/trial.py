"""One trial: five phases, and one loop over them that times each and turns its exception into an outcome."""

import json
import os
import shutil
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath

from categories.instruction import render_instruction
from categories.staging import StageRequest, StagingError, staged
from containers.box import Box, BoxLimits, BoxSpec, EngineError, Finished, Mount
from containers.disk import Disk
from results.files import write_atomically
from results.records import AgentExit, Phase, TrialRecord
from runners.agent_log import AgentLog
from runners.archive import keep_files
from runners.collect import collect_submission
from runners.conclusion import conclude
from runners.harness import AgentFailedError, Seat
from runners.place import Job, Place
from runners.scene import (
    BOX_ENV,
    HOME,
    MAKE_ENV,
    SETUP_MARGIN_S,
    SETUP_S,
    box_gid,
    box_uid,
    hand_over,
    link_data,
    write_as_agent,
)
from runners.state import Notice, Trial
from runners.usage import settle_usage
from runners.verify import VerifierError, judge, write_perfect
from runners.watchdog import Watchdog


def stage(trial: Trial) -> None:
    """Make the draw, or find it in the cache."""
    plan, place = trial.job.plan, trial.place
    request = StageRequest(trial.job.task, place.seed, plan.instance, place.plan.scale, place.plan.edition)
    trial.staged = trial.stack.enter_context(staged(request, place.cache.root, trial.cancel))


def open_box(trial: Trial) -> None:
    """Make the disk, link the data under a random name, and start the box."""
    place, job = trial.place, trial.job
    assert trial.staged is not None
    uid, gid = box_uid(), box_gid()
    trial.disk = place.make_disk(place.mounts, job.limits.storage_mb, uid, gid, over=trial.disk_is_full)
    trial.at_end("the disk", trial.disk.close)
    data = trial.stack.enter_context(link_data(trial.staged.public, place.mounts))
    hand_over(trial.staged.workspace, trial.disk.path / "workspace")
    mounts = [
        Mount(trial.disk.path / "workspace", "/workspace", read_only=False),
        Mount(trial.disk.path / "home", HOME, read_only=False),
        Mount(trial.disk.path / "tmp", "/tmp", read_only=False),  # noqa: S108 (in the box)
        Mount(data, "/workspace/data"),
    ]
    env = dict(BOX_ENV)
    if job.harness.agent:
        mounts.append(place.agents[job.harness.agent].mount)
    if place.gateway is not None and job.harness.needs_model:
        trial.door = place.gateway.open_door(job.plan.trial_id)
        trial.at_end("the door", partial(place.gateway.close_door, trial.door))
        mounts.append(trial.door.mount)
        env |= trial.door.env
    spec = BoxSpec(
        image=place.box_images[job.plan.task],
        command=("sleep", str(job.limits.agent_timeout_s + SETUP_MARGIN_S)),
        user=f"{uid}:{gid}",
        limits=BoxLimits(cpus=job.limits.cpus, memory_mb=job.limits.memory_mb, pids=job.limits.pids),
        mounts=tuple(mounts),
        env=env,
        labels=place.labels,
        workdir="/workspace",
        network="bridge" if place.plan.network == "open" else "none",
    )
    trial.box = place.engine.open(spec)
    trial.at_end("the box", trial.box.remove)
    _set_up(trial.box, (MAKE_ENV,))
    if trial.door is not None:
        _set_up(trial.box, trial.door.forwarder)


def _set_up(box: Box, command: tuple[str, ...]) -> None:
    """Run one of our own commands in the box before the agent's time begins."""
    finished = box.exec(command, timeout_s=SETUP_S)
    if finished.exit_code != 0:
        how = f"took more than {SETUP_S} s" if finished.timed_out else f"ended with status {finished.exit_code}"
        raise EngineError(f"setting up the box: {command[0]} {how}; a busy machine may need fewer --jobs")


def run_agent(trial: Trial) -> None:
    """Let the harness drive, under the time limit; whatever the end, the whole box is stopped."""
    assert trial.box is not None
    assert trial.disk is not None
    box = trial.box
    with AgentLog(trial.folder.agent) as log:
        dog = Watchdog(box.stop, limit_s=trial.job.limits.agent_timeout_s, cancel=trial.cancel)
        try:
            with dog:
                trial.dog = dog
                trial.finished = trial.job.harness.drive(_seat(trial, box, trial.disk, log))
        except AgentFailedError as error:
            trial.agent_error = error
        finally:
            trial.stopped_for = dog.reason
            box.stop()
            state = box.state()
            trial.exit = AgentExit(
                exit_code=trial.finished.exit_code if trial.finished and not dog.reason else None,
                timed_out=dog.reason == "timeout",
                message=dog.message,
                log_bytes=log.written,
                log_cut=log.cut,
                oom_killed=state.oom_killed,
                peak_memory_mb=state.peak_memory_mb,
            )


def _seat(trial: Trial, box: Box, disk: Disk, log: AgentLog) -> Seat:
    def execute(argv: tuple[str, ...], env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Finished:
        return box.exec(argv, env=env, stdin=stdin, sink=log.sink, workdir="/workspace")

    def put(files: Mapping[str, bytes]) -> None:
        for path, content in files.items():
            write_as_agent(disk.path, PurePosixPath(path), content)

    def perfect() -> None:
        out = trial.stack.enter_context(_scratch(trial))
        assert trial.staged is not None
        write_perfect(trial.verifier_box, trial.job.task, trial.staged.gold, out)
        hand_over(out, disk.path / "workspace" / "submission")

    return Seat(
        box=box,
        task=trial.job.task,
        instruction=render_instruction(trial.job.task, trial.job.resources),
        options=trial.job.options,
        logs=trial.folder.agent,
        endpoint=trial.door.endpoint if trial.door else "",
        exec=execute,
        put=put,
        login=trial.place.login_of(trial.job.harness),
        perfect=perfect,
    )


class _scratch:  # noqa: N801 (a context manager, used like a function)
    """An empty folder on the host for the length of a trial."""

    def __init__(self, trial: Trial) -> None:
        self.path = trial.place.mounts / os.urandom(8).hex()

    def __enter__(self) -> Path:
        self.path.mkdir(mode=0o700)
        return self.path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def collect(trial: Trial) -> None:
    """Take out the submission and the logs the harness wants, and read these."""
    assert trial.box is not None
    trial.collected = collect_submission(trial.box, trial.job.task.category.submission, trial.folder.submission)
    harness = trial.job.harness
    for path in harness.keep:
        kept = trial.folder.agent / "kept" / path.removeprefix("~/").lstrip("/")
        trial.warnings += keep_files(trial.box, path.replace("~", HOME, 1), kept)
    trial.reading = harness.read(trial.folder.agent, trial.finished)
    trial.warnings += trial.reading.warnings
    settle_usage(trial)
    if trial.reading.trajectory is not None:
        write_atomically(trial.folder.trajectory, json.dumps(trial.reading.trajectory, indent=1) + "\n")


def verify(trial: Trial) -> None:
    """Judge what was collected in a box of its own."""
    if trial.collected is None or trial.staged is None:
        raise VerifierError("nothing was collected that could be judged")
    folder = trial.folder.next_verifier()
    trial.verdict = judge(
        trial.verifier_box,
        trial.job.task,
        submission=trial.folder.submission,
        gold=trial.staged.gold,
        collected=trial.collected,
        log=folder / "log.txt",
    )
    write_atomically(folder / "verdict.json", trial.verdict.model_dump_json(indent=1) + "\n")


@dataclass(frozen=True)
class Step:
    """A phase, and whether it runs once a box existed whatever went wrong before."""

    name: str
    do: Callable[[Trial], None]
    closing: bool = False


PHASES = (
    Step("stage", stage),
    Step("open_box", open_box),
    Step("run_agent", run_agent),
    Step("collect", collect, closing=True),
    Step("verify", verify, closing=True),
)
EXPECTED = (StagingError, EngineError, VerifierError, OSError)
"""Errors whose message says enough; of any other the traceback is kept too."""


def run_trial(place: Place, job: Job, cancel: threading.Event, notice: Notice) -> TrialRecord:
    """Run one try of a trial to its record. Never raises for what happens inside a phase."""
    trial = Trial(place, job, cancel, notice)
    trial.folder.begin()
    with trial.stack:
        for step in PHASES:
            if (trial.broken_phase or cancel.is_set()) and not (step.closing and trial.box is not None):
                continue
            _take_step(trial, step)
    return conclude(trial)


def _take_step(trial: Trial, step: Step) -> None:
    trial.notice(step.name)
    started_at = datetime.now(UTC)
    try:
        step.do(trial)
    except Exception as error:  # noqa: BLE001 (every error becomes the outcome of its phase)
        if not trial.broken_phase:
            trial.broken_phase = step.name
            trial.broken_message = str(error) or type(error).__name__
        if not isinstance(error, EXPECTED):
            trial.broken_message = f"{type(error).__name__}: {error}"
            with (trial.folder.path / "error.txt").open("a", encoding="utf-8") as file:
                file.write(f"{step.name}\n{traceback.format_exc()}\n")
    seconds = (datetime.now(UTC) - started_at).total_seconds()
    trial.phases.append(Phase(name=step.name, started_at=started_at, seconds=round(seconds, 3)))  # type: ignore[arg-type]
