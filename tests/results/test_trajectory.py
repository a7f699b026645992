"""Steps classed by the stated rules, and ATIF v1.7 checked."""

import copy
import json

import pytest
import simulate

from results.atif import validate_trajectory
from results.blocks import split
from results.frame import planned_frame, trial_frame
from results.trajectory import analyse, behaviour_section, call_text, classify, read_trajectory
from runners.trajectories.story import Step, Story, Tokens, ToolCall

ONE = {"ehr_format_conversion": simulate.CATEGORIES["ehr_format_conversion"]}


def bash(command):
    return {"tool_call_id": "c", "function_name": "Bash", "arguments": {"command": command}}


def tool(name, **arguments):
    return {"tool_call_id": "c", "function_name": name, "arguments": arguments}


BEFORE = [
    (bash("ls -la /workspace/data"), "orient"),
    (bash("cd /workspace && find . -name '*.csv'"), "orient"),
    (bash("cat /workspace/data/README.md"), "orient"),
    (bash("nvidia-smi"), "orient"),
    (bash("head -5 data/labs.csv"), "scope"),
    (bash("python3 -c \"import polars as pl; print(pl.read_csv('x.csv').describe())\""), "scope"),
    (tool("Read", file_path="/workspace/data/labs.csv"), "scope"),
    (tool("TodoWrite", todos=["a"]), "scope"),
    (bash("pip install lightgbm"), "execute"),
    (bash("python train.py"), "execute"),
    (bash("cat > solve.py <<'EOF'\nprint(1)\nEOF"), "execute"),
    (bash("echo 'ct: no' > /workspace/submission/predictions.txt"), "execute"),
    (bash("ls 2>/dev/null; ls 2>&1"), "orient"),
    (tool("Write", file_path="/workspace/submission/findings.txt", content="x"), "execute"),
    (tool("apply_patch", input="*** Begin Patch"), "execute"),
    (bash("pytest -q"), "verify"),
    (bash("rm -rf /tmp/work"), "clean"),
    (bash("frobnicate"), "execute"),
]
AFTER = [
    (bash("cat /workspace/submission/predictions.csv"), "verify"),
    (bash("wc -l submission/predictions.csv"), "verify"),
    (tool("Read", file_path="/workspace/submission/findings.txt"), "verify"),
    (bash("python fix.py && cp out.csv /workspace/submission/out.csv"), "execute"),
]


@pytest.mark.parametrize(("call", "kind"), BEFORE, ids=[call_text(c)[:40] for c, _ in BEFORE])
def test_calls_before_the_first_write(call, kind):
    assert classify(call, call_text(call), written=False) == kind


@pytest.mark.parametrize(("call", "kind"), AFTER, ids=[call_text(c)[:40] for c, _ in AFTER])
def test_calls_after_the_first_write(call, kind):
    assert classify(call, call_text(call), written=True) == kind


def step(number, *calls, message="", results=(), **more):
    made = {"step_id": number, "source": "agent", "message": message}
    if calls:
        made["tool_calls"] = [call | {"tool_call_id": f"c{number}.{i}"} for i, call in enumerate(calls)]
        made["observation"] = {
            "results": [{"source_call_id": f"c{number}.{i}", "content": text} for i, text in enumerate(results)]
        }
    return made | more


def story():
    return {
        "schema_version": "ATIF-v1.7",
        "agent": {"name": "codex", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "Do it."},
            step(2, message="Let me look."),
            step(3, bash("ls"), results=["data"]),
            step(4, bash("head data/a.csv"), results=["a,b"], metrics={"prompt_tokens": 10, "completion_tokens": 2}),
            step(
                5, bash("head data/a.csv"), bash("cat x.png"), results=["a,b", "cat: x.png: No such file or directory"]
            ),
            step(6, bash("echo a > submission/a.txt"), results=[""]),
            step(7, bash("cat submission/a.txt"), results=["a"]),
            step(8, message="Done."),
        ],
    }


def test_a_whole_trajectory():
    found = analyse(story())
    assert [s.kind for s in found.steps] == ["orient", "orient", "scope", "scope", "execute", "verify", "clean"]
    assert (found.calls, found.first_write, found.rereads, found.repeated, found.errors, found.images) == (
        6,
        5,
        1,
        1,
        1,
        1,
    )
    assert sum(found.shares.values()) == pytest.approx(1)


def test_empty_and_odd_trajectories():
    assert analyse({}).steps == []
    odd = {"steps": [step(1, {"tool_call_id": "c", "function_name": "x", "arguments": None}, results=[None, ["?"]])]}
    assert analyse(odd).calls == 1
    long = {"steps": [step(1, bash("x" * 10_000_000), results=["y" * 10_000_000])]}
    assert analyse(long).steps[0].kind == "execute"


def test_what_the_harnesses_write_is_valid():
    steps = [
        Step("user", "Do it."),
        Step(
            "agent",
            "Look.",
            "2026-07-01T12:00:00Z",
            "m",
            "high",
            "hm",
            [ToolCall("1", "Bash", {"command": "ls"}, "a")],
            Tokens(5),
        ),
        Step("agent", calls=[ToolCall("2", "Bash", {"command": "pwd"})]),
    ]
    told = Story("codex", "1.0", "s", "m", steps, {"m": Tokens(5, 1, 1, 2, 1)}, {"m": 1}, 0.1).trajectory()
    assert validate_trajectory(json.loads(json.dumps(told))) == []


def broken(change):
    made = copy.deepcopy(story())
    change(made)
    return made


def test_a_valid_trajectory():
    assert validate_trajectory(story()) == []
    assert validate_trajectory(broken(lambda t: t.update(subagent_trajectories=[story()]))) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.update(schema_version="ATIF-v1.8"), "schema_version"),
        (lambda t: t.update(steps=[]), "steps"),
        (lambda t: t.update(colour="red"), "colour"),
        (lambda t: t["agent"].pop("version"), "version"),
        (lambda t: t["steps"][0].update(metrics={}), "steps/0/metrics"),
        (lambda t: t["steps"][0].update(source="robot"), "steps/0/source"),
        (lambda t: t["steps"][3].update(llm_call_count=0), "steps/3/metrics"),
        (lambda t: t["steps"][2].update(step_id=7), "step_id is 7, not 3"),
        (lambda t: t["steps"][2]["observation"]["results"][0].update(source_call_id="c9"), "no call of this step"),
        (lambda t: t["steps"][2]["tool_calls"][0].update(arguments="ls"), "arguments"),
        (lambda t: t["steps"][3]["metrics"].update(prompt_tokens=-1), "steps/3/metrics"),
    ],
)
def test_faults_are_named_with_their_place(change, words):
    faults = validate_trajectory(broken(change))
    assert faults and any(words in fault for fault in faults)


def test_shares_per_agent_and_outcome(tmp_path):
    run = simulate.simulate(tmp_path / "r", categories=ONE, agents=simulate.AGENTS[:2], attempts=2)
    for trial in run.plan.trials[:3]:
        folder = run.trial(trial)
        folder.agent.mkdir(parents=True, exist_ok=True)
        folder.trajectory.write_text(json.dumps(story()))
    broken_file = run.trial(run.plan.trials[3])
    broken_file.agent.mkdir(parents=True, exist_ok=True)
    broken_file.trajectory.write_text("{")
    assert read_trajectory(broken_file) is None
    section = behaviour_section(split([run], trial_frame([run]), planned_frame([run]))[0])
    assert sum(row[2] for row in section.rows) == 3
    assert all(row[3] == 7.0 for row in section.rows)
