"""What harnesses put on the command line, what they refuse, and how they read logs that are not as they should be."""

import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from containers import agents
from containers.box import Finished
from results.atif import validate_trajectory
from runners.harness import HarnessError, HarnessOptions, load_harness
from runners.harnesses.cli import telling_line

MODELS = {
    "codex": "gpt-5.5",
    "claude-code": "claude-sonnet-5",
    "copilot-cli": "gpt-5.4",
    "gemini-cli": "gemini-2.5-pro",
    "opencode": "gpt-5.4",
}
FINE = Finished(exit_code=0, timed_out=False, seconds=1)


def call(name: str, login: str = "", **options):
    seat = SimpleNamespace(endpoint="http://127.0.0.1:8080", instruction="Do it.", login=login)
    harness = load_harness(name, HarnessOptions(**{"model": MODELS.get(name, "m"), **options}))
    return harness.call(seat)


@pytest.mark.parametrize("name", MODELS)
def test_the_call_names_the_model_and_the_gateway(name: str) -> None:
    made = call(name, effort="high", extra={"flags": "--one 'two words'"})
    everything = " ".join(made.argv) + json.dumps(dict(made.env)) + str(dict(made.files))
    assert made.argv[0].startswith("/opt/agents/") or made.argv[0] == "bash"
    assert MODELS[name] in everything
    assert "http://127.0.0.1:8080/" in everything
    assert "high" in everything.lower()
    assert "--one" in made.argv
    assert "two words" in made.argv


def test_a_local_model_behind_azure_or_a_proxy_keeps_its_name() -> None:
    made = call("codex", model="azure/my-deployment")
    assert "http://127.0.0.1:8080/azure/v1" in " ".join(made.argv)
    assert made.argv[made.argv.index("-m") + 1] == "my-deployment"
    assert call("copilot-cli", model="claude-sonnet-5").env["COPILOT_PROVIDER_TYPE"] == "anthropic"


@pytest.mark.parametrize(
    ("name", "model", "words"),
    [
        ("codex", "claude-sonnet-5", "openai, azure"),
        ("claude-code", "gpt-5.5", None),
        ("gemini-cli", "claude-x", "google"),
    ],
)
def test_a_model_that_the_cli_cannot_reach_is_refused(name: str, model: str, words: str | None) -> None:
    if words is None:  # an unknown name is taken as the usual provider's: it may be a proxy's own
        assert load_harness(name, HarnessOptions(model=model)).provider == "anthropic"
        return
    with pytest.raises(HarnessError, match=words):
        load_harness(name, HarnessOptions(model=model))


LOGS = {
    "nothing": b"",
    "no JSON": b"hello\n\xff\xfe\n",
    "other JSON": b'[1]\n3\n"x"\nnull\n{}\n{"type": 3, "item": 4, "message": 5, "data": 6, "part": 7}\n',
    "cut": b'{"type": "turn.started"}\n{"type": "turn.comp',
    "deep": b"[" * 100_000 + b"\n",
    "wrong kinds": json.dumps(
        {"type": "result", "modelUsage": {"m": 3}, "usage": [], "data": [], "error": "x"}
    ).encode(),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("log", LOGS)
def test_a_log_that_is_not_as_it_should_be_is_no_success_and_no_exception(tmp_path: Path, name: str, log: str) -> None:
    (tmp_path / "stdout.log").write_bytes(LOGS[log])
    harness = load_harness(name, HarnessOptions(model=MODELS[name]))
    reading = harness.read(tmp_path, FINE)
    assert reading.error_class
    assert reading.message
    assert reading.trajectory is None or validate_trajectory(reading.trajectory) == []


def test_an_exit_status_of_0_with_a_closing_event_of_an_error_is_an_error(tmp_path: Path) -> None:
    result = {"type": "result", "subtype": "success", "is_error": True, "api_error_status": 401, "result": "no"}
    (tmp_path / "stdout.log").write_text(json.dumps(result))
    assert load_harness("claude-code", HarnessOptions(model="claude-x")).read(tmp_path, FINE).error_class == "auth"


def test_a_good_closing_event_with_another_status_or_unseen_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "stdout.log").write_text('{"type": "result", "exitCode": 0}\n')
    harness = load_harness("copilot-cli", HarnessOptions(model="gpt-x"))
    assert harness.read(tmp_path, FINE).error_class == ""
    assert harness.read(tmp_path, Finished(exit_code=137, timed_out=False, seconds=1)).error_class == "crash"
    assert harness.read(tmp_path, None).error_class == "crash"


