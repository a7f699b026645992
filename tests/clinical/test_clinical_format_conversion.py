"""The conversion's gold is what the pinned ETL makes of the disguised demo; where our own conversion differs, none is."""

import os
from pathlib import Path

import meds_env
import polars as pl
import pytest
from clinic import Clinic

from categories.catalog import find_task
from categories.ehr_format_conversion.etl import Cohort
from categories.ehr_format_conversion.pinned_etl import ENVIRONMENT, differences, require_agreement
from categories.sources.errors import NotReadyError, SourceError
from categories.staging import StageRequest, StagingError, staged
from runners.cache import Cache, default_cache
from suite.etl_environment import ensure_environment, provide_etl

TASK = "ehr_format_conversion/mimic_iv_to_meds"


@pytest.fixture(scope="module")
def draw(stage):
    return stage(TASK)


def paths(draw) -> tuple[Path, Path]:
    return draw.public / "raw_input", draw.gold / "custom_event_configs.yaml"


def test_gold_is_what_the_pinned_etl_makes_and_a_lost_row_is_refused(draw, tmp_path) -> None:
    require_agreement(*paths(draw), draw.gold / "expected")
    for name in ("codes", "splits"):
        (tmp_path / f"{name}.parquet").write_bytes((draw.gold / "expected" / f"{name}.parquet").read_bytes())
    pl.read_parquet(draw.gold / "expected" / "events.parquet")[1:].write_parquet(tmp_path / "events.parquet")
    with pytest.raises(SourceError, match=r"of public/raw_input differ: 1 rows of \w+\. No gold is made") as caught:
        require_agreement(*paths(draw), tmp_path)
    assert "leave it out" in str(caught.value)


def cohort(draw) -> Cohort:
    return Cohort(
        *(pl.read_parquet(draw.gold / "expected" / f"{name}.parquet") for name in ("events", "codes", "splits"))
    )


def test_each_difference_is_counted_and_notation_is_none(draw) -> None:
    ours = cohort(draw)
    assert differences(ours, ours) == []
    written_otherwise = Cohort(
        ours.events.sample(fraction=1.0, shuffle=True, seed=1).with_columns(
            pl.col("hadm_id").cast(pl.String), empty=pl.lit(None, pl.String)
        ),
        ours.codes.with_columns(pl.col("parent_codes").list.reverse()),
        ours.splits[::-1],
    )
    assert differences(ours, written_otherwise) == []
    later = ours.events.with_columns(pl.col("time").dt.offset_by("1us"))
    assert differences(ours, Cohort(later, ours.codes, ours.splits))
    described = ours.codes.with_columns(pl.col("description") + "!")
    assert differences(ours, Cohort(ours.events, described, ours.splits)) == [
        f"{ours.codes['description'].count()} codes"
    ]
    moved = ours.splits.with_columns(split=pl.lit("train"))
    assert differences(ours, Cohort(ours.events, ours.codes, moved))[0].endswith("splits")


def test_without_the_pinned_etl_there_is_no_gold(clinic: Clinic, tmp_path, monkeypatch) -> None:
    task = find_task(TASK)
    clinic.open_for(task)
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "nowhere"))
    with (
        pytest.raises(StagingError, match=r"the pinned ETL is not in .*run through `hab-suite prepare` or `run`"),
        staged(StageRequest(task, "0", 0, "small", "clinical"), tmp_path),
    ):
        pass
    assert not list((tmp_path / "staged").glob("*/staged.json"))


def test_an_etl_that_fails_says_so_and_quotes_no_row(draw, tmp_path) -> None:
    meds_env.ensure()
    (tmp_path / "events.yaml").write_text(
        "subject_id_col: subject_id\nhosp/patients:\n  birth: {code: [BORN, col(none)]}\n"
    )
    with pytest.raises(SourceError, match=r"the pinned ETL ended with status \d+ on this input; is HAB_MEDS_ENV"):
        require_agreement(paths(draw)[0], tmp_path / "events.yaml", draw.gold / "expected")


def test_the_environment_is_made_once_named_to_preparations_and_not_fetched_offline(tmp_path, monkeypatch) -> None:
    made = meds_env.ensure()
    monkeypatch.delenv(ENVIRONMENT)
    cache = Cache(made.parent.parent)
    said: list[str] = []
    other = find_task("ehr_data_quality/combined")
    provide_etl([StageRequest(other, "0", 0, "full", "clinical")], cache, said.append, offline=True)
    assert ENVIRONMENT not in os.environ, "a task of another image needs none"
    provide_etl(
        [StageRequest(find_task(TASK), "not made yet", 0, "small", "clinical")], cache, said.append, offline=True
    )
    assert Path(os.environ[ENVIRONMENT]) == made
    assert said == []
    with pytest.raises(NotReadyError, match=r"--offline \(HAB_SUITE_OFFLINE\) forbids to fetch it: run once without"):
        ensure_environment(Cache(tmp_path), offline=True)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    with pytest.raises(
        NotReadyError,
        match=r"environment cannot be made in .*Mend that .*name an environment .*or choose other tasks .*--scale small",
    ):
        ensure_environment(Cache(tmp_path))
    assert not list((tmp_path / "meds-env").glob("*/finished"))


def test_a_draw_that_is_here_needs_no_etl(draw, monkeypatch) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    wanted = StageRequest(find_task(TASK), "0", 0, "small", "clinical")
    provide_etl([wanted], default_cache(), pytest.fail, offline=True)
    assert ENVIRONMENT not in os.environ
