"""Token counts read from a response as it streams by, whatever the API."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

TOKENS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
"""``input_tokens`` is fresh input, ``output_tokens`` includes the reasoning: the words of the record format."""
MARKS = (b"usage", b"error", b"failed", b"incomplete", b"stop_reason", b"finish")
"""Only events with one of these can say anything that matters here; the rest is not parsed."""
KEEP_BYTES = 1 << 24
BYTES_PER_TOKEN = 4


def tokens_of(api: str, usage: Mapping[str, Any]) -> dict[str, int]:
    """Translate an API's usage object."""
    if api == "messages":
        got = (
            number(usage, "input_tokens"),
            number(usage, "cache_read_input_tokens"),
            number(usage, "cache_creation_input_tokens"),
            number(usage, "output_tokens"),
            number(usage, "output_tokens_details", "thinking_tokens"),
        )
    elif api == "gemini":
        cached, thoughts = number(usage, "cachedContentTokenCount"), number(usage, "thoughtsTokenCount")
        prompt = number(usage, "promptTokenCount") + number(usage, "toolUsePromptTokenCount")
        got = (prompt - cached, cached, 0, number(usage, "candidatesTokenCount") + thoughts, thoughts)
    else:
        total, side = ("input", "output") if api == "responses" else ("prompt", "completion")
        cached = number(usage, f"{total}_tokens_details", "cached_tokens")
        written = number(usage, f"{total}_tokens_details", "cache_write_tokens")
        fresh = number(usage, f"{total}_tokens") - cached - written
        reasoning = number(usage, f"{side}_tokens_details", "reasoning_tokens")
        got = (fresh, cached, written, number(usage, f"{side}_tokens"), reasoning)
    return dict(zip(TOKENS, (max(0, count) for count in got), strict=True))


def number(usage: Mapping[str, Any], *path: str) -> int:
    """Return a count, 0 where it is missing or no count."""
    value: Any = usage
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


class Meter:
    """Fed with the bytes of one response; afterwards ``usage``, ``stop`` and ``error`` say what it was."""

    def __init__(self, api: str, *, streamed: bool) -> None:
        self.api = api
        self.streamed = streamed
        self.bytes = 0
        self.raw_usage: dict[str, Any] = {}
        self.stop = ""
        """Why the model stopped, in the API's own word."""
        self.error = ""
        """Code or type of an error that came inside the response."""
        self.error_text = ""
        self._rest = b""

    @property
    def usage(self) -> dict[str, int] | None:
        """The token counts; null where the response ended before it told them."""
        return tokens_of(self.api, self.raw_usage) if self.raw_usage else None

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.bytes += len(chunk)
        self._rest += chunk
        if self.streamed:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._line(line)
        self._rest = self._rest[:KEEP_BYTES]

    def close(self) -> None:
        """Take the end of the response."""
        if self.streamed:
            self._line(self._rest)
        else:
            self._document(self._rest)
        self._rest = b""

    def _line(self, line: bytes) -> None:
        if line.startswith(b"data:") and any(mark in line for mark in MARKS):
            self._document(line[5:])

    def _document(self, text: bytes) -> None:
        try:
            found = json.loads(text)
        except ValueError:
            return
        for event in found if isinstance(found, list) else [found]:
            if isinstance(event, dict):
                self._event(event)

    def _event(self, event: dict[str, Any]) -> None:
        for holder in holders(event):
            usage = holder.get("usageMetadata" if self.api == "gemini" else "usage")
            if isinstance(usage, dict):
                self.raw_usage.update({key: value for key, value in usage.items() if value is not None})
            self.stop = str(stop_of(holder) or self.stop)
            error = holder.get("error")
            if isinstance(error, dict):
                self.error = str(error.get("code") or error.get("type") or error.get("status") or "error")
                self.error_text = str(error.get("message") or "")[:500]


def holders(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects of an event that may carry usage, a stop reason or an error."""
    yield event
    for key in ("response", "message", "delta"):
        if isinstance(event.get(key), dict):
            yield event[key]
    for key in ("choices", "candidates"):
        entries = event.get(key)
        yield from (entry for entry in entries or [] if isinstance(entry, dict))


def stop_of(holder: dict[str, Any]) -> Any:
    """Return the word for why the model stopped, where this object has one."""
    incomplete = holder.get("incomplete_details")
    if isinstance(incomplete, dict) and incomplete.get("reason"):
        return incomplete["reason"]
    return holder.get("stop_reason") or holder.get("finish_reason") or holder.get("finishReason")
