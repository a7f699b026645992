"""Laboratory panels, cultures and outpatient measurements."""

import numpy as np
import polars as pl

from categories.ehr_format_conversion.files import clock, day, decimals, distinct, pick, vocabulary
from categories.ehr_format_conversion.hospital import DAY, MENUS, Hospital, Ints, Rngs, Spans, providers

PANELS_A_DAY = {
    "basic": 1.5,
    "count": 1.4,
    "clotting": 0.6,
    "liver": 0.35,
    "differential": 0.3,
    "gas": 0.5,
    "urine": 0.12,
}
OUTPATIENT = 0.12
"""Share of blood drawn outside an admission; such rows have no ``hadm_id``."""


def laboratory(rngs: Rngs, hospital: Hospital) -> dict[str, pl.DataFrame]:
    """Draw whole panels per admission, each on one specimen at one time."""
    rng = rngs("labs")
    items = vocabulary("labs")
    parts = []
    for panel in sorted({item["panel"] for item in items}):
        members = [item for item in items if item["panel"] == panel]
        days = (hospital.admissions.end - hospital.admissions.start) / DAY
        counts = rng.poisson(days * PANELS_A_DAY.get(panel, 0.08)).astype(np.int64)
        counts[:2] += 1
        spans = hospital.admissions.repeat(counts)
        parts.append(_panel(rng, spans, members))
    frame = pl.concat(parts).sort("subject_id", "charttime", "specimen_id", "itemid", nulls_last=True)
    ids = pl.Series("labevent_id", np.arange(1, len(frame) + 1) * 7 + 1000)
    frame = frame.select(ids, *(pl.col(name) for name in frame.columns))
    return {"hosp/labevents": _repeat_some(rng, frame, 0.002), "hosp/microbiologyevents": _cultures(rngs, hospital)}


def _panel(rng: np.random.Generator, spans: Spans, members: list[dict[str, str]]) -> pl.DataFrame:
    n, k = len(spans), len(members)
    seconds = np.repeat(spans.within(rng), k)
    specimen = np.repeat(distinct(rng, n, 1_000_000, 99_999_999), k)
    order = np.repeat(rng.integers(0, 60, n), k)
    inside = np.repeat(rng.random(n) >= OUTPATIENT, k)
    urgent = np.repeat((rng.random(n) < 0.45).astype(np.int64), k)
    which = np.tile(np.arange(k), n)
    late = seconds + np.repeat(rng.integers(20, 180, n), k) * 60
    value, number = measured(rng, members, which)
    units = [item["unit"] or None for item in members]
    low, high = (pl.Series([float(item[side]) if item[side] else None for item in members]) for side in ("low", "high"))
    out = (number < low.gather(which)) | (number > high.gather(which))
    return pl.DataFrame(
        {
            "subject_id": np.repeat(spans.subject, k),
            "hadm_id": pl.select(pl.when(pl.Series(inside)).then(pl.Series(np.repeat(spans.hadm, k)))).to_series(),
            "specimen_id": specimen,
            "itemid": np.array([int(item["itemid"]) for item in members])[which],
            "order_provider_id": pick([f"P{number:02d}ORD" for number in range(60)], order, rng.random(n * k) < 0.6),
            "charttime": clock(seconds),
            "storetime": clock(late, rng.random(n * k) >= 0.01),
            "value": value,
            "valuenum": number,
            "valueuom": pl.Series(units, dtype=pl.String).gather(which),
            "ref_range_lower": low.gather(which),
            "ref_range_upper": high.gather(which),
            "flag": pl.select(pl.when(out).then(pl.lit("abnormal"))).to_series(),
            "priority": pick(["ROUTINE", "STAT"], urgent),
            "comments": pl.select(pl.when(pl.Series(rng.random(n * k) < 0.05)).then(pl.lit("___"))).to_series(),
        }
    )


