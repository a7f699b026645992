"""The gateway's journal, one JSON object per line: what it still tells where the gateway itself cannot."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

TOKENS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")


def entries(path: Path, start: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the journal's entries from a byte on; a line cut by the gateway's death is passed over."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry


def spent_by_trial(lines: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return what each trial has spent, in USD, all its tries together."""
    spent: dict[str, float] = {}
    for entry in lines:
        trial = str(entry.get("trial"))
        spent[trial] = spent.get(trial, 0.0) + float(entry.get("cost_usd") or 0)
    return spent


def door_lines(lines: Iterable[Mapping[str, Any]], trial: str, dialects: Mapping[str, str]) -> dict[str, Any]:
    """Return what went through a trial's door, in the words of ``DoorReport``.

    ``dialects`` has the name of each upstream, and the API family that stands in the records.
    """
    usage: dict[str, dict[str, Any]] = {}
    told: dict[str, Any] = {"requests": 0, "unmetered": 0, "spent_usd": 0.0, "refusals": {}, "statuses": {}}
    for entry in lines:
        if entry.get("trial") != trial:
            continue
        told["spent_usd"] += float(entry.get("cost_usd") or 0)
        if "refused" in entry:
            told["refusals"][entry["refused"]] = told["refusals"].get(entry["refused"], 0) + 1
        elif not str(entry.get("api", "/")).startswith("/"):
            status = entry["status"]
            told["requests"] += 1
            told["statuses"][str(status)] = told["statuses"].get(str(status), 0) + 1
            told["unmetered"] += 200 <= status < 300 and not entry["metered"]
            if entry["metered"]:
                count(usage, entry, dialects.get(entry["provider"], ""))
    return told | {"usage": [usage[model] for model in sorted(usage)]}


def count(usage: dict[str, dict[str, Any]], entry: Mapping[str, Any], dialect: str) -> None:
    """Add the tokens of one answer to those of its model."""
    model = entry["model"]
    zero = {"model": model, "provider": dialect, "requests": 0, **dict.fromkeys(TOKENS, 0)}
    row = usage.setdefault(model, zero)
    row["requests"] += 1
    for name in TOKENS:
        row[name] += entry["usage"][name]
