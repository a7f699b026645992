"""Dictionaries, staff lists and the concept maps of mimic-code: tables about codes, not about patients."""

import hashlib

import polars as pl

from categories.ehr_format_conversion.bedside import CAREGIVERS
from categories.ehr_format_conversion.files import document, vocabulary
from categories.ehr_format_conversion.hospital import PROVIDERS

ITEM = "itemid (omop_source_code)"


def dictionaries() -> dict[str, pl.DataFrame]:
    """Return the ``d_*`` tables, the providers and the caregivers."""
    labs = vocabulary("labs")
    return {
        "hosp/d_labitems": pl.DataFrame(
            [{key: lab[key] for key in ("itemid", "label", "fluid", "category")} for lab in labs]
        ),
        "hosp/d_icd_diagnoses": pl.DataFrame(vocabulary("diagnoses")),
        "hosp/d_icd_procedures": pl.DataFrame(vocabulary("procedures")),
        "hosp/d_hcpcs": _texts(vocabulary("hcpcs"), ["code", "category", "long_description", "short_description"]),
        "hosp/provider": pl.DataFrame({"provider_id": PROVIDERS}),
        "icu/caregiver": pl.DataFrame({"caregiver_id": [1000 + number * 17 for number in range(CAREGIVERS)]}),
        "icu/d_items": _items(),
    }


def _texts(rows: list[dict[str, str]], columns: list[str]) -> pl.DataFrame:
    return pl.DataFrame({name: pl.Series([row.get(name) or None for row in rows], dtype=pl.String) for name in columns})


def _items() -> pl.DataFrame:
    sources = {"chartevents": "charted", "inputevents": "intakes", "outputevents": "outputs"}
    rows = [{"linksto": links, **row} for links, name in sources.items() for row in vocabulary(name)]
    rows += vocabulary("bedside")
    for row in rows:
        row["abbreviation"] = row.get("abbreviation") or row["label"]
        row["unitname"] = {"outputevents": "mL", "inputevents": row.get("amount_unit", "")}.get(
            row["linksto"], row.get("unit", "")
        )
        numeric = row.get("mean") or row["linksto"] in ("inputevents", "outputevents")
        row["param_type"] = "Numeric" if numeric else "Text"
    names = document("vocabulary/columns.json")["d_items"]
    return _texts(rows, names).with_columns(pl.col("itemid").cast(pl.Int64)).sort("itemid")


def concept_maps() -> dict[str, pl.DataFrame]:
    """Return the ten concept maps. Some items are not mapped, some are mapped in two files, as in the original."""
    labs = [
        _mapped(row, "loinc", "LOINC", {"valueuom": row["unit"], "fluid": row["fluid"]}) for row in vocabulary("labs")
    ]
    labs += [
        _mapped(row, "loinc", "LOINC", {"valueuom": "mg/dl", "fluid": row["fluid"]})
        for row in vocabulary("labs")
        if row["itemid"] in ("50912", "50931")
    ]
    charted = [_mapped({**row, "loinc": "", "loinc_name": ""}, "loinc", "LOINC") for row in vocabulary("charted")]
    intakes = [_mapped(row, "rxnorm", "RxNorm") for row in vocabulary("intakes")]
    outputs = [_mapped(row, "loinc", "LOINC", {"unitname": "mL"}) for row in vocabulary("outputs")]
    bedside = vocabulary("bedside")
    procedures = [_mapped(row, "snomed", "SNOMED") for row in bedside if row["linksto"] == "procedureevents"]
    dated = [_mapped(row, "snomed", "SNOMED") for row in bedside if row["linksto"] == "datetimeevents"]
    dated += [row for row in procedures if row["label"] in ("Arterial Line", "Multi Lumen")]
    text = [row for row, item in zip(charted, vocabulary("charted"), strict=True) if item["texts"]]
    number = [row for row, item in zip(charted, vocabulary("charted"), strict=True) if item["mean"]]
    frames = {
        "d_labitems_to_loinc": labs,
        "lab_itemid_to_loinc": [row for row in labs if row["omop_concept_code"]],
        "inputevents_to_rxnorm": intakes,
        "meas_chartevents_main": number,
        "meas_chartevents_value": text,
        "numerics-summary": [{"label": row["label"], "count": row["count"]} for row in number],
        "outputevents_to_loinc": outputs,
        "proc_datetimeevents": dated,
        "proc_itemid": procedures,
        "waveforms-summary": [{"label": name, "count": count} for name, count in WAVEFORMS.items()],
    }
    return {name: _texts(rows, list(rows[0])) for name, rows in frames.items()}


WAVEFORMS = {"II": "9514", "Resp": "8803", "Pleth": "8790", "V": "7421", "ABP": "3105", "CVP": "911"}


def _mapped(row: dict[str, str], key: str, vocabulary_id: str, more: dict[str, str] | None = None) -> dict[str, str]:
    """Return one line of a concept map; the OMOP concept id is an arbitrary number, the code is a real one."""
    code = row[key]
    number = int(hashlib.sha256(f"{vocabulary_id}/{code}".encode()).hexdigest()[:7], 16)
    return {
        ITEM: row["itemid"],
        "label": row["label"],
        **(more or {}),
        "count": str(number % 90_000 + 200),
        "omop_concept_id": str(number % 3_000_000 + 3_000_000) if code else "",
        "omop_concept_name": row[f"{key}_name"],
        "omop_domain_id": ("Measurement" if vocabulary_id == "LOINC" else "Procedure") if code else "",
        "omop_vocabulary_id": vocabulary_id if code else "",
        "omop_standard_concept": "S" if code else "",
        "omop_concept_code": code,
    }
