"""``prepare`` and ``build``: make ahead what a run would make."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import typer

from categories.assets import assets_folder, make_ready, needed
from categories.catalog import select_tasks
from categories.staging import StageRequest, staged
from containers import agents
from containers.docker_engine import DockerEngine
from containers.images import image_tag
from runners.cache import default_cache
from runners.opening import task_image, verifier_image
from suite.console import download_bars
from suite.plan import require_edition
from suite.request import make_request
from suite.sourcing import KEPT, provide_checks, require_sources


def prepare(
    globs: Sequence[str], categories: Sequence[str], *, words: dict[str, str | None], instances: int, jobs: int
) -> int:
    """Stage every draw; twins share one."""
    request = make_request(None, {"harness": ("nop",), **words})
    cache, tasks = default_cache(), select_tasks(globs, categories)
    if request.edition == "clinical":
        require_edition(tasks, request.edition)
        require_sources(tasks)
    wanted, cancel = dict[str, StageRequest](), threading.Event()
    for task in tasks:
        for instance in range(instances):
            one = StageRequest(task, request.seed, instance, request.scale, request.edition)
            wanted.setdefault(f"{task.category.id}/{task.data_case}/{instance}", one)
    provide_checks(wanted.values())

    def make(one: StageRequest) -> str:
        with staged(one, cache.root, cancel) as draw:
            return f"{draw.about}  {draw.content_digest[:16]}  {draw.seconds:.1f} s  {draw.peak_memory_mb:.0f} MB"

    with download_bars(cache.sources), ThreadPoolExecutor(jobs) as threads:
        try:
            for made in [threads.submit(make, one) for one in wanted.values()]:
                while not wait([made], timeout=0.5).done:  # polars' signal handler restarts a wait without end
                    pass
                typer.echo(made.result())
        except BaseException as error:
            cancel.set()  # else the threads would be waited for until they have made all the rest
            threads.shutdown(wait=False, cancel_futures=True)
            if isinstance(error, KeyboardInterrupt):
                typer.echo(f"hab-suite: {KEPT}", err=True)
            raise
    return 0


def build(what: Sequence[str]) -> int:
    """Build the images of tasks, fetch what their generators stand on, and fetch the agents."""
    cache = default_cache()
    globs = [word for word in what if word not in ("images", "agents", "assets")]
    if not what or "assets" in what or globs:
        categories = tuple({task.category.id: task.category for task in select_tasks(globs)}.values())
        for asset in needed(categories).values():
            derived = make_ready(asset, assets_folder(cache.root), typer.echo)
            typer.echo(f"{asset.title}  {derived.variant or asset.file}  {derived.folder.name}")
    if list(what) == ["assets"]:
        return 0
    engine = DockerEngine()
    if not what or "images" in what or globs:
        for task in select_tasks(globs):
            typer.echo(f"{task.id}  {task_image(engine, task, cache, typer.echo)}")
            verifier_image(engine, task.category, cache, typer.echo)
    if not what or "agents" in what:
        for name in agents.table():
            path = agents.install(name, cache=cache.root, engine=engine, image=image_tag("base", {}))
            typer.echo(f"{name}  {path.name}")
    return 0
