"""The generated tables hang together, and the gold made of them is a MEDS cohort."""

import hashlib
import io
import tarfile
from pathlib import Path

import meds_env
import polars as pl
import pytest
import yaml

from categories.catalog import find_task
from categories.ehr_format_conversion import synthetic
from categories.ehr_format_conversion.files import document, vocabulary

TASK = find_task("ehr_format_conversion/mimic_iv_to_meds")
HOSP = "admissions d_hcpcs d_icd_diagnoses d_icd_procedures d_labitems diagnoses_icd drgcodes emar emar_detail hcpcsevents labevents microbiologyevents omr patients pharmacy poe poe_detail prescriptions procedures_icd provider services transfers"
ICU = "caregiver chartevents d_items datetimeevents icustays ingredientevents inputevents outputevents procedureevents"
ROOT = "LICENSE.txt README.txt SHA256SUMS.txt demo_subject_id.csv"
MAPS = "d_labitems_to_loinc inputevents_to_rxnorm lab_itemid_to_loinc meas_chartevents_main meas_chartevents_value numerics-summary outputevents_to_loinc proc_datetimeevents proc_itemid waveforms-summary"


@pytest.fixture(scope="module")
def staged_small(stage):
    return stage(TASK.id, "tables")


@pytest.fixture(scope="module")
def table(staged_small):
    cache: dict[str, pl.DataFrame] = {}

    def read(name: str) -> pl.DataFrame:
        if name not in cache:
            cache[name] = pl.read_csv(staged_small.public / "raw_input" / f"{name}.csv.gz", infer_schema_length=None)
        return cache[name]

    return read


def test_the_45_files_of_the_published_input_and_one_request(staged_small) -> None:
    wanted = {f"hosp/{name}.csv.gz" for name in HOSP.split()} | {f"icu/{name}.csv.gz" for name in ICU.split()}
    wanted |= set(ROOT.split()) | {f"{name}.csv" for name in MAPS.split()}
    raw = staged_small.public / "raw_input"
    found = {path.relative_to(raw).as_posix() for path in raw.rglob("*") if path.is_file()}
    assert len(wanted) == 45
    assert found == wanted
    assert {path.name for path in staged_small.public.iterdir()} == {"raw_input", "change_request.md"}
    sums = [line.split("  ") for line in (raw / "SHA256SUMS.txt").read_text().splitlines()]
    assert all(hashlib.sha256((raw / name).read_bytes()).hexdigest() == digest for digest, name in sums)
    assert len(sums) == 42


def test_the_source_is_the_published_one(staged_small) -> None:
    data = synthetic.PACKAGE.read_bytes()
    (listed,) = TASK.category.sources[0].files.values()
    assert hashlib.sha256(data).hexdigest() == listed == synthetic.PACKAGE_SHA256
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = {m.name.partition("/")[2]: archive.extractfile(m).read() for m in archive.getmembers() if m.isfile()}
    folder = staged_small.workspace / "MIMIC_IV_MEDS"
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found.items() <= members.items()
    assert {name for name in members if name.startswith("src/MIMIC_IV_MEDS/")} <= set(found)
    default = yaml.safe_load(members["src/MIMIC_IV_MEDS/configs/event_configs.yaml"])
    assert document("events.json") == default


def test_tables_name_the_same_people_and_stays(table) -> None:
    people, stays, units = table("hosp/patients"), table("hosp/admissions"), table("icu/icustays")
    for name in (
        "labevents",
        "omr",
        "emar",
        "pharmacy",
        "transfers",
        "diagnoses_icd",
        "drgcodes",
        "microbiologyevents",
    ):
        assert set(table(f"hosp/{name}")["subject_id"]) <= set(people["subject_id"]), name
    pairs = set(stays.select("subject_id", "hadm_id").rows())
    for name in ("hosp/labevents", "hosp/pharmacy", "hosp/emar", "icu/icustays", "icu/inputevents"):
        assert set(table(name).drop_nulls("hadm_id").select("subject_id", "hadm_id").rows()) <= pairs, name
    for name in ("chartevents", "inputevents", "outputevents", "procedureevents", "datetimeevents", "ingredientevents"):
        assert set(table(f"icu/{name}")["stay_id"]) <= set(units["stay_id"]), name
    for name in ("hosp/emar", "hosp/prescriptions"):
        assert set(table(name)["poe_id"].drop_nulls()) <= set(table("hosp/poe")["poe_id"]), name
    for name in HOSP.split():
        assert len(table(f"hosp/{name}")), name
    for name in ICU.split():
        assert len(table(f"icu/{name}")), name


def test_time_runs_forward(table) -> None:
    stays = table("hosp/admissions").sort("subject_id", "admittime")
    assert (stays["admittime"] < stays["dischtime"]).all()
    after = stays.with_columns(before=pl.col("dischtime").shift(1).over("subject_id")).drop_nulls("before")
    assert (after["before"] < after["admittime"]).all()
    died = stays.drop_nulls("deathtime")
    assert len(died)
    assert (died["deathtime"] == died["dischtime"]).all()
    assert died["subject_id"].is_unique().all()
    last = stays.group_by("subject_id").agg(pl.col("dischtime").max())
    dead = table("hosp/patients").drop_nulls("dod").join(last, on="subject_id")
    assert (dead["dod"] >= dead["dischtime"].str.slice(0, 10)).all()
    units = table("icu/icustays").join(stays, on=["subject_id", "hadm_id"])
    assert ((units["intime"] >= units["admittime"]) & (units["outtime"] <= units["dischtime"])).all()
    infused = table("icu/inputevents").join(units, on="stay_id")
    assert ((infused["starttime"] >= infused["intime"]) & (infused["starttime"] <= infused["outtime"])).all()
    drawn = table("hosp/labevents").drop_nulls("hadm_id").join(stays, on="hadm_id")
    assert ((drawn["charttime"] >= drawn["admittime"]) & (drawn["charttime"] <= drawn["dischtime"])).all()


