"""Our own conversion to MEDS, from the event configuration alone: the gold, and a second opinion on the published ETL.

It shares no code with MEDS_transforms. Semantics, in the order in which they matter: an event without its time is
dropped, unless it is static; a code whose *first* part is a null column is dropped, other nulls read ``UNK``; a text
value that only repeats the number becomes null; rows equal in every column are kept once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import polars as pl

Tables = Mapping[str, pl.DataFrame]
"""Table name (``hosp/admissions``) -> its rows, every cell as text or null."""
Events = dict[str, dict[str, dict[str, Any]]]
"""Table -> event -> its configuration, as in the package's ``event_configs.yaml``."""

CORE = ["subject_id", "time", "code", "numeric_value"]
SPLITS = {"train": 0.8, "tuning": 0.1, "held_out": 0.1}
COLUMN = re.compile(r"col\((.+)\)")


@dataclass(frozen=True)
class Cohort:
    """A MEDS cohort: one row per measurement, per code, per subject."""

    events: pl.DataFrame
    codes: pl.DataFrame
    """Columns code, description, parent_codes, itemid, valueuom, possibly_cpt_code; the last four are lists of text."""
    splits: pl.DataFrame


def convert(raw: Tables, events: Events) -> Cohort:
    """Convert the raw tables by the event configuration."""
    tables = _derived(raw)
    parts = [_event(tables[table], event) for table, named in _named(events) for event in named.values()]
    rows = pl.concat(parts, how="diagonal").unique(maintain_order=False)
    rows = rows.with_columns(pl.col("numeric_value").cast(pl.Float32))
    more = sorted(set(rows.columns) - set(CORE))
    rows = rows.select(*CORE, *(_typed(rows[name]) for name in more))
    rows = rows.sort(*CORE[:3], "numeric_value", *more, nulls_last=False)
    return Cohort(rows, _codes(tables, events, rows["code"].unique()), _splits(rows["subject_id"]))


def _named(events: Events) -> list[tuple[str, dict[str, dict[str, Any]]]]:
    return [(table, named) for table, named in events.items() if table != "subject_id_col"]


def _derived(raw: Tables) -> dict[str, pl.DataFrame]:
    """Add what the package derives first: discharge times, birth years, one time of death, dotted ICD codes."""
    tables = dict(raw)
    stays = raw["hosp/admissions"]
    leaving = stays.select("hadm_id", hadm_discharge_time="dischtime")
    for name in ("hosp/diagnoses_icd", "hosp/drgcodes"):
        tables[name] = raw[name].join(leaving, on="hadm_id", how="left", maintain_order="left")
    death = stays.group_by("subject_id").agg(pl.col("deathtime").min())
    birth = pl.col("anchor_year").cast(pl.Int64) - pl.col("anchor_age").cast(pl.Int64)
    tables["hosp/patients"] = (
        raw["hosp/patients"]
        .join(death, on="subject_id", how="left", maintain_order="left")
        .select("subject_id", "gender", dod=pl.coalesce("deathtime", "dod"), year_of_birth=birth.cast(pl.String))
    )
    code, old = pl.col("icd_code"), pl.col("icd_version") == "9"
    place = pl.when(old & code.str.starts_with("E")).then(4).otherwise(3)
    tables["hosp/d_icd_diagnoses"] = raw["hosp/d_icd_diagnoses"].with_columns(norm_icd_code=_dotted(code, place))
    operation = pl.when(old).then(_dotted(code, pl.lit(2))).otherwise(code)
    tables["hosp/d_icd_procedures"] = raw["hosp/d_icd_procedures"].with_columns(norm_icd_code=operation)
    return tables


def _dotted(code: pl.Expr, place: pl.Expr) -> pl.Expr:
    dotted = code.str.slice(0, place) + "." + code.str.slice(place)
    return pl.when(code.str.len_chars() > place).then(dotted).otherwise(code)


def _code(parts: str | list[str]) -> pl.Expr:
    listed = [parts] if isinstance(parts, str) else parts
    found = [(COLUMN.fullmatch(part), part) for part in listed]
    texts = [pl.col(match[1]).fill_null("UNK") if match else pl.lit(part) for match, part in found]
    return reduce(lambda left, right: left + "//" + right, texts)


