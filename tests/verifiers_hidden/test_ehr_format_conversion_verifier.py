"""The verifier reads hostile cohorts safely, names what fails, and runs configurations in the pinned ETL alone."""

import contextlib
import json
import multiprocessing
import resource
import shutil
import struct
import subprocess
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import meds_env
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from categories.catalog import find_task
from categories.ehr_format_conversion.files import document
from verifiers_hidden import ehr_format_conversion as verifier
from verifiers_hidden.ehr_format_conversion import cohort, compare, configuration, parquet, pipeline
from verifiers_hidden.ehr_format_conversion.parquet import Budget
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
        parquet.read_table(path, Budget(1_000_000))
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
    assert parquet.read_table(path, Budget(100)).num_rows == 3
    edit(path)
    with pytest.raises(Refused) as refusal:
        parquet.read_table(path, Budget(100))
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
    frames = [compare.canonical(base.with_columns(stay=form)) for form in forms]
    other, bare = compare.canonical(base.with_columns(stay=pl.lit("7.01"))), compare.canonical(base)
    assert all(compare.differing(frames[0], frame) == {} for frame in frames)
    assert compare.differing(frames[0], other) == {"A": (1, 1)}
    assert compare.differing(frames[0], bare) == {"A": (1, 1)}
    assert compare.differing(bare, pl.concat([bare, bare])) == {"A": (0, 1)}


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


def submit(folder: Path, *data: pa.Table, **metadata: pa.Table) -> Path:
    """A cohort of the given data files, with plain metadata unless other is given."""
    plain = {
        "codes": pa.table({"code": ["A//x"], "description": ["d"]}),
        "subject_splits": pa.table({"subject_id": [1], "split": ["train"]}),
    }
    for number, table in enumerate(data):
        write(folder / "data" / f"{number}.parquet", table)
    for name, table in {**plain, **metadata}.items():
        write(folder / "metadata" / f"{name}.parquet", table)
    (folder / "metadata" / "dataset.json").write_text("{}")
    return folder


STAMPS = pa.array([0, 1, None], pa.timestamp("us"))


@pytest.mark.parametrize(
    "tables",
    [
        [rows(time=pa.array(["2020-01-01", "x", None]))],
        [rows(time=pa.array([True, False, None])), rows()],
        [rows(time=STAMPS.cast(pa.timestamp("us", "UTC"))), rows()],
        [rows(time=STAMPS.cast(pa.timestamp("us", "Mars/Phobos")))],
        [rows(time=STAMPS.cast(pa.timestamp("us", "UTC+1")))],
        [rows(time=pa.array([2**62, 1, 2], pa.timestamp("ms")))],
        [rows(subject_id=pa.array([True, False, True])), rows(subject_id=STAMPS)],
        [rows(subject_id=pa.array(["1", "1", "2"])), rows()],
        [rows(code=STAMPS)],
        [rows(numeric_value=pa.array(["1.5", None, None]))],
        [rows(time=pa.nulls(3), subject_id=pa.nulls(3), code=pa.nulls(3), numeric_value=pa.nulls(3))],
    ],
)
def test_columns_of_wrong_types_fail_the_checks(tmp_path: Path, tables: list[pa.Table]) -> None:
    found = cohort.read_cohort(submit(tmp_path, *tables), 100)
    assert found.faults
    assert len(found.events) == 3 * len(tables)


