"""Event modelling on EHRSHOT: nothing of the year to be predicted reaches the agent, and nobody can be looked up."""

import json
import zipfile

import ehrshot
import polars as pl
import pytest

from categories.catalog import find_task
from categories.draw import Draw
from categories.ehr_event_modelling.timelines import Examples, Timelines
from categories.sources.spec import find_source
from categories.staging import StageRequest, StagingError, staged
from verifiers_hidden.ehr_event_modelling import weighted_auroc

TASK = ehrshot.TASK


@pytest.fixture(scope="module")
def draw(stage):
    return stage(TASK)


def events_of(draw) -> pl.DataFrame:
    stamps = pl.col("start", "end").str.to_datetime("%Y-%m-%d %H:%M:%S")
    return pl.read_csv(draw.public / "events.csv", infer_schema=False).with_columns(stamps)


def examples_of(draw) -> pl.DataFrame:
    stamp = pl.col("prediction_time").str.to_datetime("%Y-%m-%d %H:%M:%S")
    return pl.read_csv(draw.public / "test_examples.csv", infer_schema=False).with_columns(stamp)


def test_test_patients_have_one_row_and_no_event_from_their_prediction_on(draw) -> None:
    examples, events = examples_of(draw), events_of(draw)
    assert examples["patient_id"].is_unique().all()
    assert examples["prediction_time"].dt.strftime("%H:%M:%S").unique().to_list() == ["23:59:00"]
    both = events.join(examples, on="patient_id")
    assert both.height > 1000
    assert (both["start"] < both["prediction_time"]).all()
    assert both.filter(pl.col("end") >= pl.col("prediction_time")).is_empty()
    stays = both.filter((pl.col("code") == "Visit/IP") & pl.col("end").is_null())
    assert stays.height >= examples.height, "the row stays, its end is blank"
    assert events.filter(pl.col("code").is_in([ehrshot.TELLING, ehrshot.LATER])).is_empty()


def test_the_first_discharge_of_a_test_patient_counts(draw) -> None:
    source = ehrshot.tables()["examples"].filter(pl.col("split") == "test")
    assert examples_of(draw).height == source["patient_id"].n_unique() < source.height
    gold = pl.read_csv(draw.gold / "gold.csv", infer_schema=False)
    assert gold.columns == ["patient_id", "prediction_time", "label", "gate", "embedding"]
    assert (
        gold.select("patient_id", "prediction_time")
        .sort("patient_id")
        .equals(pl.read_csv(draw.public / "test_examples.csv", infer_schema=False).sort("patient_id"))
    )
    first = source.sort("prediction_time").unique("patient_id", keep="first")
    assert gold["label"].sort().to_list() == first["label"].sort().to_list()


def test_training_patients_keep_their_whole_timeline(draw) -> None:
    source = ehrshot.tables()
    people = source["examples"].filter(pl.col("split") != "test")["patient_id"].unique()
    kept = source["events"].filter(pl.col("patient_id").is_in(people.implode()))
    shown = events_of(draw).join(examples_of(draw), on="patient_id", how="anti")
    assert shown.height == kept.height
    lengths = [t.group_by("patient_id").len()["len"].sort().to_list() for t in (shown, kept)]
    assert lengths[0] == lengths[1]


def test_ids_and_dates_are_new_and_intervals_stay(draw) -> None:
    source, shown = ehrshot.tables()["events"], events_of(draw)
    assert set(shown["patient_id"]).isdisjoint(source["patient_id"])
    shared = set(shown["visit_id"].drop_nulls()) & set(source["visit_id"].drop_nulls())
    assert len(shared) < 5, "numbers of one range coincide now and then"
    assert not shown["code"].str.contains("STANFORD").any()
    assert shown["code"].str.starts_with("LOCAL_OBS/").any()
    people = ehrshot.tables()["examples"].filter(pl.col("split") != "test")["patient_id"].unique()
    real = source.filter(pl.col("patient_id").is_in(people.implode())).with_columns(pl.col("start").str.to_datetime())
    trained = shown.join(examples_of(draw), on="patient_id", how="anti")
    assert spans(trained).equals(spans(real))


def spans(events: pl.DataFrame) -> pl.Series:
    """Return the time from birth to last event of each person, sorted."""
    born = events.filter(pl.col("code") == "SNOMED/3950001").select("patient_id", born="start")
    last = events.group_by("patient_id").agg(last=pl.col("start").max())
    return born.join(last, on="patient_id").select(span=pl.col("last") - pl.col("born"))["span"].sort()


def test_values_that_are_no_numbers_are_left_empty_and_units_stay(draw) -> None:
    shown = events_of(draw)
    numbers = shown["value"].drop_nulls()
    assert numbers.cast(pl.Float64, strict=False).null_count() == 0
    assert shown.filter(pl.col("code") == "LOCAL_OBS/note")["value"].null_count() > 0
    assert shown["unit"].drop_nulls().len() > 100


def test_gate_and_plain_orderings_are_measured_on_the_labels_of_the_same_rows(draw) -> None:
    gold = pl.read_csv(draw.gold / "gold.csv")
    plain = json.loads((draw.gold / "plain.json").read_text())
    gate = weighted_auroc(gold["gate"].to_numpy(), gold["label"].to_numpy().astype(float))
    assert 0.4 < gate < 1
    assert gold["gate"].n_unique() > gold.height / 3
    assert gold["gate"].is_between(0, 1).all()
    assert 0.5 <= plain["auroc"] <= 1
    age = gold.join(ages(draw), on="patient_id")
    assert weighted_auroc(age["age"].to_numpy(), age["label"].to_numpy().astype(float)) <= plain["auroc"] + 1e-4
    assert draw.variant == ""


