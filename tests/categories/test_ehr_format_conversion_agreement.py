"""At full scale no gold is made on which the pinned ETL and our own conversion differ; small scale needs no ETL."""

import os
import subprocess
import sys
from pathlib import Path

import meds_env
import polars as pl
import pytest

from categories.catalog import find_task
from categories.draw import Draw
from categories.ehr_format_conversion import etl, synthetic
from categories.ehr_format_conversion.pinned_etl import ENVIRONMENT
from categories.seed import case_key
from categories.sources.errors import NotReadyError, SourceError
from categories.staging import StageRequest
from runners.cache import Cache, default_cache
from suite.etl_environment import needs_etl, provide_etl
from suite.preparing import prepare
from suite.reading import show
from suite.scoring import verify

TASK = find_task("ehr_format_conversion/mimic_iv_to_meds")
OFFLINE = r"checks the gold of the format conversion, is not in .*--offline .*run once without"


@pytest.fixture(scope="module")
def made() -> Path:
    """The environment in the user's cache."""
    return meds_env.ensure()


@pytest.fixture
def with_etl(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(made))


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that prepares a draw; at full scale with few patients."""
    monkeypatch.setitem(synthetic.PATIENTS, "full", 6)

    def of(scale: str) -> Path:
        draw = Draw(TASK.case, TASK.spec, case_key("agreement", TASK.category.id, TASK.data_case, 0), scale)
        places = {name: tmp_path / scale / name for name in ("public", "gold", "workspace")}
        for place in places.values():
            place.mkdir(parents=True)
        synthetic.prepare(draw, **places)
        return tmp_path / scale

    return of


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A machine that has nothing yet and is offline."""
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.setenv("HAB_SUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HAB_SUITE_OFFLINE", "1")
    return default_cache()


@pytest.mark.slow
def test_full_scale_gold_is_checked_and_the_same_as_unchecked(with_etl, make, monkeypatch) -> None:
    checked = make("full")
    monkeypatch.setitem(synthetic.PATIENTS, "small", 6)
    unchecked = make("small")
    files = [
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (checked, unchecked)
    ]
    assert files[0] == files[1], "the check leaves nothing behind"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lost_of", "place"), [(6, "public"), (synthetic.HIDDEN_PATIENTS, "hidden")], ids=["cohort", "hidden input"]
)
def test_a_row_that_our_conversion_loses_is_refused_at_full_scale(
    lost_of: int, place: str, with_etl, make, monkeypatch
) -> None:
    default = synthetic.document("events.json")

    def losing(raw: dict[str, pl.DataFrame], events: etl.Events) -> etl.Cohort:
        """Lose a row of the changed configuration alone: what no verdict's check of the default one would see."""
        cohort = etl.convert(raw, events)
        if events == default or len(raw["hosp/patients"]) != lost_of:
            return cohort
        return etl.Cohort(cohort.events[1:], cohort.codes, cohort.splits)

    monkeypatch.setattr(synthetic, "convert", losing)
    with pytest.raises(SourceError, match=rf"of {place}/raw_input differ: 1 rows of \w+\. No gold is made"):
        make("full")


def test_small_scale_needs_no_etl_and_full_scale_says_what_to_do(make, monkeypatch, tmp_path) -> None:
    for named in ("", str(tmp_path / "nowhere")):
        monkeypatch.setenv(ENVIRONMENT, named)
        with pytest.raises(NotReadyError, match=r"the pinned ETL is not in .*run through `hab-suite prepare` or `run`"):
            make("full")
        for folder in tmp_path.glob("full"):
            folder.rename(tmp_path / f"tried with {Path(named).name}")
    assert (make("small") / "gold" / "expected" / "events.parquet").exists()


def test_one_function_says_which_draws_need_the_etl() -> None:
    other = find_task("ehr_data_quality/combined")
    assert not needs_etl(TASK, "small", "synthetic")
    assert needs_etl(TASK, "full", "synthetic")
    assert needs_etl(TASK, "small", "clinical")
    assert not needs_etl(other, "full", "synthetic")
    assert not needs_etl(other, "full", "clinical")


def test_the_etl_is_provided_for_a_draw_to_be_made_not_for_one_that_is_here(
    made: Path, bare: Cache, monkeypatch
) -> None:
    bare.root.mkdir()
    (bare.root / "meds-env").symlink_to(made.parent)
    small, full = (StageRequest(TASK, "0", 0, scale) for scale in ("small", "full"))
    provide_etl([small], bare, pytest.fail, offline=True)
    assert ENVIRONMENT not in os.environ
    provide_etl([small, full], bare, pytest.fail, offline=True)
    assert Path(os.environ[ENVIRONMENT]).resolve() == made.resolve()
    monkeypatch.delenv(ENVIRONMENT)
    here = bare.staged / full.cache_key()
    here.mkdir(parents=True)
    (here / "staged.json").touch()
    provide_etl([full], bare, pytest.fail, offline=True)
    assert ENVIRONMENT not in os.environ, "what is here is only read"


def test_a_staged_draw_lies_where_it_is_looked_for(stage) -> None:
    draw = stage(TASK.id, "tables")
    assert draw.folder == default_cache().staged / StageRequest(TASK, "tables", 0, "small").cache_key()


def test_prepare_has_the_etl_at_full_scale_and_does_without_at_small(bare: Cache) -> None:
    words = {"seed": "0", "scale": "full", "edition": None}
    with pytest.raises(NotReadyError, match=OFFLINE):
        prepare([TASK.id], [], words=words, instances=1, jobs=1)
    assert not bare.staged.exists(), "nothing was begun"
    assert prepare([TASK.id], [], words={**words, "scale": "small"}, instances=1, jobs=1) == 0
    assert len(list(bare.staged.glob("*/staged.json"))) == 1
    assert not list((bare.root / "meds-env").glob("*/finished"))


@pytest.mark.engine
def test_verify_has_the_etl_at_full_scale(bare: Cache, tmp_path) -> None:
    with pytest.raises(NotReadyError, match=OFFLINE):
        verify(TASK.id, tmp_path, scale="full", seed="0", instance=0)
    assert not bare.staged.exists()


def test_show_stages_nothing_of_it(bare: Cache, tmp_path, capsys) -> None:
    assert show(TASK.id, scale="full", figure=None, seed=None, with_gold=False) == 0
    assert TASK.id in capsys.readouterr().out
    assert not bare.staged.exists()


def hab(out: Path, scale: str) -> subprocess.CompletedProcess[str]:
    words = ["run", "--harness", "nop", "--tasks", TASK.id, "--seed", "0", "--scale", scale, "--out", str(out)]
    return subprocess.run([sys.executable, "-m", "hab_suite", *words], capture_output=True, text=True, check=False)


@pytest.mark.engine
@pytest.mark.slow
def test_a_run_has_the_etl_at_full_scale_and_does_without_at_small(bare: Cache, tmp_path) -> None:
    refused = hab(tmp_path / "runs", "full")
    assert refused.returncode == 2, refused.stderr
    assert "checks the gold of the format conversion" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "runs").exists(), "no run was begun"
    done = hab(tmp_path / "runs", "small")
    assert done.returncode == 0, done.stderr
    assert not list((bare.root / "meds-env").glob("*/finished"))