def test_an_instant_out_of_range_differs_or_is_refused(tmp_path: Path) -> None:
    far = pa.array([2**62, 0, 1], pa.timestamp("us"))
    expected = compare.canonical(cohort._frame(rows()))
    found = cohort.read_cohort(submit(tmp_path / "time", rows(time=far)), 100)
    assert compare.differing(expected, found.events)
    with pytest.raises(Refused) as refusal:
        cohort.read_cohort(submit(tmp_path / "carried", rows(at=far.cast(pa.int64()).cast(pa.timestamp("ms")))), 100)
    assert refusal.value.reason == Reason.SCHEMA_MISMATCH
    splits = pa.table({"subject_id": far, "split": ["a", "b", "c"]})
    codes = pa.table({"code": ["a", "b", "c"], "at": far})
    found = cohort.read_cohort(submit(tmp_path / "splits", rows(), subject_splits=splits), 100)
    assert compare.split_of(found.splits) != {1: "train"}
    found = cohort.read_cohort(submit(tmp_path / "codes", rows(), codes=codes), 100)
    assert set(compare.described(found.codes) or {}) == {"a", "b", "c"}


@pytest.mark.parametrize(
    "same",
    [
        {"code": pa.array(["A//x", "A//y", "B"], pa.string_view())},
        {"code": pa.array(["A//x", "A//y", "B"]).dictionary_encode()},
        {"stay": pa.array(["7", "8", None], pa.string_view())},
        {"stay": pa.array([7, 8, None]).cast(pa.decimal128(30, 2))},
        {"stay": pa.array([7, 8, None], pa.float16())},
    ],
)
def test_other_types_of_the_same_values_are_accepted(tmp_path: Path, same: dict[str, pa.Array]) -> None:
    stay = pa.array([7, 8, None])
    found = cohort.read_cohort(submit(tmp_path, rows(**{"stay": stay, **same})), 100)
    assert found.faults == ()
    assert compare.differing(compare.canonical(cohort._frame(rows(stay=stay))), found.events) == {}


@pytest.mark.parametrize("name", ["_side", "*", "^.*$", "^c.*$", "first", "", "+time", "\x00"])
def test_any_name_of_an_extra_column_is_only_a_name(tmp_path: Path, name: str) -> None:
    found = cohort.read_cohort(submit(tmp_path, rows(**{name: pa.array(["q", "r", None])})), 100)
    expected = compare.canonical(cohort._frame(rows()))
    assert compare.differing(expected, found.events) == {"A": (2, 2)}
    assert compare.differing(found.events, found.events) == {}


def test_data_files_have_so_many_columns_together(tmp_path: Path) -> None:
    tables = [rows(**{f"c{file}_{n}": pa.array([1, 2, 3]) for n in range(40)}) for file in range(2)]
    with pytest.raises(Refused) as refusal:
        cohort.read_cohort(submit(tmp_path, *tables), 100)
    assert refusal.value.reason == Reason.SCHEMA_MISMATCH


def test_texts_that_are_no_utf8_are_refused(tmp_path: Path) -> None:
    offsets = pa.py_buffer(struct.pack("<4i", 0, 2, 4, 5))
    bad = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"A\xff\xfe\xfdB")])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), bad)
    cases = [
        submit(tmp_path / "code", rows(code=bad)),
        submit(tmp_path / "carried", rows(unit=bad)),
        submit(tmp_path / "codes", rows(), codes=pa.table({"code": ["a", "b", "c"], "parent_codes": lists})),
        submit(tmp_path / "splits", rows(), subject_splits=pa.table({"subject_id": [1, 2, 3], "split": bad})),
    ]
    for folder in cases:
        with pytest.raises(Refused) as refusal:
            cohort.read_cohort(folder, 100)
        assert refusal.value.reason == Reason.NOT_UTF8


def test_a_list_of_millions_is_refused(tmp_path: Path) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array(bytes(2_000_001), pa.int8()), pa.array([""]))
    table = pa.table({"code": ["a"], "x": pa.ListArray.from_arrays(pa.array([0, 2_000_001], pa.int32()), values)})
    path = write(tmp_path / "codes.parquet", table, compression="zstd")
    assert path.stat().st_size < 10_000
    with pytest.raises(Refused, match="values in columns of lists") as refusal:
        parquet.read_table(path, Budget(100), lists=True)
    assert refusal.value.reason == Reason.TOO_LARGE


