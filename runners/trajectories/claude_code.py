"""Claude Code: the session file has the steps and each message's tokens, standard output how it ended."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from runners.trajectories.log import flatten, parsed, rows, session_file
from runners.trajectories.story import MAX_STEPS, Step, Story, Tokens, ToolCall


def read_claude_code(stdout: Path, projects: Path) -> Story:
    """Return the story of a run."""
    story = Story(agent="claude-code")
    for row in rows(stdout, story):
        if row.get("type") == "system" and row.get("subtype") == "init":
            story.session, story.model = str(row.get("session_id") or ""), str(row.get("model") or "")
            story.version = str(row.get("claude_code_version") or "")
        elif row.get("type") == "result":
            end(story, row)
    session = session_file(projects, "*.jsonl", story.session)
    messages = Messages(story)
    messages.read(rows(session if session is not None else stdout, story))
    if not story.spent:
        messages.spend()
    else:
        story.requests = messages.requests()
    return story


def tokens_of(usage: dict[str, Any]) -> Tokens:
    """Translate Anthropic's counts: input excludes what came from the cache."""
    return Tokens(
        input=int(usage.get("input_tokens") or 0),
        cache_read=int(usage.get("cache_read_input_tokens") or 0),
        cache_write=int(usage.get("cache_creation_input_tokens") or 0),
        output=int(usage.get("output_tokens") or 0),
        reasoning=int((usage.get("output_tokens_details") or {}).get("thinking_tokens") or 0),
    )


def end(story: Story, row: dict[str, Any]) -> None:
    """Take the closing event: it may say ``subtype: success`` and ``is_error: true`` at once; the latter counts."""
    if row.get("is_error") or row.get("subtype") != "success":
        words = [row.get(key) for key in ("subtype", "api_error_status", "terminal_reason")]
        said = " ".join(str(word) for word in words if word and word != "success")
        story.errors.append(f"{said}: {flatten(row.get('result')) or flatten(row.get('errors'))}"[:1000])
    else:
        story.closed = True
    cost = row.get("total_cost_usd")
    for model, used in (row.get("modelUsage") or {}).items():
        story.spend(
            model,
            Tokens(
                input=int(used.get("inputTokens") or 0),
                cache_read=int(used.get("cacheReadInputTokens") or 0),
                cache_write=int(used.get("cacheCreationInputTokens") or 0),
                output=int(used.get("outputTokens") or 0),
                reasoning=int(used.get("thinkingTokens") or 0),
            ),
        )
        if used.get("costBasis") == "unknown":
            story.warn(f"claude-code guessed the price of {model}: its own cost was left out")
            cost = None
    story.cost_usd = float(cost) if isinstance(cost, int | float) else None


class Messages:
    """Gathers messages from lines of one content block each: the same message's id repeats."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._steps: dict[str, Step] = {}
        self._models: dict[str, str] = {}

    def read(self, lines: Iterable[dict[str, Any]]) -> None:
        """Add what the lines tell to the story; those of sub-agents stay out."""
        for row in lines:
            message = row.get("message")
            if not isinstance(message, dict) or row.get("isSidechain") or row.get("parent_tool_use_id"):
                continue
            at = str(row.get("timestamp") or "")
            if row.get("type") == "assistant":
                self._agent(message, at)
            elif row.get("type") == "user":
                self._user(message, at)

    def _agent(self, message: dict[str, Any], at: str) -> None:
        key, model = str(message.get("id")), str(message.get("model") or "")
        if model == "<synthetic>":  # its own words on an error, no answer of a model
            return
        step = self._steps.get(key)
        if step is None:
            if len(self._steps) >= MAX_STEPS:
                return
            step = self._steps[key] = self._story.add(Step("agent", at=at, model=model))
        step.tokens = tokens_of(message.get("usage") or {})
        self._models[key] = model
        for block in message.get("content") or []:
            match block.get("type"):
                case "text":
                    step.say(str(block.get("text") or ""))
                case "thinking":
                    step.think(str(block.get("thinking") or ""))
                case "tool_use":
                    given = parsed(block.get("input"))
                    self._story.ask(step, ToolCall(str(block.get("id")), str(block.get("name")), given))

    def _user(self, message: dict[str, Any], at: str) -> None:
        content = message.get("content")
        results = (
            [b for b in content if isinstance(b, dict) and b.get("type") == "tool_result"]
            if isinstance(content, list)
            else []
        )
        for block in results:
            call = self._story.call(str(block.get("tool_use_id")))
            if call is not None:
                call.result = flatten(block.get("content"))
        if not results:
            self._story.add(Step("user", flatten(content), at))

    def requests(self) -> dict[str, int]:
        """Return how many answers each model gave."""
        return dict(Counter(self._models.values()))

    def spend(self) -> None:
        """Take the tokens from the messages: what there is where the closing event is missing."""
        for key, model in self._models.items():
            self._story.spend(model, self._steps[key].tokens or Tokens())
