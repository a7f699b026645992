"""Conversions that look right and are not, and attempts to change what judges them. Each must earn 0."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
SUBMISSION = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
SOURCE = Path(os.environ.get("HAB_SOURCE", "/workspace/MIMIC_IV_MEDS/src/MIMIC_IV_MEDS"))
COHORT = SUBMISSION / "MEDS_cohort"
PACKAGE = COHORT / "package" / "MIMIC_IV_MEDS"
EVENT, CODE = r"`(?P<event>(?:hosp|icu)/\w+\.\w+)`", r"`(?P<prefix>[A-Z_]{3,})(?://<value>)?`"
FIELD = r"`(?P<field>insurance|language|marital_status|race)`"
PUBLISHED = {"hosp/labevents.lab": "HOSP_LAB", "icu/chartevents.event": "ICU_CHARTEVENT"}
"""Prefixes of the published task, where the request's own are not found beside an event's name."""
PROBES = {
    "default_renamed": "default output, its codes renamed by text replacement; the configuration renames alike",
    "empty_cohort": "right files, right columns, no rows",
    "input_copied": "the raw tables handed in as parquet",
    "decorative_configuration": "rows moved by hand after the default run, beside a configuration that looks changed",
    "shuffled_subjects": "the renamed output with its rows given to other subjects: all counts per code right",
    "package_patched": "the request made in the package's default configuration, which the installed command then uses",
    "sitecustomize_planted": "files that Python would import by itself, and a verdict of its own, in the submission",
}


def request() -> str:
    return (DATA / "change_request.md").read_text()


def beside(name: str) -> dict[str, str]:
    """Return the prefix that stands next to each name in the request, on whichever side."""
    found: dict[str, str] = {}
    for pattern in (rf"{name}[^`\n]*{CODE}", rf"{CODE}[^`\n]*{name}"):
        for hit in re.finditer(pattern, request()):
            key, prefix = (hit.groupdict()[one] for one in (*({"event", "field"} & {*hit.groupdict()}), "prefix"))
            found.setdefault(key, prefix)
    return found


def prefixes() -> dict[str, str]:
    return PUBLISHED | beside(EVENT)


def fields() -> dict[str, str]:
    names = ("insurance", "language", "marital_status", "race")
    return {name: name.upper() for name in names} | beside(FIELD)


def run_default() -> Path:
    """Run the package as it is; returns the cohort."""
    out = Path(tempfile.mkdtemp())
    words = [f"root_output_dir={out}", f"raw_input_dir={DATA / 'raw_input'}", "do_download=False"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(SOURCE.parent)}
    subprocess.run([sys.executable, "-m", "MIMIC_IV_MEDS", *words], check=True, env=env, stdout=sys.stderr)
    return out / "MEDS_cohort"


def hand_in(cohort: Path) -> None:
    """Submit a cohort and the package as it stands."""
    for name in ("data", "metadata"):
        shutil.copytree(cohort / name, COHORT / name, ignore=shutil.ignore_patterns(".*"))
    hand_in_package()


def hand_in_package() -> None:
    shutil.copytree(SOURCE, PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))


def renamed_configuration() -> str:
    """Return the default configuration with the prefixes asked for and nothing else, by text replacement."""
    text = (SOURCE / "configs" / "event_configs.yaml").read_text()
    for name, prefix in prefixes().items():
        table, _, event = name.partition(".")
        pattern = rf"({table}:\n(?:.*\n)*?  {event}:\n    code:\n      - )\w+"
        text = re.sub(pattern, rf"\g<1>{prefix}", text)
    return text


def rename_rows(cohort: Path, *, split: bool) -> None:
    """Rename codes in the output; with ``split``, also make the new events from the admission columns."""
    for path in (cohort / "data").rglob("*.parquet"):
        frame = pl.read_parquet(path)
        old = {"hosp/omr": None, "hosp/labevents": "LAB", "icu/chartevents": "LAB"}
        code = pl.col("code")
        for name, prefix in prefixes().items():
            table = name.partition(".")[0]
            if old.get(table):
                charted = pl.col("icustay_id").is_not_null()
                mine = charted if table == "icu/chartevents" else ~charted
                hit = mine & code.str.starts_with("LAB//")
                code = pl.when(hit).then(pl.lit(prefix) + code.str.slice(3)).otherwise(code)
        frame = frame.with_columns(code=code)
        if split:
            extra = [
                frame.filter(pl.col("code").str.starts_with("HOSPITAL_ADMISSION")).select(
                    "subject_id", "time", "hadm_id", code=pl.lit(prefix + "//") + pl.col(field).fill_null("UNK")
                )
                for field, prefix in fields().items()
            ]
            frame = pl.concat([frame, *extra], how="diagonal").sort("subject_id", "time")
        frame.write_parquet(path)


def default_renamed() -> None:
    cohort = run_default()
    rename_rows(cohort, split=False)
    (SOURCE / "configs" / "custom_event_configs.yaml").write_text(renamed_configuration())
    hand_in(cohort)


def decorative_configuration() -> None:
    cohort = run_default()
    rename_rows(cohort, split=True)
    words = "".join(f"# {line}\n" for line in request().splitlines())
    (SOURCE / "configs" / "custom_event_configs.yaml").write_text(words + renamed_configuration())
    hand_in(cohort)


def shuffled_subjects() -> None:
    cohort = run_default()
    rename_rows(cohort, split=True)
    for path in (cohort / "data").rglob("*.parquet"):
        frame = pl.read_parquet(path)
        subjects = frame["subject_id"].unique().sort().to_list()
        others = subjects[1:] + subjects[:1]
        frame.with_columns(pl.col("subject_id").replace(dict(zip(subjects, others, strict=True)))).write_parquet(path)
    (SOURCE / "configs" / "custom_event_configs.yaml").write_text(renamed_configuration())
    hand_in(cohort)


def empty_cohort() -> None:
    kinds: dict[str, Any] = {
        "subject_id": pl.Int64,
        "time": pl.Datetime("us"),
        "code": pl.String,
        "numeric_value": pl.Float32,
    }
    for split in ("train", "tuning", "held_out"):
        (COHORT / "data" / split).mkdir(parents=True)
        pl.DataFrame(schema=kinds).write_parquet(COHORT / "data" / split / "0.parquet")
    write_metadata(pl.DataFrame(schema={"subject_id": pl.Int64, "split": pl.String}))
    hand_in_package()


def write_metadata(splits: "pl.DataFrame") -> None:
    folder = COHORT / "metadata"
    folder.mkdir(parents=True)
    splits.write_parquet(folder / "subject_splits.parquet")
    codes: dict[str, Any] = {"code": pl.String, "description": pl.String, "parent_codes": pl.List(pl.String)}
    pl.DataFrame(schema=codes).write_parquet(folder / "codes.parquet")
    told = {"dataset_name": "MIMIC-IV", "dataset_version": "3.1:0.0.7", "etl_name": "MEDS_transforms"}
    (folder / "dataset.json").write_text(json.dumps({**told, "etl_version": "0.2.4", "meds_version": "0.3.3"}))


def input_copied() -> None:
    (COHORT / "data").mkdir(parents=True)
    stays = pl.read_csv(DATA / "raw_input" / "hosp" / "admissions.csv.gz", infer_schema=False)
    numbers = pl.col("subject_id").cast(pl.Int64)
    time = pl.col("admittime").str.to_datetime(time_unit="us")
    none = pl.lit(None, dtype=pl.Float32)
    rows = stays.with_columns(numbers, time=time, code=pl.lit("hosp/admissions"), numeric_value=none)
    rows.write_parquet(COHORT / "data" / "0.parquet")
    write_metadata(stays.select(numbers.unique()).with_columns(split=pl.lit("train")))
    hand_in_package()


def package_patched() -> None:
    """Change the default in place: workspace source, and the agent's own environment before it."""
    (SOURCE / "configs" / "event_configs.yaml").write_text(renamed_configuration())
    site = Path.home() / "env" / "lib" / "python3.11" / "site-packages"
    if site.is_dir():
        shutil.copytree(SOURCE, site / "MIMIC_IV_MEDS", dirs_exist_ok=True)
    cohort = run_default()
    shutil.copy(SOURCE / "configs" / "event_configs.yaml", SOURCE / "configs" / "custom_event_configs.yaml")
    hand_in(cohort)


