"""``python -m categories.worker``: run one category's ``prepare`` as asked on standard input."""

import importlib
import json
import resource
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from categories.catalog import load_category
from categories.draw import Draw
from categories.sources.errors import SourceError
from categories.sources.settings import Settings
from categories.sources.shelf import Shelf


def main() -> None:
    """Prepare one draw; the last line of standard output tells the peak memory and the generator's variant."""
    words = json.loads(sys.stdin.read())
    if words["edition"] != "clinical":
        _prepare(words)
        return
    try:
        _prepare(words, sources=Shelf(Path(words["sources"]), Settings.load()))
    except SourceError as error:
        sys.exit(str(error))
    except Exception as error:  # noqa: BLE001 (messages of parsers quote what they read: records of real people)
        last = traceback.extract_tb(error.__traceback__)[-1]
        sys.exit(
            f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}; its message may quote data"
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
