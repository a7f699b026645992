"""The command line: parse, make one call, print, return an exit code."""

import sys
from typing import Annotated

import typer

from suite.commands import comparing, keeping, reading, running, scoring, sourcing
from suite.seam import load

app = typer.Typer(
    name="hab-suite",
    help="54 patient-grounded tasks for AI agents on healthcare work: run them in containers, score them honestly.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (reading, running, scoring, comparing, sourcing, keeping):
    module.register(app)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"hab-suite {load('suite.plan:suite_version')()}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options before the command."""


def main() -> None:
    """Run the command line; errors that a user can mend are told on standard error, exit status 2."""
    try:
        app(prog_name="hab-suite")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        words = load("suite.errors:words_of")(error)
        if not words:
            raise
        typer.echo(f"hab-suite: {words}", err=True)
        sys.exit(2)