def test_values_are_those_of_a_hospital(table) -> None:
    people, charted, labs = table("hosp/patients"), table("icu/chartevents"), table("hosp/labevents")
    assert people["anchor_age"].is_between(18, 91).all()
    assert not (people["anchor_age"] == 90).any()
    on_the_hour = charted["charttime"].str.ends_with(":00:00").mean()
    assert 0.65 < on_the_hour < 0.85
    bands = {220045: (20, 190), 220277: (80, 100), 223762: (33, 42), 220645: (110, 165)}
    for item, (low, high) in bands.items():
        assert charted.filter(itemid=item)["valuenum"].is_between(low, high).all(), item
    bands = {50983: (110, 165), 50971: (2, 7), 50820: (7, 7.8), 51222: (1, 19)}
    for item, (low, high) in bands.items():
        assert labs.filter(itemid=item)["valuenum"].is_between(low, high).all(), item
    creatinine = labs.filter(itemid=50912)["valuenum"]
    assert creatinine.min() >= 0.1
    assert charted.filter(itemid=220277)["valuenum"].eq(100).mean() > 0.08
    assert 0 < labs["hadm_id"].null_count() / len(labs) < 0.25
    assert labs["valueuom"].null_count()
    assert labs["storetime"].null_count()
    assert labs.drop("labevent_id").is_duplicated().any(), "the same result stated twice, as interfaces do"


def test_every_code_is_in_its_dictionary(table) -> None:
    assert set(table("hosp/labevents")["itemid"]) <= set(table("hosp/d_labitems")["itemid"])
    for name in ("chartevents", "inputevents", "outputevents", "procedureevents", "datetimeevents"):
        assert set(table(f"icu/{name}")["itemid"]) <= set(table("icu/d_items")["itemid"]), name
    for name in ("diagnoses", "procedures"):
        rows = {(row["icd_code"], row["icd_version"]) for row in vocabulary(name)}
        used = table(f"hosp/{name}_icd").select("icd_code", pl.col("icd_version").cast(pl.String)).rows()
        assert set(used) <= rows


def test_what_makes_a_conversion_go_wrong_is_there(staged_small, table) -> None:
    """Nulls in moved fields, ICD codes that read like numbers, dates without times, numbers repeated as text."""
    stays = table("hosp/admissions")
    assert stays["marital_status"].null_count()
    assert stays["edregtime"].null_count()
    assert (table("hosp/pharmacy")["stoptime"].drop_nulls().str.len_chars() == 10).any()
    labs = table("hosp/labevents")
    assert labs.filter(pl.col("value").cast(pl.Float64, strict=False).is_null() & pl.col("value").is_not_null()).height
    events = pl.read_parquet(staged_small.gold / "expected" / "events.parquet")
    assert events["time"].null_count() == len(table("hosp/patients")), "sex is static"
    assert events["code"].str.contains("UNK").any()
    assert (events["code"] == "MEDS_DEATH").any()


def test_gold_is_a_meds_cohort(staged_small) -> None:
    events = pl.read_parquet(staged_small.gold / "expected" / "events.parquet")
    schema = dict(events.schema)
    assert schema["subject_id"] == pl.Int64
    assert schema["time"] == pl.Datetime("us")
    assert schema["code"] == pl.String
    assert schema["numeric_value"] == pl.Float32
    assert events["subject_id"].null_count() == events["code"].null_count() == 0
    codes = pl.read_parquet(staged_small.gold / "expected" / "codes.parquet")
    assert codes["code"].is_unique().all()
    assert set(codes["code"]) <= set(events["code"])
    splits = pl.read_parquet(staged_small.gold / "expected" / "splits.parquet")
    assert set(splits["subject_id"]) == set(events["subject_id"])
    assert set(splits["split"]) == {"train", "tuning", "held_out"}


def test_hidden_patients_are_others(staged_small) -> None:
    seen = pl.read_parquet(staged_small.gold / "expected" / "events.parquet")["subject_id"].unique()
    hidden = pl.read_parquet(staged_small.gold / "hidden" / "custom" / "events.parquet")["subject_id"].unique()
    assert len(hidden) == synthetic.HIDDEN_PATIENTS
    assert not set(seen) & set(hidden)


def test_compressed_files_tell_no_time(staged_small) -> None:
    for path in (staged_small.public / "raw_input").rglob("*.gz"):
        head = path.read_bytes()[:10]
        assert head[4:8] == b"\0\0\0\0", "time stamp"
        assert head[3] == 0, "file name"


@pytest.mark.full
def test_full_scale_is_as_large_as_stated(stage) -> None:
    meds_env.ensure()
    draw = stage(TASK.id, "0", "full")
    events = pl.read_parquet(draw.gold / "expected" / "events.parquet")
    assert events["subject_id"].n_unique() == 100
    assert 250_000 < len(events) < 450_000
    assert draw.peak_memory_mb < 1500


def test_staged_folders_hold_no_gold(staged_small) -> None:
    public = {path.name for root in (staged_small.public, staged_small.workspace) for path in Path(root).rglob("*")}
    assert "custom_event_configs.yaml" not in public
    assert not [name for name in public if name.endswith(".parquet")]
