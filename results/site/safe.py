"""Untrusted text made harmless and short: what agents wrote, said and left behind."""

import json
import re
from pathlib import Path
from typing import Any

LONGEST = 20_000
"""Characters of one text that a page shows."""
ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udfff]")


def readable(text: str, longest: int = LONGEST) -> str:
    """Return text without terminal codes, control characters visible, the middle of a long one left out."""
    left_out = len(text) - longest
    if left_out > 0:
        half = longest // 2
        text = f"{text[:half]}\n[... {left_out} characters left out ...]\n{text[-half:]}"
    text = ANSI.sub("", text).replace("\r\n", "\n")
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def head_of(file: Path, longest: int = LONGEST) -> str | None:
    """Return the beginning of a text file; null where it is no text. Reads no more than it shows."""
    with file.open("rb") as stream:
        data = stream.read(longest + 1)
    if b"\0" in data:
        return None
    text = data[:longest].decode("utf-8", errors="replace")
    size = file.stat().st_size
    cut = f"\n[... {size - longest} bytes left out ...]" if size > longest else ""
    return readable(text, longest + 100) + cut


def tail_of(file: Path, longest: int = 4000) -> str:
    """Return the end of a log."""
    with file.open("rb") as stream:
        stream.seek(max(file.stat().st_size - longest, 0))
        return readable(stream.read(longest).decode("utf-8", errors="replace"), longest + 100)


def script_data(name: str, value: Any) -> str:
    """Return a script that hands a value to the page; a page from file:// may load scripts, but not JSON."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for mark in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return f'"use strict";window.hab=window.hab||{{}};window.hab[{json.dumps(name)}]={text};\n'
