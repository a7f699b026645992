"""``compare``, ``pareto``, ``site``, ``view``, ``export``, ``plan``: what runs say beside one another."""

from pathlib import Path
from typing import Annotated

import typer

from suite.seam import load

Runs = Annotated[list[Path], typer.Argument(help="Run folders.")]
Mix = Annotated[bool, typer.Option("--mix", help="Allow runs of different editions, scales or versions together.")]
Prices = Annotated[Path | None, typer.Option("--prices", help="TOML file of prices that override the dated table.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Markdown instead of plain text.")]
WithPublished = Annotated[bool, typer.Option("--with-published", help="Add the published agents, on a panel apart.")]
WithGold = Annotated[bool, typer.Option("--with-gold", help="Show gold too; never publish such a site.")]

Redact = Annotated[
    bool, typer.Option("--redact", help="Runs on real records: write numbers only, no text, no pictures.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (compare, pareto, site, view, export, plan):
        app.command()(command)


def compare(
    a: Annotated[str, typer.Argument(help="HARNESS@MODEL[@EFFORT], or RUN:HARNESS@MODEL.")],
    b: Annotated[str, typer.Argument(help="The other one.")],
    runs: Annotated[list[Path], typer.Option("--run", help="Run folder; repeatable.")],
    markdown: Markdown = False,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
    prices: Prices = None,
) -> None:
    """Compare two agents task by task: paired difference with its interval and exact test."""
    call = load("suite.comparing:compare_agents")
    raise typer.Exit(call(a, b, runs, markdown=markdown, as_json=json, prices=prices))


def pareto(
    runs: Runs,
    figure: Annotated[Path | None, typer.Option("--figure", help="Write the picture too (.svg or .png).")] = None,
    minutes: Annotated[bool, typer.Option("--minutes", help="Time against success instead of cost.")] = False,
    with_published: WithPublished = False,
    markdown: Markdown = False,
    mix: Mix = False,
    prices: Prices = None,
) -> None:
    """Show which agents are on the frontier of cost and success, and how surely."""
    call = load("suite.comparing:pareto")
    words = {"with_published": with_published, "markdown": markdown, "mix": mix, "prices": prices}
    raise typer.Exit(call(runs, figure=figure, minutes=minutes, **words))


def site(
    runs: Runs,
    out: Annotated[Path, typer.Option("--out", help="Folder of the site.")],
    with_gold: WithGold = False,
    with_published: WithPublished = False,
    with_data: Annotated[
        bool,
        typer.Option("--with-data", help="Show each trial's pictures over the task's data; seconds a trial."),
    ] = False,
    mix: Mix = False,
    prices: Prices = None,
    redact: Redact = False,
) -> None:
    """Write a static, self-contained site of the results."""
    call = load("suite.comparing:write_site")
    shown = {"with_gold": with_gold, "with_published": with_published, "with_data": with_data}
    raise typer.Exit(call(runs, out, **shown, mix=mix, prices=prices, redact=redact))


def view(
    runs: Runs,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")] = 0,
    with_gold: WithGold = False,
    with_published: WithPublished = False,
    mix: Mix = False,
    prices: Prices = None,
) -> None:
    """Serve the site on this machine and follow a running run."""
    call = load("suite.comparing:view_site")
    raise typer.Exit(call(runs, port, with_gold=with_gold, with_published=with_published, mix=mix, prices=prices))


def export(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help="parquet.")],
    runs: Runs,
    out: Annotated[Path, typer.Option("--out", help="The file to write.")],
    prices: Prices = None,
    redact: Redact = False,
) -> None:
    """Write one row per trial, for notebooks."""
    raise typer.Exit(load("suite.comparing:export")(form, runs, out, prices=prices, redact=redact))


def plan(
    detect: Annotated[float, typer.Option("--detect", help="Points of success to tell two agents apart by.")],
    tasks: Annotated[list[str] | None, typer.Option("--tasks", help="Glob over task ids; repeatable.")] = None,
    category: Annotated[list[str] | None, typer.Option("--category", help="Category; repeatable.")] = None,
    instances: Annotated[int, typer.Option("--instances", min=1, help="Draws per task as planned.")] = 1,
    trials: Annotated[int, typer.Option("--trials", min=1, help="Attempts per instance as planned.")] = 3,
) -> None:
    """Say how many instances and trials can tell two agents apart."""
    call = load("suite.comparing:plan_to_detect")
    raise typer.Exit(call(detect, tasks or [], category or [], instances=instances, trials=trials))
