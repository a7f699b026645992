"""labevents: panels are drawn, their members follow the latent states, calculated members follow the others."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from categories.draw import Draw
from categories.ehr_data_quality.catalogue import LabItem, Panel, panels
from categories.ehr_data_quality.cohort import DAY, Bools, Cohort, Floats, Ints, load, quantise
from categories.ehr_data_quality.formulae import CALCULATED

REPEATED = 0.1
"""Share of the panels that are drawn again within five minutes."""
FLAG_NOISE = 0.007
UNIT_NOISE = 0.006
SPELLINGS = {
    "mEq/L": "mmol/L", "mg/dL": "MG/DL", "g/dL": "gm/dl", "K/uL": "10^3/uL", "IU/L": "U/L", "mm Hg": "mmHg",
    "m/uL": "10^6/uL", "mmol/L": "mM", "ng/mL": "ug/L", "ug/mL": "mg/L", "%": "", "sec": "s", "bpm": "beats/min",
    "mmHg": "mm Hg", "kg": "Kg", "insp/min": "breaths/min", "cmH2O": "cm H2O", "g/dl": "g/dL", "°F": "Deg. F",
}  # fmt: skip
"""Other ways to write the same unit: natural, and no error. (ng/mL = ug/L and ug/mL = mg/L, mEq/L = mmol/L for the
univalent ions that carry it here.)"""


@dataclass
class Draws:
    """One panel's specimens: admission, minute, the specimen that each repeats (-1: none), and a number each."""

    admission: Ints
    minute: Ints
    parent: Ints
    specimen: Ints
    context: dict[str, Floats] = field(default_factory=dict)


def in_icu(cohort: Cohort, admission: Ints, minute: Ints) -> Bools:
    """Tell which moments fall into an ICU stay."""
    begin = np.full(len(cohort.a_id), -1, dtype=np.int64)
    stop = np.full(len(cohort.a_id), -1, dtype=np.int64)
    begin[cohort.s_adm], stop[cohort.s_adm] = cohort.s_in, cohort.s_out
    return np.asarray((minute >= begin[admission]) & (minute < stop[admission]))


def times(rng: np.random.Generator, cohort: Cohort, panel: Panel) -> tuple[Ints, Ints]:
    """Return (admission, minute) of a panel's draws: morning rounds first, the rest at any time."""
    days = (cohort.a_end - cohort.a_start + DAY - 1) // DAY
    owner = np.repeat(np.arange(len(days)), days)
    day = np.arange(len(owner)) - np.repeat(np.cumsum(days) - days, days)
    noon = cohort.a_start[owner] + day * DAY + 720
    rate = np.where(in_icu(cohort, owner, noon), panel.icu, panel.ward)
    whole = np.floor(rate).astype(np.int64)
    count = whole + (rng.random(len(owner)) < rate - whole)
    owner, day = np.repeat(owner, count), np.repeat(day, count)
    first = np.append([True], (owner[1:] != owner[:-1]) | (day[1:] != day[:-1])) if len(owner) else np.zeros(0, bool)
    midnight = cohort.a_start[owner] // DAY * DAY + day * DAY
    minute = midnight + np.where(
        first, np.round(rng.normal(305, 45, len(owner))), rng.integers(0, DAY, len(owner))
    ).astype(np.int64)
    early = minute < cohort.a_start[owner]
    minute[early] = cohort.a_start[owner][early] + rng.integers(5, 120, int(early.sum()))
    keep = minute < cohort.a_end[owner] - 20
    return owner[keep], minute[keep]


