"""``clean`` and ``cache``."""

import json

import typer

from categories.store import entries, prune
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
    found = entries(default_cache().root)
    if as_json:
        rows = [
            {"about": e.about, "size_mb": round(e.size_bytes / 1e6, 1), "used_at": e.used_at.isoformat()} for e in found
        ]
        typer.echo(json.dumps(rows, indent=1))
        return 0
    for entry in found:
        typer.echo(f"{entry.used_at:%Y-%m-%d %H:%M}  {entry.size_bytes / 1e6:9.1f} MB  {entry.about}")
    typer.echo(f"{len(found)} draws, {sum(e.size_bytes for e in found) / GB:.2f} GB in {default_cache().root}")
    return 0


def cache_prune(keep_gb: float) -> int:
    evicted = prune(default_cache().root, int(keep_gb * GB))
    typer.echo(f"evicted {len(evicted)} draws, {sum(e.size_bytes for e in evicted) / GB:.2f} GB")
    return 0
