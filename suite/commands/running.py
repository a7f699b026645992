"""``run``, ``resume``, ``shell``, ``prepare``, ``build``: commands that make things happen."""

from pathlib import Path
from typing import Annotated

import typer

from suite.seam import load

Words = list[str] | None
Seed = Annotated[
    str | None, typer.Option("--seed", help="The seed of the data; `hab-suite seed new` makes a private one.")
]
Scale = Annotated[str | None, typer.Option("--scale", help="full (default) or small.")]
Edition = Annotated[str | None, typer.Option("--edition", help="synthetic (default) or clinical.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(run)
    app.command()(resume)
    app.command()(shell)
    app.command()(prepare)
    app.command()(build)


def run(
    harness: Annotated[
        Words,
        typer.Option(
            "--harness",
            help="oracle, nop, reference, probe:NAME, command, codex, claude-code ...; repeatable; or NAME@MODEL.",
        ),
    ] = None,
    model: Annotated[Words, typer.Option("--model", help="Model id; repeatable.")] = None,
    effort: Annotated[Words, typer.Option("--effort", help="Reasoning effort; repeatable.")] = None,
    tasks: Annotated[Words, typer.Option("--tasks", help="Glob over task ids (`*/combined*`); repeatable.")] = None,
    category: Annotated[Words, typer.Option("--category", help="Category; repeatable.")] = None,
    trials: Annotated[int | None, typer.Option("--trials", help="Attempts per instance (1).")] = None,
    instances: Annotated[int | None, typer.Option("--instances", help="Draws per task (1).")] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Trials at once.")] = None,
    edition: Edition = None,
    scale: Scale = None,
    seed: Seed = None,
    out: Annotated[Path | None, typer.Option("--out", help="Where the run's folder is made (./runs).")] = None,
    command: Annotated[
        str | None, typer.Option("--command", help="For --harness command: what to run in the box.")
    ] = None,
    harness_file: Annotated[
        Path | None, typer.Option("--harness-file", help="TOML file that defines a further harness.")
    ] = None,
    agent_version: Annotated[
        str | None, typer.Option("--agent-version", help="Another version of the agent CLI than the pinned one.")
    ] = None,
    network: Annotated[str | None, typer.Option("--network", help="model (default), packages or open.")] = None,
    package_host: Annotated[
        Words, typer.Option("--package-host", help="With --network packages: host the box may CONNECT to; repeatable.")
    ] = None,
    max_usd: Annotated[float | None, typer.Option("--max-usd", help="Budget of the run.")] = None,
    max_usd_per_trial: Annotated[
        float | None, typer.Option("--max-usd-per-trial", help="Budget of each trial.")
    ] = None,
    prices: Annotated[
        Path | None, typer.Option("--prices", help="TOML file of prices that override the dated table.")
    ] = None,
    key_file: Annotated[Path | None, typer.Option("--key-file", help="File of NAME=value lines with API keys.")] = None,
    allow_login_in_box: Annotated[
        bool,
        typer.Option("--allow-login-in-box", help="Let a subscription login enter the box; stamped on every report."),
    ] = False,
    plan: Annotated[Path | None, typer.Option("-f", "--file", help="Plan file (TOML) with the same words.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
) -> None:
    """Run agents on tasks and leave a run folder with the verdicts."""
    flags = {
        "harness": harness,
        "model": model,
        "effort": effort,
        "tasks": tasks,
        "category": category,
        "trials": trials,
        "instances": instances,
        "jobs": jobs,
        "edition": edition,
        "scale": scale,
        "seed": seed,
        "out": out,
        "command": command,
        "harness_file": harness_file,
        "agent_version": agent_version,
        "network": network,
        "package_hosts": package_host,
        "max_usd": max_usd,
        "max_usd_per_trial": max_usd_per_trial,
        "prices": prices,
        "key_file": key_file,
        "allow_login_in_box": allow_login_in_box or None,
    }
    raise typer.Exit(load("suite.running:run")(load("suite.request:make_request")(plan, flags), dry_run=dry_run))


def resume(
    run: Annotated[Path, typer.Argument(help="The run's folder.")],
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Trials at once.")] = None,
    key_file: Annotated[Path | None, typer.Option("--key-file", help="File of NAME=value lines with API keys.")] = None,
) -> None:
    """Run what is left of an interrupted run."""
    raise typer.Exit(load("suite.running:resume")(run, jobs=jobs, key_file=key_file))


def shell(
    task: Annotated[str, typer.Argument(help="Task id.")],
    scale: Scale = None,
    seed: Seed = None,
    out: Annotated[Path | None, typer.Option("--out", help="Where the run's folder is made (./runs).")] = None,
) -> None:
    """Sit down in a task's box yourself; leaving the shell hands the work in and scores it."""
    flags = {"harness": ["human"], "tasks": [task], "scale": scale, "seed": seed, "out": out, "jobs": 1}
    raise typer.Exit(load("suite.running:run")(load("suite.request:make_request")(None, flags), dry_run=False))


def prepare(
    tasks: Annotated[Words, typer.Argument(help="Globs over task ids; all tasks without one.")] = None,
    category: Annotated[Words, typer.Option("--category", help="Category; repeatable.")] = None,
    scale: Scale = None,
    seed: Seed = None,
    edition: Edition = None,
    instances: Annotated[int, typer.Option("--instances", min=1)] = 1,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1)] = 1,
) -> None:
    """Make the data of tasks ahead of a run."""
    words = {"scale": scale, "seed": seed, "edition": edition}
    call = load("suite.preparing:prepare")
    raise typer.Exit(call(tasks or [], category or [], words=words, instances=instances, jobs=jobs))


def build(
    what: Annotated[
        Words, typer.Argument(help="`images`, `agents`, or globs over task ids; everything without one.")
    ] = None,
) -> None:
    """Build images and fetch agent CLIs ahead of a run."""
    raise typer.Exit(load("suite.preparing:build")(what or []))
