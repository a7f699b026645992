"""Compare cohorts as multisets of rows: order, shards, codec, integer width and number formatting do not matter."""

from collections.abc import Mapping
from typing import Any

import polars as pl

CORE = ("subject_id", "time", "code", "numeric_value")


def canonical(events: pl.DataFrame) -> pl.DataFrame:
    """Return rows in one notation; columns without any value are dropped."""
    named = [
        pl.col("subject_id").cast(pl.Int64, strict=False),
        _naive(events.schema["time"]),
        pl.col("code").cast(pl.String),
        pl.col("numeric_value").cast(pl.Float32, strict=False),
    ]
    more = sorted(name for name in events.columns if name not in CORE and events[name].null_count() < len(events))
    return events.select(*named, *(_text(name, events.schema[name]) for name in more))


def _naive(kind: pl.DataType) -> pl.Expr:
    column = pl.col("time")
    if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return column.cast(pl.Datetime("us"), strict=False)


def _text(name: str, kind: pl.DataType) -> pl.Expr:
    """Return a column as text in which 7, 7.0 and "7.00" read the same."""
    column = pl.col(name)
    if kind.is_numeric():
        return column.cast(pl.Float64).cast(pl.String).alias(name)
    text = column.cast(pl.String)
    number = text.cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then(number.cast(pl.String)).otherwise(text).alias(name)


def differing(expected: pl.DataFrame, found: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """Return first part of the code -> (rows missing, rows too many), for codes whose rows differ."""
    columns = [*CORE, *sorted((set(expected.columns) | set(found.columns)) - set(CORE))]
    sides = [
        frame.with_columns(pl.lit(None, dtype=pl.String).alias(name) for name in columns if name not in frame.columns)
        .select(columns)
        .with_columns(_side=pl.lit(side, dtype=pl.Int64))
        for frame, side in ((canonical(expected), 1), (canonical(found), -1))
    ]
    counted = pl.concat(sides).group_by(columns).agg(pl.col("_side").sum()).filter(pl.col("_side") != 0)
    first = pl.col("code").fill_null("").str.split("//").list.first()
    summed = counted.group_by(first.alias("first")).agg(
        missing=pl.col("_side").clip(lower_bound=0).sum(), extra=(-pl.col("_side")).clip(lower_bound=0).sum()
    )
    return {row["first"]: (row["missing"], row["extra"]) for row in summed.sort("first").to_dicts()}


def described(codes: pl.DataFrame) -> dict[str, Any] | None:
    """Return code -> column -> its texts, sorted; null where a code stands twice or has no name.

    The ETL joins descriptions and lists in an order that changes from run to run, and writes a list of one as a text.
    """
    result: dict[str, Any] = {}
    if "code" not in codes.columns:
        return None
    for row in codes.to_dicts():
        code = row.pop("code")
        if not isinstance(code, str) or code in result:
            return None
        texts = {name: _texts(name, value) for name, value in row.items()}
        result[code] = {name: value for name, value in texts.items() if value}
    return result


def _texts(name: str, value: Any) -> list[str]:
    if value is None:
        return []
    if name == "description" and isinstance(value, str):
        return sorted(value.split("\n"))
    return sorted(str(one) for one in (value if isinstance(value, list) else [value]) if one is not None)


def split_of(splits: pl.DataFrame) -> dict[int, str] | None:
    """Return subject -> split; null where a subject stands twice or a column is missing."""
    if not {"subject_id", "split"} <= set(splits.columns):
        return None
    pairs = splits.select("subject_id", "split").rows()
    return dict(pairs) if len({subject for subject, _ in pairs}) == len(pairs) else None


def same_dataset(expected: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Compare ``dataset.json`` but for the time it was made and the package's version behind the colon."""
    kept = {name: value for name, value in found.items() if name != "created_at"}
    kept["dataset_version"] = str(kept.get("dataset_version")).partition(":")[0]
    return kept == dict(expected)
