"""Commands in a box: streams, exit codes, time limits, and a box that goes away under them."""

import hashlib
import os
import pty
import subprocess
import sys
import termios
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from containers.box import EngineError

pytestmark = pytest.mark.engine
HOUSE = Path(__file__).parent.parent.parent


def test_streams_and_exit_code(box):
    heard = []
    finished = box.exec(("sh", "-c", "echo out; echo err >&2; exit 7"), sink=lambda *piece: heard.append(piece))
    assert (finished.exit_code, finished.timed_out) == (7, False)
    assert sorted(heard) == [("stderr", b"err\n"), ("stdout", b"out\n")]


def test_output_comes_as_it_is_written(box):
    heard = []

    def hear(_, data):
        heard.append(data)
        box.exec(("touch", "/tmp/heard"))  # the command waits for it before it says more

    finished = box.exec(("sh", "-c", "echo a; until test -e /tmp/heard; do sleep 0.02; done; echo b"), sink=hear)
    assert finished.exit_code == 0 and heard == [b"a\n", b"b\n"]


def test_nothing_is_lost_at_the_start(box):
    for _ in range(15):
        heard = bytearray()
        assert box.exec(("echo", "all of it"), sink=lambda _, data, heard=heard: heard.extend(data)).exit_code == 0
        assert heard == b"all of it\n"


def test_large_output_is_whole(box):
    digest, size = hashlib.sha256(), 0

    def hear(_, data):
        nonlocal size
        digest.update(data)
        size += len(data)

    box.exec(("sh", "-c", "yes 0123456789 | head -c 20000000"), sink=hear)
    assert size == 20_000_000
    assert digest.digest() == hashlib.sha256((b"0123456789\n" * 2_000_000)[:20_000_000]).digest()


def test_stdin_is_written_and_closed(box, say):
    data = os.urandom(3_000_000)
    assert say(box, "sha256sum", stdin=data)[1].split()[0] == hashlib.sha256(data).hexdigest()
    assert say(box, "cat | wc -c")[1] == "0", "no stdin is an empty one"
    assert say(box, "exit 4", stdin=data)[0] == 4, "unread stdin is no error"


def test_environment_user_and_folder(box, say):
    assert say(box, 'echo "$A $(id -u) $PWD"', env={"A": "b c"}, user="33:33", workdir="/usr")[1] == "b c 33 /usr"
    assert say(box, 'echo "$(id -u) $HOME $TZ $LANG"')[1] == "1000 /home/agent UTC C.UTF-8"


def test_unknown_command(box):
    assert box.exec(("no-such-command",)).exit_code in (126, 127)


def test_time_limit_leaves_the_rest_to_the_caller(box, say):
    finished = box.exec(("sleep", "7777"), timeout_s=0.4)
    assert finished.timed_out and finished.exit_code is None and finished.seconds > 0.3
    assert say(box, "until pgrep -fx 'sleep 7777'; do sleep 0.02; done", timeout_s=60)[0] == 0
    box.stop()
    assert not box.state().running


def test_time_limit_holds_while_output_flows(box):
    assert box.exec(("yes",), sink=lambda *_: None, timeout_s=0.5).timed_out


def test_a_child_left_behind_does_not_hold_the_exec(box, say):
    heard = []
    finished = box.exec(("sh", "-c", "sleep 7777 & echo started"), sink=lambda _, data: heard.append(data))
    assert finished.exit_code == 0 and heard == [b"started\n"]
    assert say(box, "pgrep -fx 'sleep 7777'")[0] == 0, "it is there yet"


def test_a_command_that_closes_its_output_works_on(box):
    script = "exec >&- 2>&- <&-; sleep %s; exit 6"
    finished = box.exec(("sh", "-c", script % 0.7))
    assert finished.exit_code == 6 and finished.seconds > 0.6
    finished = box.exec(("sh", "-c", script % 7777), timeout_s=0.2)
    assert finished.timed_out and finished.exit_code is None


def test_an_error_of_the_sink_reaches_the_caller(box):
    def full(*_):
        raise OSError("log disk is full")

    with pytest.raises(OSError, match="log disk is full"):
        box.exec(("yes",), sink=full)


def test_stop_from_another_thread(box):
    stopper = threading.Thread(target=box.stop)
    script = "trap '' TERM INT; echo on; sleep 7777"
    finished = box.exec(("sh", "-c", script), sink=lambda *_: stopper.start())
    assert finished.exit_code is None and not finished.timed_out
    stopper.join()
    assert box.exec(("true",)).exit_code is None, "a stopped box runs nothing"
    box.stop()
    box.remove()
    box.remove()


def test_box_ended_by_somebody_else(engine, box):
    remover = threading.Thread(target=engine.remove, args=[box.id])
    finished = box.exec(("sh", "-c", "echo on; sleep 7777"), sink=lambda *_: remover.start())
    assert finished.exit_code is None and not finished.timed_out
    remover.join()


def test_stopped_box_says_so(box):
    box.stop()
    state = box.state()
    assert (state.running, state.exit_code, state.oom_killed) == (False, 137, False)


def test_eight_execs_at_once(box):
    results = []
    threads = [
        threading.Thread(
            target=lambda code=code: results.append((code, box.exec(("sh", "-c", f"exit {code}")).exit_code))
        )
        for code in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(code, code) for code in range(8)]


def test_missing_image_says_what_to_do(engine, spec):
    with pytest.raises(EngineError, match="hab-suite build"):
        engine.open(replace(spec, image="hab-suite/none:0"))


TERMINAL = """
import sys
from containers.docker_box import DockerBox
from containers.docker_client import connect
box = DockerBox(connect(), sys.argv[1])
script = "test -t 0; until stty size | grep -v '^0 0'; do sleep 0.1; done; read word && echo got:$word && exit 5"
sys.exit(box.terminal(("sh", "-c", script), env={"A": "b"}, workdir="/tmp"))
"""


def test_terminal(box):
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(ours, (33, 99))
    environment = {key: value for key, value in os.environ.items() if key not in ("LINES", "COLUMNS")}
    child = subprocess.Popen(
        [sys.executable, "-c", TERMINAL, box.id], cwd=HOUSE, stdin=theirs, stdout=theirs, env=environment
    )
    os.close(theirs)
    seen = b""
    while b"33 99" not in seen:
        seen += os.read(ours, 1000)
    os.write(ours, b"hello\r")
    while b"got:hello" not in seen:
        seen += os.read(ours, 1000)
    assert child.wait(300) == 5
    os.close(ours)
