"""``list``, ``show``, ``report``, ``logs``."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import typer

from categories.catalog import find_task, select_tasks
from categories.figure import draw_figure, require_figures
from categories.instruction import render_instruction
from categories.seed import DEFAULT_SEED
from categories.staging import StageRequest, staged
from results.folder import RunFolder, open_all
from results.render import FORMATS
from results.report import build_report
from results.trial_folder import TrialFolder
from runners.cache import default_cache
from runners.harnesses.script import list_probes
from suite.prices import book
from suite.request import RequestError, check_figure
from suite.scoring import make_scale
from suite.sourcing import provide_checks, stands_on

POLL_S = 0.3


def list_tasks(globs: Sequence[str], categories: Sequence[str], *, as_json: bool) -> int:
    tasks = select_tasks(globs, categories)
    rows = [
        {
            "id": task.id,
            "category": task.category.id,
            "title": task.spec.title,
            "modality": task.category.axes.modality,
            "metric": task.category.headline.metric,
            "editions": list(task.category.editions),
        }
        for task in tasks
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return 0
    width = max(len(str(row["id"])) for row in rows)
    for row in rows:
        typer.echo(f"{row['id']:<{width}}  {row['title']}")
    count = len({row["category"] for row in rows})
    typer.echo(f"{len(rows)} tasks in {count} categor{'y' if count == 1 else 'ies'}")
    return 0


def show(task_id: str, *, scale: str, figure: Path | None, seed: str | None, with_gold: bool) -> int:
    task, wanted = find_task(task_id), make_scale(scale)
    if figure is not None:
        check_figure(figure, (".png",))
        require_figures(task.category)
        request = StageRequest(task, seed or DEFAULT_SEED, 0, wanted)
        provide_checks([request])
        with staged(request, default_cache().root) as draw:
            draw_figure(task.category, draw.public, draw.gold if with_gold else None, figure)
        typer.echo(f"wrote {figure}")
        return 0
    category, limits = task.category, task.category.resources[wanted]
    typer.echo(f"{task.id}: {task.spec.title}\n{category.title}, {category.axes.modality}\n")
    typer.echo(f"pass rule   {category.pass_rule.sentence()}")
    typer.echo(f"published   {category.published_rule.sentence()}")
    typer.echo(f"metric      {category.headline.metric} ({category.headline.direction} is better)")
    typer.echo(
        f"limits      {limits.cpus:g} CPUs, {limits.memory_mb} MB memory, {limits.storage_mb} MB disk, "
        f"{limits.agent_timeout_s} s ({wanted} scale)"
    )
    typer.echo("editions    " + "\n            ".join(stands_on(category)))
    typer.echo(f"data card   {category.folder / 'README.md'}")
    typer.echo("probes      " + "\n            ".join(f"{p['name']}: {p['why']}" for p in list_probes(category.folder)))
    typer.echo(f"\n--- instruction ---\n{render_instruction(task, limits)}")
    return 0


def report(
    runs: Sequence[Path],
    *,
    form: str,
    mix: bool,
    prices: Path | None,
    brief: bool,
    with_published: bool,
    redact: bool = False,
) -> int:
    """Print the report of one or several runs."""
    if form not in FORMATS:
        raise RequestError(f"--format {form}: must be {', '.join(FORMATS)}")
    folders = open_all(runs)
    typer.echo(
        FORMATS[form](
            build_report(
                folders,
                prices=book(prices, folders),
                mix=mix,
                details=not brief,
                trajectories=not brief,
                with_published=with_published,
                redact=redact,
            )
        ).rstrip("\n")
    )
    return 0


def logs(trial: str, *, follow: bool) -> int:
    """Print ``agent/stdout.log``, then standard error; with ``follow`` until the trial's record is written."""
    folder = _trial_folder(trial)
    places = {folder.agent / "stdout.log": 0, folder.agent / "stderr.log": 0}
    while True:
        finished = folder.finished
        for path, place in places.items():
            if path.exists():
                with path.open("rb") as file:
                    file.seek(place)
                    while block := file.read(1 << 16):
                        typer.echo(printable(block), nl=False)
                    places[path] = file.tell()
        if finished or not follow:
            break
        time.sleep(POLL_S)
    if not any(path.exists() for path in places):
        typer.echo(f"{folder.agent} holds no log (yet)", err=True)
    return 0


def printable(block: bytes) -> str:
    """Return text that cannot drive the reader's terminal: control characters are shown, not sent."""
    text = block.decode("utf-8", errors="replace")
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _trial_folder(trial: str) -> TrialFolder:
    path = Path(trial).resolve()
    if path.is_dir() and (path / "agent").is_dir():
        return TrialFolder(path)
    for parent in path.parents:
        if (parent / "run.json").is_file():
            inner = path.relative_to(parent)
            found = RunFolder.open(parent).trial(inner.as_posix().removeprefix("trials/"))
            if found.path.is_dir():
                return found
            break
    raise RequestError(f"{trial}: no trial there; give its folder, or RUN/<trial id> as the journal names it")
