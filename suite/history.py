"""What trials have cost on this machine: written as they end, read by forecasts."""

import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from results.records import TrialRecord


def remember(history: Path, record: TrialRecord, cost_usd: float | None) -> None:
    """Note what a trial cost on this machine, for later forecasts."""
    minutes = (record.seconds("run_agent") or 0.0) / 60
    plan = record.plan
    line = {"harness": plan.harness, "model": plan.model, "category": plan.category, "scale": record.scale}
    history.parent.mkdir(parents=True, exist_ok=True)
    with history.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**line, "cost_usd": cost_usd, "minutes": round(minutes, 3)}) + "\n")


def mean_costs(history: Path, scale: str) -> dict[tuple[str, str, str], float]:
    """Return (harness, model, category) -> mean USD of a trial at that scale."""
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
