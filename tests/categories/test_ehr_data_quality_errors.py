"""What is injected, and that nothing but the medicine gives it away."""

import gzip
import importlib.util
import json
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from scipy.stats import ks_2samp

from categories.catalog import find_task, load_category
from categories.draw import Draw
from categories.ehr_data_quality.catalogue import injection
from categories.ehr_data_quality.demographic import sex_evidence
from categories.ehr_data_quality.ledger import INDEX, Ledger
from categories.ehr_data_quality.synthetic import inject
from categories.ehr_data_quality.world import make_world
from categories.instruction import render_instruction
from categories.seed import case_key
from categories.spec import Case
from verifiers_hidden import ehr_data_quality as verifier

FOLDER = Path(find_task("ehr_data_quality/combined").category.folder)
FAMILIES = ("impossible_value", "inconsistency", "demographic_conflict")
SEEDS = [f"errors {number}" for number in range(6)]


def draw_of(seed: str, scale="small", families=FAMILIES) -> Draw:
    spec = Case(title="t", parameters={"families": families})
    return Draw("combined", spec, case_key(seed, "ehr_data_quality", "combined", 0), scale)


@cache
def injected(seed: str, scale="small") -> tuple[Ledger, dict[str, int]]:
    draw = draw_of(seed, scale)
    world = make_world(draw)
    heights = {name: table.height for name, table in world.items()}
    ledger = Ledger(world)
    inject(ledger, draw)
    return ledger, heights


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_by_family_and_subtype(seed: str) -> None:
    ledger, _ = injected(seed)
    kinds = Counter((cluster.family, cluster.subtype) for cluster in ledger.clusters)
    assert kinds == {
        ("impossible_value", "range_extreme"): 7,
        ("impossible_value", "decimal_shift"): 3,
        ("impossible_value", "decimal_shift_rx"): 12,
        ("impossible_value", "unit_confusion"): 2,
        ("impossible_value", "valueuom_mismatch"): 6,
        ("inconsistency", "in_table_conflict"): 24,
        ("inconsistency", "cross_table_conflict"): 8,
        ("demographic_conflict", "gender_via_patients_flip"): 5,
        ("demographic_conflict", "gender_via_prescription_swap"): 1,
        ("demographic_conflict", "age_via_patients_change"): 1,
    }
    assert sum(cluster.crude for cluster in ledger.clusters) == 2
    rows = [(t.table, t.row) for c in ledger.clusters for t in c.rows if t.field]
    assert len(rows) == len(set(rows)), "a row was changed twice"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ledger_tells_what_stands_in_the_tables(seed: str) -> None:
    ledger, heights = injected(seed)
    for cluster in ledger.clusters:
        for trace in (trace for trace in cluster.rows if trace.field):
            row = ledger.row(trace.table, trace.row)
            shown = row["value"] if trace.field == "valuenum" else row[trace.field]
            assert str(shown) == trace.corrupted
            assert trace.row >= heights[trace.table] or trace.original != trace.corrupted


@pytest.mark.parametrize("seed", SEEDS)
def test_added_rows_are_complete_and_formatted_like_their_column(seed: str) -> None:
    ledger, heights = injected(seed)
    for name in ("labevents", "chartevents"):
        table = ledger.tables[name]
        added = table.filter(pl.col(INDEX) >= heights[name])
        assert added.height > 8
        for column in table.columns:
            if table.filter(pl.col(INDEX) < heights[name])[column].null_count() == 0:
                assert added[column].null_count() == 0, column
        key = "labevent_id" if name == "labevents" else INDEX
        assert table[key].is_unique().all()
        number = table.filter(pl.col("valuenum").is_not_null() & pl.col("value").str.contains(r"^-?[0-9.]+$"))
        assert (number["value"].cast(pl.Float64) - number["valuenum"]).abs().max() < 1e-9
    labs = ledger.tables["labevents"]
    ids = labs.filter(pl.col(INDEX) >= heights["labevents"])["specimen_id"].unique()
    natural = labs.filter(pl.col(INDEX) < heights["labevents"])["specimen_id"]
    assert set(ids).isdisjoint(natural)
    assert natural.min() <= ids.min() <= ids.max() <= natural.max()


