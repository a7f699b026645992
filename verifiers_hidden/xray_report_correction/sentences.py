"""From a submitted file to sentences: the FINDINGS section alone, cleaned, split."""

import re
import unicodedata

from verifiers_hidden.kit import Reason, Refused

MAX_CHARACTERS = 20_000
_HEADERS = (
    "EXAMINATION|EXAM|INDICATION|HISTORY|CLINICAL HISTORY|TECHNIQUE|COMPARISON|FINDINGS|IMPRESSION|CONCLUSION|"
    "RECOMMENDATIONS?|NOTIFICATION|ADDENDUM"
)
_HEADER = re.compile(rf"^[ \t#*]*({_HEADERS})[ \t*]*:", re.MULTILINE | re.IGNORECASE)
_ABBREVIATION = re.compile(r"\b(vs|approx|dr|e\.g|i\.e|cf|incl|resp|fig|st|lt|rt)\.(?=\s+[a-z0-9])", re.IGNORECASE)
_BULLET = re.compile(r"^[ \t]*(?:[-*\u2022\u2023]|\(?\d{1,2}[.)])[ \t]+", re.MULTILINE)
_END = re.compile(
    r"(?<=[.!?])(?<!\d\.)[\"')\]]*\s+|(?<=\d\.)\s+(?=\D)|(?<=[a-z]\.)(?=[A-Z])|\n\s*\n|\n(?=[A-Z])|;\s*\n|(?<=[\])])\s+(?=[A-Z])"
)
_CLEAN = {
    ord(old): new
    for old, new in zip(
        "\u2018\u2019\u201c\u201d\u2032\u00b5\u2212\u00d7\u00b1\u2264\u2265\u2026\t", "''\"\"'u-x~<>. ", strict=True
    )
}


def clean(text: str) -> tuple[str, int]:
    """Return text without invisible characters, and how many there were.

    Raises:
        Refused: too long, or letters of another script than Latin (they look like what they are not).
    """
    if len(text) > MAX_CHARACTERS:
        raise Refused(Reason.TOO_LARGE, f"findings.txt has more than {MAX_CHARACTERS} characters")
    text = unicodedata.normalize("NFKC", text.translate(_CLEAN)).translate(_CLEAN)
    kept = "".join(
        mark for mark in text if mark in "\n\t" or unicodedata.category(mark) not in ("Cc", "Cf", "Co", "Cn", "Cs")
    )
    for mark in set(kept):
        if mark.isalnum() and not mark.isascii() and "LATIN" not in unicodedata.name(mark, ""):
            raise Refused(Reason.BAD_TOKEN, f"findings.txt: {mark!r} is no Latin letter or digit")
    return kept, len(text) - len(kept)


def findings(text: str) -> str:
    """Return the FINDINGS section; without such a header, all before the first other header that follows text."""
    headers = list(_HEADER.finditer(text))
    begin = next((match.end() for match in headers if match[1].upper() == "FINDINGS"), None)
    if begin is None:
        begin = headers[0].end() if headers and not text[: headers[0].start()].strip() else 0
    end = next((match.start() for match in headers if match.start() >= begin and match[1].upper() != "FINDINGS"), None)
    return _HEADER.sub("", text[begin:end])


def split(text: str) -> list[str]:
    """Return the sentences of a section, each on one line; a line that goes on in lower case is one with the last."""
    text = _ABBREVIATION.sub(lambda match: match[0][:-1], text)
    text = _BULLET.sub("\n\n", text)
    parts = (re.sub(r"\s+", " ", part).strip() for part in _END.split(text))
    return [part for part in parts if re.search(r"[A-Za-z0-9]", part)]
