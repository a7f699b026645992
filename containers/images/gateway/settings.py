"""What the gateway is told at its start: one JSON object over standard input, keys included."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Dialect = Literal["openai", "anthropic", "google"]
MILLION = 1_000_000


class Refusal(Exception):  # noqa: N818 - it is an answer, not a fault
    """A request that the gateway does not pass on; ``kind`` is counted and journalled."""

    def __init__(self, kind: str, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        """HTTP status where it is not the dialect's usual one."""


@dataclass(frozen=True)
class Upstream:
    """A model endpoint. ``auth`` is ``bearer``, ``none`` or the name of the header that takes the key."""

    name: str
    dialect: Dialect
    base_url: str
    auth: str
    key: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    """Where the key came from, for people."""

    def remedy(self, status: int, model: str) -> str:
        """Return what to look at after an error that is the same for every request; else nothing."""
        if status in (401, 403):
            return f" (look at {self.source or 'the endpoint: it got no key'})"
        return f" (look at --model {model} and {self.base_url})" if status == 404 else ""

    def credentials(self) -> dict[str, str]:
        """Return the headers that stand in for the box's placeholder."""
        if self.auth == "none":
            return dict(self.headers)
        if self.auth == "bearer":
            return {"Authorization": f"Bearer {self.key}", **self.headers}
        return {self.auth: self.key, **self.headers}


@dataclass(frozen=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    """As fresh input where null; so is ``cache_write``."""
    cache_write: float | None = None

    def of(self, tokens: Mapping[str, int]) -> float:
        """Return the cost in USD of token counts named as in ``meter.TOKENS``."""
        return (
            tokens["input_tokens"] * self.input
            + tokens["cache_read_tokens"] * (self.input if self.cache_read is None else self.cache_read)
            + tokens["cache_write_tokens"] * (self.input if self.cache_write is None else self.cache_write)
            + tokens["output_tokens"] * self.output
        ) / MILLION


@dataclass(frozen=True)
class Settings:
    """All that the gateway knows of a run."""

    upstreams: Mapping[str, Upstream]
    prices: Mapping[str, Price]
    max_usd: float | None
    max_usd_per_trial: float | None
    spent_usd: float
    spent_by_trial: Mapping[str, float]
    """What trials have spent before this gateway was started in the place of one that died."""
    silence_s: float
    """A model that sends nothing for so long is cut off: before its headers with 504, in mid-stream by closing."""
    stale_s: float
    """Age of the last word from the orchestrator at which everything is refused."""
    connect_hosts: frozenset[str]
    """``host:port`` that ``CONNECT`` may reach."""
    proxies: Mapping[str, str] = field(repr=False)
    """The host's own proxy variables (may hold a password)."""

    @property
    def budgeted(self) -> bool:
        return self.max_usd is not None or self.max_usd_per_trial is not None


def parse(line: str) -> Settings:
    """Read the settings from one line of JSON.

    Raises:
        TypeError, KeyError, ValueError: not what ``containers.door`` sends.
    """
    raw: dict[str, Any] = json.loads(line)
    upstreams = {entry["name"]: Upstream(**entry) for entry in raw.pop("upstreams")}
    prices = {model: Price(**price) for model, price in raw.pop("prices").items()}
    return Settings(upstreams=upstreams, prices=prices, connect_hosts=frozenset(raw.pop("connect_hosts")), **raw)
