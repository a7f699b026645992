"""``sources``, and what a run of the clinical edition must have before anything starts."""

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from categories.catalog import find_task, load_catalog
from categories.sources.agreements import Agreements
from categories.sources.errors import NotReadyError
from categories.sources.readiness import State, state_of
from categories.sources.settings import Settings
from categories.sources.spec import SourceSpec, find_source, load_sources, sources_of, tasks_of
from categories.spec import Category, Task
from categories.staging import StageRequest, staged
from containers.endpoints import Upstream, is_loopback
from results.records import RunPlan
from runners.cache import Cache, default_cache
from suite.console import download_bars
from suite.etl_environment import provide_etl
from suite.request import RequestError

KEPT = "interrupted; what has been fetched and prepared is kept: the same command goes on from there."
HEADER = ("category", "source", "access", "GB", "here GB", "state", "agreement")


def sources(*, accept: Sequence[str], allow: Sequence[str], check: bool, as_json: bool) -> int:
    """Accept terms, acknowledge endpoints, and print the table; exit status 2 where a needed source is not ready."""
    agreements = Agreements(Settings.load().config)
    for source in _named(accept):
        agreements.accept(source)
        typer.echo(f"accepted: {source.title} ({source.licence}; {source.agreement})", err=True)
    for word in allow:
        name, equals, endpoint = word.partition("=")
        if not equals or not endpoint:
            raise RequestError(f"--allow {word}: must be SOURCE=ENDPOINT, such as ct_rate=api.example.org")
        agreements.allow(find_source(name), endpoint)
        typer.echo(f"acknowledged: data of {name} may be sent to {endpoint}", err=True)
    rows = list(_rows(Settings.load(), ask=check))
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
    else:
        cells = [(r["category"], r["source"], r["access"], *_sizes(r), r["state"], r["agreement"]) for r in rows]
        typer.echo(_aligned([HEADER, *cells]))
        for text in dict.fromkeys(f"{r['source']}: {r['repair']}" for r in rows if r["repair"]):
            typer.echo(f"-> {text}")
    return 0 if all(row["ready"] for row in rows) else 2


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _named(words: Iterable[str]) -> list[SourceSpec]:
    known = load_sources()
    return [source for word in words for source in (known.values() if word == "all" else [find_source(word)])]


def _sizes(row: dict[str, Any]) -> tuple[str, str]:
    return f"{row['size_gb']:g}", f"{row['here_gb']:g}"


def _rows(settings: Settings, *, ask: bool) -> Iterable[dict[str, Any]]:
    root, states = default_cache().sources, dict[str, State]()
    for category in load_catalog():
        for name in category.clinical_sources:
            source = find_source(name)
            if name not in states:
                states[name] = state_of(source, settings, root, ask=ask)
            state = states[name]
            yield {
                "category": category.id,
                "source": name,
                "title": source.title,
                "access": source.access,
                "licence": source.licence,
                "agreement": source.agreement,
                "variables": [list(group) for group in source.variables],
                "size_gb": source.size_gb,
                "here_gb": state.here_gb,
                "ready": state.word != "not ready",
                "state": f"{state.word}: {state.detail}",
                "repair": state.repair,
            }


@dataclass(frozen=True)
class SourceCheck:
    """What ``doctor`` says of a source."""

    name: str
    ready: bool
    detail: str
    repair: str


def source_checks() -> list[SourceCheck]:
    """Return one check per source of the clinical edition; nothing is asked over the network."""
    settings, root, found = Settings.load(), default_cache().sources, []
    for source in load_sources().values():
        state = state_of(source, settings, root)
        detail = f"{state.word}: {state.detail}; {tasks_of(source)}; {source.size_gb:g} GB, {state.here_gb:g} here"
        repair = "" if state.word == "ready" else state.repair
        found.append(SourceCheck(f"source {source.id}", state.word != "not ready", detail, repair))
    return found


def require_sources(tasks: Sequence[Task], *, ask: bool = True) -> None:
    """Return if the sources of all tasks can be used.

    Raises:
        NotReadyError: with one line for each that cannot, and the tasks that can be run now.
    """
    settings, root = Settings.load(), default_cache().sources
    wanted = {task.category.id: task.category for task in tasks}
    used = {source.id: source for task in tasks for source in sources_of(task)}
    states = {
        name: state_of(source, settings, root, ask=ask and bool(source.variables)) for name, source in used.items()
    }
    bad = {name: state for name, state in states.items() if state.word == "not ready"}
    if not bad:
        _require_room(tasks, [source for name, source in used.items() if states[name].fetched], states, root)
        return
    lines = [
        "  " + "; ".join(filter(None, (f"{name}: {state.detail}", state.repair, f"tasks: {tasks_of(used[name])}")))
        for name, state in bad.items()
    ]
    good = [category for category in wanted.values() if not bad.keys() & set(category.clinical_sources)]
    raise NotReadyError("\n".join(["not ready, nothing was started:", *lines, _offer(good)]))