def repeat_some(rng: np.random.Generator, owner: Ints, minute: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """Append natural repeats one to five minutes later; the third array tells which draw each repeats."""
    again = np.flatnonzero((rng.random(len(owner)) < REPEATED) & (minute + 6 < end))
    parent = np.concatenate([np.full(len(owner), -1), again]).astype(np.int64)
    later = minute[again] + rng.integers(1, 6, len(again))
    return np.concatenate([owner, owner[again]]), np.concatenate([minute, later]), parent


def measured(rng: np.random.Generator, cohort: Cohort, item: LabItem, at: Draws, states: Floats) -> Floats:
    """Return unrounded values: patient's level, admission's level, noise, latent states; a repeat shares the noise."""
    patient = cohort.a_patient[at.admission]
    level = item.between * rng.normal(0, 1, len(cohort.male))[patient]
    level = level + 0.8 * item.within * rng.normal(0, 1, len(cohort.a_id))[at.admission]
    noise = rng.normal(0, 1, len(at.minute))
    second = 0.5 * rng.normal(0, 1, len(at.minute))
    noise = np.where(at.parent >= 0, noise[np.maximum(at.parent, 0)] + second, noise)
    middle = np.where(cohort.male[patient], item.middle[1], item.middle[0])
    return np.asarray(middle * np.exp(level + 0.8 * item.within * noise + load(states, item.loads)))


def panel_values(rng: np.random.Generator, cohort: Cohort, panel: Panel, at: Draws) -> dict[int, Floats]:
    """Return rounded values per itemid, calculated members included."""
    states = cohort.state(at.admission, at.minute)
    values: dict[int, Floats] = {}
    for item in panel.items:
        if item.itemid not in CALCULATED:
            step = 10.0**-item.decimals
            raw = quantise(np.maximum(measured(rng, cohort, item, at, states), step))
            values[item.itemid] = np.asarray(
                np.round(np.minimum(raw, CAPS.get(item.itemid, 1e9)), item.decimals), dtype=np.float64
            )
    spoilt = (at.parent >= 0) & (rng.random(len(at.minute)) < HAEMOLYSED)
    for itemid, rise in HAEMOLYSIS.items():
        if itemid in values:
            places = next(item.decimals for item in panel.items if item.itemid == itemid)
            higher = values[itemid] * np.exp(rise * (1 + 0.35 * np.clip(rng.normal(0, 1, len(spoilt)), -2, 2)))
            values[itemid] = np.where(
                spoilt, np.round(np.minimum(quantise(higher), SPOILT_CAP.get(itemid, 1e9)), places), values[itemid]
            )
            at.context["spoilt"] = spoilt.astype(np.float64)
    context = {
        "hco3": 25 * np.exp(load(states, {"ren": -0.07, "cir": -0.09, "gly": -1.0, "res": 0.05}))
        * (1 + 0.02 * rng.normal(0, 1, len(at.minute))),
        "jitter": rng.normal(0, 1, len(at.minute)),
        **at.context,
    }  # fmt: skip
    for item in panel.items:
        if item.itemid in CALCULATED:
            raw = quantise(CALCULATED[item.itemid](values, context))
            values[item.itemid] = np.round(raw, item.decimals)
    if 51301 in values:
        at.context["white"] = values[51301]
    return values


HAEMOLYSED = 0.08
"""Share of the repeats that are haemolysed: potassium and LD too high, AST too, and the laboratory says so."""
HAEMOLYSIS = {50971: 0.34, 50822: 0.34, 50954: 0.5, 50878: 0.25}
SPOILT_CAP = {50971: 9.1, 50822: 9.1}
HAEMOLYSED_COMMENT = "HEMOLYZED, MODERATELY. HEMOLYSIS FALSELY ELEVATES THIS RESULT."
ALTERNATIVE = {50889: ("mg/dL", 0.1, 2), 51003: ("ng/L", 1000.0, 0), 51196: ("ug/mL FEU", 0.001, 2)}
"""Analytes that a second analyser reports in another unit, value and range converted: label, factor, decimals."""
CAPS = {
    51006: 190,
    50912: 19,
    50971: 8.3,
    50822: 8.3,
    50931: 940,
    50809: 940,
    50813: 28,
    51301: 420,
    50983: 158,
    51256: 97,
    51244: 92,
    50882: 46,
    50852: 15,
    51237: 14,
    50893: 14,
}
"""The highest value an analyser or a living patient reaches, where the model alone would overshoot."""


def make_labs(draw: Draw, cohort: Cohort) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return labevents, and (admission, minute, itemid, value) of first draws for the charted copies."""
    rng = draw.rng("labs")
    parts: list[pl.DataFrame] = []
    number = 0
    counts: Draws | None = None
    for panel in panels():
        if panel.when == "with_cbc":
            assert counts is not None
            at = _with_counts(rng, counts)
        else:
            owner, minute = (times if panel.when == "all" else _sexed_times)(rng, cohort, panel)
            owner, minute, parent = repeat_some(rng, owner, minute, cohort.a_end[owner])
            at = Draws(owner, minute, parent, number + np.arange(len(owner)))
            number += len(owner)
        values = panel_values(rng, cohort, panel, at)
        counts = at if panel.name == "cbc" else counts
        lag = np.round(np.exp(rng.normal(4.1, 0.45, len(at.minute)))).astype(np.int64)
        common = {"admission": at.admission, "minute": at.minute, "specimen": at.specimen, "parent": at.parent}
        spoilt = at.context.get("spoilt", np.zeros(len(at.minute)))
        common["spoilt"] = spoilt.astype(np.int64)
        parts += [
            pl.DataFrame({**common, "lag": lag, "valuenum": values[item.itemid]}).with_columns(
                itemid=pl.lit(item.itemid, dtype=pl.Int64)
            )
            for item in panel.items
        ]
    table = pl.concat(parts)
    first = table.filter(pl.col("parent") < 0).select("admission", "minute", "lag", "itemid", "valuenum")
    return _dress(draw, cohort, table, number), first


def _with_counts(rng: np.random.Generator, counts: Draws) -> Draws:
    """A differential belongs to some of the blood counts: same tube, same time; a repeat has one if the first has."""
    chosen = rng.random(len(counts.minute)) < 0.33
    chosen = np.where(counts.parent >= 0, chosen[np.maximum(counts.parent, 0)], chosen)
    kept = np.flatnonzero(chosen)
    place = np.full(len(chosen), -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    parent = np.where(counts.parent[kept] >= 0, place[np.maximum(counts.parent[kept], 0)], -1)
    context = {"white": counts.context["white"][kept]}
    return Draws(counts.admission[kept], counts.minute[kept], parent, counts.specimen[kept], context)


def _sexed_times(rng: np.random.Generator, cohort: Cohort, panel: Panel) -> tuple[Ints, Ints]:
    """PSA in men, hCG in women; hCG is also a tumour marker in a few men, drawn together with AFP and LD."""
    marks, male = cohort.marks, cohort.male
    own = marks["sex_test"] & (male if panel.name == "psa" else ~male)
    who = own | (marks["tumour"] if panel.name == "hcg" else False)
    first = np.append([True], cohort.a_patient[1:] != cohort.a_patient[:-1])
    again = rng.random(len(first)) < 0.3
    admission = np.flatnonzero(who[cohort.a_patient] & (first | again))
    return admission, cohort.a_start[admission] + rng.integers(20, 200, len(admission))


def _dress(draw: Draw, cohort: Cohort, table: pl.DataFrame, specimens: int) -> pl.DataFrame:
    """Give the values the columns of MIMIC-IV's labevents."""
    rng = draw.rng("lab columns")
    n = table.height
    admission = table["admission"].to_numpy()
    values = table["valuenum"].to_numpy().copy()
    itemid = table["itemid"].to_numpy()
    results = _results(cohort, admission, itemid, values, rng.random(n) < UNIT_NOISE)
    text, unit, low, high = results["text"], results["unit"], results["low"], results["high"]
    outside = (values < low) | (values > high)
    flag = np.where(outside ^ (rng.random(n) < FLAG_NOISE), "abnormal", "")
    minute = table["minute"].to_numpy()
    stat = rng.random(specimens) < 0.42
    provider = rng.integers(0, 60, specimens)
    names = np.array([f"P{draw.opaque_id('provider', i, length=5).upper()}" for i in range(60)], dtype=object)
    specimen = table["specimen"].to_numpy()
    identity = 10_000_000 + rng.choice(89_999_999, specimens, replace=False)
    return pl.DataFrame(
        {
            "labevent_id": 1 + rng.permutation(n * 9)[:n],
            "subject_id": cohort.subject[cohort.a_patient[admission]],
            "hadm_id": cohort.a_id[admission],
            "specimen_id": identity[specimen],
            "itemid": itemid,
            "order_provider_id": pl.Series(names[provider[specimen]], dtype=pl.String),
            "charttime": stamps(minute),
            "storetime": stamps(minute + table["lag"].to_numpy()),
            "value": pl.Series(text, dtype=pl.String),
            "valuenum": values,
            "valueuom": pl.Series(unit, dtype=pl.String),
            "ref_range_lower": pl.Series(low).fill_nan(None),
            "ref_range_upper": pl.Series(high).fill_nan(None),
            "flag": pl.Series(flag.astype(object), dtype=pl.String),
            "priority": pl.Series(np.where(stat[specimen], "STAT", "ROUTINE").astype(object), dtype=pl.String),
            "comments": pl.Series(_comments(rng, table).astype(object), dtype=pl.String),
        }
    )


def _results(cohort: Cohort, admission: Ints, itemid: Ints, values: Floats, odd: Bools) -> dict[str, Any]:
    """Return text, unit label and reference range of each result; a second analyser's values change in place."""
    n, male = len(values), cohort.male[cohort.a_patient[admission]]
    unit, text = np.full(n, "", dtype=object), np.full(n, "", dtype=object)
    low, high = np.full(n, np.nan), np.full(n, np.nan)
    for item in (item for panel in panels() for item in panel.items):
        here = np.flatnonzero(itemid == item.itemid)
        sex = male[here].astype(np.int64)
        low[here] = np.array([np.nan if x is None else x for x in item.low])[sex]
        high[here] = np.array([np.nan if x is None else x for x in item.high])[sex]
        text[here] = np.char.mod(f"%.{item.decimals}f", values[here] + 0.0)
        unit[here] = np.where(odd[here], SPELLINGS.get(item.unit, item.unit), item.unit)
        if item.itemid in ALTERNATIVE:
            label, factor, places = ALTERNATIVE[item.itemid]
            here = here[cohort.a_patient[admission[here]] % 7 == 0]
            values[here] = np.round(quantise(values[here] * factor), places)
            low[here], high[here] = quantise(low[here] * factor), quantise(high[here] * factor)
            text[here], unit[here] = np.char.mod(f"%.{places}f", values[here]), label
    return {"text": text, "unit": unit, "low": low, "high": high}


def _comments(rng: np.random.Generator, table: pl.DataFrame) -> "np.ndarray[tuple[int], np.dtype[np.str_]]":
    """Comments of the laboratory; ``___`` is MIMIC's mark of a removed text."""
    pick, itemid = rng.random(table.height), table["itemid"].to_numpy()
    spoilt = (table["spoilt"].to_numpy() > 0) & np.isin(itemid, list(HAEMOLYSIS))
    fasting = (itemid == 50931) & (pick < 0.3)
    return np.select(
        [spoilt, fasting, pick < 0.012],
        [HAEMOLYSED_COMMENT, "IF FASTING, 70-100 NORMAL, >125 PROVISIONAL DIABETES.", "___"],
        "",
    )


def stamps(minute: Ints) -> pl.Series:
    """Return date-times of minutes since 1970."""
    return pl.Series(minute.astype("datetime64[m]").astype("datetime64[us]"))
