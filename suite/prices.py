"""Which prices a command reckons with: the same for all that show what runs have cost."""

from collections.abc import Sequence
from pathlib import Path

from results.folder import RunFolder
from results.pricing import PriceBook, PriceFileError, read_price_file
from runners.gateway import price_book
from suite.request import RequestError


def book(prices: Path | None, runs: Sequence[RunFolder]) -> PriceBook:
    """Return the prices of a file above the dated table: of the one named now, else of the runs' own.

    Raises:
        RequestError: the runs name different files, or one that is not here any more.
    """
    if prices:
        return read_price_file(prices)
    named = {str(run.plan.options.get("prices") or "") for run in runs}
    if len(named) > 1:
        files = ", ".join(sorted(name or "none" for name in named))
        raise RequestError(
            f"--prices: the runs were made with different price files ({files}); name the one that holds."
        )
    try:
        return price_book(runs[0].plan)
    except PriceFileError as error:
        raise RequestError(
            f"{runs[0].path}: made with prices that cannot be read now ({error}); name a price file with --prices."
        ) from None
