"""The gateway of a run: which endpoints, with which keys, under which limits."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from genai_prices.data_snapshot import get_snapshot

from containers.box import Engine
from containers.door import Gateway
from containers.endpoints import GatewaySettings, Price, Upstream
from containers.images import ensure_image
from containers.journal import entries
from containers.lease import RunLease
from results.folder import RunFolder
from results.pricing import PriceBook, read_price_file
from results.records import RunPlan, Usage
from runners.cache import Cache
from runners.harness import HarnessError, Say, plan_harness
from runners.keys import AsksModel, BoxLogin, find_logins, find_upstreams, host_proxies, providers, read_variables


@dataclass(frozen=True)
class GatewayPlan:
    """What the gateway will be told, keys included: lives in memory only."""

    upstreams: tuple[Upstream, ...]
    models: Mapping[str, str]
    """Model -> its provider, a table of ``providers.toml``."""
    proxies: dict[str, str]
    logins: Mapping[str, BoxLogin] = field(default_factory=dict)
    """Provider -> the login that its CLI needs in the box."""


def plan_gateway(plan: RunPlan, key_file: Path | None) -> GatewayPlan | None:
    """Find the endpoints and keys of a run's harnesses; null where none asks a model.

    Raises:
        KeyMissingError: a credential is missing, or the key file cannot be read; said before anything is built.
        HarnessError: a limit is set, and a model has no price to reckon it by.
        PriceFileError: the file of ``--prices`` cannot be used.
    """
    asking = models_asked(plan)
    variables = read_variables(key_file, os.environ)
    price_book(plan)
    if not asking:
        return None
    models = {harness.model: harness.provider for harness in asking}
    logins = find_logins(asking, variables, allowed="allow_login_in_box" in plan.options)
    _refuse_beside(logins, asking)
    _refuse_unmetered(plan, logins)
    _refuse_unpriced(plan, models)
    return GatewayPlan(find_upstreams(asking, variables), models, host_proxies(variables), logins)


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
        prices=_prices(wanted.models, book) | {name: Price(**own.model_dump()) for name, own in book.own.items()},
        spent_usd=spent_usd(folder, book),
        connect_hosts=_connect_hosts(plan, wanted.logins.values()),
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


def _connect_hosts(plan: RunPlan, logins: Iterable[BoxLogin]) -> tuple[str, ...]:
    hosts = plan.options.get("package_hosts", "").split() if plan.network == "packages" else []
    listed = [host if ":" in host else f"{host}:443" for host in hosts]
    return tuple(dict.fromkeys([*listed, *(host for login in logins for host in login.hosts)]))


def _limits(plan: RunPlan) -> list[str]:
    return [f"--{name.replace('_', '-')}" for name in ("max_usd", "max_usd_per_trial") if name in plan.options]


def _refuse_beside(logins: Mapping[str, BoxLogin], asking: Iterable[AsksModel]) -> None:
    """The way to a login's hosts is open to every box of a run, and only those with the login are stamped."""
    others = sorted({harness.name for harness in asking if harness.provider not in logins})
    if logins and others:
        raise HarnessError(
            f"--model {', '.join(logins)}/...: the login's hosts would be open to the boxes of "
            f"{', '.join(others)} too; make a run of its own of it."
        )


def _refuse_unmetered(plan: RunPlan, logins: Mapping[str, BoxLogin]) -> None:
    if logins and _limits(plan):
        raise HarnessError(
            f"--model {', '.join(logins)}/...: what a login in the box spends is not seen by the gateway, "
            f"and {' and '.join(_limits(plan))} cannot be kept; leave the limit out."
        )


def _refuse_unpriced(plan: RunPlan, models: Mapping[str, str]) -> None:
    limits = _limits(plan)
    if not limits:
        return
    book = price_book(plan)
    unpriced = [model for model, provider in models.items() if _price(model, provider, book) is None]
    if unpriced:
        raise HarnessError(
            f"--model {', '.join(unpriced)}: no price is known, and {' and '.join(limits)} cannot be kept without one; "
            "name it in a file of --prices, or leave the limit out."
        )


def _price(model: str, provider: str, book: PriceBook) -> Price | None:
    family = str(providers()[provider]["dialect"])
    rates = book.rates(Usage(model=model, provider=family), datetime.now(UTC))
    return None if rates is None else Price(**rates.model_dump())


def _prices(models: Mapping[str, str], book: PriceBook) -> dict[str, Price]:
    """Return the prices of the models asked for, and of all others that the table has of their providers.

    A CLI may ask a smaller model for a title or a summary; with a limit set, the gateway refuses what has no price.
    """
    asked = [*_helpers(set(models.values())), *models.items()]
    priced = {model: _price(model, provider, book) for model, provider in asked}
    return {model: price for model, price in priced.items() if price is not None}


def _helpers(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return all models that the price table has of these providers, each with its provider."""
    families = {str(providers()[name]["dialect"]): name for name in names}
    return [
        (model.id, families[entry.id])
        for entry in get_snapshot().providers
        if entry.id in families
        for model in entry.models
    ]


def spent_usd(folder: RunFolder, book: PriceBook) -> float:
    """Return what a resumed run has spent: all requests of its journal, also those of tries that left no record."""
    journal = folder.path / "gateway.jsonl"
    if journal.is_file():
        return sum(float(entry.get("cost_usd") or 0) for entry in entries(journal))
    costs = (book.cost(record.usage, record.started_at).usd for record in folder.records().values())
    return sum(cost for cost in costs if cost is not None)
