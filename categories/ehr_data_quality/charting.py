"""chartevents: vital signs hour by hour, ventilator and haemodynamics, copies of laboratory values, assessments."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.signal import lfilter

from categories.draw import Draw
from categories.ehr_data_quality.assessments import make_assessments
from categories.ehr_data_quality.catalogue import ChartItem, chart_items, lab_items
from categories.ehr_data_quality.cohort import Cohort, Floats, Ints, load, quantise
from categories.ehr_data_quality.labs import SPELLINGS, UNIT_NOISE, stamps

VITALS_REPEATED = 0.05
"""Share of the hourly sets that are taken again within five minutes."""
COPY_DIFFERS = 0.15
EVERY = {"vitals": 1, "cuff": 1, "art": 1, "temp": 4, "core": 4, "line": 2, "swan": 4, "vent": 4, "alarm": 12,
         "shift": 12, "sugar": 6, "weight": 24}  # fmt: skip
"""Hours between two chartings of a group."""
SHARE = {"art": 0.4, "cuff": 1.0, "line": 0.35, "swan": 0.1, "core": 0.12, "sugar": 0.7}
"""Share of the stays in which a group is charted at all."""

HEAT = {220045: 5.0, 220210: 0.5, 223761: 0.41}
"""Heart rate, respiratory rate and temperature rise and fall together, in units of one wave of body heat."""


@dataclass(frozen=True)
class Grid:
    """The clock hours of all stays, one after another: when the nurse charts, and the states at that time."""

    stay: Ints
    hour: Ints
    """Hours since 1970."""
    minute: Ints
    """Minutes since 1970."""
    ventilated: Ints
    states: Floats
    repeat: Ints
    """Minutes until the set is taken again, 0 where it is not."""

    def every(self, hours: int) -> Ints:
        """Return the places of a round every few hours; each stay has its own phase."""
        return np.flatnonzero((self.hour + self.stay * 7) % hours == 0)


def make_grid(draw: Draw, cohort: Cohort) -> Grid:
    """Lay out the hours; three quarters are charted on the hour."""
    rng = draw.rng("grid")
    first, last = cohort.s_in // 60 + 1, (cohort.s_out - 31) // 60
    count = np.maximum(last - first, 1)
    stay = np.repeat(np.arange(len(count)), count)
    hour = first[stay] + np.arange(len(stay)) - np.repeat(np.cumsum(count) - count, count)
    pick = rng.random(len(stay))
    past = np.select(
        [pick < 0.76, pick < 0.9], [0, rng.choice([15, 30, 45], len(stay))], rng.integers(1, 60, len(stay))
    )
    minute = hour * 60 + np.minimum(past, np.maximum(cohort.s_out[stay] - hour * 60 - 8, 0))
    ventilated = (minute - cohort.s_in[stay] < cohort.s_vent[stay]).astype(np.int64)
    repeat = np.where(rng.random(len(stay)) < VITALS_REPEATED, rng.integers(1, 6, len(stay)), 0)
    return Grid(stay, hour, minute, ventilated, cohort.state(cohort.s_adm[stay], minute), repeat)


def make_charting(draw: Draw, cohort: Cohort, first_draws: pl.DataFrame) -> pl.DataFrame:
    """Return chartevents in MIMIC-IV's columns."""
    grid = make_grid(draw, cohort)
    rng = draw.rng("vitals")
    rows: list[pl.DataFrame] = []
    used = {name: rng.random(len(cohort.s_adm)) < share for name, share in SHARE.items()}
    shared = {"heat": np.asarray(lfilter([0.35], [1, -0.94], rng.normal(0, 1, len(grid.stay))))}
    for item in chart_items():
        if item.group in EVERY:
            rows += _numeric(rng, cohort, grid, item, used, shared)
    rows += _on_admission(rng, cohort)
    rows += _copies(rng, cohort, first_draws)
    numeric = pl.concat(rows).with_columns(value=pl.lit(None, dtype=pl.String))
    texts = make_assessments(draw.rng("assessments"), cohort, grid)
    return _dress(draw, cohort, pl.concat([numeric, texts.select(numeric.columns)]))


def _block(item: ChartItem, stay: Ints, minute: Ints, value: Floats) -> pl.DataFrame:
    return pl.DataFrame({"stay": stay, "minute": minute, "valuenum": value}).with_columns(
        itemid=pl.lit(item.itemid, dtype=pl.Int64)
    )


