"""One request and what became of it: judged at its start, a line of the journal at its end."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from . import hosted
from .body import parse
from .dialects import Route
from .meter import Meter
from .settings import Refusal

MAX_OUTPUT = ("max_output_tokens", "max_completion_tokens", "max_tokens", "maxOutputTokens")
DEFAULT_OUTPUT = 32_000
"""Tokens set aside for an answer whose request names no limit (Codex names none)."""
LONGEST_OUTPUT = 200_000
"""No model answers at greater length; a request that says so sets no more aside."""
MAX_NAME = 200


@dataclass
class Exchange:
    """One request and what became of it: a line of the journal."""

    route: Route
    model: str
    bytes_in: int
    streamed: bool
    started: float = field(default_factory=time.monotonic)
    judged: float = 0.0
    first: float = 0.0
    status: int = 0
    error: str = ""
    message: str = ""
    ended: bool = False
    """Whether the answer came to its end."""
    output_tokens: int = DEFAULT_OUTPUT
    """How long the answer may become."""


def judge(route: Route, body: bytes) -> tuple[bytes, Exchange]:
    """Return what is sent on of a body that may pass. Takes up to a second: run it in a thread.

    Raises:
        Refusal: it may not.
    """
    parsed = parse(body)
    model = route.model or str(parsed.get("model") or "")
    if len(model) > MAX_NAME:
        raise Refusal("bad_body", f"a model's name may have {MAX_NAME} characters", status=400)
    hosted.check(route.form, parsed, model)
    streamed = bool(parsed.get("stream"))
    options = parsed.get("stream_options")
    if route.api == "chat" and streamed and not (isinstance(options, dict) and options.get("include_usage")):
        # without it nobody learns what the request used
        parsed["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
        body = json.dumps(parsed).encode()
    return body, Exchange(route, model, len(body), streamed, output_tokens=output_limit(parsed))


def output_limit(parsed: dict[str, Any]) -> int:
    """Return how many tokens an answer may have, as its request says."""
    places = [parsed, parsed.get("generationConfig"), parsed.get("generation_config")]
    named = [place.get(name) for place in places if isinstance(place, dict) for name in MAX_OUTPUT]
    counts = [count for count in named if isinstance(count, int) and count > 0]
    choices = [place.get(name) for place in places if isinstance(place, dict) for name in ("n", "candidateCount")]
    times = max((number for number in choices if isinstance(number, int)), default=1)
    return min(max(counts, default=DEFAULT_OUTPUT) * max(1, times), LONGEST_OUTPUT)


def line(trial: str, exchange: Exchange, meter: Meter, cost: float, *, metered: bool) -> Mapping[str, Any]:
    """Return the journal's line of a request: no key, no body, no header."""
    end = time.monotonic()
    return {
        "at": now(),
        "trial": trial,
        "provider": exchange.route.upstream.name,
        "api": exchange.route.api or exchange.route.tail,
        "model": exchange.model,
        "status": exchange.status,
        "streamed": meter.streamed,
        "error": exchange.error,
        "stop": meter.stop,
        "judged_ms": round((exchange.judged - exchange.started) * 1000, 3),
        "first_s": round(exchange.first - exchange.started, 4) if exchange.first else None,
        "seconds": round(end - exchange.started, 4),
        "bytes_in": exchange.bytes_in,
        "bytes_out": meter.bytes,
        "usage": meter.usage,
        "metered": metered,
        "cost_usd": cost,
    }


def now() -> str:
    """Return the time, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
