"""The clinical edition: the MIMIC-IV demo under other names with the concept maps, and the same kinds of request."""

from pathlib import Path

import polars as pl

from categories.draw import Draw
from categories.ehr_format_conversion.pinned_etl import require_agreed_gold
from categories.ehr_format_conversion.synthetic import PATIENTS, SUBJECTS, write_task
from categories.mimic.disguise import disguise
from categories.sources.shelf import Shelf

DEMO, MAPS = "mimic_iv_demo", "mimic_code"
HOSP = (
    *(
        "admissions",
        "d_hcpcs",
        "d_icd_diagnoses",
        "d_icd_procedures",
        "d_labitems",
        "diagnoses_icd",
        "drgcodes",
        "emar",
    ),
    *(
        "emar_detail",
        "hcpcsevents",
        "labevents",
        "microbiologyevents",
        "omr",
        "patients",
        "pharmacy",
        "poe",
        "poe_detail",
    ),
    *("prescriptions", "procedures_icd", "provider", "services", "transfers"),
)
ICU = (
    *("caregiver", "chartevents", "d_items", "datetimeevents", "icustays", "ingredientevents", "inputevents"),
    *("outputevents", "procedureevents"),
)
CONCEPTS = (
    *("d_labitems_to_loinc", "inputevents_to_rxnorm", "lab_itemid_to_loinc", "meas_chartevents_main"),
    *("meas_chartevents_value", "numerics-summary", "outputevents_to_loinc", "proc_datetimeevents", "proc_itemid"),
    "waveforms-summary",
)


def prepare(draw: Draw, *, public: Path, gold: Path, workspace: Path, sources: Shelf) -> str:
    """Write the same files as the synthetic edition, from the demo's 31 tables and the ten concept maps.

    The hidden input, on which the submitted configuration is run again, is generated here too. Gold is what the pinned
    ETL makes of both, row for row; it is written in the notation of our own conversion, whose order never changes.

    Raises:
        SourceError: a file cannot be had, or the pinned ETL and our own conversion differ.
    """
    places = {name: f"{folder}/{name}.csv.gz" for folder, names in (("hosp", HOSP), ("icu", ICU)) for name in names}
    paths = sources.files(DEMO, list(places.values()))
    tables = disguise(draw, {name: _read(path) for name, path in zip(places, paths, strict=True)})
    tables = _chosen(draw, tables)
    maps = {f"{name}.csv": _read(path) for name, path in zip(CONCEPTS, _maps(sources), strict=True)}
    files = {places[name]: table for name, table in tables.items()} | maps
    files[SUBJECTS] = tables["patients"].select("subject_id")
    variant = write_task(draw, files, public, gold, workspace)
    require_agreed_gold(public, gold)
    return variant


def _maps(sources: Shelf) -> list[Path]:
    return sources.files(MAPS, [f"{name}.csv" for name in CONCEPTS])


def _read(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, infer_schema=False)


def _chosen(draw: Draw, tables: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Return the rows of as many patients as the scale has; at full scale those of all."""
    people = tables["patients"]["subject_id"]
    chosen = people.gather(draw.rng("patients").permutation(len(people))[: PATIENTS[draw.scale]])
    mine = pl.col("subject_id").is_in(chosen.implode())
    return {name: table.filter(mine) if "subject_id" in table.columns else table for name, table in tables.items()}
