"""Orders, pharmacy, prescriptions and the administration record."""

import numpy as np
import polars as pl

from categories.ehr_format_conversion.files import clock, document, pick, vocabulary
from categories.ehr_format_conversion.hospital import HOUR, MENUS, Hospital, Rngs, Spans, providers, some


def medication(rngs: Rngs, hospital: Hospital) -> dict[str, pl.DataFrame]:
    """Draw about a dozen drug orders per admission and what became of them."""
    rng = rngs("orders")
    drugs = vocabulary("drugs")
    spans = hospital.admissions.repeat((4 + rng.poisson(11, len(hospital.admissions))).astype(np.int64))
    n = len(spans)
    which = rng.integers(0, len(drugs), n)
    start = np.where(rng.random(n) < 0.5, spans.start + rng.integers(0, 6, n) * HOUR, spans.within(rng, HOUR))
    stop = np.minimum(start + rng.integers(6, 120, n) * HOUR, spans.end)
    number = np.concatenate([np.arange(count) for count in np.unique(spans.subject, return_counts=True)[1]]) + 2
    base = pl.DataFrame(
        {
            "subject_id": spans.subject,
            "hadm_id": spans.hadm,
            "pharmacy_id": 10_000_000 + rng.permutation(n) * 13,
            "poe_seq": number,
            "start": start,
            "stop": stop,
            "which": which,
            "enter": start - rng.integers(5, 90, n) * 60,
        }
    ).with_columns(poe_id=pl.format("{}-{}", "subject_id", "poe_seq"))
    emar = _administrations(rngs("emar"), base, drugs)
    return {
        "hosp/poe": _poe(rngs("poe"), base),
        "hosp/poe_detail": _poe_detail(base),
        "hosp/pharmacy": _pharmacy(rngs("pharmacy"), base, drugs),
        "hosp/prescriptions": _prescriptions(rngs("prescriptions"), base, drugs),
        "hosp/emar": emar,
        "hosp/emar_detail": _emar_detail(rngs("emar detail"), emar, drugs),
    }


def _column(drugs: list[dict[str, str]], name: str, base: pl.DataFrame) -> pl.Series:
    return pl.Series([drug[name] or None for drug in drugs], dtype=pl.String).gather(base["which"])


def _nothing(n: int) -> pl.Series:
    return pl.Series([None] * n, dtype=pl.String)


def _poe(rng: np.random.Generator, base: pl.DataFrame) -> pl.DataFrame:
    n = len(base)
    return base.select(
        "poe_id",
        "poe_seq",
        "subject_id",
        "hadm_id",
        ordertime=clock(base["enter"].to_numpy()),
        order_type=some(rng, "order_type", n),
        order_subtype=_nothing(n),
        transaction_type=pick(["New", "Change", "D/C"], rng.integers(0, 3, n)),
        discontinue_of_poe_id=_nothing(n),
        discontinued_by_poe_id=_nothing(n),
        order_provider_id=providers(rng, n),
        order_status=pl.lit("Inactive"),
    )


def _poe_detail(base: pl.DataFrame) -> pl.DataFrame:
    rows = base.filter(pl.col("which") % 5 == 0)
    return rows.select(
        "poe_id",
        "poe_seq",
        "subject_id",
        field_name=pl.lit("Admit to"),
        field_value=pick(MENUS["ward"], (rows["which"] % len(MENUS["ward"])).to_numpy().astype(np.int64)),
    )


def _pharmacy(rng: np.random.Generator, base: pl.DataFrame, drugs: list[dict[str, str]]) -> pl.DataFrame:
    """Order starts are full times; a few stops are a date alone, and a few are open."""
    n = len(base)
    stop = clock(base["stop"].to_numpy(), rng.random(n) >= 0.03)
    date_only = pl.Series(rng.random(n) < 0.04)
    empty = ("sliding_scale", "lockout_interval", "basal_rate", "one_hr_max")
    return base.select(
        "subject_id",
        "hadm_id",
        "pharmacy_id",
        pl.when(pl.Series(rng.random(n) >= 0.02)).then("poe_id").alias("poe_id"),
        starttime=clock(base["start"].to_numpy(), rng.random(n) >= 0.01),
        stoptime=pl.when(date_only).then(stop.str.slice(0, 10)).otherwise(stop),
        medication=pl.when(pl.Series(rng.random(n) >= 0.02)).then(_column(drugs, "drug", base)),
        proc_type=pick(["Unit Dose", "IV Piggyback", "IV Large Volume"], rng.integers(0, 3, n)),
        status=pick(["Discontinued via patient discharge", "Discontinued", "Expired"], rng.integers(0, 3, n)),
        entertime=clock(base["enter"].to_numpy()),
        verifiedtime=clock(base["enter"].to_numpy() + rng.integers(60, 1800, n), rng.random(n) >= 0.05),
        route=_column(drugs, "route", base),
        frequency=pl.when(pl.Series(rng.random(n) >= 0.05)).then(_column(drugs, "frequency", base)),
        disp_sched=_nothing(n),
        infusion_type=pick(["R", "C"], rng.integers(0, 2, n), rng.random(n) < 0.1),
        **{name: _nothing(n) for name in empty},
        doses_per_24_hrs=_column(drugs, "doses", base),
        duration=_nothing(n),
        duration_interval=pick(["Ongoing", "Days", "Doses"], rng.integers(0, 3, n)),
        expiration_value=pl.lit(36),
        expiration_unit=pl.lit("Hours"),
        expirationdate=_nothing(n),
        dispensation=pick(["Omnicell", "Main Pharmacy"], rng.integers(0, 2, n)),
        fill_quantity=_nothing(n),
    )