def test_the_telling_line_of_a_log_is_found(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x" * 10_000 + b"\nthe end\n\n")
    assert telling_line(tmp_path / "log") == "the end"
    assert telling_line(tmp_path / "none") == ""
    (tmp_path / "log").write_text("Error: the token was refused.\n\nTo sign in:\n  * run /login\n")
    assert telling_line(tmp_path / "log") == "Error: the token was refused."


def test_a_signed_in_copilot_takes_its_token_from_a_file_and_has_no_web_tools() -> None:
    made = call("copilot-cli", login="canary", model="github/gpt-x")
    assert list(made.files.values()) == [b"canary"]
    assert "canary" not in " ".join([*made.argv, *made.env.values()])
    assert made.env["COPILOT_MODEL"] == "gpt-x"
    assert "COPILOT_OFFLINE" not in made.env and not any("PROVIDER" in name for name in made.env)
    assert {"--disable-builtin-mcps", "--excluded-tools=web_fetch,semantic_code_search"} <= set(made.argv)


@pytest.mark.parametrize("name", ["codex", "opencode"])
def test_other_clis_cannot_sign_in_to_github(name: str) -> None:
    with pytest.raises(HarnessError, match="is one of github; this CLI speaks to openai, azure"):
        load_harness(name, HarnessOptions(model="github/gpt-x"))


DECLARATION = """
name = "my-agent"
command = ["bash", "-c", "echo {model} {other} && my-agent --url {base_url}", "{home}/run"]
effort = ["--effort", "{effort}"]
env = { MY_KEY = "{key}" }
dialects = ["openai", "anthropic"]
keep = ["~/.my-agent"]
done = "FINISHED$"
"""
PACKAGES = """
version = "1.0.0"
[[packages]]
name = "my-agent-linux-{arch}"
from = "package/bin"
"""


def declared(folder: Path, text: str, **options):
    (folder / "agent.toml").write_text(text)
    extra = {"harness_file": str(folder / "agent.toml")}
    return load_harness("declared", HarnessOptions(**{"model": "gpt-x", "extra": extra, **options}))


def test_a_file_makes_a_harness(tmp_path: Path) -> None:
    harness = declared(tmp_path, DECLARATION, effort="low", argument="my-agent")
    made = harness.call(SimpleNamespace(endpoint="http://127.0.0.1:8080", instruction="Do it."))
    assert made.argv == (
        *("bash", "-c", "echo gpt-x {other} && my-agent --url http://127.0.0.1:8080/openai/v1"),
        *("/opt/agents//run", "--effort", "low"),
    )
    assert made.env == {"MY_KEY": "box"}
    assert (harness.keep, harness.agent, harness.provider) == (("~/.my-agent",), "", "openai")
    assert shlex.join(made.argv)
    for log, fine in (("working\nFINISHED", True), ("working\n", False)):
        (tmp_path / "stdout.log").write_text(log)
        assert (harness.read(tmp_path, FINE).error_class == "") is fine


def test_a_file_may_bring_its_packages(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(agents, "DECLARED", {})
    harness = declared(tmp_path, DECLARATION + PACKAGES)
    assert harness.agent == "my-agent"
    found = agents.release("my-agent")
    assert (found.version, found.packages[0].source, found.packages[0].integrity) == ("1.0.0", "package/bin", "")
    with pytest.raises(HarnessError, match="another name"):
        declared(tmp_path, (DECLARATION + PACKAGES).replace('name = "my-agent"\n', 'name = "codex"\n'))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = 3", "name"),
        ("name = 'x'", "command: Field required"),
        ("nonsense", "agent.toml"),
        (DECLARATION + "colour = 'red'\n", "colour"),
        (DECLARATION.replace("openai", "klingon"), "dialects"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        declared(tmp_path, text)


def test_the_file_must_be_named_and_be_the_one_meant(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="--harness-file"):
        load_harness("declared", HarnessOptions(model="m"))
    with pytest.raises(HarnessError, match="declares my-agent"):
        declared(tmp_path, DECLARATION, argument="other")
