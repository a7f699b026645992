"""``compare``, ``pareto``, ``site``, ``view``, ``export``, ``plan``."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import typer

from categories.catalog import select_tasks
from results.blocks import split
from results.compare import compare, sections_of_comparison
from results.figures import save_frontier
from results.folder import open_all
from results.frame import export_parquet, planned_frame, trial_frame
from results.frontier import Frontier, Measure, frontier_of, frontier_section, published_frontier
from results.planning import detect_section
from results.power import Design
from results.render import sections_as_markdown, sections_as_text
from results.site.build import Options, build_site
from results.site.serve import serve_site
from results.tables import Section
from suite.picturing import painters
from suite.prices import book
from suite.request import RequestError, check_figure

FIGURES = (".svg", ".png")


def compare_agents(a: str, b: str, runs: Sequence[Path], *, markdown: bool, as_json: bool, prices: Path | None) -> int:
    """Print what may be claimed of A against B, and the tables behind it."""
    folders = open_all(runs)
    found = compare(folders, a, b, prices=book(prices, folders))
    if as_json:
        typer.echo(json.dumps(found.as_json(), indent=1, allow_nan=False))
        return 0
    typer.echo(found.verdict())
    _print(sections_of_comparison(found), markdown=markdown)
    return 0


def pareto(
    runs: Sequence[Path],
    *,
    figure: Path | None,
    minutes: bool,
    with_published: bool,
    markdown: bool,
    mix: bool,
    prices: Path | None,
) -> int:
    """Print a frontier per block of comparable runs, and draw them side by side."""
    if figure is not None:
        check_figure(figure, FIGURES)
    folders = open_all(runs)
    measure: Measure = "minutes" if minutes else "cost"
    blocks = split(folders, trial_frame(folders, book(prices, folders)), planned_frame(folders), mix=mix)
    panels: list[Frontier] = [frontier_of(block, measure) for block in blocks]
    if with_published:
        panels.append(published_frontier(measure))
    _print([frontier_section(panel) for panel in panels], markdown=markdown)
    if figure is not None:
        save_frontier(panels, figure)
        typer.echo(f"wrote {figure}")
    return 0


def write_site(
    runs: Sequence[Path],
    out: Path,
    *,
    with_gold: bool,
    with_published: bool,
    with_data: bool,
    mix: bool,
    prices: Path | None,
    redact: bool,
) -> int:
    folders = open_all(runs)
    options = Options(with_gold=with_gold, with_published=with_published, mix=mix, redact=redact)
    if with_data:
        options = replace(options, pictures=painters(folders))
    typer.echo(build_site(folders, out, options, prices=book(prices, folders)))
    return 0


def view_site(
    runs: Sequence[Path], port: int, *, with_gold: bool, with_published: bool, mix: bool, prices: Path | None
) -> int:
    """Serve until Ctrl-C."""
    options = Options(with_gold=with_gold, with_published=with_published, mix=mix, refresh_s=5, here_only=True)
    folders = open_all(runs)
    try:
        serve_site(folders, options, port=port, prices=book(prices, folders), ready=typer.echo)
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
    return 0


def export(form: str, runs: Sequence[Path], out: Path, *, prices: Path | None, redact: bool) -> int:
    if form != "parquet":
        raise RequestError(f"export {form}: the format must be parquet")
    folders = open_all(runs)
    rows = export_parquet(folders, out, book(prices, folders), redact=redact)
    typer.echo(f"wrote {rows} trials to {out}")
    return 0


def plan_to_detect(
    points: float, globs: Sequence[str], categories: Sequence[str], *, instances: int, trials: int
) -> int:
    """Print the designs that detect a difference; twins that share a draw are one template."""
    if not 0 < points < 100:
        raise RequestError(f"--detect {points:g}: must lie between 0 and 100 points")
    tasks = select_tasks(globs, categories)
    templates = len({(task.category.id, task.data_case) for task in tasks})
    _print([detect_section(points / 100, Design(templates, instances, trials))], markdown=False)
    return 0


def _print(sections: list[Section], *, markdown: bool) -> None:
    typer.echo((sections_as_markdown if markdown else sections_as_text)(sections).rstrip("\n"))
