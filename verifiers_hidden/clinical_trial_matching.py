"""Judge ``eligible_trials.txt``: recall of the eligible trials among the first ids that are in the pool."""

import re
from pathlib import Path
from typing import Any

from verifiers_hidden.kit import GoldError, Reason, Verdict, gold_json, read_lines

FILE = "eligible_trials.txt"
MAX_BYTES = 1 << 20
ID = re.compile(r"NCT[0-9]{8}", re.IGNORECASE)
SHORT_LIST = 20
"""The second cut-off of the published metrics."""


def judge(submission: Path, gold: Path, rule: dict[str, float]) -> Verdict:
    """Pass if every eligible trial is among the first ``top`` ids left after repeats and foreign ids are gone."""
    eligible, pool, trials = _gold(gold)
    lines = read_lines(submission / FILE, limit=MAX_BYTES)
    top = int(rule["top"])
    found = [match.group().upper() for match in map(ID.search, lines) if match]
    published = float(_recall(_kept(found, pool)[:top], eligible) >= 1.0)
    for number, line in enumerate(lines, start=1):
        if not ID.fullmatch(line):
            _, metrics = missing(gold)
            message = f"entry {number}: {line[:60]!a} is not one trial id"
            return Verdict(0, Reason.BAD_TOKEN, 0.0, {**metrics, "published_reward": published}, message)
    unique = list(dict.fromkeys(found))
    kept = _kept(found, pool)
    recall = _recall(kept[:top], eligible)
    passed = recall >= rule["recall"]
    metrics = {**_metrics(kept, eligible, top), "n_predicted_raw": len(found), "published_reward": published}
    metrics |= {"n_discarded_outside_pool": len(unique) - len(kept), "recall_at_50": recall}
    missed = [trial for trial in sorted(eligible) if trial not in kept[:top]]
    message = "" if passed else f"{len(missed)} of {len(eligible)} eligible trials are not among the first {top}"
    return Verdict(
        reward=int(passed),
        reason=Reason.PASSED if passed else Reason.BELOW_THRESHOLD,
        headline=recall,
        metrics=metrics,
        message=message,
        details={
            "missed_eligible": [_why(trial, trials) for trial in missed],
            "ranks": {trial: kept.index(trial) + 1 for trial in sorted(eligible) if trial in kept},
            "wrong_among_top": [_why(trial, trials) for trial in kept[:top] if trial not in eligible],
        },
    )


def missing(gold: Path) -> tuple[float | None, dict[str, float]]:
    """Return the fixed values of a submission that cannot be read."""
    eligible, _, _ = _gold(gold)
    return 0.0, {
        **_metrics([], eligible, 1),
        "n_predicted_raw": 0,
        "n_discarded_outside_pool": 0,
        "recall_at_50": 0.0,
    }


def perfect(gold: Path, out: Path) -> None:
    """Write the eligible trials and nothing else."""
    eligible, _, _ = _gold(gold)
    (out / FILE).write_text("".join(f"{trial}\n" for trial in sorted(eligible)), encoding="utf-8")


def _gold(gold: Path) -> tuple[set[str], set[str], dict[str, Any]]:
    document = gold_json(gold / "gold.json")
    try:
        eligible, pool, trials = set(document["eligible"]), set(document["pool"]), dict(document["trials"])
    except (KeyError, TypeError, ValueError) as error:
        raise GoldError(f"gold.json: {error!r}") from error
    if not eligible or not eligible <= pool or set(trials) != pool:
        raise GoldError("gold.json: the eligible trials must be a part of the pool, and not be none")
    return eligible, pool, trials


def _kept(found: list[str], pool: set[str]) -> list[str]:
    return [trial for trial in dict.fromkeys(found) if trial in pool]


def _recall(kept: list[str], eligible: set[str]) -> float:
    return len(eligible.intersection(kept)) / len(eligible)


def _metrics(kept: list[str], eligible: set[str], top: int) -> dict[str, float]:
    """Return the published metrics; precision and F1 are those of the whole list."""
    hits = len(eligible.intersection(kept))
    precision = hits / len(kept) if kept else 0.0
    recall = hits / len(eligible)
    return {
        "n_gold_eligible": len(eligible),
        "n_predicted": len(kept),
        "n_true_positives": hits,
        "n_false_positives": len(kept) - hits,
        "n_false_negatives": len(eligible) - hits,
        "n_top_20_considered": min(len(kept), SHORT_LIST),
        "n_top_50_considered": min(len(kept), top),
        "recall": recall,
        "recall_at_20": _recall(kept[:SHORT_LIST], eligible),
        "precision": precision,
        "f1": 2 * precision * recall / (precision + recall) if hits else 0.0,
    }


def _why(trial: str, trials: dict[str, Any]) -> dict[str, Any]:
    """Return a trial's criteria and which of them keep the patient out."""
    entry = trials[trial]
    kept = ("side", "text", "holds", "passes")
    criteria = [{name: item.get(name) for name in kept} for item in entry.get("criteria", [])]
    return {"trial": trial, "fails_by": entry.get("failing", []), "criteria": criteria}
