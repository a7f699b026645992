"""ICU charting: vital signs and assessments on their own rhythm, infusions, outputs, procedures and dated events."""

import numpy as np
import polars as pl

from categories.ehr_format_conversion.files import Seconds, clock, decimals, distinct, document, pick, vocabulary
from categories.ehr_format_conversion.hospital import HOUR, MENUS, Hospital, Ints, Rngs, Spans
from categories.ehr_format_conversion.measured import measured

CAREGIVERS = 90


def charting(rngs: Rngs, hospital: Hospital) -> dict[str, pl.DataFrame]:
    """Draw all ICU tables but the stays themselves."""
    return {
        "icu/chartevents": _chart(rngs("chart"), hospital.stays),
        "icu/outputevents": _outputs(rngs("outputs"), hospital.stays),
        **_intakes(rngs("intakes"), hospital.stays),
        "icu/procedureevents": _procedures(rngs("bedside procedures"), hospital.stays),
        "icu/datetimeevents": _dates(rngs("dates"), hospital.stays),
    }


def _ids(spans: Spans, rng: np.random.Generator) -> dict[str, pl.Series]:
    n = len(spans)
    caregiver = pl.Series(1000 + rng.integers(0, CAREGIVERS, n) * 17)
    return {
        "subject_id": pl.Series(spans.subject),
        "hadm_id": pl.Series(spans.hadm),
        "stay_id": pl.Series(spans.stay),
        "caregiver_id": pl.select(pl.when(pl.Series(rng.random(n) >= 0.1)).then(caregiver)).to_series(),
    }


def _store(rng: np.random.Generator, seconds: Seconds, missing: float = 0.01) -> pl.Series:
    return clock(seconds + rng.integers(0, 120, len(seconds)) * 60, rng.random(len(seconds)) >= missing)


