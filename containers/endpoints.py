"""What a gateway is told: the model endpoints with their keys, the prices, the limits."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Upstream:
    """A model endpoint, reached from a box as ``http://127.0.0.1:8080/<name>``.

    ``auth`` is ``bearer``, ``none`` or the name of the header that takes the key; ``headers`` and ``query`` are added
    to every request.
    """

    name: str
    dialect: Literal["openai", "anthropic", "google"]
    base_url: str
    auth: str
    key: str = field(repr=False, default="")
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    """Where the key came from, for people: the variable's name."""


@dataclass(frozen=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    """As fresh input where null; so is ``cache_write``."""
    cache_write: float | None = None


@dataclass(frozen=True)
class GatewaySettings:
    """What the gateway is told at its start."""

    upstreams: tuple[Upstream, ...]
    prices: Mapping[str, Price] = field(default_factory=dict)
    """Model, as the harness calls it -> price. With a limit set, a model without a price is refused."""
    max_usd: float | None = None
    max_usd_per_trial: float | None = None
    spent_usd: float = 0.0
    """What an earlier part of the run has spent, on resuming."""
    spent_by_trial: Mapping[str, float] = field(default_factory=dict)
    """USD that trials have spent before a gateway that died was started anew."""
    silence_s: float = 300.0
    """A model endpoint that sends nothing for so long is cut off."""
    stale_s: float = 60.0
    """Age of the last heartbeat at which everything is refused."""
    connect_hosts: tuple[str, ...] = ()
    """``host:port`` that the box may reach by ``CONNECT``."""
    proxies: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The host's own proxy variables, for the way from the gateway to the endpoints."""

    @property
    def near(self) -> bool:
        """Whether something the gateway must reach listens on this host's loopback."""
        return any(is_loopback(url) for url in [*(u.base_url for u in self.upstreams), *self.proxies.values()])

    def line(self) -> bytes:
        """Return the settings as one line of JSON, keys included."""
        return json.dumps(asdict(self)).encode() + b"\n"


def is_loopback(url: str) -> bool:
    """Whether a URL names this host by its loopback."""
    host = urlsplit(url if "://" in url else f"//{url}").hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
