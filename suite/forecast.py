"""What a run would be: for ``--dry-run``."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from results.records import RunPlan


def forecast_lines(plan: RunPlan, cache: Path) -> Iterator[str]:
    """Yield the plan, one trial a line, and a summary."""
    for trial in plan.trials:
        yield trial.trial_id
    counts = Counter(f"{trial.harness}@{trial.model}" for trial in plan.trials)
    tasks = {trial.task for trial in plan.trials}
    size = f"{len(plan.trials)} trials on {len(tasks)} tasks"
    yield f"{size}, {plan.edition} edition, {plan.scale} scale, --jobs {plan.jobs}"
    for agent, count in counts.items():
        yield f"{agent}: {count} trials"
