"""Real timelines as the agent sees them: new ids, shifted dates, nothing of a test patient from the prediction on."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from scipy import sparse

from categories.draw import Draw
from categories.ehr_event_modelling.counting import Counting
from categories.ehr_event_modelling.vocabulary import BIRTH, VISITS, Floats, Ints
from categories.ehr_event_modelling.writing import STAMP, scramble
from categories.sources.errors import SourceError

BUCKETS = {"full": 12, "small": 1}
"""Groups of patients that are held in memory in turn."""
MOST_WEEKS = 52
"""By how much a person's dates are shifted at most, either way."""
COLUMNS = ("patient_id", "start", "end", "code", "value", "unit", "visit_id", "omop_table")
HOUSE_CODES = ("^STANFORD_", "LOCAL_")
"""Codes of the hospital's own are named neutrally."""


@dataclass(frozen=True)
class Examples:
    """``table``: row, patient (of the source), patient_id, split, time, until, shift, label; in the order of ids."""

    table: pl.DataFrame

    def rows(self, split: str) -> pl.Series:
        """Return the row numbers of a split."""
        return self.table.filter(pl.col("split") == split)["row"]


def read_examples(draw: Draw, labels: Path, splits: Path, most: int | None) -> Examples:
    """Return the labelled discharges of a task, of a test patient the first one only.

    ``most``: how many patients of each split are drawn; null takes all.

    Raises:
        SourceError: a file has other columns than the benchmark's, or a split lacks one of the two outcomes.
    """
    try:
        label = pl.col("value").str.to_lowercase().is_in(["true", "1", "1.0"]).cast(pl.Int64)
        given = pl.read_csv(labels, infer_schema=False).select(
            pl.col("patient_id").cast(pl.Int64).alias("patient"),
            times("prediction_time").alias("time"),
            label.alias("label"),
        )
        split = pl.read_csv(splits, infer_schema=False).select(
            pl.col("omop_person_id").cast(pl.Int64).alias("patient"), "split"
        )
    except pl.exceptions.PolarsError as error:
        raise SourceError(f"{labels.name} or {splits.name} has another format ({type(error).__name__})") from None
    table = given.join(split, on="patient", how="inner").sort("patient", "time")
    first = (pl.col("split") != "test") | (pl.col("time") == pl.col("time").min().over("patient"))
    table = table.filter(first).unique(["patient", "time"], maintain_order=True)
    people = table.select("patient", "split").unique(maintain_order=True)
    if most is not None:
        order = pl.Series(draw.rng("patients").permutation(people.height))
        people = people.with_columns(turn=order).sort("turn").group_by("split", maintain_order=True).head(most)
    people = _disguised(draw, people.select("patient").sort("patient"))
    table = table.join(people, on="patient", how="inner").sort("patient_id", "time").with_row_index("row")
    until = pl.when(pl.col("split") == "test").then("time")
    table = table.with_columns(until=until, row=pl.col("row").cast(pl.Int64))
    for name in ("train", "val", "test"):
        if table.filter(pl.col("split") == name)["label"].n_unique() != 2:
            raise SourceError(f"{labels.parent.name}: the {name} examples do not hold both outcomes")
    return Examples(table)


def _disguised(draw: Draw, people: pl.DataFrame) -> pl.DataFrame:
    """Give every person a new id, in a new order, and a shift of whole weeks."""
    rng, n = draw.rng("ids"), people.height
    fresh = np.setdiff1d(rng.integers(100_000_000, 1_000_000_000, n * 2 + 8), people["patient"].to_numpy())
    numbers = rng.permutation(fresh)[:n]
    weeks = rng.integers(1, MOST_WEEKS + 1, n) * rng.choice([-1, 1], n)
    return people.with_columns(patient_id=pl.Series(numbers), shift=pl.Series(weeks * 7).cast(pl.Int64))


def times(name: str) -> pl.Expr:
    """Return a column of times, written with a blank or with T."""
    text = pl.col(name).str.replace("T", " ", literal=True).str.slice(0, 19)
    return text.str.to_datetime(STAMP, strict=False)