def _require_room(
    tasks: Sequence[Task], fetched: Sequence[SourceSpec], states: Mapping[str, State], root: Path
) -> None:
    """Refuse at once what would fill the disk after hours; each download is checked again, to the byte."""
    root.mkdir(parents=True, exist_ok=True)
    need = 0.0
    for source in fetched:
        users = [category for category in load_catalog() if source.id in category.clinical_sources]
        chosen = sum(task.category in users for task in tasks) / sum(len(category.cases) for category in users)
        # Sizes of the catalogue are rounded: of a source that is here in part they cannot say what is left.
        need += 0.0 if states[source.id].here_gb else source.size_gb * chosen
    free = shutil.disk_usage(root).free / 1e9
    if need > free:
        names = ", ".join(source.id for source in fetched)
        raise NotReadyError(
            f"not ready, nothing was started: about {need:.3g} GB are still to be fetched ({names}), {free:.3g} GB are "
            f"free on the disk of {root}: free some, choose fewer tasks, or point HAB_SUITE_CACHE at a larger disk"
        )


def stands_on(category: Category) -> list[str]:
    """Return, for people, what each edition of a category is made of, and under which licence."""
    made = [f"{source.title} ({source.licence})" for source in category.sources] or ["the suite's own generator (MIT)"]
    found = [f"{find_source(name).title} ({find_source(name).licence})" for name in category.clinical_sources]
    return [f"synthetic: {'; '.join(made)}", *([f"clinical: {'; '.join(found)}"] if found else [])]


def draws_of(plan: RunPlan, seed: str) -> list[StageRequest]:
    """Return the draws of a plan's trials, each once."""
    draws = dict.fromkeys((trial.task, trial.instance) for trial in plan.trials)
    return [StageRequest(find_task(name), seed, instance, plan.scale, plan.edition) for name, instance in draws]


def provide_checks(draws: Iterable[StageRequest]) -> None:
    """Have at hand what checks the gold of draws that are still to be made; whoever stages calls this first.

    Raises:
        NotReadyError: it cannot be had, and what next.
    """
    provide_etl(draws, default_cache(), lambda words: typer.echo(words, err=True), offline=Settings.load().offline)


def _offer(ready: Sequence[Category]) -> str:
    if not ready:
        return "None of the chosen tasks is ready; `hab-suite sources` shows all sources."
    names = " ".join(f"--category {category.id}" for category in ready)
    return f"Ready now ({sum(len(category.cases) for category in ready)} tasks): {names}"


def require_consent(plan: RunPlan, upstreams: Sequence[Upstream]) -> None:
    """Return if every place that gated records of this run would go to has been acknowledged.

    Raises:
        NotReadyError: with the command that acknowledges each, and the alternative.
    """
    tasks = [find_task(name) for name in dict.fromkeys(trial.task for trial in plan.trials)]
    private = {source.id: source for task in tasks for source in sources_of(task) if source.leaves_the_house}
    agreements = Agreements(Settings.load().config)
    places = endpoints_of(plan, upstreams)
    missing = [
        f"  hab-suite sources --allow {name}={place}"
        for name, source in private.items()
        for place in places
        if not agreements.may_send(source, place)
    ]
    if missing:
        raise NotReadyError(
            "this run would send records of real patients out of the house, nothing was started. The agreements of "
            "these sources forbid most third parties; where yours allows it, acknowledge it once:\n"
            + "\n".join(missing)
            + "\nA model served on this machine (its base URL on localhost) needs no acknowledgement."
        )


def endpoints_of(plan: RunPlan, upstreams: Sequence[Upstream]) -> list[str]:
    """Return the places outside this machine that a run can send to."""
    places = [_host(upstream.base_url) for upstream in upstreams if not is_loopback(upstream.base_url)]
    if plan.network == "open":
        places.append("any-host")
    if plan.network == "packages":
        places += plan.options.get("package_hosts", "").split()
    return list(dict.fromkeys(places))


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2] or url


def require_clinical(plan: RunPlan, upstreams: Sequence[Upstream], *, ask: bool = False) -> list[Task]:
    """Return the tasks of a clinical run if nothing is in its way; with ``ask`` each credential is tried.

    Raises:
        NotReadyError: a source or an acknowledgement is missing.
    """
    tasks = [find_task(name) for name in dict.fromkeys(trial.task for trial in plan.trials)]
    require_consent(plan, upstreams)
    require_sources(tasks, ask=ask)
    return tasks


def open_clinical(plan: RunPlan, upstreams: Sequence[Upstream], seed: str, cache: Cache) -> None:
    """Do all that must be done before a clinical run's folder is made: sources, consent, downloads, preparation.

    A source that fails then fails before any agent is asked, and leaves no run behind.
    """
    require_clinical(plan, upstreams, ask=True)
    draws = draws_of(plan, seed)
    provide_checks(draws)
    try:
        with download_bars(cache.sources):
            for draw in draws:
                with staged(draw, cache.root):
                    pass
    except KeyboardInterrupt:
        typer.echo(f"hab-suite: {KEPT} No run was begun.", err=True)
        raise


def go_offline(asked: bool) -> None:
    """Fetch nothing from here on, in this process and its children."""
    if asked:
        os.environ["HAB_SUITE_OFFLINE"] = "1"
