"""The synthetic edition: generated MIMIC-IV-shaped tables, a change request, and what a right conversion gives."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from categories.draw import Draw
from categories.ehr_format_conversion.bedside import charting
from categories.ehr_format_conversion.change import Change, draw_change
from categories.ehr_format_conversion.dictionaries import concept_maps, dictionaries
from categories.ehr_format_conversion.etl import Cohort, Events, convert
from categories.ehr_format_conversion.files import HERE, document, write_csv
from categories.ehr_format_conversion.hospital import draw_hospital
from categories.ehr_format_conversion.measured import coded, laboratory, outpatient
from categories.ehr_format_conversion.orders import medication
from categories.ehr_format_conversion.pinned_etl import is_checked, require_agreed_gold
from categories.ehr_format_conversion.request import request

PACKAGE = HERE / "mimic_iv_meds-0.0.7.tar.gz"
PACKAGE_SHA256 = "7dd072774021856a5661f7bf2c4af2777d03a32315c74b8234b0930f99b173c7"
SOURCE = "src/MIMIC_IV_MEDS"
KEPT = (f"{SOURCE}/", "LICENSE", "README.md", "pyproject.toml")
"""Of the published source distribution: what a developer needs (no download tests, no CI)."""
HIDDEN_PATIENTS = 8
"""The published ETL cannot split fewer than six subjects into its three splits."""
SUBJECTS = "demo_subject_id.csv"
PATIENTS = {"full": 100, "small": 16}
DATASET = {
    "dataset_name": "MIMIC-IV",
    "dataset_version": "3.1",
    "etl_name": "MEDS_transforms",
    "etl_version": "0.2.4",
    "meds_version": "0.3.3",
}


def prepare(draw: Draw, *, public: Path, gold: Path, workspace: Path) -> str:
    """Write the raw input and the request, the package's source, and the gold of the cohort and of the hidden input.

    At full scale gold is what the pinned ETL makes of both as well, row for row. Small scale (CI, demo) does without:
    no second Python environment is to be made for it.

    Raises:
        SourceError: at full scale, the pinned ETL is not there, or it and our own conversion differ.
    """
    variant = write_task(draw, generated(draw, "cohort", PATIENTS[draw.scale]), public, gold, workspace)
    if is_checked(draw.scale, "synthetic"):
        require_agreed_gold(public, gold)
    return variant


def write_task(draw: Draw, files: dict[str, pl.DataFrame], public: Path, gold: Path, workspace: Path) -> str:
    """Write a task over the given tables (file -> table), wherever they come from; the hidden input is generated."""
    default: Events = document("events.json")
    change = draw_change(draw.rng("change"), default)
    (public / "change_request.md").write_text(request(change.wanted, draw.rng("wording")), encoding="utf-8")
    raw = write_raw(files, public / "raw_input")
    unseen = write_raw(generated(draw, "hidden", HIDDEN_PATIENTS), gold / "hidden" / "raw_input")
    _write_cohort(convert(raw, change.events), gold / "expected")
    _write_cohort(convert(unseen, change.events), gold / "hidden" / "custom")
    _write_cohort(convert(unseen, default), gold / "hidden" / "default")
    _unpack(workspace / "MIMIC_IV_MEDS")
    _unpack(gold / "package")
    (gold / "custom_event_configs.yaml").write_text(_yaml(change.events), encoding="utf-8")
    facts = {"first_parts": change.first_parts, "dataset": DATASET}
    made = {**DATASET, "dataset_version": f"{DATASET['dataset_version']}:0.0.7", "created_at": "2200-01-01T00:00:00"}
    (gold / "dataset.json").write_text(json.dumps(made), encoding="utf-8")
    (gold / "facts.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    return _variant(change)


def _variant(change: Change) -> str:
    return hashlib.sha256(json.dumps(change.events, sort_keys=True).encode()).hexdigest()[:8]


def generated(draw: Draw, which: str, patients: int) -> dict[str, pl.DataFrame]:
    """Return generated tables, by the name of their file."""

    def rngs(*label: str) -> np.random.Generator:
        return draw.rng(which, *label)

    hospital = draw_hospital(rngs, patients)
    tables = {
        **hospital.tables,
        **laboratory(rngs, hospital),
        **outpatient(rngs, hospital),
        **coded(rngs, hospital),
        **medication(rngs, hospital),
        **charting(rngs, hospital),
        **dictionaries(),
    }
    files = {f"{name}.csv.gz": frame for name, frame in tables.items()}
    files |= {f"{name}.csv": frame for name, frame in concept_maps().items()}
    return {**files, SUBJECTS: tables["hosp/patients"].select("subject_id")}


def write_raw(files: dict[str, pl.DataFrame], folder: Path) -> dict[str, pl.DataFrame]:
    """Write the 45 files of a raw input and return its tables as a reader finds them: all cells text or null."""
    for name, frame in files.items():
        write_csv(frame, folder / name)
    for name in ("LICENSE.txt", "README.txt"):
        (folder / name).write_bytes((HERE / "root" / name).read_bytes())
    sums = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in sorted(files)]
    (folder / "SHA256SUMS.txt").write_text("".join(sums), encoding="utf-8")
    return {name.partition(".")[0]: pl.read_csv(folder / name, infer_schema=False) for name in files}


def _write_cohort(cohort: Cohort, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in ("events", "codes", "splits"):
        table = getattr(cohort, name).to_arrow(compat_level=pl.CompatLevel.oldest())
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd", store_schema=False)


def _unpack(folder: Path) -> None:
    """Unpack the part of the published source distribution that is worked on."""
    data = PACKAGE.read_bytes()
    if hashlib.sha256(data).hexdigest() != PACKAGE_SHA256:
        raise ValueError(f"{PACKAGE} is not the published file: its SHA-256 is not {PACKAGE_SHA256}")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive.getmembers():
            name = member.name.partition("/")[2]
            content = archive.extractfile(member) if name.startswith(KEPT) else None
            if content is not None:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content.read())


def _yaml(events: Events) -> str:
    """Return the configuration as YAML: scalars and short lists in JSON's notation, which YAML contains."""
    lines = [f"subject_id_col: {events['subject_id_col']}"]
    for table, named in events.items():
        if table == "subject_id_col":
            continue
        lines.append(f"\n{table}:")
        for name, event in named.items():
            lines.append(f"  {name}:")
            lines += [f"    {key}: {json.dumps(value)}" for key, value in event.items()]
    return "\n".join(lines) + "\n"