class Timelines:
    """The events of the patients of one task: read once, written and counted group by group."""

    def __init__(self, draw: Draw, events: Path, examples: Examples, scratch: Path) -> None:
        self.examples = examples.table
        self._draw = draw
        self._file = scratch / "events.parquet"
        people = examples.table.group_by("patient", maintain_order=True).agg(pl.first("patient_id", "shift", "until"))
        source = pl.scan_csv(events, infer_schema=False).select(
            pl.col("patient_id").cast(pl.Int64).alias("patient"),
            times("start").alias("start"),
            times("end").alias("end"),
            pl.col("code").str.replace(*HOUSE_CODES),
            pl.col("value").cast(pl.Float64, strict=False),
            "unit",
            pl.col("visit_id").cast(pl.Float64, strict=False).cast(pl.Int64),
            "omop_table",
        )
        kept = source.join(people.lazy(), on="patient", how="inner", maintain_order="left").filter(
            pl.col("start").is_not_null() & (pl.col("until").is_null() | (pl.col("start") < pl.col("until")))
        )
        end = pl.when(pl.col("until").is_null() | (pl.col("end") < pl.col("until"))).then("end")
        kept.with_columns(end=end).drop("until").sink_parquet(self._file)
        self.codes = pl.scan_parquet(self._file).select(pl.col("code").unique().sort()).collect()["code"]
        sample = next(self.groups())
        self.counting = Counting.of(self.codes.to_list(), self._places(sample), values(sample))

    def groups(self) -> Iterator[pl.DataFrame]:
        """Yield events by patient and time, source dates, a group of patients at a time, in the order of their ids."""
        ids = self.examples["patient_id"].unique().sort()
        for part in np.array_split(ids.to_numpy(), min(BUCKETS[self._draw.scale], len(ids))):
            within = pl.col("patient_id").is_between(int(part[0]), int(part[-1]))
            rows = pl.scan_parquet(self._file).filter(within).collect()
            yield rows.sort("patient_id", "start", maintain_order=True)

    def write(self, path: Path) -> tuple[sparse.csr_matrix, pl.DataFrame]:
        """Write ``events.csv``; return the counts before each example, and what plain orderings go by, by row."""
        keys = self._draw.rng("visit ids").integers(1, 1 << 29, 4) * 2 + 1
        counts, facts, visits = [], [], 0
        with path.open("wb") as file:
            for events in self.groups():
                counts.append(self._counts(events))
                facts.append(self._facts(events))
                known = events["visit_id"].drop_nulls().unique(maintain_order=True)
                numbers = scramble(np.arange(visits, visits + len(known)), keys)
                visits += len(known)
                shift = pl.duration(days=pl.col("shift"))
                shown = events.with_columns(
                    pl.col("start") + shift,
                    pl.col("end") + shift,
                    pl.col("visit_id").replace_strict(known, pl.Series(numbers), default=None, return_dtype=pl.Int64),
                ).select(COLUMNS)
                shown.write_csv(file, include_header=file.tell() == 0, datetime_format=STAMP)
        rows, cells, number = pl.concat(counts).select("row", "cell", "len").get_columns()
        shape = (self.examples.height, self.counting.width)
        matrix = sparse.csr_matrix((number.to_numpy().astype(np.int32), (rows.to_numpy(), cells.to_numpy())), shape)
        return matrix, pl.concat(facts).sort("row")

    def _before(self, events: pl.DataFrame) -> pl.DataFrame:
        """Return the events of each example's history, one line per example and event."""
        examples = self.examples.select("row", "patient_id", "time")
        return examples.join(events, on="patient_id", how="inner").filter(pl.col("start") < pl.col("time"))

    def _places(self, events: pl.DataFrame) -> Ints:
        """Return where in ``codes`` each event's code stands."""
        return np.asarray(events["code"].cast(pl.Enum(self.codes)).to_physical().to_numpy(), np.int64)

    def _counts(self, events: pl.DataFrame) -> pl.DataFrame:
        history = self._before(events)
        days = (history["time"] - history["start"]).dt.total_minutes().to_numpy() / 1440
        cells = self.counting.cells(self._places(history), values(history), days)
        return history.select("row", cell=pl.Series(cells)).group_by("row", "cell").len()

    def _facts(self, events: pl.DataFrame) -> pl.DataFrame:
        history = self._before(events)
        person = (pl.col("omop_table") == "person") | (pl.col("code") == BIRTH)
        found = history.group_by("row").agg(
            events=pl.len(),
            visits=pl.col("code").is_in(VISITS).sum(),
            opens=pl.col("start").filter(~person).min(),
            born=pl.col("start").filter(pl.col("code") == BIRTH).min().fill_null(pl.col("start").min()),
            male=(pl.col("code") == "Gender/M").any(),
        )
        here = self.examples.filter(pl.col("patient_id").is_in(events["patient_id"].unique().implode()))
        return here.select("row", "patient_id", "time", "shift").join(
            found, on="row", how="left", maintain_order="left"
        )


def floats(column: pl.Series) -> Floats:
    """Return a column as numbers; times in days."""
    if column.dtype == pl.Datetime:
        return np.asarray(column.dt.timestamp("ms").fill_null(0).to_numpy() / 86_400_000, np.float64)
    return np.asarray(column.cast(pl.Float64).fill_null(0.0).to_numpy(), np.float64)


def values(events: pl.DataFrame) -> Floats:
    """Return the events' values, NaN for none."""
    return np.asarray(events["value"].fill_null(np.nan).to_numpy(), np.float64)
