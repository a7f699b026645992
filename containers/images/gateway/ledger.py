"""Who used what: token counts per door and model, money per trial and run, and when to stop."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from .meter import TOKENS
from .settings import Price, Refusal, Settings


@dataclass
class Account:
    """Money of one trial (all its tries) or of the run."""

    limit_usd: float | None
    spent_usd: float = 0.0
    under_way_usd: float = 0.0
    """What requests that have not ended may cost."""
    under_way: int = 0

    @property
    def exhausted(self) -> bool:
        return self.limit_usd is not None and self.spent_usd >= self.limit_usd

    @property
    def full(self) -> bool:
        """Whether the limit would be reached if every request under way cost all it may."""
        return self.limit_usd is not None and self.spent_usd + self.under_way_usd >= self.limit_usd

    def admit(self, estimate_usd: float) -> None:
        """Count a request that begins."""
        self.under_way += 1
        self.under_way_usd += estimate_usd

    def close(self, estimate_usd: float, cost_usd: float) -> None:
        """Count a request that ended; where none is left, no rounding error is either."""
        self.under_way -= 1
        self.under_way_usd = self.under_way_usd - estimate_usd if self.under_way else 0.0
        self.spent_usd += cost_usd


@dataclass
class Tally:
    """What went through one door."""

    trial: str
    usage: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Model -> counts, as in the record format."""
    requests: int = 0
    unmetered: int = 0
    """Answers that ended before they told their token counts."""
    spent_usd: float = 0.0
    refusals: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    last_error: str = ""
    """Empty, or what was wrong with the last answer: a status, an error code, ``cut``, ``silent``."""
    message: str = ""
    last_status: int = 0
    last_stop: str = ""
    """Why the model stopped in the last answer, in its API's word."""

    def refuse(self, refusal: Refusal) -> None:
        """Count a refusal."""
        self.refusals[refusal.kind] = self.refusals.get(refusal.kind, 0) + 1

    def answered(self, status: int, error: str, message: str, stop: str) -> None:
        """Count an answer; an error stays until a good answer follows."""
        self.requests += 1
        self.statuses[str(status)] = self.statuses.get(str(status), 0) + 1
        self.last_error, self.message = error, message[:500] if error else ""
        self.last_status, self.last_stop = status, stop

    def count(self, provider: str, model: str, tokens: dict[str, int]) -> None:
        """Add the token counts of one answer."""
        entry = self.usage.setdefault(
            model, {"model": model, "provider": provider, "requests": 0, **dict.fromkeys(TOKENS, 0)}
        )
        entry["requests"] += 1
        for name in TOKENS:
            entry[name] += tokens[name]

    def report(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        return {**self.__dict__, "usage": [self.usage[model] for model in sorted(self.usage)]}


@dataclass
class Reservation:
    """A request under way; as it stands, one that costs nothing."""

    price: Price | None = None
    estimate_usd: float = 0.0
    accounts: tuple[Account, ...] = ()


class Ledger:
    """The run's books."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.run = Account(settings.max_usd, settings.spent_usd)
        self._settled = asyncio.Event()
        """Set whenever a request ended."""
        self._trials: dict[str, Account] = {}

    def trial(self, name: str) -> Account:
        """Return a trial's account; its retries share it."""
        if name not in self._trials:
            spent = self._settings.spent_by_trial.get(name, 0.0)
            self._trials[name] = Account(self._settings.max_usd_per_trial, spent)
        return self._trials[name]

    async def reserve(self, trial: str, model: str, input_tokens: int, output_tokens: int) -> Reservation:
        """Admit a request that may use so many tokens, once what is under way leaves room for it under the limits.

        So a limit is passed by one request at most, however many are sent at once; and none is refused for money that
        others might spend and then do not.

        Raises:
            Refusal: ``budget`` at the limit; ``unpriced`` where there is a limit and the model has no price.
        """
        price = self._settings.prices.get(model)
        if price is None and self._settings.budgeted:
            raise Refusal("unpriced", f"model {model} has no price, and the run has a limit; name its price or lift it")
        accounts = (self.run, self.trial(trial))
        while any(account.full for account in accounts):
            for account, whose in zip(accounts, ("run", "trial"), strict=True):
                if account.exhausted:
                    raise Refusal("budget", f"the {whose}'s limit of {account.limit_usd} USD is reached")
            self._settled.clear()
            await self._settled.wait()
        counts = dict.fromkeys(TOKENS, 0) | {"input_tokens": input_tokens, "output_tokens": output_tokens}
        estimate = price.of(counts) if price else 0.0
        for account in accounts:
            account.admit(estimate)
        return Reservation(price, estimate, accounts)

    def settle(self, reservation: Reservation, tokens: dict[str, int]) -> float:
        """Close a request and return its cost in USD."""
        cost = reservation.price.of(tokens) if reservation.price else 0.0
        for account in reservation.accounts:
            account.close(reservation.estimate_usd, cost)
        self._settled.set()
        return cost