def ages(draw) -> pl.DataFrame:
    born = events_of(draw).filter(pl.col("code") == "SNOMED/3950001").select("patient_id", born="start")
    both = examples_of(draw).join(born, on="patient_id")
    days = (pl.col("prediction_time") - pl.col("born")).dt.total_days()
    return both.select(pl.col("patient_id").cast(pl.Int64), age=days.cast(pl.Float64))


def test_counts_are_of_codes_that_start_before_the_prediction(tmp_path) -> None:
    """By hand: two patients, codes before, at and after the prediction time."""
    header = ",patient_id,start,end,code,value,unit,visit_id,omop_table\n"
    rows = [
        "1,1990-01-01 00:00:00,,SNOMED/3950001,,,,person",
        "1,2010-01-01 00:00:00,,A,1.5,mg,3,measurement",
        "1,2010-01-02 00:00:00,2012-01-01 00:00:00,A,,,3,condition_occurrence",
        "1,2011-01-01 23:59:00,,B,,,,condition_occurrence",
        "1,2011-06-01 00:00:00,,C,,,,condition_occurrence",
        "2,1960-01-01 00:00:00,,SNOMED/3950001,,,,person",
        "2,1960-01-01 00:00:00,,Gender/M,,,,person",
        "2,2010-05-01 00:00:00,,Visit/IP,,,9,visit_occurrence",
        "3,2010-05-01 00:00:00,,A,,,9,visit_occurrence",
    ]
    (tmp_path / "events.csv").write_text(header + "".join(f"{n},{row}\n" for n, row in enumerate(rows)))
    time = pl.lit("2011-01-01 23:59:00").str.to_datetime("%Y-%m-%d %H:%M:%S")
    table = pl.DataFrame(
        {"row": [0, 1], "patient": [1, 2], "patient_id": [500, 600], "split": ["test", "train"], "shift": [7, -14]}
    ).with_columns(time=time, until=pl.when(pl.col("split") == "test").then(time), label=pl.lit(0))
    draw = Draw("hypertension", find_task(TASK).spec, b"k" * 32, "small")
    timelines = Timelines(draw, tmp_path / "events.csv", Examples(table), tmp_path)
    cells, facts = timelines.write(tmp_path / "shown.csv")
    assert timelines.codes.to_list() == ["A", "Gender/M", "SNOMED/3950001", "Visit/IP"]
    assert timelines.counting.per_code(cells).toarray().tolist() == [[2, 0, 1, 0], [0, 1, 1, 1]]
    assert facts["male"].to_list() == [False, True]
    assert facts["visits"].to_list() == [0, 1]
    assert facts["born"].dt.year().to_list() == [1990, 1960]
    shown = pl.read_csv(tmp_path / "shown.csv", infer_schema=False)
    assert shown.filter(pl.col("patient_id") == "500")["start"].to_list() == [
        "1990-01-08 00:00:00", "2010-01-08 00:00:00", "2010-01-09 00:00:00",
    ]  # fmt: skip
    assert shown.filter(pl.col("patient_id") == "500")["end"].to_list() == [None, None, None]
    assert shown.filter(pl.col("code") == "Visit/IP")["start"].to_list() == ["2010-04-17 00:00:00"]


def test_only_what_is_needed_is_fetched_of_the_archive(draw, clinic) -> None:
    host = clinic["ehrshot"]
    assert all("range" in one.headers for one in host.gets() if "rawFiles/" in one.path)


def test_a_local_copy_unpacked_or_packed_is_used(clinic, draw, tmp_path, monkeypatch) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / ehrshot.ARCHIVE).write_bytes(ehrshot.archive())
    monkeypatch.setenv(find_source("ehrshot").folder_variable, str(folder))
    monkeypatch.delenv("REDIVIS_API_TOKEN")
    request = StageRequest(find_task(TASK), "0", 0, "small", "clinical")
    with staged(request, tmp_path / "a") as packed:
        assert packed.content_digest == draw.content_digest
    with zipfile.ZipFile(folder / ehrshot.ARCHIVE) as archive:
        archive.extractall(folder)
    (folder / ehrshot.ARCHIVE).unlink()
    with staged(request, tmp_path / "b") as unpacked:
        assert unpacked.content_digest == draw.content_digest


def test_a_folder_of_something_else_is_said_to_be_that(clinic, tmp_path, monkeypatch) -> None:
    (tmp_path / "splits").mkdir()
    monkeypatch.setenv(find_source("ehrshot").folder_variable, str(tmp_path))
    request = StageRequest(find_task(TASK), "0", 0, "small", "clinical")
    with pytest.raises(StagingError, match=r"holds no data/ehrshot\.csv"), staged(request, tmp_path / "cache"):
        pass


def test_an_error_of_a_parser_never_shows_what_it_read(clinic, tmp_path, monkeypatch) -> None:
    folder = tmp_path / "mine"
    for name in ("data/ehrshot.csv", "splits/person_id_map.csv", "benchmark/new_hypertension/labeled_patients.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("patient_id,prediction_time,value\nSECRET NAME,2011-01-01,True\n")
    monkeypatch.setenv(find_source("ehrshot").folder_variable, str(folder))
    request = StageRequest(find_task(TASK), "0", 0, "small", "clinical")
    with pytest.raises(StagingError, match="another format") as caught, staged(request, tmp_path / "cache"):
        pass
    assert "SECRET" not in str(caught.value)
