"""Edits of the perfect submission and the reward each must earn."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

COHORT = "MEDS_cohort"
CONFIGS = f"{COHORT}/package/MIMIC_IV_MEDS/configs"
Mutate = Callable[[Path, Path], None]


def shards(submission: Path) -> list[Path]:
    return sorted((submission / COHORT / "data").rglob("*.parquet"))


def rows(edit: Callable[[pl.DataFrame], pl.DataFrame]) -> Mutate:
    """Edit the training rows."""

    def mutate(submission: Path, gold: Path) -> None:
        path = submission / COHORT / "data" / "train" / "0.parquet"
        edit(pl.read_parquet(path)).write_parquet(path, compression="gzip", row_group_size=5000)

    return mutate


def tables(edit: Callable[[pa.Table], pa.Table], **how: object) -> Mutate:
    """Edit every data file as an Arrow table."""

    def mutate(submission: Path, gold: Path) -> None:
        for path in shards(submission):
            pq.write_table(edit(pq.read_table(path)), path, **how)

    return mutate


def typed(name: str, kind: pa.DataType) -> Mutate:
    return tables(lambda table: table.set_column(table.column_names.index(name), name, table[name].cast(kind)))


def one_file(submission: Path, gold: Path) -> None:
    paths = shards(submission)
    whole = pl.concat([pl.read_parquet(path) for path in paths], how="diagonal")
    for path in paths:
        path.unlink()
    whole.write_parquet(submission / COHORT / "data" / "all.parquet")


def more_files(submission: Path, gold: Path, *, by_subject: bool = True) -> None:
    path = submission / COHORT / "data" / "train" / "0.parquet"
    frame = pl.read_parquet(path)
    half = (
        frame["subject_id"] <= frame["subject_id"].median() if by_subject else pl.int_range(len(frame), eager=True) < 40
    )
    frame.filter(half).write_parquet(path)
    frame.filter(~half).write_parquet(path.with_name("1.parquet"))


def text(name: str, edit: Callable[[str], str]) -> Mutate:
    def mutate(submission: Path, gold: Path) -> None:
        path = submission / name
        path.write_bytes(edit(path.read_text(encoding="utf-8")).encode())

    return mutate


def config(edit: Callable[[dict], None]) -> Mutate:
    def mutate(submission: Path, gold: Path) -> None:
        path = submission / CONFIGS / "custom_event_configs.yaml"
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        edit(document)
        path.write_text("# by hand\n" + yaml.safe_dump(document, sort_keys=True), encoding="utf-8")

    return mutate


def new_events(document: dict) -> list[tuple[str, str]]:
    return [("hosp/admissions", name) for name in document["hosp/admissions"] if name.startswith("admission_")]


def renamed_events(document: dict) -> None:
    for table, name in new_events(document):
        document[table][f"own_{name}"] = document[table].pop(name)


def without_hadm_id(document: dict) -> None:
    table, name = new_events(document)[0]
    del document[table][name]["hadm_id"]


def moved_in_time(document: dict) -> None:
    table, name = new_events(document)[0]
    now = document[table][name]["time"]
    document[table][name]["time"] = "col(admittime)" if now == "col(dischtime)" else "col(dischtime)"


def dataset(**change: str) -> Mutate:
    def mutate(submission: Path, gold: Path) -> None:
        path = submission / COHORT / "metadata" / "dataset.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}, indent=2))

    return mutate


def metadata(name: str, edit: Callable[[pl.DataFrame], pl.DataFrame]) -> Mutate:
    def mutate(submission: Path, gold: Path) -> None:
        path = submission / COHORT / "metadata" / f"{name}.parquet"
        edit(pl.read_parquet(path)).write_parquet(path)

    return mutate


def exchanged(splits: pl.DataFrame) -> pl.DataFrame:
    pair = [splits.filter(pl.col("split") == one)["subject_id"][0] for one in ("train", "tuning")]
    return splits.with_columns(pl.col("subject_id").replace({pair[0]: pair[1], pair[1]: pair[0]}))


def default_in_place(submission: Path, gold: Path) -> None:
    folder = submission / CONFIGS
    (folder / "event_configs.yaml").write_bytes((folder / "custom_event_configs.yaml").read_bytes())


def custom_is_default(submission: Path, gold: Path) -> None:
    folder = submission / CONFIGS
    (folder / "custom_event_configs.yaml").write_bytes((folder / "event_configs.yaml").read_bytes())


def package_left_out(submission: Path, gold: Path) -> None:
    package = submission / COHORT / "package"
    package.rename(package.with_name("code"))


def linked(submission: Path, gold: Path) -> None:
    path = shards(submission)[0]
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


def removed(name: str) -> Mutate:
    return lambda submission, gold: (submission / name).unlink()


def many_files(submission: Path, gold: Path) -> None:
    path = shards(submission)[0]
    for number in range(300):
        pq.write_table(pq.read_table(path)[:0], path.with_name(f"empty_{number}.parquet"))


def litter(submission: Path, gold: Path) -> None:
    for name in (".logs/run.log", "merge_to_MEDS_cohort/train/0.parquet", "package/MIMIC_IV_MEDS/run_custom.py"):
        path = submission / COHORT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise SystemExit(1)\n")


def shuffled_subjects(frame: pl.DataFrame) -> pl.DataFrame:
    ids = frame["subject_id"].unique().sort().to_list()
    return frame.with_columns(pl.col("subject_id").replace(dict(zip(ids, ids[1:] + ids[:1], strict=True))))


def touched(column: str, change: pl.Expr) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Change a column in the last row that has a value there."""

    def edit(frame: pl.DataFrame) -> pl.DataFrame:
        row = frame.with_row_index().filter(pl.col(column).is_not_null())["index"].max()
        here = pl.int_range(pl.len()) == row
        return frame.with_columns(pl.when(here).then(change).otherwise(column).alias(column))

    return edit


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
CUSTOM = f"{CONFIGS}/custom_event_configs.yaml"
SOURCE = f"{COHORT}/package/MIMIC_IV_MEDS"

