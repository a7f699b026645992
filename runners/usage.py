"""Which tokens a trial used: the gateway saw them, the agent's own log is the cross-check."""

from collections.abc import Iterable

from results.records import Usage
from runners.state import Trial

TOLERANCE = 0.01
COUNTED = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")


def settle_usage(trial: Trial) -> None:
    """Close the trial's door and set its usage; a difference of more than 1 % to the agent's log is a warning."""
    own = trial.reading.usage
    if trial.door is None or trial.place.gateway is None:
        trial.usage = own
        return
    report = trial.place.gateway.close_door(trial.door)
    trial.door_report = report
    trial.usage = tuple(Usage.model_validate(row) for row in report.usage)
    if report.unmetered:
        trial.warnings.append(f"{report.unmetered} answers of the model ended before they told their tokens")
    if own and trial.usage:
        trial.warnings += differences(trial.usage, own)
    trial.usage = trial.usage or own


def differences(gateway: tuple[Usage, ...], own: tuple[Usage, ...]) -> list[str]:
    """Return a warning for each kind of token on which the two accounts differ by more than the tolerance."""
    warnings = []
    for name in COUNTED:
        seen, told = (sum(getattr(usage, name) for usage in account) for account in (gateway, own))
        if abs(seen - told) > TOLERANCE * max(seen, told):
            warnings.append(f"usage differs: {name} {seen} at the gateway, {told} in the agent's log")
    return warnings


def add_up(usages: Iterable[Usage]) -> tuple[Usage, ...]:
    """Return one usage per provider and model: what all tries of a trial have spent together."""
    sums: dict[tuple[str, str], Usage] = {}
    for usage in usages:
        before = sums.get((usage.provider, usage.model))
        names = [*COUNTED, "requests", "reasoning_tokens"]
        total = {name: getattr(usage, name) + getattr(before, name) for name in names} if before else {}
        sums[usage.provider, usage.model] = usage.model_copy(update=total)
    return tuple(sums.values())
