"""``clean`` and ``cache``."""

import json

import typer

from categories.assets import needed
from categories.catalog import load_catalog
from categories.store import derived_entries, entries, prune, prune_derived
from containers.docker_engine import DockerEngine
from containers.images import prune as prune_images
from containers.reap import reap
from runners.cache import default_cache
from runners.opening import current_images, host_helper, say_reaped

GB = 1e9


def clean(*, images: bool) -> int:
    """Remove what dead runs left."""
    engine, cache = DockerEngine(), default_cache()
    say_reaped(reap(engine, cache.mounts, host_helper(engine, cache, typer.echo, {})), typer.echo)
    if images:
        for tag in prune_images(engine, current_images()):
            typer.echo(f"removed image {tag}")
    typer.echo("clean")
    return 0


def cache_list(*, as_json: bool) -> int:
    """Print the prepared draws, and what was derived from assets."""
    root = default_cache().root
    draws, assets = entries(root), derived_entries(root, needed(load_catalog()).values())
    found = [*draws, *assets]
    if as_json:
        rows = [
            {"about": e.about, "size_mb": round(e.size_bytes / 1e6, 1), "used_at": e.used_at.isoformat()} for e in found
        ]
        typer.echo(json.dumps(rows, indent=1))
        return 0
    for entry in found:
        typer.echo(f"{entry.used_at:%Y-%m-%d %H:%M}  {entry.size_bytes / 1e6:9.1f} MB  {entry.about}")
    counts = f"{len(draws)} draws, {len(assets)} derived assets"
    typer.echo(f"{counts}, {sum(e.size_bytes for e in found) / GB:.2f} GB in {root}")
    return 0


def cache_prune(keep_gb: float) -> int:
    """Evict draws down to a size, and all of the derived assets that nothing uses any more."""
    root = default_cache().root
    draws, assets = prune(root, int(keep_gb * GB)), prune_derived(root, needed(load_catalog()).values())
    gone = sum(e.size_bytes for e in [*draws, *assets]) / GB
    typer.echo(f"evicted {len(draws)} draws and {len(assets)} derived assets, {gone:.2f} GB")
    return 0
