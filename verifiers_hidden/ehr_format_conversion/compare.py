"""Compare cohorts as multisets of rows: order, shards, codec, integer width and number formatting do not matter."""

from collections.abc import Mapping
from typing import Any

import polars as pl

CORE = ("subject_id", "time", "code", "numeric_value")


def canonical(events: pl.DataFrame) -> pl.DataFrame:
    """Return rows in one notation: the four columns of MEDS in their types, ``+name`` as text for each one carried.

    A value of another kind than its column's becomes null; columns without any value are dropped. With the mark before
    it, no name reads as a pattern or as a column of ours.
    """
    events = events.clone()
    events.columns = [name if name in CORE else f"+{name}" for name in events.columns]
    more = sorted(name for name in events.columns if name not in CORE and events[name].null_count() < len(events))
    texts = [_text(name, events.schema[name]) for name in more]
    return events.with_columns(*_typed(events), *texts).select(*CORE, *more)


def _typed(events: pl.DataFrame) -> list[pl.Expr]:
    kinds = {name: events.schema[name] for name in CORE}
    fits = {
        "subject_id": kinds["subject_id"].is_integer(),
        "time": isinstance(kinds["time"], pl.Datetime),
        "code": kinds["code"] == pl.String,
        "numeric_value": kinds["numeric_value"].is_numeric(),
    }
    types = (pl.Int64(), pl.Datetime("us"), pl.String(), pl.Float32())
    return [
        (pl.col(name).cast(kind, strict=False) if fits[name] else pl.lit(None, dtype=kind)).alias(name)
        for name, kind in zip(CORE, types, strict=True)
    ]


def _text(name: str, kind: pl.DataType) -> pl.Expr:
    """Return a column as text in which 7, 7.0 and "7.00" read the same."""
    column = pl.col(name)
    if kind.is_numeric():
        return column.cast(pl.Float64).cast(pl.String).alias(name)
    text = column.cast(pl.String)
    number = text.cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then(number.cast(pl.String)).otherwise(text).alias(name)


def as_texts(codes: pl.DataFrame) -> pl.DataFrame:
    """Return code metadata with every value a text, or a list of texts."""
    columns = [
        column.cast(pl.List(pl.String) if isinstance(column.dtype, pl.List) else pl.String)
        for column in codes.get_columns()
    ]
    return pl.DataFrame(columns)


def canonical_splits(splits: pl.DataFrame) -> pl.DataFrame:
    """Return splits with whole numbers as subjects and texts as splits; a column of another kind becomes null."""
    there = [name for name in ("subject_id", "split") if name in splits.columns]
    fits = {
        name: kind.is_integer() if name == "subject_id" else kind == pl.String for name, kind in splits.schema.items()
    }
    types = {"subject_id": pl.Int64(), "split": pl.String()}
    return splits.select(there).with_columns(
        pl.col(name).cast(types[name], strict=False) if fits[name] else pl.lit(None, dtype=types[name]).alias(name)
        for name in there
    )


def differing(expected: pl.DataFrame, found: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """Return first part of the code -> (rows missing, rows too many), for codes whose rows differ.

    Both sides are canonical.
    """
    columns = [*CORE, *sorted((set(expected.columns) | set(found.columns)) - set(CORE))]
    sides = [
        frame.with_columns(pl.lit(None, dtype=pl.String).alias(name) for name in columns if name not in frame.columns)
        .select(columns)
        .with_columns(_side=pl.lit(side, dtype=pl.Int64))
        for frame, side in ((expected, 1), (found, -1))
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
