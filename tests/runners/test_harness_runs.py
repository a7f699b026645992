"""`hab-suite run` with the real CLIs against the stub model: pass and fail, money, keys, brakes, missing credentials."""

import base64
import gzip
import json
import signal
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from categories.seed import DEFAULT_SEED
from containers.docker_engine import DockerEngine
from results.atif import validate_trajectory
from tests.runners.cli_box import CANARIES
from tests.runners.suite_run import AGENTS, SUITE, suite
from tests.stub_model.host_gateway import call_socket
from tests.stub_model.script import Failure, Script, Tokens, Turn
from tests.stub_model.server import StubModel
from verifiers_hidden.__main__ import main as verifier

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PASSES, FAILS = "ehr_data_quality/impossible_value", "ehr_data_quality/demographic_conflict"
TOKENS = Tokens(input=1000, cache_read=500, cache_write=0, output=60, reasoning=0)
TURN_USD = (1000 * 3.0 + 500 * 0.3 + 60 * 15.0) / 1e6
LOOK = "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; find / -xdev -name '*key*' 2>/dev/null"


def records(folder: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted((folder / "runs").rglob("trial.json"))]


class Spy(threading.Thread):
    """Looks at every container and process of this host while a run is under way."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.text = ""
        self.images: set[str] = set()

    def run(self) -> None:
        while not self.over.wait(0.3):
            ids = subprocess.run(["docker", "ps", "-aq"], capture_output=True, text=True, check=False).stdout.split()
            shown = subprocess.run(["docker", "inspect", *ids], capture_output=True, text=True, check=False).stdout
            try:
                found = json.loads(shown or "[]")
            except ValueError:
                continue
            for entry in found:
                self.images.add(entry["Config"]["Image"].split(":")[0])
            self.text += shown
            for name in ("cmdline", "environ"):
                for path in Path("/proc").glob(f"[0-9]*/{name}"):
                    try:
                        self.text += path.read_text(errors="replace")
                    except OSError:
                        continue


@pytest.fixture(scope="module")
def solved(tmp_path_factory, stage):
    """One run: three CLIs on two tasks; the submission that all hand in is perfect for the first alone."""
    folder = tmp_path_factory.mktemp("solved")
    words = ["perfect", "ehr_data_quality", "--gold", str(stage(PASSES, DEFAULT_SEED).gold), "--out", str(folder)]
    assert verifier(words) == 0
    packed = base64.b64encode(gzip.compress((folder / "flagged_rows.csv").read_bytes())).decode()
    write = f"mkdir -p submission && echo {packed} | base64 -d | gunzip > submission/flagged_rows.csv"
    script = Script(
        (
            Turn(text="I look around.", shell=LOOK, tokens=TOKENS),
            Turn(text="I write what I found.", shell=write, tokens=TOKENS),
            Turn(text="Done.", tokens=TOKENS),
        )
    )
    spy = Spy()
    with StubModel(script) as stub:
        spy.start()
        words = [word for agent in AGENTS for word in ("--harness", agent)]
        done = suite(folder, stub, *words, "--tasks", PASSES, "--tasks", FAILS)
        spy.over.set()
        spy.join()
    return folder, done, stub, spy


def test_each_cli_passes_one_task_and_fails_one(solved) -> None:
    folder, done, _, _ = solved
    assert done.returncode == 0, done.stderr
    outcomes = {
        (r["plan"]["harness"], f"{r['plan']['category']}/{r['plan']['case']}"): r["outcome"] for r in records(folder)
    }
    expected = {}
    for agent in AGENTS:
        expected |= {(agent.split("@")[0], PASSES): "passed", (agent.split("@")[0], FAILS): "failed"}
    assert outcomes == expected


def test_usage_and_cost_are_the_scripted_numbers(solved) -> None:
    folder, done, _, _ = solved
    for record in records(folder):
        (usage,) = record["usage"]
        assert (usage["requests"], usage["input_tokens"], usage["cache_read_tokens"]) == (3, 3000, 1500)
        assert (usage["cache_write_tokens"], usage["output_tokens"]) == (0, 180)
        assert usage["provider"] in ("openai", "anthropic")
        assert record["warnings"] == []
        assert record["harness_version"]
    run_id = done.stdout.split()[-1]
    told = subprocess.run(
        [SUITE, "report", folder / "runs" / run_id, "--format", "json"], capture_output=True, text=True, check=True
    )
    rows = [row for row in json.loads(told.stdout) if row["category"] == "ALL"]
    assert len(rows) == len(AGENTS)
    for row in rows:
        assert row["cost_usd_total"] == pytest.approx(6 * TURN_USD, rel=1e-9)


def test_every_trial_leaves_a_valid_trajectory(solved) -> None:
    folder, _, _, _ = solved
    paths = sorted((folder / "runs").rglob("trajectory.json"))
    assert len(paths) == 6
    for path in paths:
        trajectory = json.loads(path.read_text())
        assert validate_trajectory(trajectory) == []
        assert [step["message"] for step in trajectory["steps"] if step["source"] == "agent"][-1] == "Done."


def test_no_key_is_anywhere(solved) -> None:
    folder, done, stub, spy = solved
    (folder / "keys").unlink()
    left = [path for path in folder.rglob("*") if path.is_file()]
    texts = {str(path): path.read_bytes().decode(errors="replace") for path in left}
    texts |= {"stdout": done.stdout, "stderr": done.stderr, "host": spy.text}
    texts["said to the model"] = json.dumps([request.body for request in stub.requests])
    assert any(image.endswith("/gateway") for image in spy.images), "the spy saw the gateway"
    assert "HOME=/home/agent" in texts["said to the model"], "the agents looked at their environments"
    for canary in CANARIES.values():
        assert not [name for name, text in texts.items() if canary in text]
    sent = {request.headers.get("authorization", "") for request in stub.requests}
    assert f"Bearer {CANARIES['openai']}" in sent, "the gateway had it"


def test_nothing_is_left_running(solved) -> None:
    run_id = solved[1].stdout.split()[-1]
    found = DockerEngine().find({"hab-suite": ""})
    assert not [box for box in found if run_id in str(box.labels)]


def test_a_spendthrift_is_stopped_at_its_limit_and_the_run_goes_on(tmp_path: Path) -> None:
    endless = Script(tuple(Turn(text="More.", shell="echo more", tokens=TOKENS) for _ in range(40)))
    with StubModel(endless) as stub:
        words = ("--harness", AGENTS[0], "--tasks", PASSES, "--trials", "2", "-j", "1")
        suite(tmp_path, stub, *words, "--max-usd-per-trial", str(3.5 * TURN_USD))
    found = records(tmp_path)
    assert [(r["outcome"], r["reason"]) for r in found] == [("agent_error", "budget")] * 2
    for record in found:
        assert record["usage"][0]["requests"] == 4, "within one request of the limit"


def test_a_run_that_has_spent_its_money_starts_nothing_more(tmp_path: Path) -> None:
    endless = Script(tuple(Turn(text="More.", shell="echo more", tokens=TOKENS) for _ in range(40)))
    with StubModel(endless) as stub:
        words = ("--harness", AGENTS[0], "--tasks", PASSES, "--trials", "4", "-j", "1")
        done = suite(tmp_path, stub, *words, "--max-usd", str(3.5 * TURN_USD))
    assert done.returncode == 1, done.stderr
    assert [(r["outcome"], r["reason"]) for r in records(tmp_path)] == [("agent_error", "budget")]
    assert len(stub.answered) == 4, "within one request of the limit"


def test_a_wrong_key_pulls_the_brake_after_three_and_names_the_variable(tmp_path: Path) -> None:
    wrong = Script((Turn(failure=Failure(403, message="Incorrect API key provided")),))
    with StubModel(wrong) as stub:
        words = ("--harness", AGENTS[1], "--tasks", PASSES, "--trials", "10", "-j", "1")
        done = suite(tmp_path, stub, *words)
    assert done.returncode == 2, done.stderr
    assert [(r["outcome"], r["reason"]) for r in records(tmp_path)] == [("agent_error", "auth")] * 3
    assert "ANTHROPIC_API_KEY" in done.stderr


def test_without_credentials_the_variable_is_named_before_anything_is_built(tmp_path: Path) -> None:
    done = suite(tmp_path, None, "--harness", AGENTS[0], "--harness", AGENTS[1], "--tasks", PASSES, keys="")
    assert done.returncode == 2
    for word in ("codex", "OPENAI_API_KEY", "claude-code", "ANTHROPIC_API_KEY"):
        assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_login_enters_a_box_only_where_it_is_allowed_and_every_report_says_so(tmp_path: Path) -> None:
    """Signed in, the CLI asks GitHub through the tunnel; here nobody answers, and the token is left nowhere."""
    words = ("--harness", "copilot-cli@github/gpt-5.4", "--tasks", PASSES)
    token = "github_pat_" + "c4n4ry" * 4
    keys = f"COPILOT_GITHUB_TOKEN={token}"
    done = suite(tmp_path, None, *words, keys=keys)
    assert done.returncode == 2
    assert "--allow-login-in-box allows that" in done.stderr
    assert not (tmp_path / "runs").exists()
    done = suite(tmp_path, None, *words, "--allow-login-in-box", "--max-usd", "1", keys=keys)
    assert (done.returncode, "cannot be kept" in done.stderr) == (2, True)
    done = suite(tmp_path, None, *words, "--allow-login-in-box", keys=keys)
    assert done.returncode == 0, done.stderr
    (record,) = records(tmp_path)
    assert (record["outcome"], record["login_in_box"]) == ("agent_error", True)
    assert "token found but could not be validated" in record["message"]
    (run,) = (tmp_path / "runs").iterdir()
    assert not [path for path in run.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]
    told = subprocess.run([SUITE, "report", run], capture_output=True, text=True, check=True).stdout
    assert "A subscription login was inside the box" in told


ORCHESTRATOR = """
    import sys, time
    from pathlib import Path
    from containers.door import Gateway
    from containers.endpoints import GatewaySettings
    from tests.runners.cli_box import LABELS, make_stage, upstreams
    folder, url = Path(sys.argv[1]), sys.argv[2]
    stage = make_stage(folder)
    class Stub: pass
    stub = Stub(); stub.url = url
    made = Gateway(stage.engine, image=stage.gateway_image, folder=folder / "doors", journal=folder / "j",
                   labels=LABELS, settings=GatewaySettings(upstreams(stub), stale_s=8))
    made.start()
    print(made.open_door("t").mount.source, made._box.id, flush=True)
    while True:
        time.sleep(0.5)
        made.heartbeat()
"""


def test_a_killed_orchestrator_closes_the_gateway(tmp_path: Path) -> None:
    asked = {"model": "m", "messages": [], "tools": [{"type": "function", "function": {"name": "bash"}}]}
    with StubModel(Script((Turn(text="hi"),))) as stub:
        command = [sys.executable, "-c", textwrap.dedent(ORCHESTRATOR), str(tmp_path), stub.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            door, box = process.stdout.readline().split()
            try:
                time.sleep(10)
                ask = partial(call_socket, Path(door, "model"), "/openai/v1/chat/completions", asked)
                assert ask()[0] == 200, "its heart beats"
                process.send_signal(signal.SIGKILL)
                answers = [ask()]
                while answers[-1][0] == 200:
                    time.sleep(0.5)
                    answers.append(ask())
                status, said = answers[-1]
                assert (status, b"[stale]" in said) == (503, True)
            finally:
                process.kill()
                subprocess.run(["docker", "rm", "-f", box], capture_output=True, check=False)
    assert len(stub.requests) == len(answers), "one before, and one less: the last was refused"
