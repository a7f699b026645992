"""The files an agent sees, and the timelines behind them: small scale, one rare and one acute disease."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from categories.catalog import find_task, load_category
from categories.draw import Draw
from categories.ehr_event_modelling import cohort as patients
from categories.ehr_event_modelling import gate
from categories.ehr_event_modelling.counting import Counter, Counting
from categories.ehr_event_modelling.events import NO_END, Block, make_block, phase
from categories.ehr_event_modelling.gate import GRID
from categories.ehr_event_modelling.measures import expected_auroc
from categories.ehr_event_modelling.plain import best_plain
from categories.ehr_event_modelling.synthetic import cut
from categories.ehr_event_modelling.values import lab_values, person_levels
from categories.ehr_event_modelling.visits import DAY
from categories.ehr_event_modelling.vocabulary import FOLDER, build_topics, load_vocabulary
from categories.ehr_event_modelling.writing import VISIT_BITS, scramble
from categories.instruction import render_instruction
from categories.seed import case_key

COLUMNS = ["patient_id", "start", "end", "code", "value", "unit", "visit_id", "omop_table"]
CASES = ("lupus", "acute_mi")


@pytest.fixture(scope="module")
def words():
    return load_vocabulary()


@pytest.fixture(scope="module", params=CASES)
def files(request, stage):
    draw = stage(f"ehr_event_modelling/{request.param}")
    events = pl.read_csv(draw.public / "events.csv", try_parse_dates=True, infer_schema_length=None)
    examples = {
        name: pl.read_csv(draw.public / f"{name}.csv", try_parse_dates=True)
        for name in ("train_labels", "val_labels", "test_examples")
    }
    return request.param, draw, events, examples


def test_layout(files):
    _, draw, events, examples = files
    assert sorted(path.name for path in draw.public.iterdir()) == [
        "events.csv",
        "test_examples.csv",
        "train_labels.csv",
        "val_labels.csv",
    ]
    assert events.columns == COLUMNS
    assert 200_000 <= events.height <= 400_000
    assert examples["train_labels"].columns == ["patient_id", "prediction_time", "label"]
    assert examples["test_examples"].columns == ["patient_id", "prediction_time"]
    shared = [set(table["patient_id"]) for table in examples.values()]
    assert not shared[0] & shared[1]
    assert not (shared[0] | shared[1]) & shared[2]
    assert set(events["patient_id"]) == shared[0] | shared[1] | shared[2]
    assert all(time.strftime("%H:%M:%S") == "23:59:00" for time in examples["test_examples"]["prediction_time"])


def test_the_cut_is_before_the_prediction_time_and_ends_are_blank(files):
    _, _, events, examples = files
    seen = events.join(examples["test_examples"], on="patient_id")
    assert (seen["start"] < seen["prediction_time"]).all()
    ends = seen.filter(pl.col("end").is_not_null())
    assert (ends["end"] < ends["prediction_time"]).all()
    later = events.join(examples["train_labels"], on="patient_id").filter(pl.col("start") > pl.col("prediction_time"))
    assert later.height > 0


def test_gold_stays_out_and_holds_the_test_rows(files):
    _, draw, _, examples = files
    gold = pl.read_csv(draw.gold / "gold.csv", try_parse_dates=True)
    assert set(gold.columns) == {"patient_id", "prediction_time", "label", "risk", "gate", "embedding"}
    keys = ["patient_id", "prediction_time"]
    assert gold.join(examples["test_examples"], on=keys).height == gold.height == examples["test_examples"].height
    plain = json.loads((draw.gold / "plain.json").read_text())
    assert 0.5 <= plain["auroc"] <= 0.85


def test_labels_follow_from_the_timelines(files, words):
    """What the instruction says is what the labels are: first diagnosis 1 to 365 days after, none before."""
    case, _, events, examples = files
    code = f"SNOMED/{words.diseases[case]['snomed']}"
    found = events.filter(pl.col("code") == code).group_by("patient_id").agg(pl.col("start").min().alias("found"))
    rows = pl.concat([examples["train_labels"], examples["val_labels"]]).join(found, on="patient_id", how="left")
    after = pl.col("found").dt.date() - pl.col("prediction_time").dt.date()
    rows = rows.with_columns(days=after.dt.total_days())
    assert (rows["days"].drop_nulls() > 0).all()
    assert ((rows["days"] <= 365).fill_null(value=False).cast(pl.Int64) == rows["label"]).all()
    stays = events.filter(pl.col("code") == "Visit/IP").select("patient_id", day=pl.col("end").dt.date())
    at_discharge = rows.with_columns(day=pl.col("prediction_time").dt.date()).join(
        stays, on=["patient_id", "day"], how="semi"
    )
    assert at_discharge.height == rows.height


def test_birth_sex_and_race_once_each_and_nothing_after_death(files):
    _, _, events, _ = files
    people = events["patient_id"].n_unique()
    for pattern in ("^SNOMED/3950001$", "^Gender/", "^Race/"):
        per = events.filter(pl.col("code").str.contains(pattern)).group_by("patient_id").len()
        assert per.height == people
        assert (per["len"] == 1).all()
    death = events.filter(pl.col("omop_table") == "death").select("patient_id", died=pl.col("start"))
    assert death.height > 0
    after = events.join(death, on="patient_id")
    assert (after["start"] <= after["died"]).all()
    assert (after["end"].is_null() | (after["end"] <= after["died"])).all()


def test_treatment_and_defining_tests_come_after_the_diagnosis(files, words):
    _, _, events, _ = files
    for disease in words.diseases.values():
        first = (
            events.filter(pl.col("code") == f"SNOMED/{disease['snomed']}")
            .group_by("patient_id")
            .agg(found=pl.col("start").min().dt.date())
        )
        prefixes = "|".join(f"^ICD10CM/{prefix.replace('.', '[.]')}" for prefix in disease["banned"])
        codes = [f"RxNorm/{code}" for code in disease["treatment"]] + [f"LOINC/{code}" for code in disease["defining"]]
        own = events.filter(pl.col("code").is_in(codes) | pl.col("code").str.contains(prefixes))
        seen = own.join(first, on="patient_id", how="left")
        assert seen["found"].null_count() == 0
        assert (seen["start"].dt.date() >= seen["found"]).all()


def test_office_hours_and_stays(files):
    _, _, events, _ = files
    office = events.filter(pl.col("code") == "Visit/OP")
    assert (office["start"].dt.weekday() <= 5).mean() >= 0.95
    stays = events.filter(pl.col("code") == "Visit/IP").drop_nulls("end").sort("patient_id", "start")
    days = (stays["end"].dt.date() - stays["start"].dt.date()).dt.total_days()
    assert 3 <= days.median() <= 5
    same = stays["patient_id"].to_numpy()[1:] == stays["patient_id"].to_numpy()[:-1]
    assert (stays["start"].to_numpy()[1:][same] > stays["end"].to_numpy()[:-1][same]).all()


def test_values_have_the_unit_of_their_code_and_nothing_else_has_a_value(files, words):
    _, _, events, _ = files
    units = dict(zip(words.labs.names, words.labs.units, strict=True))
    measured = events.filter(pl.col("omop_table") == "measurement")
    assert measured["value"].null_count() == 0
    seen = measured.group_by("code").agg(pl.col("unit").unique())
    assert all(row["unit"] == [units[row["code"]]] for row in seen.to_dicts())
    assert events.filter(pl.col("omop_table") != "measurement")["value"].drop_nulls().is_empty()
    for code, low, high in (("2951-2", 130, 148), ("718-7", 8, 18), ("8480-6", 90, 175), ("2823-3", 3.0, 5.4)):
        value = measured.filter(pl.col("code") == f"LOINC/{code}")["value"]
        assert value.quantile(0.01) >= low
        assert value.quantile(0.99) <= high


def test_ids_carry_nothing(files):
    _, _, events, examples = files
    visits = events.drop_nulls("visit_id").unique("visit_id", keep="first", maintain_order=True)
    order, key = np.arange(visits.height), visits["visit_id"].to_numpy()
    assert abs(np.corrcoef(order, np.argsort(np.argsort(key)))[0, 1]) < 4 / np.sqrt(len(key))
    gaps = np.diff(key)
    assert len(np.unique(gaps)) > 0.99 * len(gaps)
    labels = examples["train_labels"]
    place = np.arange(labels.height)
    assert abs(np.corrcoef(place, labels["label"])[0, 1]) < 4 / np.sqrt(len(place))


def test_no_two_tasks_share_a_patient(stage):
    ids = [
        set(pl.read_csv(stage(f"ehr_event_modelling/{case}").public / "test_examples.csv")["patient_id"])
        for case in CASES
    ]
    assert not ids[0] & ids[1]


def test_scramble_is_a_bijection():
    keys = np.array([12345 * 2 + 1, 7, 999_999, 2**28 + 1])
    number = np.arange(1 << 16) * 3
    mixed = scramble(number, keys)
    assert len(np.unique(mixed)) == len(number)
    assert mixed.min() >= 0
    assert mixed.max() < 1 << VISIT_BITS


def test_cut_drops_and_blanks():
    whole = Block(
        patient=np.array([0, 0, 0, 1]),
        minute=np.array([10, 20, 30, 99]),
        end=np.array([15, 30, 40, NO_END]),
        code=np.arange(4),
        value=np.zeros(4),
        visit=np.arange(4),
    )
    kept = cut(whole, np.array([30, 10**9]))
    assert kept.code.tolist() == [0, 1, 3]
    assert kept.end.tolist() == [15, NO_END, NO_END]


def test_a_history_is_what_lies_before_the_prediction():
    block = Block(
        patient=np.array([4, 4, 4, 5]),
        minute=np.array([DAY, 2 * DAY, 3 * DAY, DAY]),
        end=np.full(4, NO_END),
        code=np.array([2, 2, 1, 0]),
        value=np.array([0.5, 0.6, 0.7, 0.8]),
        visit=np.zeros(4, dtype=np.int64),
    )
    code, value, days = block.history(4, 3 * DAY)
    assert (code.tolist(), value.tolist(), days.tolist()) == ([2, 2], [0.5, 0.6], [2.0, 1.0])
    assert block.history(5, 2 * DAY)[0].tolist() == [0]


def test_the_gate_counts_codes_ancestors_and_deciles_by_time_bin():
    """By hand: two leaves of one subcategory, a value in the first and one in the last decile, a year ago and more."""
    codes = ["ICD10CM/I25.10", "ICD10CM/I25.11", "ICD10CM/I26", "LOINC/x", "RxNorm/1"]
    sample = np.arange(1.0, 101.0)
    counting = Counting.of(codes, np.full(100, 3), sample)
    assert counting.borders[3].tolist() == [11.0, 21.0, 31.0, 41.0, 51.0, 61.0, 71.0, 81.0, 91.0]
    assert np.isnan(counting.borders[[0, 1, 2, 4]]).all()
    counter, none = Counter(counting), np.nan
    history = np.array([0, 1, 1, 3, 3, 4]), np.array([none, none, none, 10.9, 91.0, none])
    counter.add(0, *history, np.array([5.0, 5.0, 400.0, 5.0, 5.0, 400.0]))
    counter.add(1, *(column[:1] for column in history), np.array([366.0]))
    cells = counter.matrix(2)
    assert counting.per_code(cells).toarray().tolist() == [[1, 2, 0, 2, 1], [1, 0, 0, 0, 0]]
    assert counting.features(cells, np.array([44.9, 30.0])).shape == (2, 0)
    features = replace(counting, seen_by=1).features(cells, np.array([44.9, 30.0])).toarray()
    # age; lately I25.10, I25.11, the value's code, I25 and I25.1, the mean decile; earlier I25.10, I25.11, the medicine,
    # I25 and I25.1
    assert features.tolist() == [[44, 1, 1, 2, 2, 2, 5.5, 0, 1, 1, 1, 1], [30, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1]]


def test_the_frozen_settings_are_points_of_the_published_grid():
    assert len(GRID) == 27
    for case in load_category(FOLDER).cases.values():
        assert {name: case.parameters[f"gate_{name}"] for name in GRID[0]} in GRID


def test_derived_values_follow_from_their_panel(words):
    labs = words.labs
    rng = np.random.default_rng(0)
    item = np.tile(np.array(labs.panels["count"]), 2000)
    level = person_levels(rng, labs, 2000)[np.repeat(np.arange(2000), len(labs.panels["count"])), item]
    value = lab_values(rng, labs, item, np.zeros(len(item), dtype=np.int64), level)
    ratio = value[item == labs.at("4544-3")] / value[item == labs.at("718-7")]
    assert np.quantile(ratio, 0.01) >= 2.7
    assert np.quantile(ratio, 0.99) <= 3.3


def test_best_plain_is_not_beaten_by_any_fit_of_age_and_sex():
    rng = np.random.default_rng(2)
    age, male = rng.uniform(20, 90, 500), (rng.random(500) < 0.5).astype(float)
    risk = 1 / (1 + np.exp(-((age - 60) / 10 - male)))
    name, reached = best_plain({"id": rng.random(500)}, age, male, risk, lambda score: expected_auroc(score, risk))
    assert name == "age and sex"
    assert reached >= expected_auroc(age - 10 * male, risk) - 1e-3


def small_world(case):
    draw = Draw(case, load_category(FOLDER).cases[case], case_key("x", "ehr_event_modelling", case, 0), "small")
    words = load_vocabulary()
    world = patients.build_cohort(draw, words.diseases)
    return words, world, make_block(draw, words, build_topics(words), world, 0, len(world.ids))


@pytest.fixture(scope="module")
def timelines():
    return small_world("pancreatic_cancer")


def test_laboratory_values_drift_before_onset(timelines):
    words, world, block = timelines
    k = list(words.diseases).index("pancreatic_cancer")
    labs = words.labs
    for code, shift in words.diseases["pancreatic_cancer"]["drift"].items():
        if abs(shift) < 0.9:
            continue
        at = np.flatnonzero(block.code == words.lab_start + labs.at(code))
        day = block.minute[at] / DAY
        full = phase(world, block.patient[at], day, k, words.diseases["pancreatic_cancer"]["ramp_y"])
        before = day < world.diagnosis[block.patient[at], k]
        value = block.value[at]
        moved = value[(full > 0.8) & before].mean() - value[full == 0].mean()
        assert np.sign(moved) == np.sign(shift), code


def test_nothing_happens_more_often_in_a_preclinical_phase(timelines):
    """Prodrome codes take the place of others: how many events a visit has does not tell the phase."""
    words, world, block = timelines
    k = list(words.diseases).index("pancreatic_cancer")
    office = np.flatnonzero(block.code == words.index("Visit/OP"))
    coded = np.array([table == "condition_occurrence" for table in words.tables])[block.code]
    size = np.bincount(block.visit[coded & (block.visit >= 0)], minlength=block.visit.max() + 1)[block.visit[office]]
    day = block.minute[office] / DAY
    full = phase(world, block.patient[office], day, k, 0.5)
    before = day < world.diagnosis[block.patient[office], k]
    ill, well = size[(full > 0.8) & before], size[full == 0]
    assert len(ill) > 100
    error = np.sqrt(ill.var() / len(ill) + well.var() / len(well))
    assert abs(ill.mean() - well.mean()) < 4 * error + 0.1


def test_instruction_states_every_rule(files):
    case, _, _, _ = files
    task = find_task(f"ehr_event_modelling/{case}")
    text = render_instruction(task, task.category.resources["small"])
    for rule in (
        "1 to 365 days",
        "0.01 above",
        "exactly one row",
        "without seconds",
        str(task.spec.parameters["snomed"]),
    ):
        assert rule in text, rule


def test_fits_beside_one_another_are_those_made_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    counts = sparse.csr_matrix(rng.poisson(0.5, (600, 80)).astype(np.float32))
    label = (rng.random(600) < 1 / (1 + np.exp(2 - counts[:, 0].toarray()[:, 0]))).astype(np.int64)
    settings = {"max_depth": 3, "learning_rate": 0.02, "num_leaves": 10}
    beside = gate.gate_scores(counts[:400], label[:400], counts[400:], settings)
    monkeypatch.setattr(gate, "WORKERS", 1)
    assert np.array_equal(beside, gate.gate_scores(counts[:400], label[:400], counts[400:], settings))
    monkeypatch.setattr(gate, "FITS", 1)
    assert not np.array_equal(beside, gate.gate_scores(counts[:400], label[:400], counts[400:], settings))
