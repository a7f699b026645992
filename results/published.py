"""The twelve published agents: totals per category, from another edition, other rules and an open network.

They stand on a panel of their own, never on one frontier with anybody else's. Per-task outcomes are not published, so
intervals that allow for clustering rest on a stated ICC.
"""

import itertools
from functools import lru_cache
from pathlib import Path

from results import comparisons
from results.records import Frozen
from results.statistics import wilson
from results.tables import Cell, Section

FILE = Path(__file__).parent / "published.json"
ASSUMED_ICC = 0.5


class Source(Frozen):
    title: str
    where: str
    same_values_in: str
    setting: str


class CategoryResult(Frozen):
    """Totals of one agent in one category; means are per trial."""

    tasks: int
    trials: int
    passes: int
    cost_usd: float
    minutes: float


class PublishedAgent(Frozen):
    """One published agent; ``cost_usd`` is the published mean per trial."""

    agent: str
    harness: str
    model: str
    effort: str
    in_paper: bool
    """Among the ten of the paper; the other two were announced later."""
    trials: int
    passes: int
    cost_usd: float
    categories: dict[str, CategoryResult]
    """By our names of the categories."""

    @property
    def rate(self) -> float:
        return self.passes / self.trials

    @property
    def minutes(self) -> float:
        """Mean per trial: the categories' means by their trials."""
        return sum(c.minutes * c.trials for c in self.categories.values()) / self.trials

    def interval(self, icc: float = ASSUMED_ICC) -> tuple[float, float]:
        """Return the 95 % interval for an assumed ICC between a task's trials; 0 is the published form."""
        tasks = sum(c.tasks for c in self.categories.values())
        return wilson(self.rate, self.trials / (1 + (self.trials / tasks - 1) * icc))


class Published(Frozen):
    """``published.json``."""

    source: Source
    category_names: dict[str, str]
    """Our name of a category -> the published one."""
    tasks: int
    trials_per_task: int
    agents: tuple[PublishedAgent, ...]


@lru_cache
def published() -> Published:
    """Read the file that is part of the package."""
    return Published.model_validate_json(FILE.read_bytes())


def published_section() -> Section:
    """Return the published agents as a table of their own, with the ranks that their totals leave open."""
    known = published()
    rows: list[tuple[Cell, ...]] = []
    for agent, rank in zip(known.agents, _ranks(known), strict=True):
        low, high = agent.interval()
        success = f"{100 * agent.rate:.1f} % ({100 * low:.1f}-{100 * high:.1f}; n {agent.trials})"
        rows.append((agent.agent, success, f"{agent.cost_usd:.2f}", f"{agent.minutes:.1f}", rank.best, rank.worst))
    note = (
        f"{known.source.title} ({known.source.where}): {known.source.setting}. Not comparable with the runs above. "
        f"Intervals and ranks (unpaired, Holm over all pairs) are for tasks like these, under an assumed ICC of "
        f"{ASSUMED_ICC}."
    )
    header = ("agent", "success", "USD/trial", "min/trial", "best rank", "worst rank")
    return Section("Published agents", note, header, rows)


def _ranks(known: Published) -> list[comparisons.Rank]:
    rates = [agent.rate for agent in known.agents]
    pairs = list(itertools.combinations(range(len(rates)), 2))
    design = (known.tasks, known.trials_per_task)
    values = [
        comparisons.assumed_pair(rates[i], rates[j], *design, icc=ASSUMED_ICC, correlation=None) for i, j in pairs
    ]
    better = comparisons.told_apart(rates, dict(zip(pairs, comparisons.holm(values), strict=True)))
    return comparisons.rank_intervals(better)