def test_calculated_members_hold_in_redrawn_panels() -> None:
    for seed in SEEDS:
        labs = injected(seed)[0].tables["labevents"].filter(pl.col("itemid").is_in([50983, 50902, 50882, 50868]))
        wide = labs.pivot("itemid", index="specimen_id", values="valuenum", aggregate_function="first").drop_nulls()
        assert (wide["50983"] - wide["50902"] - wide["50882"] - wide["50868"]).abs().max() == 0


def test_flags_are_no_tell() -> None:
    """Of changed or added results no more disagree with their range than of natural ones (1 %, plus sampling)."""
    wrong = total = 0
    for seed in SEEDS:
        ledger, heights = injected(seed)
        changed = {t.row for c in ledger.clusters for t in c.rows if t.table == "labevents" and t.field}
        labs = ledger.tables["labevents"].filter(
            (pl.col(INDEX) >= heights["labevents"]) | pl.col(INDEX).is_in(sorted(changed))
        )
        labs = labs.filter(pl.col("ref_range_lower").is_not_null())
        outside = (pl.col("valuenum") < pl.col("ref_range_lower")) | (pl.col("valuenum") > pl.col("ref_range_upper"))
        wrong += labs.filter(outside != (pl.col("flag") == "abnormal")).height
        total += labs.height
    assert total > 500
    assert wrong / total < 0.02


