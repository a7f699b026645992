"""The pinned ETL, run on this machine in an environment of its own: gold is what it and our own conversion agree on.

Whoever calls ``prepare`` makes the environment and names its folder in ``HAB_MEDS_ENV``.
It is asked for every draw of the clinical edition, and for the synthetic edition at full scale, on which results are
reported: a fault of our own under one drawn change would else silently cost an agent the task. At small scale (CI,
demo, first tries) synthetic gold is our own conversion's alone, so that these need no second Python environment;
there the package's default configuration, run in every verdict, is the second opinion.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from categories.ehr_format_conversion.etl import CORE, Cohort
from categories.sources.errors import NotReadyError, SourceError
from categories.spec import Edition, Scale

ENVIRONMENT = "HAB_MEDS_ENV"
LIMIT_S = 1800
START = (
    "import sys; from pathlib import Path; import MIMIC_IV_MEDS.__main__ as package; "
    "package.EVENT_CFG = Path(sys.argv.pop(1)); package.main()"
)
"""The package's own command with another event configuration; it has no option for one."""


def is_checked(scale: Scale, edition: Edition) -> bool:
    """Return whether gold is made of such a draw only where the pinned ETL agrees; its preparation needs the ETL."""
    return edition == "clinical" or scale == "full"


def require_agreed_gold(public: Path, gold: Path) -> None:
    """Return if the pinned ETL, by the wanted configuration, makes the gold of a draw's cohort and hidden input.

    Raises:
        NotReadyError: the ETL's environment is not there.
        SourceError: the ETL failed, or the two conversions differ; counts only, no record is quoted.
    """
    config = gold / "custom_event_configs.yaml"
    require_agreement(public / "raw_input", config, gold / "expected")
    require_agreement(gold / "hidden" / "raw_input", config, gold / "hidden" / "custom")


def require_agreement(raw: Path, config: Path, expected: Path) -> None:
    """Return if the pinned ETL makes of a raw input what ``expected`` holds (events, codes and splits in parquet).

    Raises:
        NotReadyError: the ETL's environment is not there.
        SourceError: the ETL failed, or the two conversions differ; counts only, no record is quoted.
    """
    ours = Cohort(*(pl.read_parquet(expected / f"{name}.parquet") for name in ("events", "codes", "splits")))
    with tempfile.TemporaryDirectory() as scratch:
        found = differences(ours, convert(raw, config, Path(scratch)))
    if found:
        raise SourceError(
            f"the pinned ETL and the suite's own conversion of {raw.parent.name}/{raw.name} differ: "
            f"{'; '.join(found)}. No gold is made of what they do not agree on, so this task cannot be prepared: "
            f"leave it out, and report these counts to the suite"
        )


def convert(raw: Path, config: Path, scratch: Path) -> Cohort:
    """Return what the pinned ETL makes of a raw input by an event configuration."""
    named = os.environ.get(ENVIRONMENT, "")
    binaries = Path(named) / "bin"
    if not named or not (binaries / "MEDS_transform-runner").exists():
        where = binaries if named else f"a folder that {ENVIRONMENT} names (it is not set)"
        raise NotReadyError(
            f"the pinned ETL is not in {where}: run through `hab-suite prepare` or `run`, which make its "
            f"environment, or name one that is there in {ENVIRONMENT}"
        )
    words = [f"root_output_dir={scratch}", f"raw_input_dir={raw.resolve()}", "do_download=False"]
    clean = {"PATH": f"{binaries}:/usr/bin:/bin", "HOME": str(scratch), "LANG": "C.UTF-8", "TZ": "UTC"}
    command = [str(binaries / "python"), "-I", "-c", START, str(config.resolve()), *words]
    try:
        done = subprocess.run(command, cwd=scratch, env=clean, capture_output=True, timeout=LIMIT_S, check=False)
        status = f"ended with status {done.returncode}" if done.returncode else ""
    except subprocess.TimeoutExpired:
        status = f"took more than {LIMIT_S} s"
    if status:  # its log quotes rows
        raise SourceError(
            f"the pinned ETL {status} on this input; is {ENVIRONMENT} the environment of the suite's lock?"
        )
    cohort = scratch / "MEDS_cohort"
    events = [pl.read_parquet(path) for path in sorted((cohort / "data").rglob("*.parquet"))]
    codes, splits = (pl.read_parquet(cohort / "metadata" / f"{name}.parquet") for name in ("codes", "subject_splits"))
    return Cohort(pl.concat(events, how="diagonal_relaxed"), codes, splits)


def differences(ours: Cohort, theirs: Cohort) -> list[str]:
    """Return in which events (by first part of their code), codes and subjects two cohorts differ, with counts."""
    found = [f"{rows} rows of {first}" for first, rows in _different_rows(ours.events, theirs.events)]
    known, other = _described(ours.codes), _described(theirs.codes)
    codes = sum(known.get(code) != other.get(code) for code in known.keys() | other.keys())
    splits = set(ours.splits.select("subject_id", "split").rows()) ^ set(
        theirs.splits.select("subject_id", "split").rows()
    )
    return found + [f"{codes} codes"] * bool(codes) + [f"{len(splits)} splits"] * bool(splits)


def _different_rows(ours: pl.DataFrame, theirs: pl.DataFrame) -> Iterable[tuple[str, int]]:
    sides = [_canonical(frame).with_columns(_n=pl.lit(side)) for frame, side in ((ours, 1), (theirs, -1))]
    every = pl.concat(sides, how="diagonal")
    left = every.group_by(pl.exclude("_n")).agg(pl.col("_n").sum()).filter(pl.col("_n") != 0)
    first = left.group_by(pl.col("code").str.split("//").list.first()).agg(pl.col("_n").abs().sum())
    return first.sort("code").rows()


def _canonical(events: pl.DataFrame) -> pl.DataFrame:
    """Return rows in one notation: 7, 7.0 and "7.00" read the same, columns without any value are left out."""
    carried = [name for name in events.columns if name not in CORE and events[name].null_count() < len(events)]
    text = {name: pl.col(name).cast(pl.String) for name in carried}
    numbers = {
        name: column.cast(pl.Float64, strict=False)
        if events.schema[name] == pl.String
        else pl.col(name).cast(pl.Float64)
        for name, column in text.items()
    }
    more = [
        pl.when(numbers[name].is_finite()).then(numbers[name].cast(pl.String)).otherwise(text[name]).alias(name)
        for name in carried
    ]
    core = (pl.col("subject_id").cast(pl.Int64), pl.col("time").cast(pl.Datetime("us")), pl.col("code").cast(pl.String))
    return events.select(*core, pl.col("numeric_value").cast(pl.Float32), *more)


def _described(codes: pl.DataFrame) -> dict[str, dict[str, list[str]]]:
    """Return code -> column -> its texts, sorted: the ETL joins them in an order that changes from run to run."""
    return {
        row.pop("code"): {name: texts for name, value in row.items() if (texts := _texts(name, value))}
        for row in codes.to_dicts()
    }


def _texts(name: str, value: Any) -> list[str]:
    listed = value if isinstance(value, list) else str(value).split("\n") if name == "description" else [value]
    return sorted(str(one) for one in listed if one is not None) if value is not None else []
