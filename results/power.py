"""How many trials a difference needs, before any is paid for. Pure functions.

Variance of a paired difference, after Miller 2024 (arXiv 2411.00640), with a template level: of the variance between
task instances (the ICC's share), ``template_share`` belongs to the template and is not reduced by more instances.
"""

import math
from dataclasses import dataclass

from scipy import stats


@dataclass(frozen=True)
class Assumptions:
    """What has to be assumed. The defaults lie in the middle of what is plausible for this suite."""

    rate: float = 0.42
    icc: float = 0.45
    """Share of the outcome's variance that lies between task instances; 0.3 to 0.6 is plausible."""
    correlation: float = 0.5
    """Of two agents' true rates over tasks: 0.5 for different agents, 0.9 for two versions of one."""
    template_share: float = 0.5
    """Of the variance between instances, the share that variations of one task have in common."""
    power: float = 0.8
    level: float = 0.05


@dataclass(frozen=True)
class Design:
    """How much is run: per agent, ``templates * instances * trials`` trials."""

    templates: int
    instances: int = 1
    trials: int = 3

    @property
    def total(self) -> int:
        return self.templates * self.instances * self.trials


def variance_of_difference(design: Design, rate_a: float, rate_b: float, assumed: Assumptions) -> float:
    """Return the variance of the difference of two agents' pooled rates on the same tasks, for tasks like these."""
    va, vb = rate_a * (1 - rate_a), rate_b * (1 - rate_b)
    between = assumed.icc * (va + vb - 2 * assumed.correlation * math.sqrt(va * vb))
    shared = assumed.template_share / design.templates
    own = (1 - assumed.template_share) / (design.templates * design.instances)
    return between * (shared + own) + (1 - assumed.icc) * (va + vb) / design.total


def variance_on_these_tasks(design: Design, rate_a: float, rate_b: float, assumed: Assumptions) -> float:
    """Return the same for these tasks: trial noise only."""
    va, vb = rate_a * (1 - rate_a), rate_b * (1 - rate_b)
    return (1 - assumed.icc) * (va + vb) / design.total


def quantiles(assumed: Assumptions) -> float:
    """Return z(1 - level/2) + z(power)."""
    return float(stats.norm.ppf(1 - assumed.level / 2) + stats.norm.ppf(assumed.power))


def detectable_gap(design: Design, assumed: Assumptions, *, these_tasks: bool = False) -> float:
    """Return the smallest gap (a fraction) that this design finds with the assumed power, near ``assumed.rate``."""
    variance = variance_on_these_tasks if these_tasks else variance_of_difference
    return quantiles(assumed) * math.sqrt(variance(design, assumed.rate, assumed.rate, assumed))


def power_of(design: Design, rate_a: float, rate_b: float, assumed: Assumptions) -> float:
    """Return the chance that the two-sided test sees this difference."""
    se = math.sqrt(variance_of_difference(design, rate_a, rate_b, assumed))
    return float(stats.norm.cdf(abs(rate_a - rate_b) / se - stats.norm.ppf(1 - assumed.level / 2)))


def independent_trials(rate_a: float, rate_b: float, assumed: Assumptions) -> float:
    """Return the trials per agent that a comparison needs if no two trials had anything in common."""
    mean = (rate_a + rate_b) / 2
    alpha, beta = stats.norm.ppf(1 - assumed.level / 2), stats.norm.ppf(assumed.power)
    spread = alpha * math.sqrt(2 * mean * (1 - mean))
    spread += beta * math.sqrt(rate_a * (1 - rate_a) + rate_b * (1 - rate_b))
    return float((spread / (rate_a - rate_b)) ** 2)


def templates_needed(rate_a: float, rate_b: float, trials: int, assumed: Assumptions) -> int:
    """Return how many independent tasks, each run ``trials`` times, show the difference."""
    one = variance_of_difference(Design(1, 1, trials), rate_a, rate_b, assumed)
    return math.ceil(one * (quantiles(assumed) / (rate_a - rate_b)) ** 2)


def trials_needed(
    tasks: int, rate_a: float, rate_b: float, assumed: Assumptions, *, these_tasks: bool = False
) -> int | None:
    """Return the trials per task that show the difference on so many tasks; null where no number does."""
    budget = ((rate_a - rate_b) / quantiles(assumed)) ** 2
    if not these_tasks:
        endless = Design(tasks, 1, 10**12)
        budget -= variance_of_difference(endless, rate_a, rate_b, assumed)
    noise = variance_on_these_tasks(Design(tasks, 1, 1), rate_a, rate_b, assumed)
    return math.ceil(noise / budget) if budget > 0 else None


def designs_that_detect(
    gap: float, templates: int, assumed: Assumptions, *, most_instances: int = 200, most_trials: int = 10
) -> list[Design]:
    """Return, per number of trials, the smallest number of instances whose design detects ``gap``; cheapest first.

    Empty where the templates themselves are too few: then only more tasks help, not more runs of these.
    """
    found = []
    for trials in range(1, most_trials + 1):
        for instances in range(1, most_instances + 1):
            design = Design(templates, instances, trials)
            if detectable_gap(design, assumed) <= gap:
                found.append(design)
                break
    return sorted(found, key=lambda design: design.total)
