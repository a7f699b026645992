"""Every command with what a hurried user gives it: one clear line, exit status 2, no traceback."""

import errno
import json
import shutil
import sys
from pathlib import Path

import pytest

from results.folder import RunFolder, RunFolderError
from suite.cli import main
from suite.errors import words_of

RUN_V1 = Path(__file__).parents[1] / "results" / "data" / "run-v1"
TRIAL = "ehr_event_modelling/case-00/i0/codex@gpt-5.4@high/t1"
NOP = ("run", "--harness", "nop", "--scale", "small", "--tasks", "ehr_data_quality/combined")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a whole run, an empty folder, a file that is no text, and a file in the way."""
    shutil.copytree(RUN_V1, tmp_path / "whole")
    (tmp_path / "empty").mkdir()
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "plan.toml").write_text('harness = ["nop"]\ncolour = "red"\n')
    (tmp_path / "prices.toml").write_text('["gpt-5"]\ninput = "dear"\noutput = 1\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAB_SUITE_CACHE", str(tmp_path / "cache"))
    return tmp_path


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what the command says; an error that is not expected would come out as it is."""
    monkeypatch.setattr(sys, "argv", ["hab-suite", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("report", "empty"), "it holds no run.json; give one that"),
        (("report", "whole", "--prices", "binary"), "price file binary: is no TOML file"),
        (("report", "whole", "--prices", "none"), "price file none: No such file"),
        (("report", "whole", "--prices", "prices.toml"), "gpt-5.input"),
        (("compare", "a", "b", "--run", "whole"), "a has no trials; there are codex@gpt-5.4@high"),
        (("site", "whole", "--out", "/proc/site"), "/proc/site: No such file or directory; see that the path is right"),
        (("site", "whole", "--out", "binary"), "Not a directory"),
        (("export", "parquet", "whole", "--out", "none/x.parquet"), "none/x.parquet"),
        (("export", "parquet", "whole", "--out", "empty"), "is a directory"),
        (("pareto", "whole", "--figure", "/proc/x.svg"), "/proc/x.svg"),
        (("view", "whole", "--port", "65536"), "--port"),
        (("logs", "whole/none"), "no trial there"),
        (("list", "nope"), "`hab-suite list` shows all"),
        ((*NOP, "-f", "binary"), "-f binary: is no TOML file"),
        ((*NOP, "-f", "plan.toml"), "colour: no such word; there are harness"),
        ((*NOP, "--jobs", "0"), "--jobs"),
        (("resume", "whole", "--jobs", "0"), "--jobs"),
        ((*NOP, "--max-usd", "abc"), "--max-usd"),
        ((*NOP, "--max-usd", "-1"), "--max-usd: it should be greater than 0"),
        (("cache", "prune", "--keep-gb", "-1"), "--keep-gb"),
        (("plan", "--detect", "nan"), "--detect nan"),
    ],
)
def test_bad_words_get_a_line(here: Path, monkeypatch, capsys, words: tuple[str, ...], says: str) -> None:
    said = refused(monkeypatch, capsys, *words)
    assert says in said
    assert "Traceback" not in said


@pytest.mark.engine
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--key-file", "none"), "--key-file none: No such file"),
        (("--key-file", "binary"), "--key-file binary: no text in UTF-8"),
        (("--prices", "none"), "price file"),
        (("--harness", "declared", "--harness-file", "binary"), "binary: is no TOML file"),
        (("--out", "/proc/runs"), "/proc/runs"),
        (("--out", "binary"), "binary"),
    ],
)
def test_a_run_that_cannot_be_is_not_begun(here: Path, monkeypatch, capsys, words: tuple[str, ...], says: str) -> None:
    assert says in refused(monkeypatch, capsys, *NOP, *words)
    assert not (here / "runs").exists()


def edit_plan(run: Path, **fields: object) -> None:
    plan = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(plan | fields))


def add_line(run: Path, line: str) -> None:
    with (run / "events.jsonl").open("a") as file:
        file.write(line + "\n")


def only_trial_files(run: Path, content: bytes) -> None:
    (run / "events.jsonl").unlink()
    for file in run.rglob("trial.json"):
        file.write_bytes(content)


def edit_record(run: Path, **fields: object) -> None:
    lines = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    closing = next(line for line in lines if line["kind"] == "trial_ended")
    closing["record"] |= fields
    (run / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


DAMAGES = {
    "cut plan": (lambda run: (run / "run.json").write_text('{"schema_version": 1, '), "run.json is damaged"),
    "plan in no encoding": (lambda run: (run / "run.json").write_bytes(b"\xff"), "run.json is damaged"),
    "plan without trials": (lambda run: edit_plan(run, trials=None), "run.json is damaged: trials: "),
    "newer": (
        lambda run: edit_plan(run, schema_version=2),
        "format version 2; this hab-suite reads up to 1: update it",
    ),
    "line that is no event": (lambda run: add_line(run, '["trial_ended"]'), "line 6 is no event"),
    "event without its record": (
        lambda run: add_line(run, '{"kind": "trial_ended", "trial_id": "a", "record": {"b": 1}}'),
        "the record of a is damaged: run_id: Field required",
    ),
    "record of another shape": (lambda run: edit_record(run, phases=7), f"the record of {TRIAL} is damaged: phases"),
    "record of other types": (lambda run: edit_record(run, reason=7), f"the record of {TRIAL} is damaged: reason"),
    "cut record": (lambda run: only_trial_files(run, b'{"run_id": '), "trial.json is damaged"),
    "record that is none": (lambda run: only_trial_files(run, b"[]"), "trial.json is damaged"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_run_is_named_with_the_file(here: Path, monkeypatch, capsys, name: str) -> None:
    damage, says = DAMAGES[name]
    damage(here / "whole")
    said = refused(monkeypatch, capsys, "report", "whole")
    assert says in said
    assert len(said.splitlines()) == 1, said


def test_a_run_without_its_seed_says_what_that_means(here: Path) -> None:
    (here / "whole" / "seed").unlink()
    with pytest.raises(RunFolderError, match=r"seed cannot be read .* data cannot be made again"):
        RunFolder.open(here / "whole").seed()


def test_a_run_of_no_trials_has_a_report_and_nobody_to_compare(here: Path, monkeypatch, capsys) -> None:
    (here / "whole" / "events.jsonl").unlink()
    edit_plan(here / "whole", trials=[])
    monkeypatch.setattr(sys, "argv", ["hab-suite", "report", "whole"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert "Success is passes / trials" in capsys.readouterr().out
    assert "no trials to compare" in refused(monkeypatch, capsys, "compare", "a", "b", "--run", "whole")


@pytest.mark.parametrize("error", [ConnectionResetError("peer"), TimeoutError("timed out"), OSError("of our own")])
def test_no_path_is_blamed_for_what_is_no_path(error) -> None:
    assert words_of(error) == ""


def test_a_path_or_a_full_disk_is_named() -> None:
    assert "a/b: No such file" in words_of(FileNotFoundError(errno.ENOENT, "No such file or directory", "a/b"))
    assert "disk has room" in words_of(OSError(errno.ENOSPC, "No space left on device"))
