"""Doors of real boxes without a network, behind the gateway in its own container."""

import json
import secrets
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from containers.box import LABEL, Box, BoxLimits, BoxSpec
from containers.door import Door, Gateway
from containers.endpoints import GatewaySettings, Upstream
from tests.stub_model.script import Script, Turn
from tests.stub_model.server import StubModel

pytestmark = pytest.mark.engine

LABELS = {LABEL: "test", f"{LABEL}.purpose": f"gateway-{secrets.token_hex(8)}"}
ASKED = {"model": "m", "messages": [], "tools": [{"type": "function", "function": {"name": "bash"}}]}
ASK = f"curl() {{ python3 - \"$@\" <<'EOF'\nimport json, sys, urllib.request\nrequest = urllib.request.Request(sys.argv[1], data=sys.argv[2].encode())\nprint(urllib.request.urlopen(request, timeout=300).read().decode())\nEOF\n}}; curl http://127.0.0.1:8080/openai/v1/chat/completions '{json.dumps(ASKED)}'"
TUNNEL = """
import socket, sys
for target in sys.argv[1:]:
    line = socket.create_connection(("127.0.0.1", 8081), 300)
    line.sendall(f"CONNECT {target} HTTP/1.1\\r\\n\\r\\n".encode())
    head = line.recv(4096).split(b"\\r\\n")[0].decode()
    print(target, head.split()[1])
"""


def say(box: Box, *argv: str) -> tuple[int | None, str]:
    heard = bytearray()
    finished = box.exec(argv, sink=lambda _stream, data: heard.extend(data))
    return finished.exit_code, heard.decode()


@pytest.fixture
def world(engine, base, role_image, tmp_path: Path):
    """A stub, the gateway in its container, and two boxes with a door each."""
    with StubModel(Script((Turn(text="hi"),))) as stub, ExitStack() as stack:
        listed = stub.url.removeprefix("http://")
        gateway = Gateway(
            engine,
            image=role_image("gateway"),
            folder=tmp_path / "doors",
            journal=tmp_path / "gateway.jsonl",
            labels=LABELS,
            settings=GatewaySettings(
                (Upstream("openai", "openai", f"{stub.url}/v1", "bearer", "canary-box-00f1"),), connect_hosts=(listed,)
            ),
        )
        gateway.start()
        stack.callback(gateway.stop)

        def seat(trial: str) -> tuple[Door, Box]:
            door = gateway.open_door(trial)
            spec = BoxSpec(
                image=base,
                command=("sleep", "infinity"),
                user="1000:1000",
                limits=BoxLimits(cpus=1, memory_mb=300, pids=100),
                mounts=(door.mount,),
                env=door.env,
                labels=LABELS,
                tmpfs={"/tmp": ""},
            )
            box = engine.open(spec)
            stack.callback(box.remove)
            assert box.exec(door.forwarder).exit_code == 0
            return door, box

        yield stub, gateway, seat("t/1"), seat("t/2")


def test_each_box_has_its_own_door_and_no_other(world) -> None:
    stub, gateway, (door, box), (other_door, other) = world
    for here in (box, other):
        code, said = say(here, "bash", "-c", ASK)
        assert code == 0, said
        assert '"hi"' in said
    assert len(stub.requests) == 2
    _, listing = say(box, "find", "/run", "-type", "s")
    assert sorted(listing.split()) == ["/run/door/connect", "/run/door/model"]
    _, mounts = say(box, "cat", "/proc/self/mountinfo")
    assert door.name in mounts
    assert other_door.name not in mounts
    assert gateway.close_door(door).requests == 1
    code, _ = say(box, "bash", "-c", ASK)
    assert code != 0, "a closed door is closed"
    assert say(other, "bash", "-c", ASK)[0] == 0


def test_a_box_cannot_harm_its_door(world) -> None:
    _, _, (_, box), _ = world
    for attempt in ("rm /run/door/model", "touch /run/door/x", "mv /run/door/model /run/door/y"):
        assert say(box, "bash", "-c", attempt)[0] != 0


def test_listed_hosts_are_reached_by_connect_and_others_are_not_asked(world) -> None:
    stub, _, (door, box), _ = world
    listed = stub.url.removeprefix("http://")
    others = ["127.0.0.1:22", "example.org:443", "169.254.169.254:80", "172.17.0.1:2375"]
    _, said = say(box, "python3", "-c", TUNNEL, listed, *others)
    assert said.splitlines() == [f"{listed} 200", *(f"{other} 403" for other in others)]
    assert door.env["HTTPS_PROXY"] == "http://127.0.0.1:8081"


def test_the_gateways_container_shows_no_key(world, engine, tmp_path: Path) -> None:
    _, _, (_, box), _ = world
    say(box, "bash", "-c", ASK)
    found = engine.find(LABELS)
    assert len(found) == 3
    command = ["docker", "inspect", *(entry.id for entry in found)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "gateway" in shown
    assert "canary-box-00f1" not in shown
    journal = tmp_path / "gateway.jsonl"
    while '"t/1"' not in journal.read_text():  # written after the answer
        time.sleep(0.02)
    assert "canary-box-00f1" not in journal.read_text()