MUTATIONS: list[tuple[str, Mutate, int]] = [
    ("rows in reverse order", rows(lambda frame: frame.reverse()), 1),
    ("columns in another order", rows(lambda frame: frame.select(sorted(frame.columns, reverse=True))), 1),
    ("brotli, small row groups", tables(lambda table: table, compression="brotli", row_group_size=999), 1),
    ("no dictionaries", tables(lambda table: table, use_dictionary=False, compression="none"), 1),
    ("codes as dictionaries", typed("code", pa.dictionary(pa.int32(), pa.string())), 1),
    ("codes as large strings", typed("code", pa.large_string()), 1),
    ("one data file", one_file, 1),
    ("train in two files, by subject", more_files, 1),
    ("hadm_id as decimals", typed("hadm_id", pa.float64()), 1),
    ("hadm_id as text", typed("hadm_id", pa.string()), 1),
    ("a column without values", rows(lambda frame: frame.with_columns(extra=pl.lit(None, dtype=pl.String))), 1),
    ("configuration dumped anew", config(lambda document: None), 1),
    ("new events under other names", config(renamed_events), 1),
    ("made at another time by another version", dataset(created_at="2026-01-01", dataset_version="3.1:unknown"), 1),
    ("codes in another order", metadata("codes", lambda codes: codes.reverse()), 1),
    ("working files left behind", litter, 1),
    ("default configuration with CRLF", text(f"{CONFIGS}/event_configs.yaml", lambda s: s.replace("\n", "\r\n")), 1),
    ("an option in __main__", text(f"{SOURCE}/__main__.py", lambda s: s.replace("EVENT_CFG.resolve()", "Path(cfg.get('event_cfg') or EVENT_CFG).resolve()")), 1),
    ("one row missing", rows(lambda frame: frame[:-1]), 0),
    ("one row twice", rows(lambda frame: pl.concat([frame, frame[-1:]])), 0),
    ("one time a second later", rows(touched("time", pl.col("time") + pl.duration(seconds=1))), 0),
    ("one number one more", rows(touched("numeric_value", pl.col("numeric_value") + 1)), 0),
    ("one text in capitals", rows(touched("text_value", pl.col("text_value") + "!")), 0),
    ("no hadm_id", rows(lambda frame: frame.drop("hadm_id")), 0),
    ("codes in small letters", rows(lambda frame: frame.with_columns(pl.col("code").str.to_lowercase())), 0),
    ("subjects exchanged", rows(shuffled_subjects), 0),
    ("subject_id as int32", typed("subject_id", pa.int32()), 0),
    ("times in milliseconds", typed("time", pa.timestamp("ms")), 0),
    ("a subject in two files", lambda submission, gold: more_files(submission, gold, by_subject=False), 0),
    ("two subjects in each other's split", metadata("subject_splits", exchanged), 0),
    ("one code undescribed", metadata("codes", lambda codes: codes[:-1]), 0),
    ("another data set's name", dataset(dataset_name="eICU"), 0),
    ("a data file that is a link", linked, 0),
    ("default configuration with a comment", text(f"{CONFIGS}/event_configs.yaml", lambda s: s + "# mine\n"), 0),
    ("default configuration replaced", default_in_place, 0),
    ("pre_MEDS changed", text(f"{SOURCE}/pre_MEDS.py", lambda s: s.replace("min()", "max()")), 0),
    ("wiring changed", text(f"{SOURCE}/__init__.py", lambda s: s.replace("event_configs", "custom_event_configs")), 0),
    ("__main__ without the default", text(f"{SOURCE}/__main__.py", lambda s: s.replace("EVENT_CFG", "ETL_CFG")), 0),
    ("custom configuration is the default", custom_is_default, 0),
    ("no hadm_id in a new event's configuration", config(without_hadm_id), 0),
    ("another time in a new event's configuration", config(moved_in_time), 0),
    ("a YAML tag", text(CUSTOM, lambda s: "!!python/object/apply:os.system ['id']\n"), 0),
    ("an alias bomb", text(CUSTOM, lambda s: BOMB), 0),
    ("an interpolation", text(CUSTOM, lambda s: s.replace("ED_OUT", "${oc.env:HOME}")), 0),
    ("brackets without end", text(CUSTOM, lambda s: "[" * 100_000), 0),
    ("no package", package_left_out, 0),
    ("package's settings left out", removed(f"{CONFIGS}/main.yaml"), 0),
    ("an empty module left out", removed(f"{CONFIGS}/__init__.py"), 0),
    ("an empty module filled with much", text(f"{CONFIGS}/__init__.py", lambda s: "evil = 1\n" * 60_000), 0),
    ("a YAML bool that is none", text(CUSTOM, lambda s: s + "\nhosp/zz: {e: {code: !!bool x, time: a}}\n"), 0),
    ("times as text", typed("time", pa.string()), 0),
    ("times with a zone", typed("time", pa.timestamp("us", "UTC")), 0),
    ("a column named like a pattern", rows(lambda frame: frame.with_columns(pl.lit("x").alias("^.*$"))), 0),
    ("an empty column named like a pattern", tables(lambda table: table.append_column("*", pa.nulls(len(table)))), 1),
    ("hadm_id as decimal128", typed("hadm_id", pa.decimal128(30, 2)), 1),
    ("codes as string views", typed("code", pa.string_view()), 1),
    ("300 empty data files more", many_files, 1),
]  # fmt: skip
