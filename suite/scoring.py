"""``verify`` and ``rescore``."""

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast, get_args

import typer

from categories.catalog import find_task, select_tasks
from categories.instruction import SUBMISSION_FOLDER
from categories.seed import DEFAULT_SEED
from categories.spec import Scale
from categories.staging import StageRequest, staged
from containers.box import Engine
from containers.docker_engine import DockerEngine
from containers.door import GatewayError
from containers.lease import RunLease
from results.files import write_atomically
from results.folder import RunFolder
from results.records import Event, Outcome, TrialRecord, Verdict
from runners.archive import HostFolder
from runners.cache import Cache, default_cache
from runners.collect import collect_submission
from runners.opening import verifier_image
from runners.panel import Panel, open_panel, plan_judge
from runners.verify import VerifierBox, judge
from suite.request import RequestError
from suite.sourcing import provide_checks, require_consent

OPINED = "xray_report_correction"
"""The category on whose submissions a model may be asked."""


@dataclass(frozen=True)
class VerifierMaker:
    """What it takes to open verifier boxes outside a run."""

    engine: Engine
    cache: Cache
    labels: dict[str, str]


def verify(
    task_id: str, folder: Path, *, scale: str | None, seed: str | None, instance: int, edition: str = "synthetic"
) -> int:
    """Judge a folder; exit status 0 whatever the reward, as a verdict was reached."""
    task = find_task(task_id)
    if not folder.is_dir():
        raise RequestError(f"{folder} is no folder; it must be laid out like /workspace/submission")
    if edition not in task.category.editions:
        raise RequestError(f"--edition {edition}: {task.id} has {' and '.join(task.category.editions)}")
    engine, cache = DockerEngine(), default_cache()
    request = StageRequest(task, seed or DEFAULT_SEED, instance, make_scale(scale), edition)
    provide_checks([request])
    image = verifier_image(engine, task.category, cache, typer.echo)
    with _lease(cache) as lease, cache.scratch() as into, staged(request, cache.root) as draw:
        collected = collect_submission(
            HostFolder(folder, SUBMISSION_FOLDER), task.category.submission, into / "submission"
        )
        verdict = judge(
            VerifierBox(engine, image, lease.labels), task, into / "submission", draw.gold, collected, into / "log.txt"
        )
    typer.echo(verdict.model_dump_json(indent=1))
    return 0


def rescore(path: Path, globs: Sequence[str], *, llm_judge: str | None = None, key_file: Path | None = None) -> int:
    """Judge every submission again; a new verdict goes beside the old one, a new event into the journal.

    A model's opinion on X-ray reports is written beside the verdict and is no part of it.
    """
    judge_plan = plan_judge(llm_judge, key_file) if llm_judge else None
    folder = RunFolder.open(path.resolve())
    if judge_plan and folder.plan.edition == "clinical":
        shown = tuple(trial for trial in folder.plan.trials if trial.category == OPINED)
        require_consent(folder.plan.model_copy(update={"trials": shown, "network": "model"}), [judge_plan.upstream])
    wanted = {task.id for task in select_tasks(globs)}
    engine, cache = DockerEngine(), default_cache()
    changed = judged = 0
    with folder.lock(), _lease(cache) as lease, ExitStack() as stack:
        panel = None
        if judge_plan:
            panel = stack.enter_context(open_panel(judge_plan, folder.path, engine, cache, lease, typer.echo))
        for record in folder.records().values():
            if record.plan.task not in wanted or record.submission is None:
                continue
            fresh = _judge_again(folder, record, VerifierMaker(engine, cache, lease.labels), panel)
            judged += 1
            if (fresh.outcome, fresh.reward, fresh.metrics) != (record.outcome, record.reward, record.metrics):
                changed += 1
                typer.echo(f"{record.plan.trial_id}: {record.outcome} -> {fresh.outcome} ({fresh.reason})")
            folder.append(Event(at=datetime.now(UTC), kind="rescored", trial_id=record.plan.trial_id, record=fresh))
    typer.echo(f"{judged} submissions judged again, {changed} changed")
    return 0


def _judge_again(folder: RunFolder, record: TrialRecord, maker: VerifierMaker, panel: Panel | None) -> TrialRecord:
    task, trial = find_task(record.plan.task), folder.trial(record.plan)
    image = verifier_image(maker.engine, task.category, maker.cache, typer.echo)
    box = VerifierBox(maker.engine, image, maker.labels)
    request = StageRequest(task, folder.seed(), record.plan.instance, record.scale, record.edition)
    assert record.submission is not None
    provide_checks([request])
    with staged(request, maker.cache.root) as draw:
        if draw.content_digest != record.content_digest:
            raise RequestError(
                f"{task.id}: the data have changed since the run; its submissions cannot be judged again. "
                "Choose others by --tasks, or run it anew"
            )
        into = trial.next_verifier()
        verdict = judge(box, task, trial.submission, draw.gold, record.submission, into / "log.txt")
        if panel and task.category.id == OPINED:
            _second_opinion(panel, record, draw.gold, trial.submission, into, verdict)
    write_atomically(into / "verdict.json", verdict.model_dump_json(indent=1) + "\n")
    return with_verdict(record, verdict)


def _second_opinion(
    panel: Panel, record: TrialRecord, gold: Path, submission: Path, into: Path, verdict: Verdict
) -> None:
    """Write ``second_opinion.json`` and say in a line what it holds."""
    try:
        document = panel.opine(record.plan.trial_id, gold, submission, verdict.reward)
    except GatewayError as error:
        typer.echo(f"{record.plan.trial_id}: {panel.plan.model} was not asked: {error}")
        return
    if document is None:
        return
    document |= {"agent_model": record.plan.model}
    write_atomically(into / "second_opinion.json", json.dumps(document, indent=1) + "\n")
    numbers = document["metrics"]
    if "llm_pass" not in numbers:
        said = f"no opinion: {document['failed_calls'][-1]}"
    else:
        said = f"{numbers['llm_votes_without_error']:g} of {numbers['llm_votes']:g} votes see no significant error"
        said += "" if numbers["llm_agrees"] else "; the verifier says otherwise"
    typer.echo(f"{record.plan.trial_id}: {panel.plan.model}: {said}")


def _lease(cache: Cache) -> RunLease:
    """Return a claim on the boxes of this command, so that they are removed if it is killed."""
    return RunLease(cache.mounts, f"judging-{os.getpid()}")


def with_verdict(record: TrialRecord, verdict: Verdict) -> TrialRecord:
    """Return the record under a new verdict; a time-out or an agent's error stays what it was."""
    update: dict[str, object] = {
        "reward": verdict.reward,
        "headline": verdict.headline,
        "metrics": verdict.metrics,
    }
    if record.outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.VERIFIER_ERROR):
        outcome = Outcome.PASSED if verdict.reward == 1 else Outcome.FAILED
        update |= {"outcome": outcome, "reason": verdict.reason, "message": verdict.message}
    return record.model_copy(update=update)


def make_scale(word: str | None) -> Scale:
    """Return the scale that a user typed.

    Raises:
        RequestError: it is none.
    """
    if word is None:
        return "full"
    if word not in get_args(Scale):
        raise RequestError(f"--scale {word}: must be {' or '.join(get_args(Scale))}")
    return cast("Scale", word)