def _numeric(
    rng: np.random.Generator,
    cohort: Cohort,
    grid: Grid,
    item: ChartItem,
    used: dict[str, "np.ndarray[tuple[int], np.dtype[np.bool_]]"],
    shared: dict[str, Floats],
) -> list[pl.DataFrame]:
    """Draw one item over the whole grid, keep the hours in which it is charted, add the repeats."""
    course = _course(rng, cohort, grid, item, shared)
    keep = np.zeros(len(grid.stay), dtype=bool)
    keep[grid.every(EVERY[item.group])] = True
    if item.group in used:
        keep &= used[item.group][grid.stay]
    if item.group == "cuff":  # an arterial line replaces most cuff readings
        keep &= ~used["art"][grid.stay] | (grid.hour % 4 == 0)
    if item.group in ("vent", "alarm"):
        keep &= grid.ventilated > 0
    keep &= rng.random(len(keep)) > 0.03
    value = _presented(rng, item, course)
    kept = np.flatnonzero(keep)
    parts = [_block(item, grid.stay[kept], grid.minute[kept], value[kept])]
    if item.group in ("vitals", "cuff", "art"):
        again = np.flatnonzero(keep & (grid.repeat > 0))
        # a calculated mean follows its own repeated pressures; the rest differs by a reading's noise
        second = course + 0.55 * item.within * np.clip(rng.normal(0, 1, len(course)), -3, 3)
        second = _presented(rng, item, second)
        parts.append(_block(item, grid.stay[again], grid.minute[again] + grid.repeat[again], second[again]))
    return parts


def _course(rng: np.random.Generator, cohort: Cohort, grid: Grid, item: ChartItem, shared: dict[str, Floats]) -> Floats:
    """Return the unrounded course of an item: own level, slow noise (AR(1)), latent states, time of day."""
    prefix = item.abbreviation[:-1]
    if prefix in ("NBP", "ABP", "PAP") and item.abbreviation.endswith("m"):
        return shared[prefix + "d"] + (shared[prefix + "s"] - shared[prefix + "d"]) / 3
    if item.group == "core":
        return (shared["Temperature F"] - 32) / 1.8
    level = item.mean + item.between * rng.normal(0, 1, len(cohort.s_adm))[grid.stay]
    slow = lfilter([0.6], [1, -0.8], rng.normal(0, 1, len(grid.stay)))
    course = level + item.within * (0.75 * slow + 0.45 * rng.normal(0, 1, len(grid.stay)))
    course = course + load(grid.states, item.loads)
    course = course + HEAT.get(item.itemid, 0.0) * shared["heat"]
    if item.group == "weight":
        owner = cohort.a_patient[cohort.s_adm[grid.stay]]
        course = course + cohort.weight[owner] + 1.2 * grid.states[:, 1] - 1.5 * grid.states[:, -2]
    if item.itemid in (220045, 220179, 220050):  # lower at night
        course = course - 2.5 * np.cos((grid.hour % 24 - 15) / 24 * 2 * np.pi + np.pi)
    if item.abbreviation in ("NBPd", "ABPd", "PAPd"):
        course = np.minimum(course, shared[prefix + "s"] - 14)
    course = np.asarray(np.clip(quantise(course), item.low, item.high))
    shared[item.abbreviation] = course
    return course


def _presented(rng: np.random.Generator, item: ChartItem, course: Floats) -> Floats:
    """Round as a person or a monitor does: digit preference, steps of the ventilator's knobs, saturation at 100."""
    value = quantise(course)
    pick = rng.random(len(value))
    if item.group == "cuff":
        value = np.where(pick < 0.1, np.round(value / 10) * 10, np.where(pick < 0.5, np.round(value / 2) * 2, value))
    elif item.abbreviation == "RR":
        value = np.where(pick < 0.3, np.round(value / 2) * 2, value)
    elif item.abbreviation == "FiO2":
        value = np.where(value > 75, 100, np.round(value / 10) * 10)
    elif item.abbreviation == "PEEP set":
        value = (
            np.array([5, 8, 10, 12, 14, 16, 18, 20])[np.clip(np.floor((value - 4) / 2), 0, 7).astype(np.int64)] * 1.0
        )
    elif item.group in ("alarm", "shift"):
        value = np.round(value / 5) * 5
    elif item.abbreviation == "Tidal Volume (set)":
        value = np.round(value / 10) * 10
    return np.asarray(np.clip(np.round(value, item.decimals), item.low, item.high)) + 0.0


