"""Judges a format conversion: the cohort against the reference, the configuration by a run on unseen patients."""

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from verifiers_hidden.ehr_format_conversion import compare, configuration, pipeline
from verifiers_hidden.ehr_format_conversion.cohort import MEDS, Submitted, read_cohort, submitted_work
from verifiers_hidden.kit import GoldError, Reason, Refused, Verdict, gold_json

COHORT = "MEDS_cohort"
PACKAGE = "package/MIMIC_IV_MEDS"
PRISTINE = "package/src/MIMIC_IV_MEDS"
SHARDS = ("held_out/0", "train/0", "tuning/0")
FIXED = (
    "meds_schema",
    "other_codes",
    "code_metadata",
    "dataset_metadata",
    "subject_splits",
    "default_configuration",
    "package_wiring",
    "custom_configuration",
    "custom_run_events",
    "custom_run_codes",
)
"""Checks of every instance; the changed codes add one each (``codes:INSURANCE``)."""


def judge(submission: Path, gold: Path, rule: dict[str, float]) -> Verdict:
    """Judge cohort, package and configuration; a failed check is named with what was found."""
    facts = gold_json(gold / "facts.json")
    expected = _expected(gold / "expected")
    configuration.check_pristine(gold / PRISTINE)
    folder = _folder(submission / COHORT)
    cohort = read_cohort(folder, 2 * len(expected["events"]) + 10_000)
    _check_verifier(gold)
    checks = dict.fromkeys(_names(facts), "")
    with submitted_work():
        _compare_cohort(checks, cohort, expected, facts)
    custom = _check_package(checks, folder / PACKAGE, gold)
    _compare_run(checks, custom, gold)
    failed = {name: message for name, message in checks.items() if message}
    passed = len(failed) <= rule.get("checks_failed", 0)
    return Verdict(
        reward=int(passed),
        reason=Reason.PASSED if passed else Reason.CHECK_FAILED,
        headline=1 - len(failed) / len(checks),
        metrics={
            "checks_passed": len(checks) - len(failed),
            "checks_total": len(checks),
            "rows": len(cohort.events),
            "rows_expected": len(expected["events"]),
            "published_reward": float(_published(checks, cohort, custom, gold)),
        },
        message="" if passed else f"failed: {', '.join(failed)}",
        details={"checks": {name: message or "passed" for name, message in checks.items()}},
    )


def _folder(path: Path) -> Path:
    if path.is_symlink():
        raise Refused(Reason.SYMLINK, f"{path.name} is a symbolic link")
    if not path.exists():
        raise Refused(Reason.MISSING_SUBMISSION, f"{path.name}/ was not submitted")
    if not path.is_dir():
        raise Refused(Reason.NOT_REGULAR_FILE, f"{path.name} is no folder")
    return path


def missing(gold: Path) -> tuple[float | None, dict[str, float]]:
    """Return headline and metrics of a submission that cannot be read."""
    return 0.0, {"checks_passed": 0, "checks_total": len(_names(gold_json(gold / "facts.json")))}


def perfect(gold: Path, out: Path) -> None:
    """Write the cohort, the package as published and the configuration that was asked for."""
    expected = _gold_frames(gold / "expected")
    folder = out / COHORT
    events = expected["events"].join(expected["splits"], on="subject_id", how="left")
    for shard in SHARDS:
        rows = events.filter(pl.col("split") == shard.partition("/")[0]).drop("split").sort("subject_id", "time")
        _write(rows, folder / "data" / f"{shard}.parquet")
    _write(expected["codes"], folder / "metadata" / "codes.parquet")
    _write(expected["splits"], folder / "metadata" / "subject_splits.parquet")
    (folder / "metadata" / "dataset.json").write_text(
        (gold / "dataset.json").read_text(encoding="utf-8"), encoding="utf-8"
    )
    shutil.copytree(gold / PRISTINE, folder / PACKAGE)
    shutil.copyfile(gold / "custom_event_configs.yaml", folder / PACKAGE / configuration.CUSTOM)