def test_a_page_that_unpacks_beyond_the_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    path.write_bytes(page_bomb(megabytes=1800))
    assert path.stat().st_size < 200_000
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(Refused, match="unpacks") as refusal:
        parquet.read_table(path, Budget(1000))
    assert refusal.value.reason == Reason.TOO_LARGE
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_a_page_that_unpacks_beyond_the_memory_is_never_held(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    path.write_bytes(page_bomb(megabytes=1800))
    # A fresh process: the peak of this one is that of every test that ran in it before.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(peak_of_refusal, path).result() < 1800 << 10


def peak_of_refusal(path: Path) -> int:
    """Peak memory, in kB, of a process that does nothing but refuse the file.

    By ``VmHWM``: what ``getrusage`` tells is handed on to a child, through ``exec`` too, by the process that started it.
    """
    with contextlib.suppress(Refused):
        parquet.read_table(path, Budget(1000))
    (line,) = (row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("VmHWM:"))
    return int(line.split()[1])


def page_bomb(megabytes: int) -> bytes:
    """A parquet file (compact Thrift by hand) of one zstd page of zeros; its footer promises a hundred bytes."""

    def number(value: int) -> bytes:
        value, out = value << 1, b""
        while value > 127:
            value, out = value >> 7, out + bytes([value & 127 | 128])
        return out + bytes([value])

    def text(words: bytes) -> bytes:
        return bytes([len(words)]) + words

    def record(*fields: tuple[int, int, bytes]) -> bytes:
        steps = [new[0] - old for new, old in zip(fields, [0, *(field[0] for field in fields)], strict=False)]
        return (
            b"".join(bytes([step << 4 | kind]) + data for step, (_, kind, data) in zip(steps, fields, strict=True))
            + b"\0"
        )

    def items(kind: int, *parts: bytes) -> bytes:
        return bytes([len(parts) << 4 | kind]) + b"".join(parts)

    small, long, words, many, inner = 5, 6, 8, 9, 12
    packed = pa.Codec("zstd").compress(bytes(1 << 20), asbytes=True) * megabytes
    data_header = record((1, small, number(1)), (2, small, number(0)), (3, small, number(3)), (4, small, number(3)))
    sizes = [(2, small, number(megabytes << 20)), (3, small, number(len(packed)))]
    page = record((1, small, number(0)), *sizes, (5, inner, data_header)) + packed
    name = text(b"subject_id")
    root = record((4, words, text(b"schema")), (5, small, number(1)))
    leaf = record((1, small, number(2)), (3, small, number(0)), (4, words, name))
    column = record(
        (1, small, number(2)),
        (2, many, items(small, number(0))),
        (3, many, items(words, name)),
        (4, small, number(6)),
        (5, long, number(1)),
        (6, long, number(100)),
        (7, long, number(len(page))),
        (9, long, number(4)),
    )
    chunk = record((2, long, number(4)), (3, inner, column))
    group = record((1, many, items(inner, chunk)), (2, long, number(100)), (3, long, number(1)))
    groups, schema = items(inner, group), items(inner, root, leaf)
    footer = record((1, small, number(1)), (2, many, schema), (3, long, number(1)), (4, many, groups))
    return b"PAR1" + page + footer + struct.pack("<I", len(footer)) + b"PAR1"


def test_as_many_data_files_as_a_submission_may_have() -> None:
    assert TASK.category.submission.max_files == cohort.MAX_FILES


EVENT = "hosp/x: {{e: {{code: {}, time: a}}}}\n"


@pytest.mark.parametrize(
    "text",
    [
        EVENT.format("!!bool foo"),
        EVENT.format('!!int ""'),
        EVENT.format("!!timestamp foo"),
        EVENT.format("!!binary x"),
        EVENT.format("!!float x"),
        EVENT.format('"\\UFFFFFFFF"'),
        EVENT.format("0x" + "f" * 5000),
        EVENT.format("1" + ":1" * 100_000),
        EVENT.format("{=: 1}"),
        'hosp/x: {"\\ud800": 1}\n',
        'hosp/x: {"\\ud800": {code: A, time: a}}\n',
        'hosp/x: {"a\\nb": {code: A, time: a}}\n',
        "? 0x" + "f" * 5000 + "\n: 1\n",
        "hosp/x: {<<: !!seq x}\n",
        "a: &a " + "x" * 100_000 + "\nhosp/x: {e: {code: [" + "*a, " * 9000 + "[]], time: a}}\n",
    ],
)
def test_values_that_no_parser_can_make_are_refused_in_few_words(tmp_path: Path, text: str) -> None:
    path = tmp_path / "custom.yaml"
    path.write_text(text)
    with pytest.raises(Refused) as refusal:
        configuration.load_config(path)
    assert refusal.value.reason == Reason.BAD_SHAPE
    assert len(str(refusal.value)) <= 300
    assert str(refusal.value).isascii()


def test_the_etl_is_given_every_character_as_it_was_written() -> None:
    config = {"hosp/x": {"\u00e9" * 500: {"code": "x\U0001f600", "time": None, "unit": '"' * 500}}}
    assert yaml.safe_load(configuration.plain(config)) == config


@pytest.fixture
def package(tmp_path: Path) -> tuple[Path, Path]:
    """The package as published, and a copy of it as a submission."""
    pristine = tmp_path / "pristine"
    files = {
        "__main__.py": "EVENT_CFG\n",
        "__init__.py": "x = 1\n",
        "pre_MEDS.py": "y = 1\n",
        "configs/__init__.py": "",
    }
    files |= dict.fromkeys(("configs/main.yaml", configuration.DEFAULT), "hosp/x: {e: {code: A, time: a}}\n")
    for name, words in files.items():
        (pristine / name).parent.mkdir(parents=True, exist_ok=True)
        (pristine / name).write_text(words)
    return pristine, Path(shutil.copytree(pristine, tmp_path / "submitted"))


def test_the_package_as_published_is_accepted(package: tuple[Path, Path]) -> None:
    pristine, submitted = package
    assert configuration.changed_files(submitted, pristine) == []
    (submitted / "configs" / "main.yaml").write_text("event_cfg: null\n")
    assert configuration.changed_files(submitted, pristine) == []


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("configs/__init__.py", lambda path: path.write_text("evil = 1\n" * 60_000)),
        ("configs/__init__.py", lambda path: path.unlink()),
        ("configs/main.yaml", lambda path: path.unlink()),
        ("__main__.py", lambda path: path.unlink()),
        ("pre_MEDS.py", lambda path: path.write_text("")),
    ],
)
def test_a_changed_package_is_named(package: tuple[Path, Path], name: str, edit) -> None:
    pristine, submitted = package
    edit(submitted / name)
    assert len(configuration.changed_files(submitted, pristine)) == 1


@pytest.mark.parametrize("name", ["__main__.py", "pre_MEDS.py", "configs/main.yaml", configuration.DEFAULT])
def test_a_damaged_gold_package_is_the_suites_fault(package: tuple[Path, Path], name: str) -> None:
    pristine, _ = package
    configuration.check_pristine(pristine)
    (pristine / name).write_text("")
    with pytest.raises(GoldError):
        configuration.check_pristine(pristine)


@pytest.mark.parametrize("text", [None, "", "hosp/x: {e: {co"])
def test_a_damaged_gold_configuration_is_the_suites_fault(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "events.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(GoldError):
        configuration.gold_config(path)


def test_gold_frames_without_their_columns_are_the_suites_fault(tmp_path: Path) -> None:
    for name in ("events", "codes", "splits"):
        write(tmp_path / f"{name}.parquet", pa.table({"code": ["A"]}))
    with pytest.raises(GoldError):
        verifier._expected(tmp_path)


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