def _on_admission(rng: np.random.Generator, cohort: Cohort) -> list[pl.DataFrame]:
    """Height and weight, once per stay, where they were taken; pounds and inches belong to items of their own."""
    owner = cohort.a_patient[cohort.s_adm]
    tall = cohort.marks["height"][owner]
    when = cohort.s_in + rng.integers(20, 90, len(owner))
    weight = np.round(cohort.weight[owner] + rng.normal(0, 0.4, len(owner)), 1)
    values = {
        "Height (cm)": np.where(tall, cohort.height[owner], np.nan),
        "Height": np.where(tall, np.round(cohort.height[owner] / 2.54), np.nan),
        "Admission Weight (Kg)": weight,
        "Admission Weight (lbs.)": np.round(weight * 2.20462, 1),
    }
    blocks = []
    for item in chart_items():
        if item.group == "admit":
            kept = np.flatnonzero(np.isfinite(values[item.label]) & (when < cohort.s_out))
            blocks.append(_block(item, kept, when[kept], values[item.label][kept]))
    return blocks


def _copies(rng: np.random.Generator, cohort: Cohort, first_draws: pl.DataFrame) -> list[pl.DataFrame]:
    """Copies of laboratory values at the same time; some differ a little (another tube, another analyser)."""
    stay_of = np.full(len(cohort.a_id), -1, dtype=np.int64)
    stay_of[cohort.s_adm] = np.arange(len(cohort.s_adm))
    blocks = []
    for item in chart_items():
        if not item.group.startswith("copy:"):
            continue
        lab = first_draws.filter(pl.col("itemid") == int(item.group[5:]))
        stay, minute = stay_of[lab["admission"].to_numpy()], lab["minute"].to_numpy()
        inside = (stay >= 0) & (minute >= cohort.s_in[stay]) & (minute < cohort.s_out[stay])
        kept = np.flatnonzero(inside & (rng.random(len(stay)) < 0.85))
        value = lab["valuenum"].to_numpy()[kept]
        within = next(lab.within for lab in lab_items() if lab.itemid == int(item.group[5:]))
        step = np.maximum(10.0**-item.decimals, within * value)
        other = np.round(quantise(value + step * rng.normal(0, 0.8, len(kept))), item.decimals)
        differs = rng.random(len(kept)) < COPY_DIFFERS
        blocks.append(_block(item, stay[kept], minute[kept], np.where(differs, np.maximum(other, item.low), value)))
    return blocks


def _dress(draw: Draw, cohort: Cohort, table: pl.DataFrame) -> pl.DataFrame:
    """Give the values the columns of MIMIC-IV's chartevents; one caregiver per stay and shift."""
    rng = draw.rng("chart columns")
    n = table.height
    stay, minute = table["stay"].to_numpy(), table["minute"].to_numpy()
    itemid = table["itemid"].to_numpy()
    number = table["valuenum"].to_numpy()
    text = table["value"].to_numpy().copy()
    unit = np.full(n, None, dtype=object)
    odd = rng.random(n) < UNIT_NOISE
    for item in chart_items():
        here = np.flatnonzero(itemid == item.itemid)
        text[here] = np.char.mod(f"%.{item.decimals}f", number[here])
        unit[here] = np.where(odd[here], SPELLINGS.get(item.unit, item.unit), item.unit)
    shift = (minute - 420) // 720 % 2_000_000 * 1009 + stay * 31
    _, place = np.unique(shift, return_inverse=True)
    nurses = rng.choice(90_000, 400, replace=False) + 1_000
    nurse = nurses[rng.integers(0, 400, int(place.max()) + 1)][place]
    _, moment = np.unique(stay * 1_000_000_000 + minute % 1_000_000_000, return_inverse=True)
    lag = np.round(np.exp(rng.normal(2.5, 0.9, int(moment.max()) + 1))).astype(np.int64)[moment]
    warning = (rng.random(n) < 0.004).astype(np.int64)
    admission = cohort.s_adm[stay]
    return pl.DataFrame(
        {
            "subject_id": cohort.subject[cohort.a_patient[admission]],
            "hadm_id": cohort.a_id[admission],
            "stay_id": cohort.s_id[stay],
            "caregiver_id": nurse,
            "charttime": stamps(minute),
            "storetime": stamps(minute + np.clip(lag, 1, 240)),
            "itemid": itemid,
            "value": pl.Series(text, dtype=pl.String),
            "valuenum": pl.Series(number).fill_nan(None),
            "valueuom": pl.Series(unit, dtype=pl.String),
            "warning": warning,
        }
    )
