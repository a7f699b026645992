"""Copilot CLI: the session's events have the steps and tokens, standard output how it ended."""

import json
from pathlib import Path
from typing import Any

from runners.trajectories.log import MAX_LINE_BYTES, flatten, parsed, rows, session_file
from runners.trajectories.story import MAX_CALLS, Step, Story, Tokens, ToolCall


def read_copilot(stdout: Path, home: Path, usage_file: Path) -> Story:
    """Return the story of a run."""
    story = Story(agent="copilot-cli")
    failures = []
    for row in rows(stdout, story):
        data = row.get("data") or {}
        match row.get("type"):
            case "result":
                story.session = str(row.get("sessionId") or "")
                story.closed = row.get("exitCode") == 0
            case "session.error":
                words = (data.get("errorType"), data.get("statusCode"), data.get("message"))
                failures.append(" ".join(str(word) for word in words if word))
            case "model.call_failure":
                words = (data.get("statusCode"), data.get("errorCode"), data.get("errorMessage"))
                story.warn("copilot-cli: " + " ".join(str(word) for word in words if word)[:300])
    if not story.closed:
        story.errors = failures
    events = session_file(home, "events.jsonl", story.session)
    reader = Events(story)
    for row in rows(events if events is not None else stdout, story):
        if not row.get("ephemeral"):
            reader.take(str(row.get("type")), row.get("data") or {}, str(row.get("timestamp") or ""))
    if not story.spent:
        totals(story, usage_file)
    return story


def tokens_of(usage: dict[str, Any]) -> Tokens:
    """Translate Copilot's counts: its input includes what was read from and written to the cache."""
    cached, written = int(usage.get("cacheReadTokens") or 0), int(usage.get("cacheWriteTokens") or 0)
    return Tokens(
        input=max(0, int(usage.get("inputTokens") or 0) - cached - written),
        cache_read=cached,
        cache_write=written,
        output=int(usage.get("outputTokens") or 0),
        reasoning=int(usage.get("reasoningTokens") or 0),
    )


def totals(story: Story, usage_file: Path) -> None:
    """Take the totals where the single requests are not known."""
    if not usage_file.is_file() or usage_file.stat().st_size > MAX_LINE_BYTES:
        return
    metrics = json.loads(usage_file.read_text(encoding="utf-8")).get("modelMetrics") or {}
    for model, entry in metrics.items():
        story.spend(model, tokens_of(entry.get("usage") or {}), int((entry.get("requests") or {}).get("count") or 0))


class Events:
    """Walks the session's events."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._effort = ""
        self._tokens: dict[str, Tokens] = {}
        """API call -> its tokens, which are told before the message."""

    def take(self, kind: str, data: dict[str, Any], at: str) -> None:
        """Add what an event tells to the story."""
        match kind:
            case "session.start":
                self._story.version = str(data.get("copilotVersion") or "")
                self._story.model = str(data.get("selectedModel") or "")
                self._effort = str(data.get("reasoningEffort") or "")
            case "user.message" | "system.message":
                source = "user" if kind.startswith("user") else "system"
                self._story.add(Step(source, flatten(data.get("content")), at))
            case "session.usage_record":
                usage = data.get("usage") or {}
                tokens = tokens_of(usage)
                if len(self._tokens) < MAX_CALLS:
                    self._tokens[str(usage.get("apiCallId"))] = tokens
                self._story.spend(str(usage.get("model") or self._story.model), tokens)
            case "assistant.message" if not data.get("parentToolCallId"):
                self._message(data, at)
            case "tool.execution_complete":
                call = self._story.call(str(data.get("toolCallId")))
                if call is not None:
                    result = data.get("result") or data.get("error") or {}
                    call.result = flatten(result.get("content") or result.get("message") or result)

    def _message(self, data: dict[str, Any], at: str) -> None:
        step = Step("agent", flatten(data.get("content")), at, model=str(data.get("model") or ""), effort=self._effort)
        step.reasoning = str(data.get("reasoningText") or "")
        step.tokens = self._tokens.get(str(data.get("apiCallId")))
        for asked in data.get("toolRequests") or []:
            given = parsed(asked.get("arguments") or {})
            self._story.ask(step, ToolCall(str(asked.get("toolCallId")), str(asked.get("name")), given))
        self._story.add(step)
