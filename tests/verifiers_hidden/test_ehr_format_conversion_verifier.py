"""The verifier reads hostile cohorts safely, names what fails, and runs configurations in the pinned ETL alone."""

import json
import subprocess
from pathlib import Path

import meds_env
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from categories.catalog import find_task
from categories.ehr_format_conversion.files import document
from verifiers_hidden import ehr_format_conversion as verifier
from verifiers_hidden.ehr_format_conversion import cohort, compare, configuration, pipeline
from verifiers_hidden.kit import GoldError, Reason, Refused

TASK = find_task("ehr_format_conversion/mimic_iv_to_meds")


def write(path: Path, table: pa.Table, **how: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **how)
    return path


def rows(**columns: object) -> pa.Table:
    """Three valid rows, with other columns on request."""
    table = {
        "subject_id": pa.array([1, 1, 2]),
        "time": pa.array([0, 1, None], pa.timestamp("us")),
        "code": pa.array(["A//x", "A//y", "B"]),
        "numeric_value": pa.array([1.5, None, None], pa.float32()),
        **columns,
    }
    return pa.table(table)


def test_a_small_file_that_decodes_to_gigabytes_is_refused(tmp_path: Path) -> None:
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 200_000, pa.int32()), pa.array(["x" * 20_000]))
    table = pa.table({"subject_id": pa.array([1] * 200_000), "code": long})
    path = write(tmp_path / "0.parquet", table, compression="zstd")
    assert path.stat().st_size < 200_000
    with pytest.raises(Refused) as refusal:
        cohort._read(path, 1_000_000)
    assert refusal.value.reason == Reason.TOO_LARGE


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-20]), Reason.UNSUPPORTED_FORMAT),
        (lambda path: path.write_bytes(b""), Reason.EMPTY_SUBMISSION),
        (lambda path: (path.unlink(), path.mkdir()), Reason.NOT_REGULAR_FILE),
        (lambda path: write(path, rows(other=pa.array([{"a": 1}] * 3))), Reason.SCHEMA_MISMATCH),
        (lambda path: write(path, rows(other=pa.array([b"x"] * 3))), Reason.SCHEMA_MISMATCH),
        (lambda path: write(path, pa.table({f"c{n}": [1] for n in range(80)})), Reason.SCHEMA_MISMATCH),
        (lambda path: write(path, pa.concat_tables([rows()] * 40)), Reason.TOO_LARGE),
    ],
)
def test_unreadable_parquet_is_refused(tmp_path: Path, edit, reason: Reason) -> None:
    path = write(tmp_path / "0.parquet", rows())
    assert cohort._read(path, 100).num_rows == 3
    edit(path)
    with pytest.raises(Refused) as refusal:
        cohort._read(path, 100)
    assert refusal.value.reason == reason


def test_form_of_meds_is_checked() -> None:
    assert cohort._faults(rows()) == []
    assert cohort._faults(rows(subject_id=pa.array([1, 1, 2], pa.int32())))
    assert cohort._faults(rows(code=pa.array(["A", None, "B"])))
    assert cohort._faults(rows(numeric_value=pa.array([1.0, 2.0, 3.0])))


def test_numbers_read_the_same_however_they_are_written() -> None:
    base = pl.DataFrame({"subject_id": [1], "time": [None], "code": ["A"], "numeric_value": [0.1]})
    base = base.with_columns(pl.col("time").cast(pl.Datetime("us")))
    forms = [
        pl.lit(7),
        pl.lit(7.0),
        pl.lit("7"),
        pl.lit("7.00"),
        pl.lit(7, dtype=pl.Int16),
        pl.lit("7", pl.Categorical),
    ]
    frames = [base.with_columns(stay=form) for form in forms]
    assert all(compare.differing(frames[0], frame) == {} for frame in frames)
    assert compare.differing(frames[0], base.with_columns(stay=pl.lit("7.01"))) == {"A": (1, 1)}
    assert compare.differing(frames[0], base) == {"A": (1, 1)}
    assert compare.differing(base, pl.concat([base, base])) == {"A": (0, 1)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a\n- b\n",
        "hosp/omr: {omr: {code: A}}\n",
        "../etc: {x: {code: A, time: null}}\n",
        "hosp/omr: {omr: {code: [1, 2], time: null}}\n",
        "hosp/omr: {omr: {code: A, time: null, n: {a: b}}}\n",
        "hosp/omr: {omr: {code: '${oc.env:PATH}', time: null}}\n",
        "hosp/omr: {omr: {code: A, time: null}, omr: {code: B, time: null}}\n",
        "hosp/omr: &a {omr: *a}\n",
        "hosp/omr: !!python/name:os.system\n",
        "a: &a {x: y}\nb: &b {<<: [*a, *a]}\n" + "".join(f"c{n}: &c{n} {{<<: [*b, *b]}}\n" for n in range(9)),
        "[" * 50_000,
        "hosp/omr:\n" + "".join(f"  e{n}: {{code: A, time: null}}\n" for n in range(201)),
        "hosp/omr: {omr: {code: A, time: null, " + ", ".join(f"c{n}: x" for n in range(40)) + "}}\n",
        "\x00",
    ],
)
def test_configurations_of_another_form_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "custom.yaml"
    path.write_text(text)
    with pytest.raises(Refused):
        configuration.load_config(path)


def test_merge_bomb_is_refused_at_once(tmp_path: Path) -> None:
    levels = "".join(f"l{n}: &l{n} {{<<: [*l{n - 1}, *l{n - 1}]}}\n" for n in range(1, 60))
    (tmp_path / "c.yaml").write_text("l0: &l0 {a: b}\n" + levels)
    with pytest.raises(Refused, match="aliases"):
        configuration.load_config(tmp_path / "c.yaml")