def sitecustomize_planted() -> None:
    """Leave code wherever an interpreter might pick it up, and a made-up verdict."""
    empty_cohort()
    verdict = json.dumps({"schema_version": 1, "reward": 1, "reason": "passed", "headline": 1.0, "metrics": {}})
    code = f"import sys\nprint({verdict!r})\nsys.stdout.flush()\nimport os\nos._exit(0)\n"
    site = Path.home() / "env" / "lib" / "python3.11" / "site-packages"
    places = [COHORT, COHORT / "package", PACKAGE, PACKAGE / "configs", *([site] if site.is_dir() else [])]
    for folder in places:
        for name in ("sitecustomize.py", "usercustomize.py", "yaml.py", "polars.py"):
            (folder / name).write_text(code)
    (COHORT / "verdict.json").write_text(verdict)
    config = "!!python/object/apply:os.system ['touch /tmp/was_here']\n"
    (PACKAGE / "configs" / "custom_event_configs.yaml").write_text(config)


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        listed = [
            {"name": name, "expects": "zero", "bound": None, "of": None, "why": why} for name, why in PROBES.items()
        ]
        print(json.dumps(listed))  # noqa: T201
    else:
        import polars as pl  # only here: the list is asked for where it is not installed

        globals()[sys.argv[1]]()
