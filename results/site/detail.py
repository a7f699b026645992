"""What a trial's page shows beyond its record: trajectory, submission, verdict, the end of the log, pictures."""

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from results.site.safe import head_of, readable, tail_of
from results.trajectory import Behaviour, analyse, read_trajectory
from results.trial_folder import TrialFolder

MOST_STEPS = 1000
MOST_FILES = 20


@dataclass(frozen=True)
class Picture:
    """An image with words for those who do not see it."""

    title: str
    media_type: str
    """``image/png`` or ``image/svg+xml``; shown as an image, so that nothing in it runs."""
    content: bytes
    alt: str


Painter = Callable[[TrialFolder, bool], Sequence[Picture]]
"""Draws a category's pictures of a trial; the flag says whether gold may be shown."""


def detail_of(
    trial: TrialFolder, category: str, *, with_gold: bool, pictures: Mapping[str, Painter]
) -> dict[str, Any] | None:
    """Return the page's data as plain values; null where the trial left nothing to show."""
    if not trial.path.is_dir():
        return None
    trajectory = read_trajectory(trial)
    painter = pictures.get(category)
    found = {
        "steps": _steps(trajectory) if trajectory else [],
        "behaviour": _behaviour(analyse(trajectory)) if trajectory else None,
        "submission": _submission(trial.submission),
        "verdict": _verdict(trial, with_gold=with_gold),
        "log": _log(trial.agent),
        "pictures": [_picture(made) for made in painter(trial, with_gold)] if painter else [],
    }
    return found if any(found.values()) else None


def _steps(trajectory: dict[str, Any]) -> list[dict[str, Any]]:
    """The agent's steps carry their class, in order."""
    kinds = iter(analyse(trajectory).steps)
    made = []
    for step in trajectory["steps"][:MOST_STEPS]:
        agent = step.get("source") == "agent"
        counted = next(kinds, None) if agent else None
        metrics = step.get("metrics") or {}
        tokens = [metrics.get(name) for name in ("prompt_tokens", "cached_tokens", "completion_tokens")]
        made.append(
            {
                "id": step.get("step_id"),
                "source": readable(str(step.get("source", ""))),
                "at": readable(str(step.get("timestamp") or "")),
                "kind": counted.kind if counted else "",
                "errors": counted.errors if counted else 0,
                "message": readable(_text(step.get("message"))),
                "reasoning": readable(_text(step.get("reasoning_content"))),
                "calls": [_call(call) for call in step.get("tool_calls") or ()],
                "results": [readable(_text(r.get("content"))) for r in _results(step)],
                "tokens": tokens,
                "cost": metrics.get("cost_usd"),
            }
        )
    return made


def _results(step: dict[str, Any]) -> list[dict[str, Any]]:
    return (step.get("observation") or {}).get("results") or []


def _call(call: dict[str, Any]) -> dict[str, str]:
    arguments = call.get("arguments") or {}
    lines = [value if len(arguments) == 1 else f"{key}: {value}" for key, value in arguments.items()]
    return {"name": readable(str(call.get("function_name", ""))), "text": readable("\n".join(map(str, lines)))}


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "[image]") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _behaviour(found: Behaviour) -> dict[str, Any]:
    return {
        "shares": found.shares,
        "calls": found.calls,
        "first write": found.first_write,
        "rereads of the submission": found.rereads,
        "repeated calls": found.repeated,
        "tool errors": found.errors,
        "images looked at": found.images,
        "sub-agents": found.subagents,
    }


def _submission(folder: Path) -> list[dict[str, Any]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    made: list[dict[str, Any]] = [
        {"name": readable(path.relative_to(folder).as_posix()), "bytes": path.stat().st_size, "text": head_of(path)}
        for path in files[:MOST_FILES]
    ]
    if len(files) > MOST_FILES:
        made.append({"name": f"{len(files) - MOST_FILES} more files", "bytes": None, "text": ""})
    return made


def _verdict(trial: TrialFolder, *, with_gold: bool) -> dict[str, Any] | None:
    """Details hold gold, so they are shown only when asked for."""
    try:
        verdict = trial.read_verdict()
    except (OSError, ValueError):
        return None
    if verdict is None:
        return None
    found = verdict.model_dump(exclude={"details", "schema_version"})
    found["message"] = readable(verdict.message) if with_gold else ""
    return found | ({"details": _readable_all(verdict.details)} if with_gold else {})


def _readable_all(value: Any) -> Any:
    """Details quote submissions: every text in them is made harmless, and non-finite numbers become text."""
    if isinstance(value, dict):
        return {readable(str(key), 200): _readable_all(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_readable_all(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return readable(value) if isinstance(value, str) else value


def _log(agent: Path) -> str:
    logs = [agent / "stderr.log", agent / "stdout.log"]
    return next((tail_of(log) for log in logs if log.is_file() and log.stat().st_size), "")


def _picture(made: Picture) -> dict[str, str]:
    source = f"data:{made.media_type};base64,{base64.b64encode(made.content).decode()}"
    return {"title": made.title, "source": source, "alt": made.alt}
