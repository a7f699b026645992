"""The gateway of a run: which endpoints, with which keys, under which limits."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from containers.box import Engine
from containers.door import Gateway
from containers.endpoints import GatewaySettings, Price, Upstream
from containers.images import ensure_image
from containers.lease import RunLease
from results.folder import RunFolder
from results.pricing import PriceBook, read_price_file
from results.records import RunPlan, Usage
from runners.cache import Cache
from runners.harness import HarnessError, Say, plan_harness
from runners.keys import AsksModel, find_upstreams, host_proxies, read_variables


@dataclass(frozen=True)
class GatewayPlan:
    """What the gateway will be told, keys included: lives in memory only."""

    upstreams: tuple[Upstream, ...]
    models: tuple[str, ...]
    proxies: dict[str, str]


def plan_gateway(plan: RunPlan, key_file: Path | None) -> GatewayPlan | None:
    """Find the endpoints and keys of a run's harnesses; null where none asks a model.

    Raises:
        KeyMissingError: a credential is missing; said before anything is built.
    """
    asking = models_asked(plan)
    if not asking:
        return None
    variables = read_variables(key_file, os.environ)
    models = tuple(dict.fromkeys(harness.model for harness in asking))
    return GatewayPlan(find_upstreams(asking, variables), models, host_proxies(variables))


def models_asked(plan: RunPlan) -> list[AsksModel]:
    """Return the run's harnesses that ask a model, each once."""
    found: dict[tuple[str, str, str], AsksModel] = {}
    for trial in plan.trials:
        key = (trial.harness, trial.model, trial.effort)
        if key in found:
            continue
        harness, _ = plan_harness(trial, plan)
        if not harness.needs_model:
            continue
        if not isinstance(harness, AsksModel):
            raise HarnessError(f"{trial.harness} asks a model and does not say which provider serves it.")
        found[key] = harness
    return list(found.values())


def start_gateway(
    wanted: GatewayPlan | None, engine: Engine, folder: RunFolder, lease: RunLease, cache: Cache, say: Say
) -> Gateway | None:
    """Start the gateway's container; null where no harness asks a model."""
    if wanted is None:
        return None
    plan = folder.plan
    book = price_book(plan)
    settings = GatewaySettings(
        upstreams=wanted.upstreams,
        prices=_prices(wanted.models, book),
        spent_usd=_spent(folder, book),
        connect_hosts=_connect_hosts(plan),
        proxies=wanted.proxies,
        max_usd=_usd(plan, "max_usd"),
        max_usd_per_trial=_usd(plan, "max_usd_per_trial"),
    )
    image = ensure_image(engine, "gateway", {}, cache.locks, say)
    gateway = Gateway(
        engine,
        image=image,
        folder=lease.folder / "doors",
        journal=folder.path / "gateway.jsonl",
        labels=lease.labels,
        settings=settings,
    )
    gateway.start()
    return gateway


def price_book(plan: RunPlan) -> PriceBook:
    """Return the prices of a run: those of its price file, if it has one, above the dated table."""
    named = plan.options.get("prices")
    return read_price_file(Path(named)) if named else PriceBook()


def _usd(plan: RunPlan, name: str) -> float | None:
    return float(plan.options[name]) if name in plan.options else None


def _connect_hosts(plan: RunPlan) -> tuple[str, ...]:
    if plan.network != "packages":
        return ()
    hosts = plan.options.get("package_hosts", "").split()
    return tuple(host if ":" in host else f"{host}:443" for host in hosts)


def _prices(models: Sequence[str], book: PriceBook) -> dict[str, Price]:
    """Return the price of each model that the table knows; with a limit set the gateway refuses the others."""
    prices = {}
    for model in models:
        rates = book.rates(Usage(model=model), datetime.now(UTC))
        if rates is not None:
            prices[model] = Price(**rates.model_dump())
    return prices


def _spent(folder: RunFolder, book: PriceBook) -> float:
    """Return what the finished trials of a resumed run have spent."""
    costs = (book.cost(record.usage, record.started_at).usd for record in folder.records().values())
    return sum(cost for cost in costs if cost is not None)
