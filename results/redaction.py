"""Runs on records of real people: what leaves their folder holds numbers, and no text or picture of theirs."""

from collections.abc import Sequence

import polars as pl

from results.folder import RunFolder

WITHHELD = "withheld: real records"


class RedactionError(Exception):
    """Something of real people would be published; the message says what to do."""


def holds_real_data(runs: Sequence[RunFolder]) -> bool:
    """Whether any of the runs is of the clinical edition."""
    return any(run.plan.edition == "clinical" for run in runs)


def require_redaction(runs: Sequence[RunFolder], *, redact: bool, what: str) -> None:
    """Return if what is made of these runs may leave their folders.

    Raises:
        RedactionError: it would carry text of real people.
    """
    if holds_real_data(runs) and not redact:
        names = ", ".join(run.plan.run_id for run in runs if run.plan.edition == "clinical")
        raise RedactionError(
            f"{what}: {names} holds records of real people, whose text and pictures may not be published; with "
            "--redact only numbers, names of tasks and reason codes are written"
        )


def redacted(trials: pl.DataFrame) -> pl.DataFrame:
    """Return the table of trials without the words of verdicts, verifiers and agents on real records."""
    quoting = (pl.col("edition") == "clinical") & (pl.col("message") != "")
    return trials.with_columns(message=pl.when(quoting).then(pl.lit(WITHHELD)).otherwise("message"))
