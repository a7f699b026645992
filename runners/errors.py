"""Errors of models and their endpoints: which class, and whose fault."""

import re

from containers.door import DoorReport

ENVIRONMENT_CLASSES = frozenset({"rate_limit", "provider", "stream", "silence", "gateway"})
"""Not the agent's doing: tried again, and broken rather than failed."""
CONFIGURATION_CLASSES = frozenset({"auth", "model", "quota"})
"""The same for every trial of a harness: three of them stop it."""

STATUSES = {401: "auth", 403: "auth", 404: "model", 408: "provider", 429: "rate_limit"}
"""HTTP status of an answer -> class; 500 and above are the provider's, the rest of 400 and above the request's."""
ENDS = {"cut": "stream", "gone": "", "silence": "silence", "unreachable": "provider", "gateway": "gateway"}
"""How an answer ended, as the gateway tells it -> class. ``gone``: the agent hung up, which says nothing; ``gateway``:
the gateway itself is no more."""
STOPS = {
    "refusal": "refusal",
    "content_filter": "refusal",
    "safety": "refusal",
    "prohibited_content": "refusal",
    "length": "output_limit",
    "max_tokens": "output_limit",
    "max_output_tokens": "output_limit",
}
"""Why the model stopped in its last answer -> class; an agent that ends on such an answer did not finish."""
TOLD_BY_WORDS = ("quota", "context", "refusal")
"""Vendors give these by all sorts of status, so that the words count first."""

WORDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("budget", r"gateway \[(budget|unpriced)\]"),
        ("tool", r"gateway \[(hosted_tool|remote_file)\]"),
        ("gateway", r"gateway \[(stale|unknown_path|unknown_host|upgrade|encoded|bad_body|too_large|busy)\]"),
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


def class_of_answer(report: DoorReport) -> str:
    """Return the class of the last answer that the gateway saw; empty where it was good, or says nothing."""
    if not report.last_error:
        return STOPS.get(report.last_stop.lower(), "")
    if report.last_error in ENDS:
        return ENDS[report.last_error]
    worded, status = class_of(f"{report.last_error} {report.message}"), report.last_status
    if worded in TOLD_BY_WORDS:
        return worded
    if status in STATUSES:
        return STATUSES[status]
    if status >= 400:
        return "provider" if status >= 500 else "request"
    return "" if worded == "crash" else worded


def settle(error_class: str, message: str, report: DoorReport | None) -> tuple[str, str]:
    """Return class and message of a trial's end from the agent's word and the gateway's.

    The gateway knows what the model answered; the agent's words often do not say, and are the agent's own: a trial is
    broken, or its harness stopped, by what the gateway saw and by nothing else. Where the agent says that it came
    to its end, errors on the way do not count; but a trial out of money is one, and a last answer that was refused or
    cut off by the model's own limit is no end.
    """
    if report is None:
        return error_class, message
    if report.refusals.get("budget"):
        return "budget", "the limit of --max-usd or --max-usd-per-trial was reached"
    seen = class_of_answer(report) or ("gateway" if report.refusals.get("stale") else "")
    if not error_class and seen not in STOPS.values():
        return "", ""
    if seen:
        return seen, report.message or message or f"the model stopped: {report.last_stop}"
    return ("crash" if error_class in ENVIRONMENT_CLASSES | CONFIGURATION_CLASSES else error_class), message
