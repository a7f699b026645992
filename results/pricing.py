"""What tokens cost: list prices of the dated ``genai-prices`` table that is installed, and the user's own above it.

Nothing is asked of the network. Cost is computed when a report is made, from recorded usage; records never hold it.
"""

import hashlib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

import genai_prices.data
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, TieredPrices
from pydantic import BaseModel, ConfigDict, NonNegativeFloat, TypeAdapter, ValidationError

from results.records import Usage, first_fault

MILLION = 1_000_000


class PriceFileError(Exception):
    """The price file cannot be used; the message says why."""


class Rates(BaseModel):
    """USD per million tokens of one model: the table of a price file, ``["gpt-5.4"]`` and these four keys.

    Where a cache price is left out, such tokens cost what fresh input costs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: NonNegativeFloat
    output: NonNegativeFloat
    cache_read: NonNegativeFloat | None = None
    cache_write: NonNegativeFloat | None = None

    def cost(self, usage: Usage) -> float:
        """Return the cost in USD as used."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        total = usage.input_tokens * self.input + usage.output_tokens * self.output
        return (total + usage.cache_read_tokens * read + usage.cache_write_tokens * write) / MILLION

    def cost_without_cache(self, usage: Usage) -> float:
        """Return the cost in USD had every input token been bought at the full price."""
        return (prompt_tokens(usage) * self.input + usage.output_tokens * self.output) / MILLION


def prompt_tokens(usage: Usage) -> int:
    """Return all input tokens: fresh, read from and written to a cache."""
    return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens


@dataclass(frozen=True)
class Cost:
    """USD; null where a model has no known price."""

    usd: float | None
    without_cache_usd: float | None


@dataclass
class PriceBook:
    """Prices by model; the user's file first, then the installed table at the price of the trial's day.

    Providers raise the price of long prompts. Records hold sums over a trial, so the price step is chosen by the
    mean prompt per request.
    """

    own: dict[str, Rates] = field(default_factory=dict)
    own_digest: str = ""
    unknown: set[str] = field(default_factory=set)
    """Models asked for that have no price; reports warn of them."""
    _models: dict[tuple[str, str], ModelInfo | None] = field(default_factory=dict, repr=False)
    _rates: dict[tuple[str, str, str, int], Rates | None] = field(default_factory=dict, repr=False)

    @property
    def source(self) -> str:
        """What the prices are, for a report's foot."""
        digest = hashlib.sha256(Path(genai_prices.data.__file__).read_bytes()).hexdigest()[:12]
        text = f"genai-prices {version('genai-prices')} (sha256 {digest}), list prices on the day of each trial"
        return f"own price file (sha256 {self.own_digest[:12]}), else {text}" if self.own else text

    def cost(self, usages: Iterable[Usage], at: datetime) -> Cost:
        """Return the cost of one trial that ran at ``at``. No usage recorded costs nothing."""
        observed = without_cache = 0.0
        for usage in usages:
            rates = self.rates(usage, at)
            if rates is None:
                return Cost(None, None)
            observed += rates.cost(usage)
            without_cache += rates.cost_without_cache(usage)
        return Cost(observed, without_cache)

    def rates(self, usage: Usage, at: datetime) -> Rates | None:
        """Return the prices that hold for this usage, or null (and remember the model) where none is known."""
        if usage.model in self.own:
            return self.own[usage.model]
        model = self._model(usage.model, usage.provider)
        if model is None:
            self.unknown.add(usage.model)
            return None
        prompt = prompt_tokens(usage) // max(usage.requests, 1)
        step = sum(prompt > start for start in _steps(model, at))
        key = (usage.model, usage.provider, at.date().isoformat(), step)
        if key not in self._rates:
            self._rates[key] = _rates(model, at, prompt)
        if self._rates[key] is None:
            self.unknown.add(usage.model)
        return self._rates[key]

    def _model(self, name: str, provider: str) -> ModelInfo | None:
        key = (name, provider)
        if key not in self._models:
            self._models[key] = _find(name, provider)
        return self._models[key]


def read_price_file(path: Path) -> PriceBook:
    """Read a TOML price file: one table per model with ``Rates``' keys, in USD per million tokens.

    Raises:
        PriceFileError: unreadable, or a key or value is wrong.
    """
    try:
        content = path.read_bytes()
        own = TypeAdapter(dict[str, Rates]).validate_python(tomllib.loads(content.decode()))
    except OSError as error:
        raise PriceFileError(f"price file {path}: {error.strerror}; --prices names a TOML file") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PriceFileError(f"price file {path}: is no TOML file: {error}") from None
    except ValidationError as error:
        keys = ", ".join(Rates.model_fields)
        raise PriceFileError(
            f"price file {path}: {first_fault(error)}; one table a model, with {keys} in USD per million tokens"
        ) from None
    return PriceBook(own=own, own_digest=hashlib.sha256(content).hexdigest())


def _find(name: str, provider: str) -> ModelInfo | None:
    """Look a model up with its provider, then without: routers and gateways name models of other houses."""
    for provider_id in (provider or None, None):
        try:
            return get_snapshot().find_provider_model(name, None, provider_id, None)[1]
        except LookupError:
            continue
    return None


def _steps(model: ModelInfo, at: datetime) -> list[int]:
    price = model.get_prices(at).input_mtok
    return [tier.start for tier in price.tiers] if isinstance(price, TieredPrices) else []


def _rates(model: ModelInfo, at: datetime, prompt: int) -> Rates | None:
    prices = model.get_prices(at)
    fresh, output = _value(prices.input_mtok, prompt), _value(prices.output_mtok, prompt)
    if fresh is None or output is None:
        return None
    read, write = _value(prices.cache_read_mtok, prompt), _value(prices.cache_write_mtok, prompt)
    return Rates(input=fresh, output=output, cache_read=read, cache_write=write)


def _value(price: Decimal | TieredPrices | None, prompt: int) -> float | None:
    if isinstance(price, TieredPrices):
        return float(next((tier.price for tier in reversed(price.tiers) if prompt > tier.start), price.base))
    return None if price is None else float(price)
