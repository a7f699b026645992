"""``containers/engine.sh``, with the programs of a bare machine played by small scripts."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent.parent / "containers" / "engine.sh"
REAL = ("sh", "sleep", "tail", "timeout", "setsid", "touch", "cat", "chmod")
DOCKER = """#!/bin/sh
case "$1" in
    version) test -e "$STATE/running" && echo 20.10.0 ;;
    image) test -e "$STATE/image" ;;
    pull) exit 1 ;;
esac
"""
APT_GET = """#!/bin/sh
echo "$*" >> "$STATE/apt.log"
case "$*" in
    *docker.io*) cp "$STATE/docker" "$STATE/dockerd" "$STATE/bin/" ;;
    *debootstrap*) cp "$STATE/true" "$STATE/bin/debootstrap" ;;
    *e2fsprogs*) cp "$STATE/true" "$STATE/bin/mkfs.ext4" ;;
esac
"""


@pytest.fixture
def machine(tmp_path):
    """``machine(uid, **environment)`` runs the script on a machine with apt and nothing else."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in (*REAL, "cp"):
        (tools / name).symlink_to(shutil.which(name))
    starts = '#!/bin/sh\ntouch "$STATE/running"\n'
    scripts = {
        "docker": DOCKER,
        "dockerd": starts,
        "true": "#!/bin/sh\n",
        "bin/systemctl": starts,
        "bin/mount": "#!/bin/sh\n",
        "bin/apt-get": APT_GET,
        "bin/apt-cache": "#!/bin/sh\nexit 1\n",
    }
    for name, text in scripts.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def run(uid=0, **environment):
        (tools / "id").write_text(f"#!/bin/sh\necho {uid}\n")
        (tools / "id").chmod(0o755)
        return subprocess.run(
            ["sh", str(SCRIPT)],
            env={"PATH": str(tools), "STATE": str(tmp_path), "DOCKERD_LOG": str(tmp_path / "log"), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    run.log = lambda: (tmp_path / "apt.log").read_text() if (tmp_path / "apt.log").exists() else ""
    run.state = tmp_path
    return run


def test_installs_starts_and_then_does_nothing(machine):
    first = machine()
    assert first.returncode == 0 and "Docker 20.10.0 answers" in first.stdout, first.stderr
    log = machine.log()
    for package in ("docker.io", "debootstrap", "e2fsprogs"):
        assert package in log
    second = machine()
    assert second.returncode == 0 and second.stdout == "engine: Docker 20.10.0 answers\n"
    assert machine.log() == log


def test_an_engine_that_answers_is_left_alone(machine):
    shutil.copy(machine.state / "docker", machine.state / "bin")
    (machine.state / "running").touch()
    assert machine(uid=1000).returncode == 0
    assert machine.log() == ""


def test_without_root_it_says_what_to_do(machine):
    answer = machine(uid=1000)
    assert answer.returncode == 1 and machine.log() == ""
    assert "sudo" in answer.stderr


def test_a_named_engine_is_not_replaced(machine):
    answer = machine(DOCKER_HOST="tcp://192.0.2.1:1")
    assert answer.returncode == 1 and "DOCKER_HOST=tcp://192.0.2.1:1" in answer.stderr and machine.log() == ""
