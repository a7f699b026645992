"""``list``, ``show``, ``doctor``, ``report``, ``logs``: commands that only look."""

from pathlib import Path
from typing import Annotated

import typer

from suite.seam import load

Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("list")(list_tasks)
    app.command()(show)
    app.command()(doctor)
    app.command()(report)
    app.command()(logs)


def list_tasks(
    tasks: Annotated[list[str] | None, typer.Argument(help="Globs over task ids.")] = None,
    category: Annotated[list[str] | None, typer.Option("--category", help="Category; repeatable.")] = None,
    json: Json = False,
) -> None:
    """List the tasks."""
    raise typer.Exit(load("suite.reading:list_tasks")(tasks or [], category or [], as_json=json))


def show(
    task: Annotated[str, typer.Argument(help="Task id.")],
    scale: Annotated[str, typer.Option("--scale", help="full or small.")] = "full",
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Write a picture of the task's data to this file.")
    ] = None,
    seed: Annotated[str | None, typer.Option("--seed", help="With --figure: the seed of the data.")] = None,
    with_gold: Annotated[bool, typer.Option("--with-gold", help="With --figure: draw the gold too.")] = False,
) -> None:
    """Show one task: the instruction as the agent gets it, limits, pass rule, probes; or a picture of its data."""
    call = load("suite.reading:show")
    raise typer.Exit(call(task, scale=scale, figure=figure, seed=seed, with_gold=with_gold))


def doctor(json: Json = False) -> None:
    """Check this machine: every check says how to repair what it finds."""
    raise typer.Exit(load("suite.doctor:doctor")(as_json=json))


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    format: Annotated[str, typer.Option("--format", help="text, markdown, html, csv or json.")] = "text",  # noqa: A002
    mix: Annotated[
        bool, typer.Option("--mix", help="Allow runs of different editions, scales or versions together.")
    ] = False,
    prices: Annotated[
        Path | None, typer.Option("--prices", help="TOML file of prices that override the dated table.")
    ] = None,
    brief: Annotated[bool, typer.Option("--brief", help="The main table and its warnings only.")] = False,
    with_published: Annotated[
        bool, typer.Option("--with-published", help="Add the published agents, in a table apart.")
    ] = False,
    redact: Annotated[
        bool, typer.Option("--redact", help="Runs on real records: write numbers only, no text.")
    ] = False,
) -> None:
    """Report on runs: success with its interval, metric, minutes, cost, broken and missing trials."""
    call = load("suite.reading:report")
    words = {"mix": mix, "prices": prices, "brief": brief, "with_published": with_published, "redact": redact}
    raise typer.Exit(call(runs, form=format, **words))


def logs(
    trial: Annotated[str, typer.Argument(help="Trial folder, or `RUN/TRIAL ID`.")],
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on as the log grows, until the trial ends.")
    ] = False,
) -> None:
    """Print a trial's agent log."""
    raise typer.Exit(load("suite.reading:logs")(trial, follow=follow))
