"""The eight tables of a hospital without errors, in the names, columns and formats of MIMIC-IV 2.2."""

from typing import Any

import numpy as np
import polars as pl

from categories.draw import Draw
from categories.ehr_data_quality.catalogue import chart_items, lab_items, text_items, words
from categories.ehr_data_quality.charting import make_charting
from categories.ehr_data_quality.cohort import Cohort, Ints, make_cohort
from categories.ehr_data_quality.labs import make_labs, stamps
from categories.ehr_data_quality.prescribing import make_prescriptions

TABLES = {
    "hosp": ("patients", "admissions", "labevents", "prescriptions", "d_labitems"),
    "icu": ("icustays", "chartevents", "d_items"),
}
D_LABITEMS, D_ITEMS = 1622, 4014
"""Rows of the dictionaries of MIMIC-IV 2.2."""


def make_world(draw: Draw) -> dict[str, pl.DataFrame]:
    """Return the tables by name."""
    cohort = make_cohort(draw)
    labs, first_draws = make_labs(draw, cohort)
    return {
        "patients": _patients(draw, cohort),
        "admissions": _admissions(draw, cohort),
        "labevents": labs,
        "prescriptions": make_prescriptions(draw, cohort),
        "d_labitems": lab_dictionary(),
        "icustays": _icustays(draw, cohort),
        "chartevents": make_charting(draw, cohort, first_draws),
        "d_items": item_dictionary(),
    }


def _optional_stamps(minute: Ints) -> pl.Series:
    known = pl.Series(minute >= 0)
    return pl.select(pl.when(known).then(stamps(np.maximum(minute, 0)))).to_series()


def _patients(draw: Draw, cohort: Cohort) -> pl.DataFrame:
    rng = draw.rng("patients")
    groups = words()["admission"]["year_group"]
    return pl.DataFrame(
        {
            "subject_id": cohort.subject,
            "gender": np.where(cohort.male, "M", "F").astype(object),
            "anchor_age": cohort.age,
            "anchor_year": cohort.year,
            "anchor_year_group": [groups[i] for i in rng.integers(0, len(groups), len(cohort.age))],
            "dod": _optional_stamps(cohort.dod).dt.date(),
        },
        schema_overrides={"gender": pl.String},
    )


def _admissions(draw: Draw, cohort: Cohort) -> pl.DataFrame:
    rng = draw.rng("admissions")
    book = words()["admission"]
    n, patient = len(cohort.a_id), cohort.a_patient
    people = len(cohort.male)
    race = rng.choice(book["race"], people, p=book["race_weight"])[patient]
    language = np.where(rng.random(people) < 0.88, "ENGLISH", "?")[patient]
    pick = rng.random(people)
    insurance = np.where(cohort.marks["medicare"], "Medicare", np.where(pick < 0.25, "Medicaid", "Other"))[patient]
    unmarried = np.where(cohort.age < 30, 0.85, 0.3)
    marital = np.select(
        [cohort.marks["widowed"], rng.random(people) < unmarried, rng.random(people) < 0.12],
        ["WIDOWED", "SINGLE", "DIVORCED"],
        "MARRIED",
    )[patient]
    kind = rng.choice(book["type"], n, p=book["type_weight"])
    where = rng.choice(book["from"], n, p=book["from_weight"])
    emergency = np.char.find(kind.astype(str), "EMER") >= 0
    where = np.where(emergency, "EMERGENCY ROOM", where)
    came = where == "EMERGENCY ROOM"
    arrived = np.where(came, cohort.a_start - rng.integers(90, 700, n), -1)
    left = np.where(came, cohort.a_start + rng.integers(5, 90, n), -1)
    to = np.where(cohort.a_dead, "DIED", rng.choice(book["to"], n, p=book["to_weight"]))
    names = np.array([f"P{draw.opaque_id('provider', i, length=5).upper()}" for i in range(60)], dtype=object)
    text = {
        "admission_type": kind,
        "admit_provider_id": names[rng.integers(0, 60, n)],
        "admission_location": where,
        "discharge_location": to,
        "insurance": insurance,
        "language": language,
        "marital_status": marital,
        "race": race,
    }
    return pl.DataFrame(
        {
            "subject_id": cohort.subject[patient],
            "hadm_id": cohort.a_id,
            "admittime": stamps(cohort.a_start),
            "dischtime": stamps(cohort.a_end),
            "deathtime": _optional_stamps(np.where(cohort.a_dead, cohort.a_end, -1)),
            **{name: pl.Series(values.astype(object), dtype=pl.String) for name, values in text.items()},
            "edregtime": _optional_stamps(arrived),
            "edouttime": _optional_stamps(left),
            "hospital_expire_flag": cohort.a_dead.astype(np.int64),
        }
    )


