"""What a box may not do, asked of the box itself."""

from dataclasses import replace
from pathlib import Path

import pytest
from docker import APIClient

from containers.box import BoxLimits
from containers.disk import used_bytes

pytestmark = pytest.mark.engine


def test_no_privilege(box, say):
    _, text = say(box, "cat /proc/self/status")
    status = {key: value.split() for key, _, value in (line.partition(":") for line in text.splitlines())}
    assert status["Uid"] == ["1000"] * 4 and status["Gid"] == ["1000"] * 4
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name][0], 16) == 0, name
    assert status["NoNewPrivs"] == ["1"]
    assert status["Seccomp"] == ["2"]


def test_root_user_in_a_box_has_no_capability_either(opened, spec, say):
    box = opened(replace(spec, user="0:0"))
    assert say(box, "grep CapEff /proc/self/status")[1].split()[1] == "0" * 16
    code, text = say(box, "chown 1:1 /tmp")
    assert code == 1 and "Operation not permitted" in text


def test_root_is_read_only(box, say):
    code, text = say(box, "touch /usr/x /etc/x /opt/env/x")
    assert code == 1 and text.count("Read-only file system") == 3
    assert say(box, "touch /tmp/x ~/x /workspace/x")[0] == 0


def test_no_network_at_all(box, say):
    assert say(box, "ls /sys/class/net")[1] == "lo"
    assert say(box, "tail -n +2 /proc/net/route")[1] == ""
    attempt = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"
    code, text = say(box, f'python3 -c "{attempt}"')
    assert code == 1 and "Network is unreachable" in text
    assert "unreachable" in say(box, f'python3 -c "{attempt.replace("192.0.2.1", "172.17.0.1")}"')[1]


def test_init_is_process_one_and_reaps(box, say):
    assert say(box, "cat /proc/1/comm")[1] == "docker-init"
    say(box, "(sh -c 'sleep 0.1; echo $$ > /tmp/orphan' &)")
    gone = "until test -s /tmp/orphan && ! test -e /proc/$(cat /tmp/orphan); do sleep 0.02; done"
    assert say(box, gone, timeout_s=60)[0] == 0, "a zombie stays in /proc"


def test_output_of_process_one_is_kept_nowhere(box, say):
    api = APIClient()
    told = api.inspect_container(box.id)
    assert told["HostConfig"]["LogConfig"]["Type"] == "none" and not told["LogPath"]
    folder = Path(api.info()["DockerRootDir"]) / "containers" / box.id
    before = used_bytes(folder)
    say(box, "timeout 2 head -c 50000000 /dev/zero > /proc/1/fd/1")
    assert used_bytes(folder) - before < 100_000
    api.close()


def test_out_of_memory_is_seen_and_its_peak_too(box, say):
    code, text = say(box, "python3 -c 'bytearray(2_000_000_000)'; echo ended $?")
    # The shell reports the kill on its other stream, before or after this line.
    assert code == 0 and "ended 137" in text.splitlines()
    state = box.state()
    assert state.running and state.oom_killed
    box.stop()
    state = box.state()
    assert not state.running and state.oom_killed
    assert state.peak_memory_mb == pytest.approx(400, rel=0.02)


def test_a_modest_box_is_not_taken_for_out_of_memory(box, say):
    say(box, "python3 -c 'bytearray(100_000_000)'")
    box.stop()
    state = box.state()
    assert not state.oom_killed and 100 < state.peak_memory_mb < 300


def test_cpu_quota(opened, spec, say):
    box = opened(replace(spec, limits=BoxLimits(cpus=0.3, memory_mb=200, pids=50)))
    burn = (
        "import time; wall, own = time.monotonic(), time.process_time()\nwhile time.monotonic() < wall + 1.5: pass\n"
        "print((time.process_time() - own) / (time.monotonic() - wall))"
    )
    _, text = say(box, f'python3 -c "{burn}"')
    assert 0 < float(text) < 0.5


def test_more_processors_than_the_host_has_is_a_limit_not_an_error(opened, spec, say):
    assert say(opened(replace(spec, limits=BoxLimits(cpus=512, memory_mb=200, pids=50))), "echo here") == (0, "here")


def test_fork_bomb_stays_within_its_box(box, say):
    count = "import os\nn = 0\ntry:\n    while n < 5000:\n        if os.fork() == 0: os.execvp('sleep', ['sleep', '60'])\n        n += 1\nexcept BlockingIOError: pass\nprint(n)"
    _, text = say(box, f'python3 -c "{count}"', timeout_s=300)
    assert 20 < int(text.split()[-1]) < 100
    box.stop()
    assert not box.state().running


def test_full_disk_is_the_boxes_own_problem(disk_box, say, lease):
    code, text = say(disk_box, "head -c 200000000 /dev/zero > /workspace/x")
    assert code == 1 and "No space left on device" in text
    assert 30_000_000 < int(say(disk_box, "stat -c %s /workspace/x")[1]) <= 50_000_000
    assert say(disk_box, "head -c 1000000 /dev/zero > /tmp/x")[0] == 1, "one limit for all three folders"
    (image,) = lease.folder.glob("*.img")
    assert image.stat().st_blocks * 512 < 51_000_000, "what it takes of the host's disk"


def test_mounts_name_nothing(disk_box, say, lease):
    text = say(disk_box, "cat /proc/self/mountinfo")[1]
    assert str(lease.folder) not in text and lease.run_id not in [
        part for line in text.splitlines() for part in line.split("/")
    ]


def test_swap_is_off(box):
    api = APIClient()
    config = api.inspect_container(box.id)["HostConfig"]
    api.close()
    assert config["MemorySwap"] == config["Memory"] == 400_000_000
    assert config["IpcMode"] == "private" and not config["Privileged"]
