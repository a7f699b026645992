"""What a run would be and cost: for ``--dry-run``."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from results.published import published
from results.records import RunPlan, TrialRecord

NO_MODEL = "-"


def remember(history: Path, record: TrialRecord, cost_usd: float | None) -> None:
    """Note what a trial cost on this machine, for later forecasts."""
    minutes = (record.seconds("run_agent") or 0.0) / 60
    plan = record.plan
    line = {"harness": plan.harness, "model": plan.model, "category": plan.category, "scale": record.scale}
    history.parent.mkdir(parents=True, exist_ok=True)
    with history.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**line, "cost_usd": cost_usd, "minutes": round(minutes, 3)}) + "\n")


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
    means = _history_means(history, plan.scale)
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


def _history_means(history: Path, scale: str) -> dict[tuple[str, str, str], float]:
    if not history.is_file():
        return {}
    costs: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for line in history.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue  # a line torn by a crash
        if row["scale"] == scale and row["cost_usd"] is not None:
            costs[row["harness"], row["model"], row["category"]].append(row["cost_usd"])
    return {key: fmean(values) for key, values in costs.items()}