def _event(table: pl.DataFrame, event: dict[str, Any]) -> pl.DataFrame:
    """Return one event's rows: subject, time, code, number, and the carried columns as text."""
    first = event["code"] if isinstance(event["code"], str) else event["code"][0]
    if match := COLUMN.fullmatch(first):
        table = table.filter(pl.col(match[1]).is_not_null())
    carried = {key: value for key, value in event.items() if key not in ("code", "time", "time_format", "_metadata")}
    number = (
        pl.col(carried.pop("numeric_value")).cast(pl.Float64)
        if "numeric_value" in carried
        else pl.lit(None, pl.Float64)
    )
    rows = table.select(
        subject_id=pl.col("subject_id").cast(pl.Int64),
        time=_time(event["time"], event.get("time_format")),
        code=_code(event["code"]),
        numeric_value=number,
        **{name: pl.col(COLUMN.sub(r"\1", column)) for name, column in carried.items()},
    )
    if "text_value" in rows.columns and "numeric_value" in event:
        repeats = pl.col("text_value").cast(pl.Float32, strict=False) == pl.col("numeric_value").cast(pl.Float32)
        rows = rows.with_columns(text_value=pl.when(repeats.fill_null(value=False)).then(None).otherwise("text_value"))
    return rows if event["time"] is None else rows.filter(pl.col("time").is_not_null())


def _time(source: str | None, forms: str | list[str] | None) -> pl.Expr:
    if source is None:
        return pl.lit(None, dtype=pl.Datetime("us"))
    column = pl.col(COLUMN.sub(r"\1", source))
    if forms == "%Y":
        return pl.datetime(column.cast(pl.Int32), 1, 1, time_unit="us")
    listed = [forms] if isinstance(forms, str) else (forms or [])
    return pl.coalesce(column.str.to_datetime(form, time_unit="us", strict=False) for form in listed)


def _typed(column: pl.Series) -> pl.Series:
    """Return a carried column as integers or decimals where all of it is; text that reads like numbers stays text."""
    if column.name != "text_value":
        for kind in (pl.Int64, pl.Float64):
            cast = column.cast(kind, strict=False)
            if cast.null_count() == column.null_count() and column.null_count() < len(column):
                return cast
    return column


def _codes(tables: Tables, events: Events, used: pl.Series) -> pl.DataFrame:
    """Describe every used code that a dictionary or concept map knows, all descriptions of a code together."""
    wanted = [
        (source, event["code"], columns)
        for _, named in _named(events)
        for event in named.values()
        for source, columns in event.get("_metadata", {}).items()
    ]
    parts = []
    for source, code, columns in wanted:
        rows = tables[source].select(pl.all(), **{f"_{name}": _looked_up(rule) for name, rule in columns.items()})
        # The package names its output columns first, so that ``itemid`` in the code is the map's own item id.
        rows = rows.with_columns(**{name: f"_{name}" for name in columns}).with_columns(code=_code(code))
        known = ~pl.all_horizontal(pl.col(name).is_null() for name in columns)
        parts.append(rows.filter(known & pl.col("code").is_in(used.implode())).select("code", *columns))
    frame = pl.concat(parts, how="diagonal").unique()
    lists = [name for name in sorted(frame.columns) if name not in ("code", "description")]
    grouped = frame.group_by("code").agg(
        pl.col("description").drop_nulls().sort().str.join("\n"), *(pl.col(name).drop_nulls().sort() for name in lists)
    )
    return grouped.select("code", "description", "parent_codes", *(x for x in lists if x != "parent_codes")).sort(
        "code"
    )


def _looked_up(rule: Any) -> pl.Expr:
    """Read a metadata rule: a column, a ``{template}``, the first known of a list, a template under a condition."""
    if isinstance(rule, list):
        return pl.coalesce(_looked_up(one) for one in rule)
    if isinstance(rule, dict):
        (template, matches), *_ = rule.items()
        condition = pl.all_horizontal(pl.col(column) == value for column, value in matches.items())
        return pl.when(condition).then(_looked_up(template))
    names = re.findall(r"\{([^}]+)\}", rule)
    return pl.format(re.sub(r"\{[^}]+\}", "{}", rule), *names) if names else pl.col(rule)


def _splits(subject: pl.Series) -> pl.DataFrame:
    """Split the subjects as the package does with its seed 1: shares rounded, every split at least one subject."""
    subjects = np.unique(subject.to_numpy())
    rng = np.random.default_rng(1)
    names = np.array(list(SPLITS))[rng.permutation(len(SPLITS))]
    lengths = np.round(np.array([SPLITS[str(name)] for name in names[:-1]]) * len(subjects)).astype(int)
    lengths = np.append(lengths, len(subjects) - lengths.sum())
    if lengths.min() == 0:
        lengths[lengths.argmax()] -= 1
        lengths[lengths.argmin()] += 1
    frame = pl.DataFrame({"subject_id": rng.permutation(subjects), "split": np.repeat(names, lengths).tolist()})
    return frame.sort("subject_id")
