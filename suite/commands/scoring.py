"""``verify`` and ``rescore``: verdicts without agents."""

from pathlib import Path
from typing import Annotated

import typer

from suite.seam import load


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(verify)
    app.command()(rescore)


def verify(
    task: Annotated[str, typer.Argument(help="Task id.")],
    folder: Annotated[Path, typer.Argument(help="A folder laid out like /workspace/submission.")],
    scale: Annotated[str | None, typer.Option("--scale", help="full (default) or small.")] = None,
    seed: Annotated[str | None, typer.Option("--seed", help="The seed of the data that was worked on.")] = None,
    instance: Annotated[int, typer.Option("--instance", min=0)] = 0,
    edition: Annotated[str, typer.Option("--edition", help="synthetic or clinical.")] = "synthetic",
) -> None:
    """Score a folder by hand; prints the verdict as JSON."""
    words = {"scale": scale, "seed": seed, "instance": instance, "edition": edition}
    raise typer.Exit(load("suite.scoring:verify")(task, folder, **words))


def rescore(
    run: Annotated[Path, typer.Argument(help="The run's folder.")],
    tasks: Annotated[list[str] | None, typer.Option("--tasks", help="Glob over task ids; repeatable.")] = None,
    llm_judge: Annotated[
        str | None, typer.Option("--llm-judge", help="Ask a model about X-ray reports too; it moves no reward.")
    ] = None,
    key_file: Annotated[Path | None, typer.Option("--key-file", help="File of NAME=value lines.")] = None,
) -> None:
    """Judge a run's submissions again with the verifiers as they are now."""
    raise typer.Exit(load("suite.scoring:rescore")(run, tasks or [], llm_judge=llm_judge, key_file=key_file))
