"""``run`` and ``resume``: from a plan to exit code, with everything a user sees on the way."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import typer

from categories.catalog import all_tasks
from categories.store import prune
from containers.box import Engine, EngineInfo
from containers.docker_engine import DockerEngine
from containers.endpoints import Upstream
from results.folder import RunFolder
from results.records import Event, Outcome, RunPlan, TrialPlan, TrialRecord
from runners.cache import cache_limit_bytes, default_cache
from runners.gateway import plan_gateway, price_book
from runners.opening import Opening, open_place
from runners.run import Pool, RunEnd, Stop
from suite.console import CostOf, Progress, Tally, make_progress
from suite.history import remember
from suite.plan import make_plan, task_version
from suite.request import RunRequest
from suite.seam import load

OK, BROKEN, NOT_READY, INTERRUPTED = 0, 1, 2, 130


def run(request: RunRequest, *, dry_run: bool) -> int:
    """Plan, make the run's folder, run; the run id is the last line on standard output."""
    engine = DockerEngine()
    machine = engine.info()
    plan = make_plan(request, machine)
    opening = _opening(engine, machine, plan, request.key_file)
    if dry_run:
        for line in load("suite.forecast:forecast_lines")(plan, opening.cache.history):
            typer.echo(line)
        if plan.edition == "clinical":
            load("suite.sourcing:require_clinical")(plan, _upstreams(opening))
        return OK
    _make_ready(plan, opening, request.seed)
    folder = RunFolder.create(request.out.resolve() / plan.run_id, plan, request.seed)
    code = _execute(folder, plan.trials, opening)
    typer.echo(plan.run_id)
    return code


def resume(path: Path, *, jobs: int | None, key_file: Path | None) -> int:
    """Run the trials that have no record yet; tasks that have changed since are named and refused."""
    folder = RunFolder.open(path.resolve())
    plan = folder.plan
    left = folder.unfinished()
    changed = changed_tasks(plan, {trial.task for trial in left})
    if changed:
        typer.echo(f"changed since the run was planned, not resumed: {', '.join(changed)}", err=True)
    todo = [trial for trial in left if trial.task not in changed]
    if jobs:
        plan = plan.model_copy(update={"jobs": jobs})
    engine = DockerEngine()
    opening = _opening(engine, engine.info(), plan, key_file)
    if todo:
        _make_ready(plan.model_copy(update={"trials": tuple(todo)}), opening, folder.seed())
    code = _execute(folder, todo, opening, workers=jobs) if todo else _exit_code(folder, RunEnd(False, ()))
    typer.echo(plan.run_id)
    return code


def changed_tasks(plan: RunPlan, tasks: set[str]) -> list[str]:
    """Return the tasks whose category, verifier or image are no longer what was planned with, or are gone."""
    now = {task.id: task_version(task) for task in all_tasks()}
    return sorted(task for task in tasks if now.get(task) != plan.task_versions[task])


def _opening(engine: Engine, machine: EngineInfo, plan: RunPlan, key_file: Path | None) -> Opening:
    """Gather what the run is opened with; a missing key is said here, before anything is built."""
    return Opening(
        engine, machine, default_cache(), plan_gateway(plan, key_file), plan.options.get("agent_version", "")
    )


def _make_ready(plan: RunPlan, opening: Opening, seed: str) -> None:
    """Have at hand what the preparations of a run need; what is missing is said before a folder is made.

    The cache is pruned first: what is still in it then need not be made.
    """
    prune(opening.cache.root, cache_limit_bytes())
    if plan.edition == "clinical":
        load("suite.sourcing:open_clinical")(plan, _upstreams(opening), seed, opening.cache)
    else:
        load("suite.sourcing:provide_checks")(load("suite.sourcing:draws_of")(plan, seed))


def _upstreams(opening: Opening) -> tuple[Upstream, ...]:
    return opening.gateway.upstreams if opening.gateway else ()


def _execute(folder: RunFolder, trials: Sequence[TrialPlan], opening: Opening, workers: int | None = None) -> int:
    plan = folder.plan
    cost_of = pricer(plan)
    manned = any(trial.harness == "human" for trial in trials)  # a person needs the terminal
    tally = Tally(len(plan.trials), len(plan.trials) - len(trials), cost_of)
    stop = Stop()
    with (
        folder.lock(),
        make_progress(tally, plain=manned) as progress,
        _signals(stop, progress),
        _told_to_resume(folder, stop),
    ):
        progress.say(f"{len(trials)} trials, {plan.scale} scale, run folder {folder.path}")

        def observe(event: Event) -> None:
            progress(event)
            if event.record is not None and event.record.usage:
                remember(opening.cache.history, event.record, cost_of(event.record))

        with open_place(opening, folder, trials, progress.say) as (place, jobs):
            end = Pool(place, workers=workers or plan.jobs, stop=stop, observer=observe).run(jobs)
    for lost in end.lost:
        typer.echo(f"hab-suite: no record could be written, resume runs it again: {lost}", err=True)
    for brake in end.brakes:
        typer.echo(f"hab-suite: {brake}", err=True)
    return _exit_code(folder, end)


def _exit_code(folder: RunFolder, end: RunEnd) -> int:
    if end.interrupted:
        typer.echo(f"interrupted; `hab-suite resume {folder.path}` runs the rest", err=True)
        return INTERRUPTED
    if end.brakes:
        return NOT_READY
    records = folder.records()
    complete = all(trial.trial_id in records for trial in folder.plan.trials)
    broken = any(Outcome(record.outcome).broken for record in records.values())
    return OK if complete and not broken else BROKEN


@contextmanager
def _told_to_resume(folder: RunFolder, stop: Stop) -> Iterator[None]:
    """Say how to go on where the run was interrupted before its first trial."""
    try:
        yield
    except KeyboardInterrupt:
        if not stop.started.is_set():
            typer.echo(f"interrupted before the first trial; `hab-suite resume {folder.path}` runs it", err=True)
        raise


@contextmanager
def _signals(stop: Stop, progress: Progress) -> Iterator[None]:
    """First Ctrl-C: start nothing new. Second, or TERM: cancel what runs. Ended trials are on the disk already."""

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if not stop.started.is_set():
            raise KeyboardInterrupt
        if number == signal.SIGTERM or stop.no_more.is_set():
            progress.say("cancelling the running trials ...")
            stop.now()
        else:
            stop.no_more.set()
            progress.say("finishing the running trials; press Ctrl-C again to cancel them")

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def pricer(plan: RunPlan) -> CostOf:
    """Return what prices a record."""
    book = price_book(plan)

    def cost_of(record: TrialRecord) -> float | None:
        return book.cost(record.usage, record.started_at).usd

    return cost_of
