"""From a request to the frozen list of trials: what will run, before anything runs."""

import hashlib
import platform
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from itertools import product
from pathlib import Path
from urllib.parse import quote

from categories.catalog import folder_digest, select_tasks
from categories.instruction import instruction_template
from categories.seed import DEFAULT_SEED, fingerprint
from categories.spec import Category, Edition, Task
from categories.staging import generator_digest
from containers.box import EngineInfo
from containers.images import image_tag, parent_of
from results.records import Host, RunPlan, TrialPlan
from runners.harness import HarnessOptions, extra_options, load_harness
from runners.harnesses.script import list_probes
from runners.verify import verifier_digest
from suite.request import RequestError, RunRequest


@dataclass(frozen=True)
class Contender:
    """One harness with its model and effort: what results compare."""

    harness: str
    """As typed, argument included: ``probe:everything``."""
    options: HarnessOptions

    @property
    def folder(self) -> str:
        """``<harness>@<model>[@<effort>]`` as a folder name."""
        parts = [self.harness, self.options.model, *([self.options.effort] if self.options.effort else [])]
        return "@".join(quote(part, safe="@:+,=-_. ") for part in parts)


def contenders(request: RunRequest) -> list[Contender]:
    """Cross the harnesses with the models and efforts; harnesses without a model stand once.

    Raises:
        HarnessError: an unknown harness, or one that lacks an argument.
        RequestError: a harness needs a model and none is given, or a model is given that nobody takes.
    """
    found: list[Contender] = []
    taken = False
    for word in request.harness:
        typed, _, bound = word.partition("@")
        name, _, argument = typed.partition(":")
        given = HarnessOptions(argument=argument, command=request.command, extra=harness_extra(request))
        if not load_harness(name, given).needs_model:
            if bound:
                raise RequestError(f"--harness {word}: {name} runs without a model.")
            found.append(Contender(typed, given))
            continue
        models = (bound,) if bound else request.model
        if not models:
            raise RequestError(f"--harness {typed} needs --model NAME (or --harness {typed}@NAME).")
        taken = taken or not bound
        for model, effort in product(models, request.effort or ("",)):
            found.append(
                Contender(typed, HarnessOptions(argument, model, effort, request.command, harness_extra(request)))
            )
    if request.model and not taken:
        raise RequestError(f"--model {request.model[0]}: no harness of this run takes a model.")
    return list({agent.folder: agent for agent in found}.values())


def harness_extra(request: RunRequest) -> dict[str, str]:
    """Return what harnesses may read beyond model and effort."""
    return extra_options(_options(request))


def plan_trials(
    tasks: Iterable[Task], agents: Iterable[Contender], *, instances: int, attempts: int
) -> Iterator[TrialPlan]:
    """Yield the trials by task, then instance, so that one draw serves all its trials before the next is made."""
    chosen = list(agents)
    for task, instance, attempt, agent in product(tasks, range(instances), range(1, attempts + 1), chosen):
        yield TrialPlan(
            trial_id=f"{task.id}/i{instance}/{agent.folder}/t{attempt}",
            category=task.category.id,
            case=task.case,
            instance=instance,
            harness=agent.harness,
            model=agent.options.model,
            effort=agent.options.effort,
            attempt=attempt,
        )


def make_plan(request: RunRequest, machine: EngineInfo) -> RunPlan:
    """Return the whole plan of a run."""
    tasks = select_tasks(request.tasks, request.category)
    require_edition(tasks, request.edition)
    used = {task.category.id: task.category for task in tasks}
    agents = contenders(request)
    require_probes(used.values(), agents)
    now = datetime.now(UTC)
    return RunPlan(
        run_id=f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
        created_at=now,
        suite_version=suite_version(),
        edition=request.edition,
        scale=request.scale,
        seed_fingerprint=fingerprint(request.seed),
        public_seed=request.seed == DEFAULT_SEED,
        network=request.network,
        options=_options(request),
        task_versions={task.id: task_version(task) for task in tasks},
        titles={name: category.title for name, category in used.items()},
        headlines={
            name: (category.headline.metric, category.headline.direction, category.headline.missing)
            for name, category in used.items()
        },
        axes={name: category.axes.model_dump() for name, category in used.items()},
        templates={task.id: f"{task.category.id}/{task.data_case}" for task in tasks if task.spec.draw_as},
        trials=tuple(plan_trials(tasks, agents, instances=request.instances, attempts=request.trials)),
        host=_host(machine),
        jobs=request.jobs or default_jobs(machine),
    )


def require_edition(tasks: Iterable[Task], edition: Edition) -> None:
    """Return if all tasks have an edition.

    Raises:
        RequestError: some have not; the message names their categories.
    """
    missing = dict.fromkeys(task.category.id for task in tasks if edition not in task.category.editions)
    if missing:
        raise RequestError(f"--edition {edition}: not available for {', '.join(missing)}; choose with --category.")


def require_probes(categories: Iterable[Category], agents: Iterable[Contender]) -> None:
    """Return if every probe that was asked for is one of each category's.

    Raises:
        RequestError: it is not; the message lists those there are.
    """
    for category, agent in product(categories, agents):
        if agent.harness.partition(":")[0] == "probe":
            names = [str(probe["name"]) for probe in list_probes(category.folder)]
            if agent.options.argument not in names:
                raise RequestError(
                    f"--harness {agent.harness}: {category.id} has no such probe; it has {', '.join(names)}."
                    " Choose a category with --category."
                )


def task_version(task: Task) -> str:
    """Return the digest of what a score depends on: category (but for its card), instruction, verifier and images."""
    category = task.category
    images = (image_tag(category.image, {}), image_tag(parent_of(category.verifier_image), {}))
    code = (generator_digest(task), folder_digest(category.folder, {"README.md"}))  # solvers and probes too
    parts = (*code, instruction_template(task), verifier_digest(category.id), *images)
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


def default_jobs(machine: EngineInfo) -> int:
    """Return how many trials run at once unless asked: as many as the machine has CPUs, at most 8."""
    return max(1, min(machine.cpus, 8))


def suite_version() -> str:
    """Return the installed version of the suite."""
    return metadata.version("hab-suite")


def _options(request: RunRequest) -> dict[str, str]:
    words = request.model_dump(exclude={"seed", "harness", "model", "effort", "trials", "instances", "out", "key_file"})
    defaults = RunRequest(harness=("nop",)).model_dump()
    changed = {name: value for name, value in words.items() if value != defaults[name]}
    return {name: _word(value) for name, value in changed.items()}


def _word(value: object) -> str:
    """Return an option as ``run.json`` keeps it: paths absolute, as a report may be made from elsewhere."""
    if isinstance(value, Path):
        return str(value.resolve())
    return "\n".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _host(machine: EngineInfo) -> Host:
    return Host(
        name=platform.node(),
        cpus=machine.cpus,
        memory_mb=machine.memory_mb,
        kernel=platform.release(),
        engine=f"{machine.name} {machine.version}",
        python=platform.python_version(),
    )
