"""Errors of models and their endpoints: which class, and whose fault."""

import re

from containers.door import DoorReport

ENVIRONMENT_CLASSES = frozenset({"rate_limit", "provider", "gateway"})
"""Not the agent's doing: tried again, and broken rather than failed."""
CONFIGURATION_CLASSES = frozenset({"auth", "model"})
"""The same for every trial of a harness: three of them stop it."""

STATUSES = {
    "401": "auth",
    "403": "auth",
    "404": "model",
    "408": "provider",
    "429": "rate_limit",
    "529": "provider",
    "cut": "stream",
    "gone": "",
    "silence": "silence",
    "unreachable": "provider",
}
"""What the gateway saw last -> class. ``gone`` is the agent's own hanging up and says nothing."""

WORDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("budget", r"gateway \[(budget|unpriced)\]"),
        ("tool", r"gateway \[(hosted_tool|remote_file)\]"),
        ("gateway", r"gateway \[(stale|unknown_path|unknown_host|upgrade|encoded|bad_body|too_large)\]"),
        ("silence", r"gateway \[silence\]"),
        ("provider", r"gateway \[unreachable\]"),
        ("quota", r"insufficient_quota|quota exceeded|usage limit|credit balance|billing|exceeded your current quota"),
        ("context", r"context[_ ](length|window|limit)|maximum context|too many tokens|ran out of room"),
        ("context", r"prompt (is )?too long|prompt_too_long|input token count"),
        ("refusal", r"refusal|content_filter|content filter|usage polic|safety|prohibited_content"),
        ("output_limit", r"max_output_tokens|max_tokens|output token (limit|maximum)|incomplete response|MAX_TOKENS"),
        ("auth", r"\b401\b|\b403\b|unauthori[sz]ed|authentication|invalid.{0,5}api.?key|permission|forbidden"),
        ("model", r"\b404\b|model.{0,40}not.{0,5}(found|exist)|unknown model|not_found|unsupported model"),
        ("rate_limit", r"\b429\b|rate.?limit|too many requests|resource_exhausted"),
        ("provider", r"\b5\d\d\b|overloaded|server_error|internal error|api_error|unavailable|connection refused"),
        ("stream", r"stream (disconnected|closed|ended)|connection (closed|reset|error)|socket|cut|terminated|aborted"),
        ("request", r"\b400\b|invalid_request|bad request|invalid argument"),
        ("silence", r"timed? ?out|timeout|idle"),
    )
)
"""Class and the words by which CLIs and vendors tell it, the most telling first."""


def class_of(text: str) -> str:
    """Return the class of an error as a CLI or a vendor words it; ``crash`` where the words say nothing."""
    return next((name for name, pattern in WORDS if pattern.search(text)), "crash")


def class_of_answer(error: str, message: str) -> str:
    """Return the class of the last answer that the gateway saw: an HTTP status, a code, or how it ended."""
    worded = class_of(f"{error} {message}")
    if worded in ("quota", "context", "refusal", "budget"):
        return worded
    if error in STATUSES:
        return STATUSES[error]
    if error.isdigit():
        return "provider" if error >= "500" else "request"
    return worded


def settle(error_class: str, message: str, report: DoorReport | None) -> tuple[str, str]:
    """Return class and message of a trial's end from the agent's word and the gateway's.

    The gateway knows what the model answered; the agent's words often do not say. Where the agent came to its end,
    errors on the way do not count, except that a trial out of money is one, whatever its agent made of it.
    """
    if report is None:
        return error_class, message
    if report.refusals.get("budget"):
        return "budget", "the limit of --max-usd or --max-usd-per-trial was reached"
    if not error_class:
        return "", ""
    seen = class_of_answer(report.last_error, report.message) if report.last_error else ""
    if seen and seen != "crash":
        return seen, report.message or message
    return error_class, message
