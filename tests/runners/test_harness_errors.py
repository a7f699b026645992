"""The error table: every way in which a model can fail, with every CLI, and the class that its trial gets.

All rows of a CLI are driven at once, since most of their time is the CLI's own waiting between retries.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.runners.cli_box import Driven, Stage, drive, make_stage
from tests.stub_model.script import Failure, Script, Turn

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(2400)]  # the first test waits for all drives

AT_ONCE = 8
LIMIT_S = 20.0
WRITE = "echo 42 > /workspace/answer.txt"
DONE = Turn(text="Done.")


def failing(status: int, **more) -> Script:
    return Script((Turn(text="Writing.", shell=WRITE, failure=Failure(status, **more)), DONE))


ROWS: dict[str, Script] = {
    "500 for ever": failing(500),
    "500 twice": failing(500, times=2),
    "429 for ever": failing(429, headers={"retry-after": "1"}),
    "429 twice": failing(429, headers={"retry-after": "1"}, times=2),
    "429 quota": failing(429, code="insufficient_quota", message="You exceeded your current quota."),
    "401": failing(401, message="Incorrect API key provided"),
    "403": failing(403, message="Your account has no access"),
    "404": failing(404, message="The model `gpt-0` does not exist"),
    "400": failing(400, message="Something is malformed"),
    "context": Script(
        (
            Turn(text="Writing.", shell=WRITE),
            Turn(failure=Failure(400, code="context_length_exceeded", message="prompt is too long: 9 > 8 tokens")),
        ),
        counted=True,
    ),
    "event": failing(500, code="server_error", message="The server had an error", in_stream=True),
    "cut": Script((Turn(text="Writing the answer now.", shell=WRITE, cut=True), DONE)),
    "length": Script((Turn(text="Writing.", shell=WRITE), Turn(text="on and on", stop="length"))),
    "refusal": Script((Turn(text="I cannot help with that.", stop="refusal"),)),
    "silent": Script((Turn(silent="headers"),)),
    "silent midway": Script((Turn(text="Writing the answer now.", shell=WRITE, silent="middle"), DONE)),
    "unreachable": Script((DONE,)),
    "silent for ever": Script((Turn(silent="headers"),)),
}
SETTINGS = {"silent": {"silence_s": 3}, "silent midway": {"silence_s": 3}, "silent for ever": {"limit_s": LIMIT_S}}
CLASSES = {
    "500 for ever": "provider",
    "500 twice": "",
    "429 for ever": "rate_limit",
    "429 twice": "",
    "429 quota": "quota",
    "401": "auth",
    "403": "auth",
    "404": "model",
    "400": "request",
    "context": "context",
    "event": "provider",
    "cut": "stream",
    "length": "output_limit",
    "refusal": "refusal",
    "silent": "silence",
    "silent midway": "silence",
    "unreachable": "provider",
}
EXCEPTIONS = {
    ("claude-code", "cut"): "",  # asks again without streaming, and gets its answer
    ("claude-code", "silent midway"): "",
}
CLIS = ("codex", "claude-code", "copilot-cli")


@pytest.fixture(scope="module")
def stage(tmp_path_factory) -> Stage:
    return make_stage(tmp_path_factory.mktemp("errors"))


@pytest.fixture(scope="module")
def driven(stage) -> dict[tuple[str, str], Future[Driven]]:
    """Every row with every CLI; the slowest, whose retries cannot be turned down, first."""

    def go(cli: str, row: str) -> Driven:
        settings = {"limit_s": 600.0, **SETTINGS.get(row, {})}
        extra = {"retries": "3" if row.endswith("twice") else "1"}
        return drive(stage, cli, ROWS[row], extra=extra, unreachable=row == "unreachable", **settings)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        first = sorted(ROWS, key=lambda row: row != "429 quota")
        return {(cli, row): pool.submit(go, cli, row) for cli in reversed(CLIS) for row in first}


@pytest.mark.parametrize("cli", CLIS)
@pytest.mark.parametrize("row", CLASSES)
def test_the_class_is_that_of_the_table(driven, cli: str, row: str) -> None:
    result = driven[cli, row].result()
    expected = EXCEPTIONS.get((cli, row), CLASSES[row])
    error_class, message = result.ended
    assert error_class == expected, (message, result.reading, result.report)
    assert result.stopped_for == ""
    assert bool(message) == bool(expected)
    if not expected and (cli, row) not in EXCEPTIONS:
        assert (result.workspace / "answer.txt").read_text() == "42\n"
    if row == "401":
        assert "look at CANARY_" in message
    assert_logs(result.logs)


@pytest.mark.parametrize("cli", CLIS)
def test_a_model_that_is_silent_for_ever_ends_at_the_time_limit_with_its_logs(driven, cli: str) -> None:
    result = driven[cli, "silent for ever"].result()
    assert result.stopped_for == "timeout"
    assert result.finished.exit_code is None
    assert result.report.last_error == "gone"
    if cli != "copilot-cli":  # it writes its first line with the first answer
        assert_logs(result.logs)
    assert result.reading.error_class, "an agent that was stopped did not succeed"


def assert_logs(logs: Path) -> None:
    assert (logs / "stdout.log").stat().st_size > 0
    assert any(path.is_file() for path in (logs / "kept").rglob("*"))
