"""``run``, ``resume``, ``shell``, ``prepare``, ``build``: commands that make things happen."""

from pathlib import Path
from typing import Annotated

import typer

from suite.seam import load

Words = list[str] | None
Option = typer.Option

Harness = Annotated[
    Words,
    Option(
        "--harness",
        help="oracle, nop, reference, probe:NAME, command, codex, claude-code ...; repeatable; or NAME@MODEL.",
    ),
]
Model = Annotated[Words, Option("--model", help="Model id; repeatable.")]
Effort = Annotated[Words, Option("--effort", help="Reasoning effort; repeatable.")]
Tasks = Annotated[Words, Option("--tasks", help="Glob over task ids (`*/combined*`); repeatable.")]
Categories = Annotated[Words, Option("--category", help="Category; repeatable.")]
Trials = Annotated[int | None, Option("--trials", help="Attempts per instance (1).")]
Instances = Annotated[int | None, Option("--instances", help="Draws per task (1).")]
Jobs = Annotated[int | None, Option("--jobs", "-j", min=1, help="Trials at once (as many as the machine has CPUs).")]
Edition = Annotated[str | None, Option("--edition", help="synthetic (default) or clinical.")]
Scale = Annotated[str | None, Option("--scale", help="full (default) or small.")]
Seed = Annotated[str | None, Option("--seed", help="Seed of the data; `hab-suite seed new` makes a private one.")]
Out = Annotated[Path | None, Option("--out", help="Where the run's folder is made (./runs).")]
Command = Annotated[str | None, Option("--command", help="For --harness command: what to run in the box.")]
HarnessFile = Annotated[Path | None, Option("--harness-file", help="TOML file that defines a further harness.")]
AgentVersion = Annotated[str | None, Option("--agent-version", help="Another version of the CLI than the pinned one.")]
AgentTimeout = Annotated[
    int | None, Option("--agent-timeout-s", help="Another time limit than the tasks' own; stamped on every report.")
]
Network = Annotated[str | None, Option("--network", help="model (default), packages or open.")]
PackageHosts = Annotated[
    Words, Option("--package-host", help="With --network packages: a host to CONNECT to; repeatable.")
]
MaxUsd = Annotated[float | None, Option("--max-usd", help="Budget of the run.")]
MaxUsdPerTrial = Annotated[float | None, Option("--max-usd-per-trial", help="Budget of each trial.")]
Prices = Annotated[Path | None, Option("--prices", help="TOML file of prices that override the dated table.")]
KeyFile = Annotated[Path | None, Option("--key-file", help="File of NAME=value lines with API keys.")]
AllowLogin = Annotated[
    bool | None,
    Option("--allow-login-in-box", help="Let a login that only the CLI can use into the box; stamped on every report."),
]
AgentOption = Annotated[
    Words, Option("--agent-option", help="flags=..., retries=N or wire_api=... for the agent's CLI; repeatable.")
]
PlanFile = Annotated[Path | None, Option("-f", "--file", help="Plan file (TOML) with the same words.")]
Offline = Annotated[
    bool, Option("--offline", help="Fetch nothing: clinical data and what checks them must be here already.")
]
DryRun = Annotated[bool, Option("--dry-run", help="Print the plan and stop.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(run)
    app.command()(resume)
    app.command()(shell)
    app.command()(prepare)
    app.command()(build)


def run(
    harness: Harness = None,
    model: Model = None,
    effort: Effort = None,
    tasks: Tasks = None,
    category: Categories = None,
    trials: Trials = None,
    instances: Instances = None,
    jobs: Jobs = None,
    edition: Edition = None,
    scale: Scale = None,
    seed: Seed = None,
    out: Out = None,
    command: Command = None,
    harness_file: HarnessFile = None,
    agent_version: AgentVersion = None,
    agent_timeout_s: AgentTimeout = None,
    network: Network = None,
    package_hosts: PackageHosts = None,
    max_usd: MaxUsd = None,
    max_usd_per_trial: MaxUsdPerTrial = None,
    prices: Prices = None,
    key_file: KeyFile = None,
    allow_login_in_box: AllowLogin = None,
    agent_option: AgentOption = None,
    plan: PlanFile = None,
    dry_run: DryRun = False,
    offline: Offline = False,
) -> None:
    """Run agents on tasks and leave a run folder with the verdicts."""
    given = dict(locals())
    flags = {name: value for name, value in given.items() if name not in ("plan", "dry_run", "offline")}
    load("suite.sourcing:go_offline")(offline)
    raise typer.Exit(load("suite.running:run")(load("suite.request:make_request")(plan, flags), dry_run=dry_run))


def resume(
    run: Annotated[Path, typer.Argument(help="The run's folder.")],
    jobs: Jobs = None,
    key_file: KeyFile = None,
    offline: Offline = False,
) -> None:
    """Run what is left of an interrupted run."""
    load("suite.sourcing:go_offline")(offline)
    raise typer.Exit(load("suite.running:resume")(run, jobs=jobs, key_file=key_file))


def shell(
    task: Annotated[str, typer.Argument(help="Task id.")],
    scale: Scale = None,
    seed: Seed = None,
    out: Annotated[Path | None, typer.Option("--out", help="Where the run's folder is made (./runs).")] = None,
    edition: Edition = None,
) -> None:
    """Sit down in a task's box yourself; leaving the shell hands the work in and scores it."""
    flags = {
        "harness": ["human"],
        "tasks": [task],
        "scale": scale,
        "seed": seed,
        "out": out,
        "jobs": 1,
        "edition": edition,
    }
    raise typer.Exit(load("suite.running:run")(load("suite.request:make_request")(None, flags), dry_run=False))


def prepare(
    tasks: Annotated[Words, typer.Argument(help="Globs over task ids; all tasks without one.")] = None,
    category: Annotated[Words, typer.Option("--category", help="Category; repeatable.")] = None,
    scale: Scale = None,
    seed: Seed = None,
    edition: Edition = None,
    instances: Annotated[int, typer.Option("--instances", min=1)] = 1,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1)] = 1,
    offline: Offline = False,
) -> None:
    """Make the data of tasks ahead of a run."""
    load("suite.sourcing:go_offline")(offline)
    words = {"scale": scale, "seed": seed, "edition": edition}
    call = load("suite.preparing:prepare")
    raise typer.Exit(call(tasks or [], category or [], words=words, instances=instances, jobs=jobs))


def build(
    what: Annotated[
        Words, typer.Argument(help="`assets`, `images`, `agents`, or globs over task ids; everything without one.")
    ] = None,
) -> None:
    """Build images, fetch assets and agent CLIs ahead of a run."""
    raise typer.Exit(load("suite.preparing:build")(what or []))
