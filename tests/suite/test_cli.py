"""The command line, without an engine: words in, exit code out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from categories.seed import DEFAULT_SEED
from suite.request import RequestError, make_request

COMMANDS = [
    "list",
    "show",
    "doctor",
    "build",
    "prepare",
    "run",
    "resume",
    "verify",
    "rescore",
    "report",
    "clean",
    "cache",
    "seed",
    "shell",
    "logs",
    "compare",
    "pareto",
    "site",
    "view",
    "export",
    "plan",
    "sources",
]


def hab(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hab_suite", *words],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        check=False,
    )


def test_help_names_every_command() -> None:
    text = hab("--help").stdout
    for command in COMMANDS:
        assert f"\n  {command} " in text
    assert hab("--version").stdout.startswith("hab-suite 0.")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    answer = hab(command, "--help")
    assert answer.returncode == 0
    assert "Usage: hab-suite" in answer.stdout


def test_list_is_a_stable_interface() -> None:
    rows = json.loads(hab("list", "--json").stdout)
    assert len(rows) == 54
    for row in rows:
        assert set(row) >= {"id", "category", "title", "modality", "metric", "editions"}
    ids = [row["id"] for row in rows]
    assert len(set(ids)) == len(ids)
    assert "ehr_data_quality/combined_clues" in ids


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("show", "ehr_data_quality/combind"), "ehr_data_quality/combined"),
        (("list", "nothing*"), "matches no task"),
        (("list", "--category", "ehr_data_qualty"), "ehr_data_quality"),
        (("run",), "--harness is needed"),
        (("verify", "ehr_data_quality/combined", ".", "--edition", "real"), "has synthetic and clinical"),
        (("run", "--harness", "oracel"), "oracle"),
        (("run", "--harness", "probe"), "probe:NAME"),
        (("run", "--harness", "command"), "--command"),
        (("run", "--harness", "command", "--command", "echo 'x"), "--command"),
        (("run", "--harness", "oracle", "--scale", "tiny"), "--scale"),
        (("run", "--harness", "oracle", "--trials", "0"), "--trials"),
        (("run", "--harness", "oracle", "--model", "gpt-5.5"), "no harness of this run takes a model"),
        (
            ("run", "--harness", "probe:flag_all", "--category", "ehr_data_quality"),
            "probe:flag_all: ehr_data_quality has no such probe; it has everything, all_patients",
        ),
        (("run", "--harness", "oracle@gpt-5.5"), "runs without a model"),
        (("run", "-f", "no-such-plan.toml"), "no-such-plan.toml"),
        (("resume", "no-such-run"), "no-such-run"),
        (("report", "no-such-run"), "no-such-run"),
        (("logs", "no-such-run/x"), "no trial there"),
        (("show", "ehr_data_quality/combined", "--scale", "tiny"), "--scale"),
        (("show", "tumor_area_selection/slide_01", "--figure", "a.txt"), ".png"),
        (("show", "tumor_area_selection/slide_01", "--figure", "no-such-folder/a.png"), "a folder that exists"),
        (("show", "ehr_data_quality/combined", "--figure", "a.png"), "draws no pictures"),
        (("pareto", "no-such-run", "--figure", "no-such-folder/a.svg"), "a folder that exists"),
    ],
)
def test_bad_input_gets_a_clear_error_and_exit_2(words: tuple[str, ...], says: str) -> None:
    answer = hab(*words)
    assert answer.returncode == 2, answer.stderr
    assert says in answer.stderr
    assert "Traceback" not in answer.stderr


def test_no_engine_is_said_with_what_to_do(tmp_path: Path) -> None:
    answer = hab("run", "--harness", "nop", "--scale", "small", DOCKER_HOST=f"unix://{tmp_path}/no.sock")
    assert answer.returncode == 2
    assert "make engine" in answer.stderr or "Docker" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_seeds_are_private_and_named_by_fingerprint() -> None:
    one, two = hab("seed", "new").stdout.strip(), hab("seed", "new").stdout.strip()
    assert one != two
    assert len(one) >= 32
    shown = hab("seed", "fingerprint", one).stdout.strip()
    assert len(shown) == 12
    assert shown not in one


def test_a_plan_file_says_the_same_as_flags_and_flags_win(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text('harness = ["oracle", "nop"]\nscale = "small"\ntrials = 3\n')
    request = make_request(file, {"trials": 2, "seed": None})
    assert request.harness == ("oracle", "nop")
    assert (request.trials, request.scale, request.seed) == (2, "small", DEFAULT_SEED)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("harnes = ['x']", "harnes"),
        ("trials = 1", "--harness is needed"),
        ("harness = [", "plan.toml"),
        ("harness = ['nop']\ntrials = 'x'", "trials"),
    ],
)
def test_a_wrong_plan_file_is_named_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(text)
    with pytest.raises(RequestError, match=says):
        make_request(file, {})
