"""``clean``, ``cache``, ``seed``: housekeeping."""

from typing import Annotated

import typer

from suite.seam import load

cache_app = typer.Typer(help="Look at and trim the cache of prepared data.", no_args_is_help=True)
seed_app = typer.Typer(help="Make seeds and name them.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(clean)
    app.add_typer(cache_app, name="cache")
    app.add_typer(seed_app, name="seed")


def clean(
    images: Annotated[bool, typer.Option("--images", help="Also remove the images of older versions.")] = False,
) -> None:
    """Remove what dead runs of this machine left: containers, disks, sockets."""
    raise typer.Exit(load("suite.keeping:clean")(images=images))


@cache_app.command("ls")
def cache_list(json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False) -> None:
    """List the prepared draws, the latest used first, and what was derived from assets."""
    raise typer.Exit(load("suite.keeping:cache_list")(as_json=json))


@cache_app.command("prune")
def cache_prune(
    keep_gb: Annotated[
        float, typer.Option("--keep-gb", min=0, help="Evict the longest unused until this much is left.")
    ] = 0.0,
) -> None:
    """Evict prepared draws that are not in use, and derived assets that no generator uses any more."""
    raise typer.Exit(load("suite.keeping:cache_prune")(keep_gb))


@seed_app.command("new")
def seed_new() -> None:
    """Print a private seed: keep it secret for as long as its results matter."""
    typer.echo(load("categories.seed:new_seed")())


@seed_app.command("fingerprint")
def seed_fingerprint(seed: Annotated[str, typer.Argument(help="The seed.")]) -> None:
    """Print the fingerprint that reports show for a seed."""
    typer.echo(load("categories.seed:fingerprint")(seed))
