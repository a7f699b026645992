"""What differs between the model APIs: paths, the model's name, and the shape of an error."""

import re
from dataclasses import dataclass
from typing import Any

from .settings import Dialect, Refusal, Upstream

MODEL = r"[A-Za-z0-9._:@/-]{1,200}"
PATHS: dict[str, list[tuple[str, re.Pattern[str], str]]] = {
    "openai": [
        ("POST", re.compile(r"/v1(?P<tail>/responses(/compact)?)"), "responses"),
        ("POST", re.compile(r"/v1(?P<tail>/chat/completions)"), "chat"),
        ("GET", re.compile(rf"/v1(?P<tail>/models(/{MODEL})?)"), ""),
    ],
    "anthropic": [
        ("POST", re.compile(r"(?P<tail>/v1/messages)"), "messages"),
        ("POST", re.compile(r"(?P<tail>/v1/messages/count_tokens)"), "count messages"),
        ("GET", re.compile(rf"(?P<tail>/v1/models(/{MODEL})?)"), ""),
    ],
    "google": [
        (
            "POST",
            re.compile(r"(?P<tail>/v1(beta|alpha)?/models/(?P<model>[A-Za-z0-9._-]+):(stream)?[gG]enerateContent)"),
            "gemini",
        ),
        (
            "POST",
            re.compile(r"(?P<tail>/v1(beta|alpha)?/models/(?P<model>[A-Za-z0-9._-]+):countTokens)"),
            "count gemini",
        ),
        ("GET", re.compile(rf"(?P<tail>/v1(beta|alpha)?/models(/{MODEL})?)"), ""),
    ],
}
"""Dialect -> (method, path below the upstream's name, API). An API's responses are metered; the rest costs nothing, and
with ``count`` before the API a body in its form is judged all the same: the vendor would fetch what it counts."""

STATUS = {"openai": 400, "anthropic": 403, "google": 403}
"""The status of a refusal: the one that each dialect's clients do not retry."""
GOOGLE_STATUS = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}


@dataclass(frozen=True)
class Route:
    """Where a request goes."""

    upstream: Upstream
    tail: str
    """Path below the upstream's base URL."""
    api: str
    """``responses``, ``chat``, ``messages``, ``gemini``; empty for a request that costs nothing."""
    form: str
    """The API in whose form the body is; empty for a request without one."""
    model: str
    """Known from the path (Gemini); else empty."""


def route(method: str, path: str, upstreams: dict[str, Upstream]) -> Route:
    """Find where a request goes.

    Raises:
        Refusal: ``unknown_path``, with what there is.
    """
    name, _, below = path.lstrip("/").partition("/")
    upstream = upstreams.get(name)
    if upstream is None:
        there = ", ".join(f"/{known}" for known in sorted(upstreams)) or "none"
        raise Refusal("unknown_path", f"no model endpoint at {path[:200]}; there is {there}", status=404)
    steps = below.split("/")
    for verb, pattern, api in PATHS[upstream.dialect]:
        match = None if {"", ".", ".."} & set(steps) else pattern.fullmatch("/" + below)
        if match and verb == method:
            form = api.removeprefix("count ")
            return Route(
                upstream, match["tail"], api if api == form else "", form, match.groupdict().get("model") or ""
            )
    raise Refusal("unknown_path", f"{method} {path[:200]} is no model request", status=404)


def error_body(dialect: Dialect, status: int, kind: str, message: str) -> dict[str, Any]:
    """Return a refusal in the shape that the dialect's clients show to their users."""
    text = f"hab-suite gateway [{kind}]: {message}"
    if dialect == "anthropic":
        return {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
    if dialect == "google":
        return {"error": {"code": status, "message": text, "status": GOOGLE_STATUS.get(status, "UNAVAILABLE")}}
    return {"error": {"message": text, "type": "invalid_request_error", "code": kind, "param": None}}
