"""Codex: the rollout file has the steps and the tokens of each request, standard output how it ended."""

from pathlib import Path
from typing import Any

from runners.trajectories.log import flatten, parsed, rows, session_file
from runners.trajectories.story import Step, Story, Tokens, ToolCall

SOURCES = {"developer": "system", "system": "system", "user": "user", "assistant": "agent"}

ANSWERS = ("message", "reasoning", "function_call", "custom_tool_call", "local_shell_call")
"""What a model's answer is made of; other items are Codex's own."""


def read_codex(stdout: Path, sessions: Path) -> Story:
    """Return the story of a run."""
    story = Story(agent="codex")
    told: Tokens | None = None
    for row in rows(stdout, story):
        match row.get("type"):
            case "turn.completed":
                story.closed = True
                told = tokens_of(row.get("usage") or {})
            case "turn.failed":
                story.errors.append(str((row.get("error") or {}).get("message") or "turn failed"))
            case "thread.started":
                story.session = str(row.get("thread_id") or "")
            case "item.completed" if (row.get("item") or {}).get("type") == "error":
                story.warn("codex: " + str(row["item"].get("message"))[:300])
            case "error" if not story.closed:
                last = str(row.get("message") or "")
                story.warn(f"codex: {last[:300]}")
    rollout = session_file(sessions, "rollout-*.jsonl", story.session)
    if rollout is None:
        story.warn("codex left no rollout file: no steps to tell")
        if told is not None:
            story.spend("", told)
        return story
    Rollout(story).read(rollout)
    if story.errors:
        story.closed = False
    return story


def tokens_of(usage: dict[str, Any]) -> Tokens:
    """Translate Codex's counts: its input includes what was read from and written to the cache."""
    cached = int(usage.get("cached_input_tokens") or 0)
    written = int(usage.get("cache_write_input_tokens") or 0)
    return Tokens(
        input=max(0, int(usage.get("input_tokens") or 0) - cached - written),
        cache_read=cached,
        cache_write=written,
        output=int(usage.get("output_tokens") or 0),
        reasoning=int(usage.get("reasoning_output_tokens") or 0),
    )


class Rollout:
    """Walks a rollout file: the items of one response, then its token record, then the results of its calls."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._effort = ""
        self._step: Step | None = None
        """The step that further items of the same response belong to."""

    def read(self, path: Path) -> None:
        """Add what the file tells to the story."""
        for row in rows(path, self._story):
            payload = row.get("payload")
            if isinstance(payload, dict):
                self._row(str(row.get("type")), payload, str(row.get("timestamp") or ""))

    def _row(self, kind: str, payload: dict[str, Any], at: str) -> None:
        match kind:
            case "session_meta":
                self._story.version = str(payload.get("cli_version") or "")
            case "turn_context":
                self._story.model = str(payload.get("model") or "")
                self._effort = str(payload.get("effort") or payload.get("reasoning_effort") or "")
            case "token_usage_record":
                tokens = tokens_of(payload.get("usage") or {})
                self._story.spend(self._story.model, tokens)
                if self._step is not None:
                    self._step.tokens = tokens
                self._step = None
            case "response_item":
                self._item(payload, at)

    def _item(self, item: dict[str, Any], at: str) -> None:
        kind = item.get("type")
        if kind in ("function_call_output", "custom_tool_call_output"):
            call = self._story.call(str(item.get("call_id")))
            if call is not None:
                call.result = flatten(item.get("output"))
            self._step = None
        elif kind == "message" and item.get("role") != "assistant":
            source = SOURCES.get(str(item.get("role")), "user")
            self._story.add(Step(source, flatten(item.get("content")), at))
            self._step = None
        elif kind in ANSWERS:
            self._agent(item, at)

    def _agent(self, item: dict[str, Any], at: str) -> None:
        if self._step is None:
            self._step = self._story.add(Step("agent", at=at, model=self._story.model, effort=self._effort))
        match item.get("type"):
            case "message":
                self._step.say(flatten(item.get("content")))
            case "reasoning":
                self._step.think(flatten(item.get("summary")))
            case "function_call" | "custom_tool_call" | "local_shell_call":
                given = item.get("arguments") or item.get("input") or item.get("action") or {}
                call_id = str(item.get("call_id") or item.get("id"))
                self._story.ask(self._step, ToolCall(call_id, str(item.get("name") or item["type"]), parsed(given)))
