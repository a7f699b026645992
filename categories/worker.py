"""``python -m categories.worker``: run one category's ``prepare`` as asked on standard input."""

import importlib
import json
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from categories.catalog import ROOT, load_category
from categories.draw import Draw
from categories.sources.errors import SourceError
from categories.sources.settings import Settings
from categories.sources.shelf import Shelf
from categories.sources.spec import find_source


def main() -> None:
    """Prepare one draw; the last line of standard output tells the peak memory and the generator's variant."""
    _end_with_parent()
    words = json.loads(sys.stdin.read())
    clinical = words["edition"] == "clinical"
    try:
        _prepare(words, **({"sources": Shelf(Path(words["sources"]), Settings.load())} if clinical else {}))
    except SourceError as error:
        sys.exit(str(error))
    except Exception as error:
        if not clinical:
            raise
        # Messages of parsers quote what they read: records of real people.
        sys.exit(_told_without_data(error, Path(words["folder"])))


def _end_with_parent() -> None:
    """End once whoever started this process is gone: it would fetch and compute for nobody."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        if os.getpgrp() == os.getpid():  # what it started ends too
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _told_without_data(error: Exception, folder: Path) -> str:
    """Return type and way of an error through the house, and what next."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(ROOT) and Path(frame.filename).name != "worker.py"
    ]
    way = " > ".join(f"{Path(frame.filename).name}, line {frame.lineno}" for frame in frames)
    pages = ", ".join(find_source(name).agreement for name in load_category(folder).clinical_sources)
    return (
        f"{type(error).__name__} at {way}. Its message is not shown: it may quote records. Most likely a file of the "
        f"source has another form than the published one: compare with {pages}. Else it is a fault of the suite: "
        f"report this line; it holds no data."
    )


def _prepare(words: dict[str, Any], **sources: Shelf) -> None:
    category = load_category(Path(words["folder"]))
    draw = Draw(
        case=words["case"],
        spec=category.cases[words["case"]],
        key=bytes.fromhex(words["key"]),
        scale=words["scale"],
        assets=Path(words["assets"]) if words["assets"] else None,
    )
    into = Path(words["into"])
    prepare: Callable[..., Any] = importlib.import_module(f"categories.{category.id}.{words['edition']}").prepare
    variant = prepare(draw, public=into / "public", gold=into / "gold", workspace=into / "workspace", **sources)
    peak_kb = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({"peak_memory_mb": round(peak_kb / 1024, 1), "variant": variant or ""}))  # noqa: T201 (the contract)


if __name__ == "__main__":
    main()
