"""What an agent did, step by step, gathered from its log and told as ATIF v1.7."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from results.records import Usage

ATIF = "ATIF-v1.7"
MAX_LINE_BYTES = 32 << 20
MAX_TEXT = 200_000
"""Longer observations are cut: a trajectory is to be read."""


@dataclass
class Tokens:
    """Token counts of one request, in the words of the record format."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    def add(self, other: "Tokens") -> None:
        """Add another's counts to these."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def metrics(self) -> dict[str, Any]:
        """Return ATIF's metrics; its prompt tokens include the cached ones."""
        found: dict[str, Any] = {
            "prompt_tokens": self.input + self.cache_read + self.cache_write,
            "completion_tokens": self.output,
            "cached_tokens": self.cache_read,
        }
        extra = {"cache_write_tokens": self.cache_write, "reasoning_tokens": self.reasoning}
        return found | ({"extra": extra} if any(extra.values()) else {})


@dataclass
class ToolCall:
    """A call and what came back."""

    id: str
    name: str
    arguments: dict[str, Any]
    result: str | None = None


@dataclass
class Step:
    """One message of the system, the user or the agent."""

    source: str
    message: str = ""
    at: str = ""
    """ISO 8601; empty where the log does not say."""
    model: str = ""
    effort: str = ""
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    tokens: Tokens | None = None

    def tell(self, number: int) -> dict[str, Any]:
        """Return the step as ATIF has it."""
        told: dict[str, Any] = {"step_id": number, "source": self.source, "message": self.message}
        if self.at:
            told["timestamp"] = self.at
        if self.source != "agent":
            return told
        named = {"model_name": self.model, "reasoning_effort": self.effort, "reasoning_content": self.reasoning}
        told |= {key: value for key, value in named.items() if value}
        if self.calls:
            told["tool_calls"] = [
                {"tool_call_id": call.id, "function_name": call.name, "arguments": call.arguments}
                for call in self.calls
            ]
            results = [
                {"source_call_id": call.id, "content": cut(call.result)}
                for call in self.calls
                if call.result is not None
            ]
            if results:
                told["observation"] = {"results": results}
        if self.tokens is not None:
            told["metrics"] = self.tokens.metrics()
        return told


@dataclass
class Story:
    """All of a session."""

    agent: str
    version: str = ""
    session: str = ""
    model: str = ""
    steps: list[Step] = field(default_factory=list)
    spent: dict[str, Tokens] = field(default_factory=dict)
    """Model -> all tokens of the session, as the CLI counts them."""
    requests: dict[str, int] = field(default_factory=dict)
    cost_usd: float | None = None
    closed: bool = False
    """Whether the CLI said that it had come to its end."""
    errors: list[str] = field(default_factory=list)
    """What ended the session, in the CLI's words; empty where it ended well."""
    warnings: list[str] = field(default_factory=list)

    def spend(self, model: str, tokens: Tokens, requests: int = 1) -> None:
        """Add what requests to a model used."""
        self.spent.setdefault(model, Tokens()).add(tokens)
        self.requests[model] = self.requests.get(model, 0) + requests

    def call(self, call_id: str) -> ToolCall | None:
        """Find a call by its id, the latest first."""
        calls = (call for step in reversed(self.steps) for call in step.calls)
        return next((call for call in calls if call.id == call_id), None)

    def usage(self, provider: str) -> tuple[Usage, ...]:
        """Return the session's tokens as the record has them."""
        return tuple(
            Usage(
                model=model,
                provider=provider,
                requests=self.requests.get(model, 0),
                input_tokens=tokens.input,
                cache_read_tokens=tokens.cache_read,
                cache_write_tokens=tokens.cache_write,
                output_tokens=tokens.output,
                reasoning_tokens=tokens.reasoning,
            )
            for model, tokens in sorted(self.spent.items())
            if tokens != Tokens()
        )

    def trajectory(self) -> dict[str, Any] | None:
        """Return the session as ATIF; null where there is no step to tell."""
        if not self.steps:
            return None
        total = Tokens()
        for tokens in self.spent.values():
            total.add(tokens)
        sums = total.metrics()
        final: dict[str, Any] = {
            "total_prompt_tokens": sums["prompt_tokens"],
            "total_completion_tokens": sums["completion_tokens"],
            "total_cached_tokens": sums["cached_tokens"],
            "total_steps": len(self.steps),
        }
        if self.cost_usd is not None:
            final["total_cost_usd"] = self.cost_usd
        told: dict[str, Any] = {"schema_version": ATIF}
        if self.session:
            told["session_id"] = self.session
        told["agent"] = {"name": self.agent, "version": self.version or "unknown"}
        if self.model:
            told["agent"]["model_name"] = self.model
        told["steps"] = [step.tell(number) for number, step in enumerate(self.steps, 1)]
        told["final_metrics"] = final
        return told


def cut(text: str | None) -> str:
    """Return a text of bounded length, the middle left out."""
    text = text or ""
    if len(text) <= MAX_TEXT:
        return text
    half = MAX_TEXT // 2
    return f"{text[:half]}\n[... {len(text) - MAX_TEXT} characters left out ...]\n{text[-half:]}"


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSONL file; what is none (a cut last line, a notice) is passed over."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in iter(lambda: file.readline(MAX_LINE_BYTES), b""):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict):
                yield row


def newest(folder: Path, pattern: str) -> Path | None:
    """Return the file that was written last; null where none matches."""
    found = [path for path in folder.rglob(pattern) if path.is_file() and not path.is_symlink()]
    return max(found, key=lambda path: path.stat().st_mtime_ns, default=None)


def parsed(text: Any) -> dict[str, Any]:
    """Return a call's arguments as an object, whatever form the log keeps them in."""
    if isinstance(text, dict):
        return text
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {"input": text}
    return found if isinstance(found, dict) else {"input": found}


def flatten(content: Any) -> str:
    """Return the text of a message's content, whatever its parts are called."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text for text in map(flatten, content) if text)
    if isinstance(content, dict):
        return str(content.get("text") or content.get("thinking") or "") or flatten(content.get("content") or "")
    return ""
