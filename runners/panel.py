"""Where a second opinion is asked for: a gateway of its own, with its own journal, so that its cost stays apart."""

import http.client
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from containers.box import Engine
from containers.door import Door, Gateway
from containers.endpoints import GatewaySettings, Price, Upstream
from containers.images import ensure_image
from containers.lease import RunLease
from results.pricing import PriceBook
from results.records import Usage
from runners.cache import Cache
from runners.harness import Say
from runners.keys import KeyMissingError, find_upstream, host_proxies, providers, read_variables, split_model
from runners.second_opinion import PROMPT_SHA256, CallFailedError, form_opinion, texts

CALL_S = 180.0
STALE_S = 6 * 3600.0
"""This command sends the gateway no heartbeat; its lease ends the gateway's container."""
JOURNAL = "second_opinion.jsonl"
NO_COMPLETIONS = ("CODEX_AUTH_JSON_PATH",)
"""Logins to endpoints that know no chat completions."""


@dataclass(frozen=True)
class JudgePlan:
    """Which model is asked, where."""

    model: str
    upstream: Upstream
    proxies: dict[str, str]


def plan_judge(model: str, key_file: Path | None) -> JudgePlan:
    """Return the plan for a model as typed.

    Raises:
        KeyMissingError: no key, or an endpoint that is not OpenAI-compatible.
    """
    variables = {n: v for n, v in read_variables(key_file, os.environ).items() if n not in NO_COMPLETIONS}
    provider, name = split_model(model)
    if providers()[provider]["dialect"] != "openai":
        raise KeyMissingError(
            f"--llm-judge {model}: {provider} is not an OpenAI-compatible endpoint; "
            f"name one that serves the model as openai/{name}, with its address in OPENAI_BASE_URL."
        )
    try:
        upstream = find_upstream(provider, variables, "judge")
    except KeyMissingError as error:
        raise KeyMissingError(str(error).replace("--harness judge", f"--llm-judge {model}")) from None
    return JudgePlan(name, upstream, host_proxies(variables))


@contextmanager
def open_panel(
    plan: JudgePlan, folder: Path, engine: Engine, cache: Cache, lease: RunLease, say: Say
) -> Iterator["Panel"]:
    """Start the gateway for a run's folder and yield the panel behind it."""
    rates = PriceBook().rates(Usage(model=plan.model, provider=plan.upstream.dialect), datetime.now(UTC))
    gateway = Gateway(
        engine,
        image=ensure_image(engine, "gateway", {}, cache.locks, say),
        folder=lease.folder / "doors",
        journal=folder / JOURNAL,
        labels=lease.labels,
        settings=GatewaySettings(
            upstreams=(plan.upstream,),
            prices={plan.model: Price(**rates.model_dump())} if rates else {},
            proxies=plan.proxies,
            stale_s=STALE_S,
        ),
    )
    gateway.start()
    try:
        yield Panel(plan, gateway, priced=rates is not None)
    finally:
        gateway.stop()


class Panel:
    """Asks one model five times about each submission."""

    def __init__(self, plan: JudgePlan, gateway: Gateway, *, priced: bool) -> None:
        self.plan = plan
        self._gateway = gateway
        self._priced = priced

    def opine(self, trial_id: str, gold: Path, submission: Path, reward: int) -> dict[str, Any] | None:
        """Return the document of a second opinion; null where there are no two texts to compare."""
        pair = texts(gold, submission)
        if pair is None:
            return None
        answered: dict[str, None] = {}
        door = self._gateway.open_door(trial_id)

        def ask(body: dict[str, Any]) -> str:
            text, by = self._call(door, body)
            answered[by] = None
            return text

        try:
            opinion = form_opinion(ask, self.plan.model, *pair)
        finally:
            report = self._gateway.close_door(door)
        metrics = opinion.metrics()
        if "llm_pass" in metrics:
            metrics["llm_agrees"] = float(metrics["llm_pass"] == reward)
        return {
            "model": self.plan.model,
            "answered_by": list(answered),
            "prompt_sha256": PROMPT_SHA256,
            "metrics": metrics,
            "flags": opinion.flags,
            "votes": opinion.votes,
            "failed_calls": opinion.failed,
            "usage": list(report.usage),
            "cost_usd": report.spent_usd if self._priced else None,
        }

    def _call(self, door: Door, body: dict[str, Any]) -> tuple[str, str]:
        connection = _Door(door.mount.source / "model")
        try:
            path, headers = f"/{self.plan.upstream.name}/v1/chat/completions", {"Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body), headers)
            answer = connection.getresponse()
            raw = answer.read()
            if answer.status != http.HTTPStatus.OK:
                raise CallFailedError(f"HTTP {answer.status}: {raw[:300].decode(errors='replace')}")
            document = json.loads(raw)
            return str(document["choices"][0]["message"]["content"]), str(document.get("model", ""))
        except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError, AttributeError) as error:
            raise CallFailedError(f"{type(error).__name__}: {error}") from None
        finally:
            connection.close()


class _Door(http.client.HTTPConnection):
    """HTTP through a door's socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("127.0.0.1", timeout=CALL_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
