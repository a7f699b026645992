"""OpenCode: standard output has the steps, their calls and tokens; its own log the version."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runners.trajectories.log import flatten, parsed, rows
from runners.trajectories.story import Step, Story, Tokens, ToolCall

VERSION = re.compile(r"\bversion=(\d[\w.-]*)")
ENDED_WELL = ("stop", "end_turn")
HEAD_CHARS = 100_000


def read_opencode(stdout: Path, log: Path) -> Story:
    """Return the story of a run."""
    story = Story(agent="opencode")
    if log.is_file():
        with log.open(encoding="utf-8", errors="replace") as file:
            found = VERSION.search(file.read(HEAD_CHARS))
        story.version = found[1] if found else ""
    step = Step("agent")
    for row in rows(stdout, story):
        part = row.get("part") or {}
        story.session = str(row.get("sessionID") or story.session)
        match row.get("type"):
            case "step_start":
                step = story.add(Step("agent", at=iso(row.get("timestamp"))))
            case "text":
                step.say(str(part.get("text") or ""), "")
            case "reasoning":
                step.think(str(part.get("text") or ""), "")
            case "tool_use":
                story.ask(step, tool_call(part))
            case "step_finish":
                step.tokens = tokens_of(part.get("tokens") or {})
                story.closed = part.get("reason") in ENDED_WELL
            case "error":
                story.errors.append(words(row.get("error") or {}))
    return story


def tool_call(part: dict[str, Any]) -> ToolCall:
    """Return a call with what came back."""
    state = part.get("state") or {}
    call = ToolCall(str(part.get("callID")), str(part.get("tool")), parsed(state.get("input") or {}))
    call.result = flatten(state.get("output") or state.get("error") or "")
    return call


def tokens_of(tokens: dict[str, Any]) -> Tokens:
    """Translate OpenCode's counts: input excludes the cached, output the reasoning."""
    cache, reasoning = tokens.get("cache") or {}, int(tokens.get("reasoning") or 0)
    return Tokens(
        input=int(tokens.get("input") or 0),
        cache_read=int(cache.get("read") or 0),
        cache_write=int(cache.get("write") or 0),
        output=int(tokens.get("output") or 0) + reasoning,
        reasoning=reasoning,
    )


def words(error: dict[str, Any]) -> str:
    """Return an error in its own words, status first."""
    data = error.get("data") or {}
    return " ".join(str(word) for word in (error.get("name"), data.get("statusCode"), data.get("message")) if word)


def iso(milliseconds: Any) -> str:
    """Return a time in ISO 8601; empty where there is none."""
    if not isinstance(milliseconds, int | float):
        return ""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