def _write(frame: pl.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = frame.to_arrow()
    kinds = {pa.large_string(): pa.string(), pa.large_list(pa.large_string()): pa.list_(pa.string())}
    fields = [(field.name, MEDS.get(field.name, kinds.get(field.type, field.type))) for field in table.schema]
    table = table.cast(pa.schema(fields))
    pq.write_table(table, path)


def _names(facts: dict[str, Any]) -> list[str]:
    return [*(f"codes:{part}" for part in facts["first_parts"]), *FIXED]


def _expected(folder: Path) -> dict[str, pl.DataFrame]:
    """Return gold in the form in which it is compared."""
    frames = _gold_frames(folder)
    try:
        return {
            "events": compare.canonical(frames["events"]),
            "codes": compare.as_texts(frames["codes"]),
            "splits": compare.canonical_splits(frames["splits"]),
        }
    except (KeyError, pl.exceptions.PolarsError) as error:
        raise GoldError(f"gold {folder.name}: {error}") from error


def _gold_frames(folder: Path) -> dict[str, pl.DataFrame]:
    try:
        return {name: pl.read_parquet(folder / f"{name}.parquet") for name in ("events", "codes", "splits")}
    except (OSError, pl.exceptions.PolarsError) as error:
        raise GoldError(f"gold {folder.name}: {error}") from error


def _check_verifier(gold: Path) -> None:
    """Run the package's own default configuration: where it does not give the gold, this verifier is broken."""
    config = configuration.gold_config(gold / PRISTINE / configuration.DEFAULT)
    outcome = pipeline.run(configuration.plain(config), gold / "hidden" / "raw_input")
    expected = _expected(gold / "hidden" / "default")
    if outcome.cohort is None:
        raise GoldError(f"the pinned ETL failed on its own configuration: {outcome.message}")
    if compare.differing(expected["events"], outcome.cohort.events) or _codes_differ(expected, outcome.cohort):
        raise GoldError("the pinned ETL and the gold disagree on the default configuration")


def _compare_cohort(
    checks: dict[str, str], cohort: Submitted, expected: dict[str, pl.DataFrame], facts: dict[str, Any]
) -> None:
    checks["meds_schema"] = "; ".join(cohort.faults)[:500]
    for first, (lost, extra) in compare.differing(expected["events"], cohort.events).items():
        name = f"codes:{first}" if first in facts["first_parts"] else "other_codes"
        words = f"{first[:60]}: {lost} rows missing, {extra} too many"
        checks[name] = f"{checks[name]}; {words}".strip("; ")[:1000]
    checks["code_metadata"] = _codes_differ(expected, cohort)
    if compare.split_of(cohort.splits) != compare.split_of(expected["splits"]):
        checks["subject_splits"] = "subject_splits.parquet differs from the package's own split"
    if not compare.same_dataset(facts["dataset"], cohort.dataset):
        checks["dataset_metadata"] = f"dataset.json differs from {facts['dataset']}"


def _codes_differ(expected: dict[str, pl.DataFrame], cohort: Submitted) -> str:
    wanted, found = compare.described(expected["codes"]), compare.described(cohort.codes)
    if found is None or wanted is None:
        return "codes.parquet has no column code, or a code twice"
    wrong = [code for code in sorted(set(wanted) | set(found)) if wanted.get(code) != found.get(code)]
    return f"{len(wrong)} codes differ, first {wrong[0][:80]}" if wrong else ""


def _check_package(checks: dict[str, str], package: Path, gold: Path) -> configuration.Config | None:
    """Check the package's files and return the custom configuration; null where there is no valid one."""
    if not configuration.same_file(package / configuration.DEFAULT, gold / PRISTINE / configuration.DEFAULT):
        checks["default_configuration"] = f"{configuration.DEFAULT} is not as published"
    if changed := configuration.changed_files(package, gold / PRISTINE):
        checks["package_wiring"] = f"changed or left out: {', '.join(changed)}"[:500]
    try:
        return configuration.load_config(package / configuration.CUSTOM)
    except Refused as refusal:
        checks["custom_configuration"] = str(refusal)
        return None


def _compare_run(checks: dict[str, str], custom: configuration.Config | None, gold: Path) -> None:
    """Run the custom configuration through the pristine ETL on patients that nobody has seen."""
    runs = ("custom_run_events", "custom_run_codes")
    if custom is None:
        checks |= dict.fromkeys(runs, "no configuration to run")
        return
    outcome = pipeline.run(configuration.plain(custom), gold / "hidden" / "raw_input")
    if outcome.cohort is None:
        checks |= dict.fromkeys(runs, f"the ETL failed: {outcome.message}")
        return
    expected = _expected(gold / "hidden" / "custom")
    wrong = compare.differing(expected["events"], outcome.cohort.events)
    checks["custom_run_events"] = f"on other patients these codes differ: {', '.join(wrong)}"[:500] if wrong else ""
    checks["custom_run_codes"] = _codes_differ(expected, outcome.cohort)


def _published(checks: dict[str, str], cohort: Submitted, custom: configuration.Config | None, gold: Path) -> bool:
    """Judge as the published benchmark does: configurations are looked at, not run; data files as by the ETL."""
    ours_only = ("package_wiring", "custom_run_events", "custom_run_codes")
    if custom is None or any(message for name, message in checks.items() if name not in ours_only):
        return False
    default = configuration.gold_config(gold / PRISTINE / configuration.DEFAULT)
    wanted = configuration.gold_config(gold / "custom_event_configs.yaml")
    return cohort.shards == SHARDS and configuration.has_parts(custom, wanted, default)
