"""``sources``: where the clinical edition's records come from, and what the user has agreed to."""

from typing import Annotated

import typer

from suite.seam import load


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(sources)


def sources(
    accept: Annotated[
        list[str] | None, typer.Option("--accept", help="Accept the terms of a source, or of `all`; repeatable.")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="SOURCE=ENDPOINT", help="Let a source's records go to a model's endpoint."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Ask each source whether the credential is good.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Show the sources of the clinical edition: access, size, state, agreement."""
    call = load("suite.sourcing:sources")
    raise typer.Exit(call(accept=accept or [], allow=allow or [], check=check, as_json=json))
