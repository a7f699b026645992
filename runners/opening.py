"""Everything that must stand before the first trial: images, agents, the run's lease, the gateway; and its end."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from categories.assets import assets_folder, make_ready, needed
from categories.catalog import all_tasks, find_task
from categories.instruction import instruction_template
from categories.spec import Category, Task
from containers import agents
from containers.box import Engine, EngineInfo
from containers.disk import Shell, helper_shell, make_disk
from containers.images import ensure_base, ensure_image, ensure_task_image, image_tag
from containers.lease import RunLease
from containers.reap import Reaped, reap, reap_predecessor
from results.folder import RunFolder
from results.records import RunPlan, TrialPlan
from runners.cache import Cache
from runners.gateway import GatewayPlan, start_gateway
from runners.harness import Harness, HarnessOptions, Say, plan_harness
from runners.place import InstalledAgent, Job, Place, clamp
from runners.verify import verifier_files


@dataclass(frozen=True)
class Opening:
    """What a run is opened with."""

    engine: Engine
    machine: EngineInfo
    cache: Cache
    gateway: GatewayPlan | None
    agent_version: str = ""


@contextmanager
def open_place(
    opening: Opening, folder: RunFolder, trials: Sequence[TrialPlan], say: Say
) -> Iterator[tuple[Place, list[Job]]]:
    """Yield the place and the jobs of these trials; on leaving, nothing of the run is left on the host."""
    engine, cache, plan = opening.engine, opening.cache, folder.plan
    tasks = {trial.task: find_task(trial.task) for trial in trials}
    harnesses = {(t.harness, t.model, t.effort): plan_harness(t, plan) for t in trials}
    if warning := caution(plan, [(tasks[t.task], harnesses[t.harness, t.model, t.effort][0]) for t in trials]):
        say(warning)
    with ExitStack() as stack:
        lease = stack.enter_context(RunLease(cache.mounts, plan.run_id))
        helper = host_helper(engine, cache, say, lease.labels)
        say_reaped(reap_predecessor(engine, lease, helper), say)
        say_reaped(reap(engine, cache.mounts, helper), say)
        boxes = {name: task_image(engine, task, cache, say) for name, task in tasks.items()}
        judges = {t.category.id: verifier_image(engine, t.category, cache, say) for t in tasks.values()}
        if plan.edition == "synthetic":
            for asset in needed(tuple({t.category.id: t.category for t in tasks.values()}.values())).values():
                make_ready(asset, assets_folder(cache.root), say)
        wanted = {harness.agent for harness, _ in harnesses.values() if harness.agent}
        installed = {name: _install(opening, name, say) for name in sorted(wanted)}
        gateway = start_gateway(opening.gateway, engine, folder, lease, cache, say)
        if gateway is not None:
            stack.callback(gateway.stop)
        place = Place(
            engine=engine,
            machine=opening.machine,
            cache=cache,
            folder=folder,
            plan=plan,
            seed=folder.seed(),
            mounts=lease.folder,
            labels=lease.labels,
            make_disk=partial(make_disk, helper=helper),
            box_images=boxes,
            verifier_images=judges,
            agents=installed,
            gateway=gateway,
            logins={name: login.token for name, login in opening.gateway.logins.items()} if opening.gateway else {},
        )
        yield place, [_job(trial, tasks[trial.task], harnesses, place) for trial in trials]


def caution(plan: RunPlan, trials: Iterable[tuple[Task, Harness]]) -> str:
    """Return the line that tells of boxes with a way to what their own data were made from; empty without such.

    Behind the gateway only a box that asks a model has a way out; an open one always has.
    """
    if plan.edition != "synthetic" or plan.network == "model":
        return ""
    reaching = [task.category for task, harness in trials if harness.needs_model or plan.network == "open"]
    found = {category.id: assets for category in reaching if (assets := needed((category,)))}
    if not found:
        return ""
    packages = sorted({asset.package for assets in found.values() for asset in assets.values()})
    return (
        f"caution: with --network {plan.network} agents can fetch what the data of {', '.join(sorted(found))} were"
        f" made from ({', '.join(packages)}, a public package) and compare. Reports mark these results by their"
        " network policy; leave these categories out (--category), or run without --network."
    )


def host_helper(engine: Engine, cache: Cache, say: Say, labels: Mapping[str, str]) -> Shell | None:
    """Return what makes disks for a user who is not root; null for root, who needs none."""
    return None if os.geteuid() == 0 else helper_shell(engine, ensure_base(engine, cache.locks, say), labels)


def say_reaped(reaped: Reaped, say: Say) -> None:
    """Tell what dead runs had left, if anything."""
    if reaped.containers or reaped.disks or reaped.folders:
        counts = f"{reaped.containers} containers, {reaped.disks} disks, {reaped.folders} folders"
        say(f"removed what dead runs left: {counts}")


def task_image(engine: Engine, task: Task, cache: Cache, say: Say) -> str:
    """Return the tag of a task's image: the category image, the instruction's template, the layout of the data."""
    parent = ensure_image(engine, task.category.image, {}, cache.locks, say)
    files = {"/opt/task/instruction.md": instruction_template(task).encode()}
    return ensure_task_image(engine, files, parent, cache.locks, say)


def verifier_image(engine: Engine, category: Category, cache: Cache, say: Say) -> str:
    """Return the tag of the image that judges a category."""
    return ensure_image(engine, category.verifier_image, verifier_files(), cache.locks, say)


def current_images() -> set[str]:
    """Return the verifier images as they are now (the roles' own are known to ``containers.images``)."""
    return {image_tag(task.category.verifier_image, verifier_files()) for task in all_tasks()}


def _install(opening: Opening, name: str, say: Say) -> InstalledAgent:
    version = opening.agent_version or None
    base = image_tag("base", {})
    say(f"agent {name}")
    path = agents.install(name, cache=opening.cache.root, engine=opening.engine, image=base, version=version)
    return InstalledAgent(version=agents.release(name, version).version, mount=agents.mount(name, path))


def _job(
    trial: TrialPlan,
    task: Task,
    harnesses: dict[tuple[str, str, str], tuple[Harness, HarnessOptions]],
    place: Place,
) -> Job:
    harness, options = harnesses[trial.harness, trial.model, trial.effort]
    asked = place.plan.options.get("agent_timeout_s")
    own = task.category.resources[place.plan.scale]
    resources, limits = clamp(own, place.machine, int(asked) if asked else None)
    version = place.agents[harness.agent].version if harness.agent else ""
    return Job(trial, task, harness, options, harness_version=version, resources=resources, limits=limits)