def _chart(rng: np.random.Generator, stays: Spans) -> pl.DataFrame:
    """Chart each item at its interval (four in five rounds done, on the hour seven times in ten)."""
    items = vocabulary("charted")
    every = np.array([int(item["every_h"]) for item in items])
    used = rng.random((len(stays), len(items))) < np.where(every == 2, 0.5, 0.85)
    used[0] = True
    hours = (stays.end - stays.start) // HOUR
    rounds = np.where(used, hours[:, None] // every[None, :], 0).astype(np.int64)
    rounds[0] = np.maximum(rounds[0], 1)
    counts = rounds.ravel()
    which = np.repeat(np.tile(np.arange(len(items)), len(stays)), counts)
    place = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    spans = stays.repeat(rounds.sum(axis=1))
    hour = -(-spans.start // HOUR) * HOUR + place * every[which] * HOUR
    seconds = np.where(rng.random(len(which)) < 0.7, hour, hour + rng.integers(0, 60, len(which)) * 60)
    kept = rng.random(len(which)) < 0.8
    kept[: len(items)] = True
    spans = Spans(*(part[kept] for part in (spans.subject, spans.hadm, spans.stay, spans.start, spans.end)))
    which, seconds = which[kept], seconds[kept]
    value, number = measured(rng, items, which)
    frame = pl.DataFrame(
        {
            **_ids(spans, rng),
            "charttime": clock(seconds),
            "storetime": _store(rng, seconds),
            "itemid": np.array([int(item["itemid"]) for item in items])[which],
            "value": value,
            "valuenum": number,
            "valueuom": pl.Series([item["unit"] or None for item in items], dtype=pl.String).gather(which),
            "warning": (rng.random(len(which)) < 0.03).astype(np.int64),
        }
    )
    return frame.sort("subject_id", "charttime", "itemid", "storetime", nulls_last=True)


def _outputs(rng: np.random.Generator, stays: Spans) -> pl.DataFrame:
    items = vocabulary("outputs")
    hours = (stays.end - stays.start) // HOUR
    spans = stays.repeat(np.maximum(hours // 3, 1))
    which = rng.choice(len(items), len(spans), p=[0.6, 0.2, 0.03, 0.05, 0.05, 0.05, 0.02])
    mean = np.array([float(item["mean"]) for item in items])[which]
    amount = np.round(mean * rng.gamma(2, 0.5, len(spans)) / 5) * 5
    seconds = spans.within(rng, HOUR)
    frame = pl.DataFrame(
        {
            **_ids(spans, rng),
            "charttime": clock(seconds),
            "storetime": _store(rng, seconds),
            "itemid": _itemid(items, which),
            "value": amount.astype(np.int64),
            "valueuom": pl.Series(["mL"] * len(spans)),
        }
    )
    return frame.sort("subject_id", "charttime", "itemid", "value")


def _itemid(items: list[dict[str, str]], which: Ints) -> Ints:
    return np.array([int(item["itemid"]) for item in items])[which]


def _intakes(rng: np.random.Generator, stays: Spans) -> dict[str, pl.DataFrame]:
    items = vocabulary("intakes")
    hours = (stays.end - stays.start) // HOUR
    spans = stays.repeat(np.maximum(hours // 2, 3))
    n = len(spans)
    which = rng.integers(0, len(items), n)
    start = spans.within(rng)
    end = np.minimum(start + rng.integers(1, 480, n) * 60, spans.end + HOUR)
    order = distinct(rng, n, 1_000_000, 9_999_999)
    weight = 55 + np.mod(spans.stay, 61) + np.mod(spans.hadm, 10) / 10
    frame = pl.DataFrame(
        {
            **_ids(spans, rng),
            "starttime": clock(start),
            "endtime": clock(end),
            "storetime": _store(rng, start),
            "itemid": _itemid(items, which),
            **_doses(rng, items, which),
            "orderid": order,
            "linkorderid": np.where(rng.random(n) < 0.7, order, np.roll(order, 1)),
            "ordercategoryname": _text_of(items, "order_category", which),
            "secondaryordercategoryname": pick(["Additive (Crystalloid)"], np.zeros(n, np.int64), rng.random(n) < 0.2),
            "ordercomponenttypedescription": _text_of(items, "component", which),
            "patientweight": decimals(weight, np.ones(n, np.int64)),
            "isopenbag": np.zeros(n, np.int64),
            "continueinnextdept": (rng.random(n) < 0.05).astype(np.int64),
            "statusdescription": pick(MENUS["status"], rng.integers(0, len(MENUS["status"]), n)),
        }
    )
    frame = frame.select(document("vocabulary/columns.json")["inputevents"]).sort("subject_id", "starttime", "orderid")
    return {"icu/inputevents": frame, "icu/ingredientevents": _ingredients(frame)}


def _doses(rng: np.random.Generator, items: list[dict[str, str]], which: Ints) -> dict[str, pl.Series]:
    """Return amounts, and rates of what runs continuously; both vary about the item's usual."""
    n = len(which)
    usual = {key: np.array([float(item[key] or 0) for item in items])[which] for key in ("amount", "rate")}
    dripping = (usual["rate"] > 0) & (rng.random(n) < 0.9)
    spread = rng.gamma(3, 1 / 3, n)
    runs = pl.Series(dripping)
    amount, rate = (decimals(usual[key] * spread, np.full(n, 3)) for key in ("amount", "rate"))
    unit = _text_of(items, "amount_unit", which)
    return {
        "amount": amount,
        "amountuom": unit,
        "rate": pl.select(pl.when(runs).then(rate)).to_series(),
        "rateuom": pl.select(pl.when(runs).then(_text_of(items, "rate_unit", which))).to_series(),
        "ordercategorydescription": pick(
            ["Continuous Med", "Drug Push", "Bolus"], np.where(dripping, 0, which % 2 + 1)
        ),
        "totalamount": decimals(usual["amount"] * 2, np.full(n, 2)),
        "totalamountuom": unit,
        "originalamount": amount,
        "originalrate": rate,
    }


def _text_of(items: list[dict[str, str]], key: str, which: Ints) -> pl.Series:
    return pl.Series([item[key] for item in items], dtype=pl.String).gather(which)


def _ingredients(intakes: pl.DataFrame) -> pl.DataFrame:
    fluids = [225158, 225828, 220949, 226452]
    rows = intakes.filter(pl.col("itemid").is_in(fluids))
    names = document("vocabulary/columns.json")["ingredientevents"]
    return (
        rows.with_columns(itemid=pl.lit(220490, dtype=pl.Int64))
        .select(names)
        .sort("subject_id", "starttime", "orderid")
    )


def _procedures(rng: np.random.Generator, stays: Spans) -> pl.DataFrame:
    items = [item for item in vocabulary("bedside") if item["linksto"] == "procedureevents"]
    spans = stays.repeat((3 + rng.poisson(8, len(stays))).astype(np.int64))
    n = len(spans)
    which = rng.integers(0, len(items), n)
    start = spans.within(rng)
    minutes = np.array([int(item["minutes"]) for item in items])[which]
    length = np.where(minutes > 1, np.maximum((minutes * rng.gamma(2, 0.5, n)).astype(np.int64), 1), 1)
    places = [[place for place in item["location"].split(";") if place] for item in items]
    location = [places[one][row % len(places[one])] if places[one] else None for row, one in enumerate(which.tolist())]
    order = distinct(rng, n, 1_000_000, 9_999_999)
    category = pl.Series([item["category"] for item in items]).gather(which)
    frame = pl.DataFrame(
        {
            **_ids(spans, rng),
            "starttime": clock(start),
            "endtime": clock(start + length * 60),
            "storetime": _store(rng, start),
            "itemid": _itemid(items, which),
            "value": length,
            "valueuom": pick(["None", "min"], (minutes > 1).astype(np.int64)),
            "location": pl.Series(location, dtype=pl.String),
            "locationcategory": pl.select(
                pl.when(pl.Series(location, dtype=pl.String).is_not_null()).then(pl.lit("Peripheral"))
            ).to_series(),
            "orderid": order,
            "linkorderid": order,
            "ordercategoryname": category,
            "ordercategorydescription": pick(["Electrolytes", "Task"], (minutes > 1).astype(np.int64)),
            "patientweight": decimals(60 + np.mod(spans.stay, 50).astype(np.float64), np.ones(n, np.int64)),
            "isopenbag": (minutes > 1000).astype(np.int64),
            "continueinnextdept": np.zeros(n, np.int64),
            "statusdescription": pick(["FinishedRunning", "Stopped"], rng.integers(0, 2, n)),
            "originalamount": length,
            "originalrate": np.ones(n, np.int64),
        }
    )
    return frame.sort("subject_id", "starttime", "orderid")


def _dates(rng: np.random.Generator, stays: Spans) -> pl.DataFrame:
    items = [item for item in vocabulary("bedside") if item["linksto"] == "datetimeevents"]
    spans = stays.repeat((2 + rng.poisson(6, len(stays))).astype(np.int64))
    n = len(spans)
    seconds = spans.within(rng, HOUR)
    frame = pl.DataFrame(
        {
            **_ids(spans, rng),
            "charttime": clock(seconds),
            "storetime": _store(rng, seconds),
            "itemid": _itemid(items, rng.integers(0, len(items), n)),
            "value": clock(seconds - rng.integers(0, 48, n) * HOUR),
            "valueuom": pick(["Date", "Date and Time"], rng.integers(0, 2, n)),
            "warning": np.zeros(n, np.int64),
        }
    )
    return frame.sort("subject_id", "charttime", "itemid", "value")