def _icustays(draw: Draw, cohort: Cohort) -> pl.DataFrame:
    rng = draw.rng("icustays")
    units = words()["admission"]["careunit"]
    first = rng.integers(0, len(units), len(cohort.s_id))
    last = np.where(rng.random(len(first)) < 0.08, rng.integers(0, len(units), len(first)), first)
    return pl.DataFrame(
        {
            "subject_id": cohort.subject[cohort.a_patient[cohort.s_adm]],
            "hadm_id": cohort.a_id[cohort.s_adm],
            "stay_id": cohort.s_id,
            "first_careunit": [units[i] for i in first],
            "last_careunit": [units[i] for i in last],
            "intime": stamps(cohort.s_in),
            "outtime": stamps(cohort.s_out),
            "los": np.round((cohort.s_out - cohort.s_in) / 1440, 6),
        }
    )


def lab_dictionary() -> pl.DataFrame:
    """Return d_labitems: the analytes in use, and as many that nobody here was tested for as MIMIC-IV lists."""
    rows = [(item.itemid, item.label, item.fluid, item.category) for item in lab_items()]
    taken = {row[0] for row in rows}
    labels = {(row[1], row[2]) for row in rows}
    book = words()["lab_filler"]
    number = int(book["first"])
    for form in book["forms"]:
        for analyte in book["analytes"]:
            for fluid in book["fluids"]:
                label = ", ".join(part for part in (analyte, form, fluid if fluid != "Blood" else "") if part)
                if len(rows) >= D_LABITEMS or (label, fluid) in labels:
                    continue
                while number in taken:
                    number += 1
                taken.add(number)
                rows.append((number, label, fluid, "Chemistry" if number % 3 else "Hematology"))
    return pl.DataFrame(rows, schema=["itemid", "label", "fluid", "category"], orient="row").sort("itemid")


def item_dictionary() -> pl.DataFrame:
    """Return d_items: what is charted here, and as many items of all kinds as MIMIC-IV lists."""
    rows: list[tuple[Any, ...]] = [
        (i.itemid, i.label, i.abbreviation, "chartevents", i.category, i.unit or None, "Numeric") for i in chart_items()
    ]
    rows += [
        (i.itemid, i.label, i.label, "chartevents", i.category, None, "Text" if not i.scores else "Numeric with tag")
        for i in text_items()
    ]
    taken = {row[0] for row in rows}
    book = words()["item_filler"]
    number = int(book["first"])
    for variant in book["objects_variants"]:
        for thing in book["objects"]:
            for aspect in book["aspects"]:
                if len(rows) >= D_ITEMS:
                    continue
                while number in taken:
                    number += 1
                taken.add(number)
                label = f"{thing}{variant} {aspect}"
                link = book["links"][number % len(book["links"])] if number % 3 == 0 else "chartevents"
                rows.append((number, label, label, link, book["categories"][number % 8], None, "Text"))
    columns = ["itemid", "label", "abbreviation", "linksto", "category", "unitname", "param_type"]
    table = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
    empty = pl.lit(None, dtype=pl.Float64)
    return table.with_columns(lownormalvalue=empty, highnormalvalue=empty).sort("itemid")
