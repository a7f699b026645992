"""Which prices a command reckons with: the same for all that show what runs have cost."""

from collections.abc import Sequence
from pathlib import Path

from results.folder import RunFolder
from results.pricing import PriceBook, read_price_file
from runners.gateway import price_book


def book(prices: Path | None, runs: Sequence[RunFolder]) -> PriceBook:
    """Return the prices of a file above the dated table: of the one named now, else of the first run's own."""
    return read_price_file(prices) if prices else price_book(runs[0].plan)
