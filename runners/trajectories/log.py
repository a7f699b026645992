"""Read what an agent CLI, or the agent itself, wrote into a log: within bounds, and whatever it is."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from runners.trajectories.story import Story

HEAD_BYTES, TAIL_BYTES, MAX_LINE_BYTES = 48 << 20, 16 << 20, 8 << 20
"""What is read of a log: its beginning, and its end, where it says how it ended."""
MAX_ROWS = 200_000
"""Of the beginning, and of the end: some CLIs write a row for every few letters."""
ID_LETTERS = 8


def rows(path: Path, story: Story) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSONL file; what is none (a cut last line, a notice) is passed over.

    Of a very long file the middle is left out, with a warning.
    """
    if not path.is_file():
        return
    size = path.stat().st_size
    with path.open("rb") as file:
        yield from objects(file, HEAD_BYTES)
        here, there = file.tell(), size - TAIL_BYTES
        if here < there:
            story.warn(f"{path.name}: too long to be read whole; {(there - here) >> 10} KiB were left out")
            file.seek(there)
            file.readline(MAX_LINE_BYTES)
        yield from objects(file, TAIL_BYTES)
        if file.tell() < size:
            story.warn(f"{path.name}: more than {MAX_ROWS} rows; some were left out")


def objects(file: BinaryIO, limit: int) -> Iterator[dict[str, Any]]:
    """Yield the objects of the lines that begin within so many bytes."""
    for _ in range(MAX_ROWS):
        line = file.readline(MAX_LINE_BYTES) if limit > 0 else b""
        if not line:
            return
        limit -= len(line)
        try:
            row = json.loads(line)
        except (ValueError, RecursionError, MemoryError):
            continue
        if isinstance(row, dict):
            yield row


def session_file(folder: Path, pattern: str, session: str) -> Path | None:
    """Return the file of a session, by its id (whole, or its first eight letters); else the one written last.

    Null where none matches the pattern.
    """
    found = [path for path in folder.rglob(pattern) if path.is_file() and not path.is_symlink()]
    if len(session) >= ID_LETTERS:
        named = [path for path in found if session in path.name]
        named = named or [path for path in found if session in path.relative_to(folder).parts]
        found = named or [path for path in found if session[:ID_LETTERS] in path.name] or found
    return max(found, key=lambda path: path.stat().st_mtime_ns, default=None)


def parsed(text: Any) -> dict[str, Any]:
    """Return a call's arguments as an object, whatever form the log keeps them in."""
    if isinstance(text, dict):
        return text
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {"input": text}
    return found if isinstance(found, dict) else {"input": found}


def flatten(content: Any) -> str:
    """Return the text of a message's content, whatever its parts are called."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text for text in map(flatten, content) if text)
    if isinstance(content, dict):
        return str(content.get("text") or content.get("thinking") or "") or flatten(content.get("content") or "")
    return ""