def measured(rng: np.random.Generator, members: list[dict[str, str]], which: Ints) -> tuple[pl.Series, pl.Series]:
    """Return values as text and as numbers: a decimal, one of the item's texts, or both (``3|To Speech``)."""
    n = len(which)
    mean, sd = (np.array([float(item[key] or 0) for item in members]) for key in ("mean", "sd"))
    places = np.array([int(item["decimals"] or 0) for item in members])
    # Nothing measured falls below a tenth of its usual value (a base excess does), and no share exceeds 100 %.
    floor = np.where(mean > 0, mean / 10, -99.0)
    roof = np.where([item["unit"] == "%" for item in members], 100.0, np.inf)
    drawn = np.clip(mean[which] + sd[which] * rng.standard_normal(n), floor[which], roof[which])
    texts = decimals(np.round(drawn, 3).astype(np.float64), places[which])
    numbers = texts.cast(pl.Float64)
    choices = [[text.partition("|") for text in item["texts"].split(";") if text] for item in members]
    spoken: list[str | None] = []
    sense: list[float | None] = []
    roll, place = rng.random(n), rng.integers(0, 1 << 30, n)
    for row, item in enumerate(which.tolist()):
        menu, numeric = choices[item], bool(members[item]["mean"])
        scored = bool(menu) and menu[0][1] == "|"
        if not menu or (numeric and not scored and roll[row] > 0.03):
            spoken.append(None)
            sense.append(None)
        else:
            first, bar, words = menu[int(place[row]) % len(menu)]
            spoken.append(words if bar else first)
            sense.append(float(first) if bar else None)
    said, scored_as = pl.Series(spoken, dtype=pl.String), pl.Series(sense, dtype=pl.Float64)
    value = pl.select(pl.coalesce(said, texts)).to_series()
    return value, pl.select(pl.when(said.is_null()).then(numbers).otherwise(scored_as)).to_series()


def _repeat_some(rng: np.random.Generator, frame: pl.DataFrame, share: float) -> pl.DataFrame:
    """Repeat a few rows under a new first id, as interfaces do: the same event stated twice."""
    again = frame.filter(pl.Series(rng.random(len(frame)) < share))
    first = frame.columns[0]
    return pl.concat([frame, again.with_columns(pl.col(first) + 3)]).sort("subject_id", "charttime", first)


def _cultures(rngs: Rngs, hospital: Hospital) -> pl.DataFrame:
    rng = rngs("cultures")
    spans = hospital.admissions.repeat(1 + rng.poisson(1.2, len(hospital.admissions)).astype(np.int64))
    n = len(spans)
    seconds = spans.within(rng)
    specimen, organism, drug = (rng.integers(0, len(MENUS[key]), n) for key in ("specimen", "organism", "antibiotic"))
    grew = rng.random(n) < 0.3
    menu = {
        key: [list(column) for column in zip(*MENUS[key], strict=True)]
        for key in ("specimen", "organism", "antibiotic")
    }
    dilution = rng.integers(0, 5, n)
    return pl.DataFrame(
        {
            "microevent_id": np.arange(1, n + 1) * 11,
            "subject_id": spans.subject,
            "hadm_id": spans.hadm,
            "micro_specimen_id": distinct(rng, n, 1_000_000, 9_999_999),
            "order_provider_id": providers(rng, n),
            "chartdate": day(seconds) + " 00:00:00",
            "charttime": clock(seconds, rng.random(n) < 0.9),
            "spec_itemid": pick(menu["specimen"][0], specimen),
            "spec_type_desc": pick(menu["specimen"][1], specimen),
            "test_seq": np.ones(n, np.int64),
            "storedate": day(seconds + 2 * DAY) + " 00:00:00",
            "storetime": clock(seconds + 2 * DAY),
            "test_itemid": np.full(n, 90201),
            "test_name": pick(["Blood Culture, Routine", "URINE CULTURE", "RESPIRATORY CULTURE"], specimen % 3),
            "org_itemid": pick(menu["organism"][0], organism, grew),
            "org_name": pick(menu["organism"][1], organism, grew),
            "isolate_num": pick(["1", "2"], organism % 2, grew),
            "quantity": pl.Series([None] * n, dtype=pl.String),
            "ab_itemid": pick(menu["antibiotic"][0], drug, grew),
            "ab_name": pick(menu["antibiotic"][1], drug, grew),
            "dilution_text": pick(["<=0.25", "<=1", "2", "4", ">=16"], dilution, grew),
            "dilution_comparison": pick(["<=", "<=", "=", "=", "=>"], dilution, grew),
            "dilution_value": pick(["0.25", "1", "2", "4", "16"], dilution, grew),
            "interpretation": pick(["S", "S", "S", "I", "R"], dilution, grew),
            "comments": pick(["NO GROWTH.", "___"], specimen % 2, ~grew),
        }
    )


def outpatient(rngs: Rngs, hospital: Hospital) -> dict[str, pl.DataFrame]:
    """Draw clinic measurements between and after admissions: dates only, results as text (blood pressure as a pair)."""
    rng = rngs("omr")
    spans = hospital.admissions.repeat(2 + rng.poisson(6, len(hospital.admissions)).astype(np.int64))
    seconds = spans.start - rng.integers(1, 300, len(spans)) * DAY
    names = ["Blood Pressure", "Weight (Lbs)", "BMI (kg/m2)", "Height (Inches)", "eGFR"]
    which = rng.choice(5, len(spans), p=[0.4, 0.3, 0.2, 0.07, 0.03])
    result = [
        _clinic_result(int(name), float(z)) for name, z in zip(which, rng.standard_normal(len(spans)), strict=True)
    ]
    frame = pl.DataFrame(
        {
            "subject_id": spans.subject,
            "chartdate": day(seconds),
            "seq_num": 1 + (rng.random(len(spans)) < 0.1).astype(np.int64),
            "result_name": pick(names, which),
            "result_value": result,
        }
    )
    return {"hosp/omr": frame.sort("subject_id", "chartdate", "result_name", "seq_num")}