def _prescriptions(rng: np.random.Generator, base: pl.DataFrame, drugs: list[dict[str, str]]) -> pl.DataFrame:
    n = len(base)
    return base.select(
        "subject_id",
        "hadm_id",
        "pharmacy_id",
        "poe_id",
        "poe_seq",
        order_provider_id=providers(rng, n),
        starttime=clock(base["start"].to_numpy()),
        stoptime=clock(base["stop"].to_numpy()),
        drug_type=pick(["MAIN", "BASE", "ADDITIVE"], rng.choice(3, n, p=[0.9, 0.07, 0.03])),
        drug=_column(drugs, "drug", base),
        formulary_drug_cd=_column(drugs, "drug", base).str.to_uppercase().str.slice(0, 5),
        gsn=pick(["004489", "006549", "043952"], rng.integers(0, 3, n)),
        ndc=_column(drugs, "ndc", base),
        prod_strength=_column(drugs, "strength", base),
        form_rx=_nothing(n),
        dose_val_rx=_column(drugs, "dose", base),
        dose_unit_rx=_column(drugs, "unit", base),
        form_val_disp=pl.lit("1"),
        form_unit_disp=_column(drugs, "form", base),
        doses_per_24_hrs=_column(drugs, "doses", base),
        route=_column(drugs, "route", base),
    )


def _administrations(rng: np.random.Generator, base: pl.DataFrame, drugs: list[dict[str, str]]) -> pl.DataFrame:
    counts = rng.poisson(2.2, len(base)).astype(np.int64)
    counts[0] = 2
    given = base.select(pl.all().gather(np.repeat(np.arange(len(base)), counts)))
    n = len(given)
    zero = np.zeros(n, np.int64)
    start, stop = given["start"].to_numpy(), given["stop"].to_numpy()
    span = Spans(zero, zero, zero, start, np.maximum(stop, start + HOUR))
    seconds = span.within(rng)
    sequence = given.select(pl.int_range(pl.len()).over("subject_id") + 10).to_series()
    frame = given.select(
        "subject_id",
        pl.when(pl.Series(rng.random(n) >= 0.05)).then("hadm_id").alias("hadm_id"),
        emar_id=pl.format("{}-{}", "subject_id", sequence),
        emar_seq=sequence,
        poe_id="poe_id",
        pharmacy_id=pl.when(pl.Series(rng.random(n) >= 0.1)).then("pharmacy_id"),
        enter_provider_id=providers(rng, n),
        charttime=clock(seconds),
        medication=pl.when(pl.Series(rng.random(n) >= 0.04)).then(_column(drugs, "drug", given)),
        event_txt=some(rng, "administered", n, 0.02),
        scheduletime=clock(seconds // HOUR * HOUR, rng.random(n) >= 0.05),
        storetime=clock(seconds + rng.integers(0, 900, n)),
    )
    return frame.sort("subject_id", "emar_seq")


def _emar_detail(rng: np.random.Generator, emar: pl.DataFrame, drugs: list[dict[str, str]]) -> pl.DataFrame:
    rows = emar.with_columns(which=pl.Series(rng.integers(0, len(drugs), len(emar))))
    known: dict[str, pl.Expr | pl.Series] = {
        "administration_type": pl.lit("Standard Maintenance Medication"),
        "pharmacy_id": pl.col("pharmacy_id"),
        "barcode_type": pl.lit("if"),
        "dose_due": _column(drugs, "dose", rows),
        "dose_due_unit": _column(drugs, "unit", rows),
        "dose_given": _column(drugs, "dose", rows),
        "dose_given_unit": _column(drugs, "unit", rows),
        "product_description": _column(drugs, "strength", rows),
        "route": _column(drugs, "route", rows),
    }
    names = document("vocabulary/columns.json")["emar_detail"]
    blank = pl.lit(None, dtype=pl.String)
    return rows.select("subject_id", "emar_id", "emar_seq", **{name: known.get(name, blank) for name in names})
