"""Request bodies: weighed before they are parsed, and parsed where the other doors do not wait for it.

A body comes from a box, and may be made to harm: the gateway of a run has one event loop and little memory.
"""

import itertools
import json
import re
from typing import Any

from .settings import Refusal

MAX_BODY = 16 << 20
MAX_DEPTH = 100
MAX_BRACKETS = 200_000
MAX_COMMAS = 500_000
"""Of the JSON's own, not those inside strings: together they bound what a parsed body may take of memory."""
MAX_QUOTES = 2_000_000
STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
"""Takes an unended string too, so that no body is walked through twice."""
ALL_BUT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
STEP = {**dict.fromkeys(b"[{", 1), **dict.fromkeys(b"]}", -1)}


def parse(body: bytes) -> dict[str, Any]:
    """Return a body's object; run it in a thread.

    Raises:
        Refusal: ``bad_body`` where it is no JSON object, gives a name twice, or is too intricate to judge.
    """
    weigh(body)
    try:
        parsed = json.loads(body.decode("utf-8"), object_pairs_hook=once)
    except (ValueError, RecursionError):
        raise Refusal("bad_body", "the request body is no JSON", status=400) from None
    if not isinstance(parsed, dict):
        raise Refusal("bad_body", "the request body is no JSON object", status=400)
    once([(name.lower(), None) for name in parsed])  # some servers take `Tools` for `tools`
    return parsed


def weigh(body: bytes) -> None:
    """Refuse what would cost too much to parse.

    Raises:
        Refusal: ``bad_body``.
    """
    if body.count(b'"') > MAX_QUOTES:
        raise Refusal("bad_body", f"the request body has more than {MAX_QUOTES} quotes", status=400)
    bare = STRING.sub(b"", body)
    brackets = bare.translate(None, ALL_BUT_BRACKETS)
    if brackets.count(b"[") + brackets.count(b"{") > MAX_BRACKETS or bare.count(b",") > MAX_COMMAS:
        raise Refusal("bad_body", "the request body has too many parts to be judged", status=400)
    if max(itertools.accumulate(STEP[bracket] for bracket in brackets), default=0) > MAX_DEPTH:
        raise Refusal("bad_body", f"the request body is nested more than {MAX_DEPTH} deep", status=400)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; a name that comes twice would be read one way here and another way at the vendor."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Refusal("bad_body", "the request body gives a name twice", status=400)
    return found