def test_anchors_and_merges_of_ordinary_size_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("hosp/omr:\n  a: &a {code: A, time: col(t)}\n  b: {<<: *a, code: B}\n")
    assert configuration.load_config(path)["hosp/omr"]["b"] == {"code": "B", "time": "col(t)"}


def test_without_the_pinned_etl_there_is_no_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(pipeline.ENVIRONMENT, str(tmp_path))
    with pytest.raises(GoldError, match="not installed"):
        pipeline.run(f"{{}} # {tmp_path}", tmp_path)


@pytest.fixture(scope="module")
def environment() -> Path:
    return meds_env.ensure()


@pytest.fixture(scope="module")
def drawn(stage):
    return stage(TASK.id)


@pytest.mark.slow
def test_each_failed_check_is_named(environment, drawn, tmp_path: Path) -> None:
    verifier.perfect(drawn.gold, tmp_path)
    package = tmp_path / "MEDS_cohort" / "package" / "MIMIC_IV_MEDS"
    (package / "pre_MEDS.py").write_text("")
    (package / "configs" / "event_configs.yaml").write_text("")
    (package / "configs" / "custom_event_configs.yaml").write_text("a: b\n")
    (tmp_path / "MEDS_cohort" / "metadata" / "dataset.json").write_text("{}")
    verdict = verifier.judge(tmp_path, drawn.gold, {"checks_failed": 0})
    failed = {name for name, words in verdict.details["checks"].items() if words != "passed"}
    wanted = {
        "package_wiring",
        "default_configuration",
        "custom_configuration",
        "custom_run_events",
        "custom_run_codes",
    }
    assert failed == wanted | {"dataset_metadata"}
    assert verdict.headline == pytest.approx(1 - 6 / verdict.metrics["checks_total"])
    assert (verdict.reward, verdict.reason) == (0, Reason.CHECK_FAILED)


@pytest.mark.slow
def test_gold_that_the_pinned_etl_denies_is_the_suites_fault(environment, drawn, tmp_path: Path) -> None:
    gold = tmp_path / "gold"
    subprocess.run(["cp", "-r", drawn.gold, gold], check=True)
    path = gold / "hidden" / "default" / "events.parquet"
    pl.read_parquet(path)[:-1].write_parquet(path)
    verifier.perfect(gold, tmp_path / "out")
    with pytest.raises(GoldError, match="disagree"):
        verifier.judge(tmp_path / "out", gold, {"checks_failed": 0})


@pytest.mark.slow
def test_two_implementations_agree_on_other_draws(environment, stage) -> None:
    """Our conversion made the gold; the published ETL, given the wanted configuration, must make the same."""
    for seed in ("agree 1", "agree 2"):
        gold = stage(TASK.id, seed).gold
        wanted = configuration.load_config(gold / "custom_event_configs.yaml")
        outcome = pipeline.run(configuration.plain(wanted), gold / "hidden" / "raw_input")
        expected = verifier._expected(gold / "hidden" / "custom")
        assert outcome.cohort is not None, outcome.message
        assert compare.differing(expected["events"], outcome.cohort.events) == {}
        assert verifier._codes_differ(expected, outcome.cohort) == ""
        assert compare.split_of(expected["splits"]) == compare.split_of(outcome.cohort.splits)


VALIDATE = """
import sys, json, jsonschema, meds, pyarrow.parquet as pq
from pathlib import Path
root = Path(sys.argv[1])
for path in root.glob("data/**/*.parquet"):
    table = pq.read_table(path)
    more = [(f.name, f.type) for f in table.schema if f.name not in ("subject_id", "time", "code", "numeric_value")]
    assert table.select([f.name for f in meds.data_schema(more)]).schema.equals(meds.data_schema(more)), path
    rows = table.select(["subject_id", "time"]).to_pylist()
    keys = [(r["subject_id"], r["time"] is not None, r["time"]) for r in rows]
    assert all(a[:2] < b[:2] or (a[:2] == b[:2] and (not a[1] or a[2] <= b[2])) for a, b in zip(keys, keys[1:]))
splits = pq.read_table(root / meds.subject_splits_filepath)
assert splits.schema.equals(meds.subject_split_schema), splits.schema
jsonschema.validate(json.loads((root / meds.dataset_metadata_filepath).read_text()), meds.dataset_metadata_schema)
codes = pq.read_table(root / meds.code_metadata_filepath)
assert {"code", "description", "parent_codes"} <= set(codes.column_names)
print("valid")
"""


@pytest.mark.slow
def test_the_perfect_cohort_is_valid_meds(environment, drawn, tmp_path: Path) -> None:
    """By the schemas of ``meds`` 0.3.3 itself; rows of a subject together and in time."""
    verifier.perfect(drawn.gold, tmp_path)
    python = environment / "bin" / "python"
    words = [python, "-c", VALIDATE, tmp_path / "MEDS_cohort"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "valid", done.stderr


def test_published_rule_looks_at_the_configuration_only() -> None:
    default = document("events.json")
    wanted = json.loads(json.dumps(default))
    wanted["hosp/omr"]["omr"]["code"] = ["OMR", "col(result_name)"]
    assert configuration.has_parts(wanted, wanted, default)
    assert not configuration.has_parts(default, wanted, default)
    more = json.loads(json.dumps(wanted))
    more["hosp/omr"]["omr"]["unasked"] = "seq_num"
    assert not configuration.has_parts(more, wanted, default)