def pair_times(seed: str, name: str, keys: list[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (natural, injected) second records of five-minute pairs, one row a specimen or set."""
    ledger, heights = injected(seed)
    table = ledger.tables[name].filter(pl.col("valuenum").is_not_null()).sort(*keys, "itemid", "charttime", INDEX)
    table = table.with_columns(
        gap=pl.col("charttime").diff().over(*keys, "itemid").dt.total_minutes(),
        lag=(pl.col("storetime") - pl.col("charttime")).dt.total_minutes(),
        minute=pl.col("charttime").dt.minute().cast(pl.Int64),
    ).filter(pl.col("gap").is_between(1, 5))
    table = table.unique([*keys, "charttime"], keep="first", maintain_order=True)
    return table.filter(pl.col(INDEX) < heights[name]), table.filter(pl.col(INDEX) >= heights[name])


@pytest.mark.parametrize(("name", "keys"), [("labevents", ["subject_id"]), ("chartevents", ["stay_id"])])
@pytest.mark.parametrize("column", ["gap", "lag"])
def test_injected_pairs_keep_the_times_of_natural_ones(name: str, keys: list[str], column: str) -> None:
    pairs = [pair_times(seed, name, keys) for seed in SEEDS]
    natural = pl.concat([pair[0] for pair in pairs])[column].to_numpy()
    added = pl.concat([pair[1] for pair in pairs])[column].to_numpy()
    assert len(added) >= 40
    assert ks_2samp(natural, added).pvalue > 0.001


@pytest.mark.slow
def test_no_channel_of_sex_decides_most_flips_over_thirty_seeds() -> None:
    """Three channels or more contradict each flipped sex; none serves more than 60 % of them (F22)."""
    seen: Counter[str] = Counter()
    flips = 0
    for number in range(30):
        draw = draw_of(f"channels {number}", families=("demographic_conflict",))
        ledger = Ledger(make_world(draw))
        proof = sex_evidence(ledger)
        inject(ledger, draw)
        for cluster in (c for c in ledger.clusters if c.subtype == "gender_via_patients_flip"):
            subject = ledger.row("patients", cluster.rows[0].row)["subject_id"]
            assert len(proof[subject].channels) >= 3
            seen.update(proof[subject].channels)
            flips += 1
    assert flips == 150
    assert max(seen.values()) / flips <= 0.6, seen
    assert len(seen) >= 5


def test_registered_ages_and_ranges_give_nothing_away() -> None:
    for seed in SEEDS:
        ledger, _ = injected(seed)
        people = ledger.tables["patients"]
        assert people["anchor_age"].is_between(18, 91).all()
        labs = ledger.tables["labevents"].filter(pl.col("itemid") == 51222)
        labs = labs.join(people.select("subject_id", "gender"), on="subject_id")
        assert dict(labs.group_by("gender").agg(pl.col("ref_range_lower").unique()).rows()) == {
            "M": [13.7],
            "F": [12.0],
        }


def test_swapped_drugs_occur_naturally_in_the_other_sex() -> None:
    """The drug alone is no tell: over the seeds each name stands mostly where it belongs."""
    natural: dict[str, int] = defaultdict(int)
    for seed in SEEDS:
        world = make_world(draw_of(seed))
        orders = world["prescriptions"].join(world["patients"].select("subject_id", "gender"), on="subject_id")
        for gender, names in injection()["demographic"]["swap"].items():
            for name in names:
                natural[name] += orders.filter((pl.col("drug") == name) & (pl.col("gender") == gender)).height
                assert orders.filter((pl.col("drug") == name) & (pl.col("gender") != gender)).is_empty()
    assert min(natural.values()) > 0, natural


def test_rows_are_shuffled_and_ids_random(stage) -> None:
    draw = stage("ehr_data_quality/inconsistency")
    gold = json.loads((draw.gold / "clusters.json").read_text())
    added = {(r["table"], r["_row_id"]) for c in gold["clusters"] for r in c["rows"] if r["field"]}
    for name in ("hosp/labevents", "icu/chartevents"):
        with gzip.open(draw.public / f"{name}.csv.gz", "rt") as file:
            ids = [line.split(",", 1)[0] for line in file][1:]
        assert len(set(ids)) == len(ids)
        assert ids != sorted(ids)
        places = [i / len(ids) for i, row in enumerate(ids) if (name.split("/")[1], row) in added]
        assert 0.3 < sum(places) / len(places) < 0.7
        assert min(places) < 0.25
        assert max(places) > 0.75


def test_headers_name_no_scratch_columns(stage) -> None:
    draw = stage("ehr_data_quality/combined")
    for path in draw.public.rglob("*.csv.gz"):
        with gzip.open(path, "rt") as file:
            header = file.readline().strip().split(",")
        assert header[0] == "_row_id"
        assert not [column for column in header[1:] if column.startswith("_")]


def flagged_by_reference(public: Path) -> set[tuple[str, str]]:
    spec = importlib.util.spec_from_file_location("dq_reference", FOLDER / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.DATA = public
    tables = module.read()
    return set(pl.concat([rows for check in module.CHECKS for rows in check(tables)]).rows())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_defensible_auditor_keeps_half_the_precision(family: str, stage) -> None:
    """Gold, and whatever else a textbook would flag, has precision of at least 0.5 (F16)."""
    draw = stage(f"ehr_data_quality/{family}", "a private seed")
    clusters, rows = verifier._gold(draw.gold)
    gold = {(row["table"], row["_row_id"]) for cluster in clusters for row in cluster["rows"]}
    metrics = verifier.measure(clusters, rows, gold | flagged_by_reference(draw.public))
    assert metrics["recall"] == 1
    assert metrics["precision"] >= 0.5


@pytest.mark.full
@pytest.mark.parametrize("seed", ["0", "a private seed"])
def test_the_reference_passes_at_least_two_of_four_at_full_scale(seed: str, stage) -> None:
    passed = []
    for case in (*FAMILIES, "combined"):
        draw = stage(f"ehr_data_quality/{case}", seed, "full")
        clusters, rows = verifier._gold(draw.gold)
        metrics = verifier.measure(clusters, rows, flagged_by_reference(draw.public))
        passed.append(metrics["recall"] == 1 and metrics["precision"] >= 0.3)
    assert sum(passed) >= 2, passed


def test_clues_name_subtypes_and_tables_and_the_base_names_kinds_only() -> None:
    category = load_category(FOLDER)
    for case in category.cases:
        task = find_task(f"ehr_data_quality/{case}")
        text = render_instruction(task, category.resources["full"])
        assert ("`prescriptions`" in text) == (case.endswith("_clues") and not case.startswith("inconsistency"))
        assert ("**Inconsistency" in text) == ("inconsistency" in case or "combined" in case)
        assert "0.3" in text
        assert "row that does not exist" in text
        twin = task.spec.draw_as
        assert twin is None or task.spec.parameters["families"] == category.cases[twin].parameters["families"]
