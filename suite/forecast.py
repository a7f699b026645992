"""What a run would be and cost: for ``--dry-run``."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from results.published import published
from results.records import RunPlan
from suite.history import mean_costs

NO_MODEL = "-"


def forecast_lines(plan: RunPlan, history: Path) -> Iterator[str]:
    """Yield the plan, one trial a line, then what each agent's trials are likely to cost, with the figure's source."""
    for trial in plan.trials:
        yield trial.trial_id
    tasks = {trial.task for trial in plan.trials}
    size = f"{len(plan.trials)} trials on {len(tasks)} tasks"
    yield f"{size}, {plan.edition} edition, {plan.scale} scale, --jobs {plan.jobs}"
    counts = Counter((trial.harness, trial.model, trial.category) for trial in plan.trials if trial.model != NO_MODEL)
    if not counts:
        yield "cost forecast: $0 (no harness of this run asks a model)"
        return
    means = mean_costs(history, plan.scale)
    total, unknown = 0.0, 0
    for (harness, model, category), count in counts.items():
        mean, source = _mean(harness, model, category, means)
        if mean is None:
            unknown += count
        else:
            total += mean * count
        figure = "unknown" if mean is None else f"${mean:.2f} a trial, ${mean * count:.2f}"
        yield f"{harness}@{model}  {category}  {count} trials  {figure}  ({source})"
    yield f"cost forecast: ${total:.2f}" + (f" and {unknown} trials of unknown cost" if unknown else "")
    if "max_usd" in plan.options:
        yield f"limit: --max-usd {plan.options['max_usd']}"


def _mean(
    harness: str, model: str, category: str, means: dict[tuple[str, str, str], float]
) -> tuple[float | None, str]:
    """Return the mean cost of a trial: of this machine's own trials, else as published, for full-scale tasks."""
    if (harness, model, category) in means:
        return means[harness, model, category], "mean of this machine's trials"
    name = model.partition("/")[2] or model
    agents = [agent for agent in published().agents if agent.model == name and category in agent.categories]
    for agent in sorted(agents, key=lambda agent: agent.harness != harness):
        return agent.categories[category].cost_usd, f"published mean of {agent.agent}"
    return None, "no published or own figure"