def _clinic_result(name: int, z: float) -> str:
    if name == 0:
        return f"{128 + 16 * z:.0f}/{74 + 8 * z:.0f}"
    if name == 4:
        return (
            "Using this patient's age, gender, and serum creatinine value, estimated GFR = >75 if non African-American"
        )
    mean, sd, places = ((178, 38, 1), (28, 5.5, 1), (66, 3.6, 2))[name - 1]
    return f"{mean + sd * z:.{places}f}"


def coded(rngs: Rngs, hospital: Hospital) -> dict[str, pl.DataFrame]:
    """Draw the billing tables: diagnoses, procedures, DRGs and HCPCS codes."""
    return {
        "hosp/diagnoses_icd": _codes(rngs("diagnoses"), hospital, "diagnoses", 9, dated=False),
        "hosp/procedures_icd": _codes(rngs("procedures"), hospital, "procedures", 1.4, dated=True),
        "hosp/drgcodes": _drgs(rngs("drgs"), hospital),
        "hosp/hcpcsevents": _hcpcs(rngs("hcpcs"), hospital),
    }


def _codes(rng: np.random.Generator, hospital: Hospital, name: str, mean: float, *, dated: bool) -> pl.DataFrame:
    """Codes of one ICD version per admission (billing changed over once), numbered by rank.

    The first admission is coded in ICD-10: a reader that looks at few rows must see that codes are text.
    """
    rows = vocabulary(name)
    spans = hospital.admissions
    version = np.where(rng.random(len(spans)) < 0.45, 9, 10)
    version[0] = 10
    counts = (1 + rng.poisson(mean, len(spans))).astype(np.int64)
    subject: list[int] = []
    hadm: list[int] = []
    when: list[int] = []
    rank: list[int] = []
    code: list[tuple[str, int]] = []
    for at, count in enumerate(counts.tolist()):
        menu = [row["icd_code"] for row in rows if int(row["icd_version"]) == version[at]]
        chosen = rng.choice(len(menu), min(count, len(menu)), replace=False)
        subject += [spans.subject[at]] * len(chosen)
        hadm += [spans.hadm[at]] * len(chosen)
        when += rng.integers(spans.start[at], spans.end[at], len(chosen)).tolist()
        rank += range(1, len(chosen) + 1)
        code += [(menu[one], int(version[at])) for one in chosen]
    columns: dict[str, pl.Series] = {
        "subject_id": pl.Series(subject),
        "hadm_id": pl.Series(hadm),
        "seq_num": pl.Series(rank),
        **({"chartdate": day(np.array(when, np.int64))} if dated else {}),
        "icd_code": pl.Series([text for text, _ in code]),
        "icd_version": pl.Series([number for _, number in code]),
    }
    return pl.DataFrame(columns)


def _drgs(rng: np.random.Generator, hospital: Hospital) -> pl.DataFrame:
    rows = vocabulary("drgs")
    kinds = [[row for row in rows if row["drg_type"] == kind] for kind in ("APR", "HCFA")]
    chosen = [kind[int(rng.integers(len(kind)))] for _ in range(len(hospital.admissions)) for kind in kinds]
    spans = hospital.admissions.repeat(np.full(len(hospital.admissions), 2))
    return pl.DataFrame(
        {
            "subject_id": spans.subject,
            "hadm_id": spans.hadm,
            "drg_type": [row["drg_type"] for row in chosen],
            "drg_code": [row["drg_code"] for row in chosen],
            "description": [row["description"] for row in chosen],
            "drg_severity": [row["severity"] or None for row in chosen],
            "drg_mortality": [row["mortality"] or None for row in chosen],
        }
    )


def _hcpcs(rng: np.random.Generator, hospital: Hospital) -> pl.DataFrame:
    rows = vocabulary("hcpcs")
    some_of = (rng.random(len(hospital.admissions)) < 0.35).astype(np.int64)
    some_of[0] = 1
    spans = hospital.admissions.repeat(some_of)
    chosen = rng.integers(0, len(rows), len(spans))
    return pl.DataFrame(
        {
            "subject_id": spans.subject,
            "hadm_id": spans.hadm,
            "chartdate": day(spans.within(rng)),
            "hcpcs_cd": pick([row["code"] for row in rows], chosen),
            "seq_num": np.ones(len(spans), np.int64),
            "short_description": pick([row["short_description"] for row in rows], chosen),
        }
    )
