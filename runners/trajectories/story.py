"""What an agent did, step by step, gathered from its log and told as ATIF v1.7."""

import json
import math
from dataclasses import dataclass, field
from typing import Any

from results.records import Usage

ATIF = "ATIF-v1.7"
MAX_STEPS, MAX_CALLS, MAX_MODELS, MAX_WARNINGS = 20_000, 50_000, 50, 50
MAX_COUNT = 10**12
"""Tokens; a log that says more was not written by a CLI."""
MAX_TEXT = 200_000
"""Longer texts are cut: a trajectory is to be read."""


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

    def say(self, text: str, between: str = "\n") -> None:
        """Add to the message, up to a length."""
        self.message = grown(self.message, text, between)

    def think(self, text: str, between: str = "\n") -> None:
        """Add to the reasoning, up to a length."""
        self.reasoning = grown(self.reasoning, text, between)

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
    _calls: dict[str, ToolCall] = field(default_factory=dict, repr=False)

    def add(self, step: Step) -> Step:
        """Add a step, where there is room for one, and return it."""
        if len(self.steps) < MAX_STEPS:
            self.steps.append(step)
        else:
            self.warn(f"{self.agent}: more than {MAX_STEPS} steps; the rest was left out")
        return step

    def ask(self, step: Step, call: ToolCall) -> None:
        """Add a call to a step, where there is room for one."""
        if len(self._calls) < MAX_CALLS:
            step.calls.append(call)
            self._calls[call.id] = call
        else:
            self.warn(f"{self.agent}: more than {MAX_CALLS} calls; the rest was left out")

    def warn(self, text: str) -> None:
        """Add a warning, once, and only as many as anybody reads."""
        text = plain(text)[:500]
        if len(self.warnings) < MAX_WARNINGS and text not in self.warnings:
            self.warnings.append(text)

    def spend(self, model: str, tokens: Tokens, requests: int = 1) -> None:
        """Add what requests to a model used."""
        if model not in self.spent and len(self.spent) >= MAX_MODELS:
            self.warn(f"{self.agent}: more than {MAX_MODELS} models; the rest was left out")
            return
        self.spent.setdefault(model, Tokens()).add(tokens)
        self.requests[model] = self.requests.get(model, 0) + requests

    def call(self, call_id: str) -> ToolCall | None:
        """Find a call by its id; where two have the same, the later one."""
        return self._calls.get(call_id)

    def told(self, provider: str) -> tuple[tuple[Usage, ...], float | None, dict[str, Any] | None]:
        """Return usage, cost and trajectory; what cannot be told, since the log holds odd things, is a warning."""
        usage: tuple[Usage, ...] = ()
        trajectory = None
        try:
            usage = self.usage(provider)
            trajectory = self.trajectory()
            json.dumps(trajectory, indent=1)  # nested too deep, or a number too long: found here, not where it is kept
        except Exception as error:  # noqa: BLE001 (whatever a log holds, its trial goes on)
            trajectory = None
            self.warn(f"the log of {self.agent} could not be told: {type(error).__name__}: {error}")
        cost = self.cost_usd
        return usage, cost if cost is not None and math.isfinite(cost) and cost >= 0 else None, trajectory

    def usage(self, provider: str) -> tuple[Usage, ...]:
        """Return the session's tokens as the record has them; odd counts are left out."""
        for model, tokens in list(self.spent.items()):
            if not all(0 <= count <= MAX_COUNT for count in (*vars(tokens).values(), self.requests.get(model, 0))):
                self.warn(f"{self.agent}: the token counts of {model[:100]} are no such counts")
                del self.spent[model]
        return tuple(
            Usage(
                model=plain(model)[:200],
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


def grown(text: str, more: str, between: str) -> str:
    """Return two texts as one, unless the first is long enough."""
    if len(text) > MAX_TEXT:
        return text
    return f"{text}{between}{more[:MAX_TEXT]}" if text and more else text or more


def plain(text: str) -> str:
    """Return a text that any file can hold: without halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode()
