"""Requests that try again: cut lines, busy and failing servers, with back-off; every refusal in words."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import requests

from categories.sources.errors import CutError, SourceError
from categories.sources.settings import Manners

AGENT = "hab-suite/0.1 (research benchmark; one user's own downloads)"
"""Some hosts answer 406 to a library's default name."""
LONGEST_WAIT_S = 60.0
BUSY = (408, 425, 429, 500, 502, 503, 504)
BROKEN_LINE = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)


class _NoLogin(requests.auth.AuthBase):
    """Keeps ``~/.netrc`` out of it: credentials come from where the documentation says, and only from there."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request


@dataclass
class Wire:
    """HTTP to one source. ``refusal`` turns an answer of 400 or more into the error that a user reads."""

    manners: Manners
    refusal: Callable[[requests.Response], SourceError]
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Credentials included; a redirect to another host does not carry them on."""
    sleep: Callable[[float], None] = time.sleep
    _session: requests.Session = field(default_factory=requests.Session, repr=False)

    def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        stream: bool = False,
        follow: bool = True,
    ) -> requests.Response:
        """Return an answer below 400, or 416 (which is the caller's to read); what passes by itself is waited for.

        Without ``follow`` a redirect is an answer.

        Raises:
            SourceError: the answer is a refusal, or the server stayed away through all attempts.
        """
        sent = {"User-Agent": AGENT, "Accept-Encoding": "identity", **self.headers, **(headers or {})}
        why, wait = "", 0.0
        for attempt in range(self.manners.attempts):
            if attempt:
                self.sleep(wait)
            try:
                answer = self._session.request(
                    method,
                    url,
                    headers=sent,
                    auth=_NoLogin(),
                    stream=stream,
                    timeout=(min(30.0, self.manners.timeout_s), self.manners.timeout_s),
                    allow_redirects=follow,
                )
            except BROKEN_LINE as error:
                why, wait = f"{type(error).__name__}", self.wait_s(attempt)
                continue
            if answer.status_code in BUSY:
                why, wait = f"status {answer.status_code}", asked_wait_s(answer) or self.wait_s(attempt)
                answer.close()
                continue
            if answer.status_code >= 400 and answer.status_code != 416:
                with answer:
                    raise self.refusal(answer)
            return answer
        raise CutError(
            f"{url.partition('?')[0]}: no answer in {self.manners.attempts} attempts ({why}): "
            f"try again later; where this machine reaches the net by a proxy only, HTTPS_PROXY names it"
        )

    def wait_s(self, attempt: int) -> float:
        """Return the pause before the next attempt: doubling, with a little chance so that trials do not march."""
        base = min(LONGEST_WAIT_S, self.manners.backoff_s * 2**attempt)
        return float(base * random.uniform(0.8, 1.2))


def asked_wait_s(answer: requests.Response) -> float | None:
    """Return what ``Retry-After`` asks for (seconds or a date), at most ten minutes; null where it asks nothing."""
    text = answer.headers.get("Retry-After", "").strip()
    if not text:
        return None
    try:
        seconds = float(text) if text.isdecimal() else parsedate_to_datetime(text).timestamp() - time.time()
    except (TypeError, ValueError):
        return None
    return min(max(seconds, 0.0), 600.0)
