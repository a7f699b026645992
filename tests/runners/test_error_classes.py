"""Classes of errors: by the words of CLIs and vendors, and by what the gateway saw."""

import pytest

from containers.door import DoorReport
from runners.errors import CONFIGURATION_CLASSES, ENVIRONMENT_CLASSES, class_of, settle

SAID = {
    "exceeded retry limit, last status: 429 Too Many Requests": "rate_limit",
    "unexpected status 401 Unauthorized: Incorrect API key": "auth",
    "Quota exceeded. Check your plan and billing details.": "quota",
    "Codex ran out of room in the model's context window.": "context",
    "400 prompt_too_long: Prompt is too long": "context",
    "404 api_error: There's an issue with the selected model (x). It may not exist": "model",
    "Incomplete response returned, reason: max_output_tokens": "output_limit",
    "Incomplete response returned, reason: content_filter": "refusal",
    "stream disconnected before completion: Transport error": "stream",
    "529 overloaded_error: Overloaded": "provider",
    "400 hab-suite gateway [budget]: the trial's limit of 1 USD is reached": "budget",
    "504 hab-suite gateway [silence]: the model endpoint was silent": "silence",
    "Segmentation fault": "crash",
    "": "crash",
}


@pytest.mark.parametrize("text", SAID)
def test_words_have_a_class(text: str) -> None:
    assert class_of(text) == SAID[text]


@pytest.mark.parametrize(
    ("own", "report", "expected"),
    [
        ("crash", None, "crash"),
        ("", DoorReport(last_error="500", last_status=500), ""),
        ("crash", DoorReport(last_error="server_error", last_status=503), "provider"),
        ("stream", DoorReport(last_error="silence", last_status=200), "silence"),
        ("crash", DoorReport(last_error="cut", last_status=200), "stream"),
        ("crash", DoorReport(last_error="gone", last_status=200), "crash"),
        ("provider", DoorReport(last_error="invalid_request_error", last_status=403, message="no access"), "auth"),
        ("provider", DoorReport(last_error="x", last_status=429, message="insufficient_quota"), "quota"),
        ("", DoorReport(last_status=200, last_stop="max_output_tokens"), "output_limit"),
        ("", DoorReport(last_status=200, last_stop="SAFETY"), "refusal"),
        ("", DoorReport(last_status=200, last_stop="end_turn"), ""),
        ("", DoorReport(refusals={"budget": 1}), "budget"),
        ("crash", DoorReport(refusals={"budget": 2}, last_error="500", last_status=500), "budget"),
        ("", DoorReport(refusals={"hosted_tool": 3}), ""),
        ("crash", DoorReport(last_error="gateway", message="the gateway is gone"), "gateway"),
        ("", DoorReport(last_error="gateway", message="the gateway is gone"), ""),
        ("crash", DoorReport(refusals={"stale": 1}, last_status=200), "gateway"),
    ],
)
def test_the_gateways_word_counts_where_it_has_one(own: str, report: DoorReport | None, expected: str) -> None:
    error_class, message = settle(own, "said" if own else "", report)
    assert error_class == expected
    assert bool(message) == bool(expected)


def test_no_class_is_both_the_environments_and_the_configurations() -> None:
    assert not ENVIRONMENT_CLASSES & CONFIGURATION_CLASSES


@pytest.mark.parametrize("line", ["wrote 512 rows", "429", "401 Unauthorized", "insufficient_quota", "timeout: idle"])
@pytest.mark.parametrize("report", [DoorReport(), DoorReport(last_status=200), DoorReport(last_error="gone")])
def test_an_agent_cannot_talk_its_trial_into_a_retry(line: str, report: DoorReport) -> None:
    assert class_of(line) in ENVIRONMENT_CLASSES | CONFIGURATION_CLASSES
    assert settle(class_of(line), line, report) == ("crash", line)


@pytest.mark.parametrize("own", ["context", "refusal", "output_limit", "request", "crash", "tool"])
def test_what_is_the_agents_own_doing_keeps_its_class(own: str) -> None:
    assert settle(own, "said", DoorReport(last_status=200))[0] == own
