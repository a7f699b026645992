"""The one table that every output follows: terminal, Markdown, CSV, JSON, the site. A new column is one entry here."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Row = dict[str, Any]
Kind = Literal["text", "count", "rate", "usd", "minutes", "number", "flag"]
ALL = "ALL"
"""The category of the rows over all categories."""


@dataclass(frozen=True)
class Column:
    """A value of a report row."""

    key: str
    """Its name in JSON and CSV."""
    title: str
    kind: Kind
    note: str
    """What it means; null values mean not measured or not defined."""
    core: bool = False
    """Whether people see it in the terminal and in Markdown."""


COLUMNS = (
    Column("harness", "harness", "text", "the agent CLI's adapter", core=True),
    Column("model", "model", "text", "as asked for", core=True),
    Column("effort", "effort", "text", "reasoning effort, where set", core=True),
    Column("category", "category", "text", "ALL is every category of the block", core=True),
    Column("edition", "edition", "text", "synthetic or clinical"),
    Column("scale", "scale", "text", "full or small"),
    Column("tasks", "tasks", "count", "task instances with at least one trial", core=True),
    Column("clusters", "clusters", "count", "independent templates among them: variations and clue twins share one"),
    Column("trials", "trials", "count", "trials with an outcome, broken ones included", core=True),
    Column("passes", "passes", "count", "trials that passed", core=True),
    Column("success_rate", "success", "rate", "passes / trials: everything that is no pass is a miss", core=True),
    Column("low", "low", "rate", "95 % interval for tasks like these", core=True),
    Column("high", "high", "rate", "95 % interval for tasks like these", core=True),
    Column("interval", "interval", "text", "how low and high were made, and for which target"),
    Column("low_these", "low, these", "rate", "95 % interval for these tasks only: trial noise"),
    Column("high_these", "high, these", "rate", "95 % interval for these tasks only: trial noise"),
    Column("low_naive", "low, naive", "rate", "Wilson with trials as if independent: the published form, too narrow"),
    Column("high_naive", "high, naive", "rate", "Wilson with trials as if independent: the published form, too narrow"),
    Column("design_effect", "design effect", "number", "how many times the variance of independent trials it has"),
    Column("icc", "ICC", "number", "share of the variance between templates; 1 means that trials add nothing"),
    Column("k", "k", "count", "the k of pass@k and pass^k: the usual number of trials per task"),
    Column("pass_at_k", "pass@k", "rate", "chance that one of k trials passes, mean over tasks"),
    Column("pass_hat_k", "pass^k", "rate", "chance that all of k trials pass, mean over tasks", core=True),
    Column("metric_name", "metric", "text", "the category's headline metric", core=True),
    Column(
        "metric",
        "mean",
        "number",
        "headline metric, mean over trials not broken",
        core=True,
    ),
    Column("published_rate", "published rule", "rate", "passes by the published benchmark's rule, where recorded"),
    Column("cost_usd", "USD/trial", "usd", "mean over trials with a known cost", core=True),
    Column("cost_low", "USD low", "usd", "95 % interval of the mean cost, tasks resampled within categories"),
    Column("cost_high", "USD high", "usd", "95 % interval of the mean cost, tasks resampled within categories"),
    Column("cost_without_cache_usd", "USD, no cache", "usd", "the same, all input at the full price"),
    Column("cost_usd_total", "USD total", "usd", "sum over trials with a known cost"),
    Column("cost_unknown", "cost unknown", "count", "trials whose usage or price is not known"),
    Column("cost_per_success_usd", "USD/success", "usd", "total cost / passes", core=True),
    Column("cost_per_success_se", "its SE", "usd", "linearised, clustered by template"),
    Column("harness_cost_usd", "harness's USD", "usd", "mean of the agent's own figure, where it gave one"),
    Column("minutes", "min/trial", "minutes", "mean time of the agent phase", core=True),
    Column("minutes_per_success", "min/success", "minutes", "agent minutes / passes"),
    Column("peak_memory_mb", "peak MB", "number", "highest memory of a trial's box, where recorded"),
    Column("agent_timeouts", "timeouts", "count", "trials stopped at the time limit: misses", core=True),
    Column("agent_errors", "agent errors", "count", "trials whose agent failed: misses"),
    Column("broken", "broken", "count", "environment and verifier errors: misses in the rate, shown apart", core=True),
    Column("rate_if_broken_passed", "best case", "rate", "the success rate had every broken trial passed"),
    Column("missing", "missing", "count", "planned trials without an outcome: outside trials", core=True),
    Column("weight", "weight", "rate", "share of the trials behind the ALL row that are of this category"),
    Column("clamped", "clamped", "flag", "limits were lowered to what the machine has"),
    Column("network", "network", "text", "egress policy of the box"),
    Column("login_in_box", "login in box", "flag", "a subscription login was inside the box"),
    Column("variant", "variant", "text", "fall-back generator that made the data"),
    Column("seed_fingerprint", "seed", "text", "fingerprint of the seed"),
    Column("public_seed", "public seed", "flag", "anybody can draw the answers of this seed"),
)
CORE = tuple(column for column in COLUMNS if column.core)


def _rate(value: float) -> str:
    return f"{100 * value:.1f} %"


def _usd(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 or value == 0 else f"{value:.4f}"


FORMATS: dict[Kind, Callable[[Any], str]] = {
    "text": str,
    "count": str,
    "rate": _rate,
    "usd": _usd,
    "minutes": lambda value: f"{value:.1f}",
    "number": lambda value: f"{value:.3f}".rstrip("0").rstrip("."),
    "flag": lambda value: "yes" if value else "no",
}


def shown(column: Column, row: Row) -> str:
    """Return a value as people read it; ``-`` where there is none."""
    value = row.get(column.key)
    return "-" if value is None or value == "" else FORMATS[column.kind](value)


def finite(value: Any) -> Any:
    """Return the value, null in place of NaN: JSON and CSV know no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_csv(rows: Iterable[Row], columns: Sequence[Column] = COLUMNS) -> str:
    """Return all columns of all rows; empty where there is no value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.key for column in columns])
    for row in rows:
        writer.writerow([_cell(row.get(column.key)) for column in columns])
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Keep spreadsheets from running a name as a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") and value != "-" else value
