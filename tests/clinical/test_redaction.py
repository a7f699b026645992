"""What is made of a run on real records carries numbers only: reports, sites and exports refuse anything else."""

import polars as pl
import pytest

from results.folder import RunFolder
from results.frame import export_parquet
from results.redaction import WITHHELD, RedactionError
from results.render import FORMATS
from results.report import build_report
from results.site.build import Options, build_site
from tests.results import simulate

QUOTE = "Mrs Real Person, 54, was admitted"


@pytest.fixture
def run(tmp_path) -> RunFolder:
    """A run on real records whose trials quote them wherever a trial can."""
    found = simulate.simulate(
        tmp_path / "run", categories={"ehr_data_quality": simulate.CATEGORIES["ehr_data_quality"]}, attempts=1,
        durable=False, edition="clinical",
    )  # fmt: skip
    for event in list(found.events()):
        if event.record is None:
            continue
        spoiled = event.record.model_copy(update={"message": QUOTE})
        found.append(event.model_copy(update={"record": spoiled, "kind": "rescored"}))
        trial = found.trial(event.record.plan)
        for folder, name in ((trial.agent, "stdout.log"), (trial.submission, "flagged_rows.csv")):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(QUOTE)
    return found


def test_without_redact_nothing_is_written(run, tmp_path) -> None:
    with pytest.raises(RedactionError, match="--redact"):
        build_report([run])
    with pytest.raises(RedactionError, match="--redact"):
        build_site([run], tmp_path / "site")
    assert not (tmp_path / "site").exists()
    with pytest.raises(RedactionError, match="--redact"):
        export_parquet([run], tmp_path / "runs.parquet")
    assert not (tmp_path / "runs.parquet").exists()


@pytest.mark.parametrize("form", FORMATS)
def test_a_redacted_report_quotes_nothing(run, form: str) -> None:
    assert QUOTE not in FORMATS[form](build_report([run], trajectories=True, redact=True))


def test_a_redacted_export_keeps_numbers_and_drops_words(run, tmp_path) -> None:
    assert export_parquet([run], tmp_path / "runs.parquet", redact=True) > 0
    table = pl.read_parquet(tmp_path / "runs.parquet")
    assert set(table["message"]) == {WITHHELD}
    assert table["headline"].null_count() < table.height
    assert QUOTE.encode() not in (tmp_path / "runs.parquet").read_bytes()


def test_a_redacted_site_has_no_page_of_a_single_trials_words(run, tmp_path) -> None:
    site = build_site([run], tmp_path / "site", Options(redact=True)).parent
    for path in site.rglob("*"):
        if path.is_file():
            assert QUOTE.encode() not in path.read_bytes(), path


def test_looking_on_this_machine_publishes_nothing(run, tmp_path) -> None:
    assert build_site([run], tmp_path / "site", Options(here_only=True)).is_file()
    assert (tmp_path / "site").stat().st_mode & 0o077 == 0
