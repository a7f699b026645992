"""Dumb auditors: each makes one kind of check over all tables and must earn 0 (``NAME`` or ``--list``)."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
SUBMISSION = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
Tables = dict[str, pl.DataFrame]
EVENTS = {"labevents": "subject_id", "chartevents": "stay_id"}
BANDS = {
    50912: (0.1, 20), 50931: (30, 800), 50971: (1, 9), 50983: (100, 200), 220045: (20, 250), 220179: (40, 250),
    220180: (20, 200), 223761: (80, 110), 220277: (50, 100),
}  # fmt: skip
"""Plausible ranges of the published benchmark."""
FEMALE = ["Estradiol", "Norethindrone Acetate", "Raloxifene", "Levonorgestrel-Ethin Estradiol"]
MALE = ["Tamsulosin", "Finasteride", "Vardenafil", "Dutasteride"]
FORMULA = {50983: 1.0, 50902: -1.0, 50882: -1.0, 50868: -1.0}
"""Anion gap = sodium - chloride - bicarbonate."""


def read() -> Tables:
    """Read all tables, as text where a number could hide something."""
    texts = {"_row_id": pl.String, "value": pl.String, "comments": pl.String, "flag": pl.String, "valuenum": pl.Float64}
    texts |= {"dose_val_rx": pl.String, "form_val_disp": pl.String, "form_rx": pl.String, "gsn": pl.String}
    texts |= {"valueuom": pl.String}
    tables = {}
    for path in sorted(DATA.rglob("*.csv.gz")):
        name = path.name.removesuffix(".csv.gz")
        tables[name] = pl.read_csv(path, schema_overrides=texts, infer_schema_length=20_000, try_parse_dates=True)
    return tables


def events(tables: Tables, choose: Callable[[pl.DataFrame, str], pl.DataFrame]) -> list[pl.DataFrame]:
    """Apply a choice of rows to both tables of results."""
    return [tagged(choose(tables[name], key), name) for name, key in EVENTS.items()]


def tagged(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    return frame.select(pl.lit(name).alias("table"), "_row_id")


def everything(tables: Tables) -> list[pl.DataFrame]:
    return [tagged(frame, name) for name, frame in tables.items()]


def all_patients(tables: Tables) -> list[pl.DataFrame]:
    return [tagged(tables["patients"], "patients")]


def ends(*, last: bool, count: int) -> Callable[[Tables], list[pl.DataFrame]]:
    return lambda tables: [
        tagged(frame.tail(count) if last else frame.head(count), name) for name, frame in tables.items()
    ]


def ids(*, descending: bool) -> Callable[[Tables], list[pl.DataFrame]]:
    return lambda tables: [
        tagged(frame.sort("_row_id", descending=descending).head(50), name) for name, frame in tables.items()
    ]


def keys(tables: Tables) -> list[pl.DataFrame]:
    """The largest keys of each table: what was appended last."""
    by = {"labevents": "labevent_id", "prescriptions": "pharmacy_id", "icustays": "stay_id", "admissions": "hadm_id"}
    return [tagged(tables[name].sort(key, descending=True).head(50), name) for name, key in by.items()]


def at_random(tables: Tables) -> list[pl.DataFrame]:
    return [tagged(frame.sample(min(60, frame.height), seed=7), name) for name, frame in tables.items()]


def z_score(limit: float) -> Callable[[Tables], list[pl.DataFrame]]:
    """Robust z-score per item, and per drug for doses."""

    def far(frame: pl.DataFrame, value: pl.Expr, group: str) -> pl.DataFrame:
        middle = value.median().over(group)
        spread = 1.4826 * (value - middle).abs().median().over(group)
        return frame.filter((value - middle).abs() > limit * spread)

    def probe(tables: Tables) -> list[pl.DataFrame]:
        dose = pl.col("dose_val_rx").cast(pl.Float64, strict=False)
        orders = tagged(far(tables["prescriptions"], dose, "drug"), "prescriptions")
        return [*events(tables, lambda frame, _: far(frame, pl.col("valuenum"), "itemid")), orders]

    return probe


def pairs(frame: pl.DataFrame, key: str) -> pl.DataFrame:
    """Records of one item within five minutes, with the relative difference."""
    frame = frame.filter(pl.col("valuenum").is_not_null()).sort(key, "itemid", "charttime")
    group = [key, "itemid"]
    near, far = [], pl.lit(0.0)
    for step in (1, -1):
        gap = (pl.col("charttime") - pl.col("charttime").shift(step).over(group)).dt.total_minutes().abs() <= 5
        difference = (pl.col("valuenum") / pl.col("valuenum").shift(step).over(group) - 1).abs()
        near.append(gap.fill_null(value=False))
        far = pl.max_horizontal(far, pl.when(gap).then(difference).otherwise(0.0))
    return frame.with_columns(difference=far).filter(near[0] | near[1])


def five_minutes(limit: float) -> Callable[[Tables], list[pl.DataFrame]]:
    return lambda tables: events(tables, lambda frame, key: pairs(frame, key).filter(pl.col("difference") >= limit))


def copies(tables: Tables, limit: float) -> list[pl.DataFrame]:
    """Charted copies that differ from the laboratory at the same minute (items matched by a list)."""
    match = {
        220645: 50983, 227442: 50971, 225624: 51006, 220615: 50912, 220621: 50931, 225625: 50893, 220635: 50960,
        225677: 50970, 220228: 51222, 220546: 51301, 227457: 51265,
    }  # fmt: skip
    chart = tables["chartevents"].filter(pl.col("itemid").is_in(list(match)))
    chart = chart.with_columns(lab=pl.col("itemid").replace_strict(match))
    labs = tables["labevents"].select("hadm_id", "charttime", lab="itemid", there="valuenum")
    both = chart.join(labs, on=["hadm_id", "charttime", "lab"])
    return [tagged(both.filter((pl.col("valuenum") / pl.col("there") - 1).abs() > limit), "chartevents")]


def pairs_and_copies(tables: Tables) -> list[pl.DataFrame]:
    """The union that passes the published rule."""
    return [*five_minutes(0.1)(tables), *copies(tables, 0.1)]


def decimals(tables: Tables) -> list[pl.DataFrame]:
    places = pl.col("value").str.extract(r"\.(\d+)$").str.len_chars().fill_null(0)

    def odd(frame: pl.DataFrame, _: str) -> pl.DataFrame:
        numbers = frame.filter(pl.col("valuenum").is_not_null()).with_columns(places=places)
        return numbers.filter(pl.col("places") != pl.col("places").mode().first().over("itemid"))

    return events(tables, odd)


def text_against_number(tables: Tables) -> list[pl.DataFrame]:
    number = pl.col("value").cast(pl.Float64, strict=False)
    return events(tables, lambda frame, _: frame.filter((number - pl.col("valuenum")).abs() > 1e-9))


def incomplete(tables: Tables) -> list[pl.DataFrame]:
    """Rows that lack a cell which most rows of the table have."""
    found = []
    for name, frame in tables.items():
        usual = [column for column in frame.columns if frame[column].null_count() < 0.05 * frame.height]
        found.append(tagged(frame.filter(pl.any_horizontal(pl.col(usual).is_null())), name))
    return found


def lonely(tables: Tables) -> list[pl.DataFrame]:
    return [tagged(tables["labevents"].filter(pl.len().over("specimen_id") == 1), "labevents")]


def duplicates(tables: Tables) -> list[pl.DataFrame]:
    return events(tables, lambda frame, key: frame.filter(pl.len().over(key, "itemid", "charttime") > 1))


def flags(tables: Tables) -> list[pl.DataFrame]:
    value = pl.col("valuenum")
    outside = (value < pl.col("ref_range_lower")) | (value > pl.col("ref_range_upper"))
    wrong = tables["labevents"].filter(outside.fill_null(value=False) != (pl.col("flag") == "abnormal"))
    return [tagged(wrong, "labevents")]


def units(tables: Tables) -> list[pl.DataFrame]:
    usual = pl.col("valueuom").mode().first().over("itemid")
    return events(tables, lambda frame, _: frame.filter(pl.col("valueuom").ne_missing(usual)))


def gap_formula(tables: Tables) -> list[pl.DataFrame]:
    labs = tables["labevents"].filter(pl.col("itemid").is_in(list(FORMULA)))
    labs = labs.with_columns(part=pl.col("itemid").replace_strict(FORMULA) * pl.col("valuenum"))
    return [tagged(labs.filter(pl.col("part").sum().over("specimen_id").abs() > 0.5), "labevents")]


def off_grid(tables: Tables) -> list[pl.DataFrame]:
    chart = tables["chartevents"].filter(pl.col("valuenum").is_not_null())
    return [tagged(chart.filter(~pl.col("charttime").dt.minute().is_in([0, 15, 30, 45])), "chartevents")]


def bands(tables: Tables) -> list[pl.DataFrame]:
    outside = pl.lit(value=False)
    for item, (low, high) in BANDS.items():
        outside |= (pl.col("itemid") == item) & ~pl.col("valuenum").is_between(low, high)
    return events(tables, lambda frame, _: frame.filter(outside))


def doses(tables: Tables) -> list[pl.DataFrame]:
    dose = pl.col("dose_val_rx").cast(pl.Float64, strict=False)
    usual = dose.median().over("drug")
    far = (dose >= 5 * usual) | (dose <= usual / 5)
    return [tagged(tables["prescriptions"].filter(far), "prescriptions")]


def marker_drugs(tables: Tables) -> list[pl.DataFrame]:
    """Drugs of the other sex: the orders and the patients."""
    orders = tables["prescriptions"].join(tables["patients"].select("subject_id", "gender"), on="subject_id")
    man = pl.col("gender") == "M"
    wrong = orders.filter((man & pl.col("drug").is_in(FEMALE)) | (~man & pl.col("drug").is_in(MALE)))
    people = tables["patients"].join(wrong.select("subject_id"), on="subject_id", how="semi")
    return [tagged(wrong, "prescriptions"), tagged(people, "patients")]


def sex_tests(tables: Tables) -> list[pl.DataFrame]:
    labs = tables["labevents"].join(tables["patients"].select("subject_id", "gender"), on="subject_id")
    man = pl.col("gender") == "M"
    return [
        tagged(labs.filter((man & (pl.col("itemid") == 50946)) | (~man & (pl.col("itemid") == 50974))), "labevents")
    ]


def heights(tables: Tables) -> list[pl.DataFrame]:
    tall = tables["chartevents"].filter(pl.col("itemid") == 226730).group_by("subject_id").agg(pl.col("valuenum").max())
    people = tables["patients"].join(tall, on="subject_id")
    man = pl.col("gender") == "M"
    return [tagged(people.filter((man & (pl.col("valuenum") < 165)) | (~man & (pl.col("valuenum") > 172))), "patients")]


def minors(tables: Tables) -> list[pl.DataFrame]:
    return [tagged(tables["patients"].filter(pl.col("anchor_age") < 18), "patients")]


PROBES: dict[str, tuple[Callable[[Tables], list[pl.DataFrame]], str]] = {
    "everything": (everything, "every row of every table"),
    "all_patients": (all_patients, "every patients row: hits every demographic conflict"),
    "first_rows": (ends(last=False, count=16), "the first 16 rows of each table"),
    "last_rows": (ends(last=True, count=16), "the last 16 rows: where appended rows would stand"),
    "smallest_ids": (ids(descending=False), "the 50 smallest row ids of each table"),
    "largest_ids": (ids(descending=True), "the 50 largest row ids of each table"),
    "largest_keys": (keys, "the 50 largest primary keys: what was added last"),
    "random_rows": (at_random, "60 random rows of each table"),
    "z_score_6": (z_score(6), "robust z-score above 6, per item and per drug"),
    "z_score_8": (z_score(8), "robust z-score above 8, per item and per drug"),
    "duplicates": (duplicates, "two rows with one key"),
    "five_minute_pairs": (five_minutes(0.0), "records of one item within five minutes"),
    "five_minute_pairs_10": (five_minutes(0.1), "the same, differing by 10 % or more"),
    "five_minute_pairs_30": (five_minutes(0.3), "the same, differing by 30 % or more"),
    "copies_5": (
        lambda tables: copies(tables, 0.05),
        "charted copies that differ from the laboratory by more than 5 %",
    ),
    "pairs_and_copies": (pairs_and_copies, "both at 10 %: passes the published rule on some seeds"),
    "decimals": (decimals, "decimals unlike the item's"),
    "text_against_number": (text_against_number, "value unlike valuenum"),
    "incomplete_rows": (incomplete, "a cell is missing that is seldom missing"),
    "lonely_specimens": (lonely, "specimens with one result"),
    "flags": (flags, "the flag does not follow from the range"),
    "units": (units, "a unit label unlike the item's usual one"),
    "gap_formula": (gap_formula, "the anion gap is not sodium - chloride - bicarbonate"),
    "off_grid_minutes": (off_grid, "charted at odd minutes"),
    "published_bands": (bands, "outside the published plausible ranges"),
    "doses": (doses, "five times above or below the drug's median dose"),
    "marker_drugs": (marker_drugs, "drugs of the other sex"),
    "sex_tests": (sex_tests, "laboratory tests of the other sex"),
    "heights": (heights, "short men and tall women"),
    "minors": (minors, "registered age below 18"),
}


def main(name: str) -> None:
    """Write the submission of a probe."""
    rows = pl.concat(PROBES[name][0](read())).unique(maintain_order=True)
    SUBMISSION.mkdir(parents=True, exist_ok=True)
    rows.write_csv(SUBMISSION / "flagged_rows.csv")


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        listing = [
            {"name": n, "expects": "zero", "bound": None, "of": None, "why": why} for n, (_, why) in PROBES.items()
        ]
        print(json.dumps(listing))  # noqa: T201 (the contract)
    else:
        main(sys.argv[1])
