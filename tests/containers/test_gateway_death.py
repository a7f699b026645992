"""A gateway that dies, freezes or loses its line: the trials that it served say so, and the others go on."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from containers.control import ControlLine
from containers.door import DoorReport, Gateway, GatewayError
from containers.endpoints import GatewaySettings, Price, Upstream
from containers.journal import entries
from tests.stub_model.host_gateway import call, gateway
from tests.stub_model.script import Script, Tokens, Turn
from tests.stub_model.server import StubModel

CHAT = "/openai/v1/chat/completions"
ASKED = {"model": "m-1", "messages": [], "tools": [{"type": "function", "function": {"name": "bash"}}]}
COST = 0.02


def settings(stub: StubModel, **more) -> GatewaySettings:
    upstream = Upstream("azure", "openai", f"{stub.url}/v1", "bearer", "k")
    return GatewaySettings((upstream, Upstream("openai", "openai", f"{stub.url}/v1", "bearer", "k")), **more)


def stub_model() -> StubModel:
    return StubModel(Script((Turn(text="Good.", tokens=Tokens(input=100, output=100)),)))


def kill(run: Gateway, journal: Path, lines: int) -> None:
    """End the gateway once its journal has so many lines: it writes them after the answers."""
    while len(list(entries(journal))) < lines:
        time.sleep(0.01)
    process = run._box.processes[0]
    process.kill()
    process.wait()
    assert run._ended.wait(300)


def test_a_dead_gateways_door_tells_what_the_journal_knows(tmp_path: Path) -> None:
    with stub_model() as stub, gateway(tmp_path, settings(stub, prices={"m-1": Price(100, 100)})) as run:
        before, door, other = run.open_door("t/1"), run.open_door("t/1"), run.open_door("t/2")
        for where in (door, door, other):
            assert call(where, CHAT.replace("openai", "azure"), ASKED)[0] == 200
        assert call(door, CHAT, {**ASKED, "tools": [{"type": "web_search"}]})[0] == 400
        run.close_door(before)
        kill(run, tmp_path / "gateway.jsonl", 4)
        report = run.close_door(door)
        assert run.close_door(door) == DoorReport(), "empty the second time"
    assert (report.requests, report.refusals, report.statuses) == (2, {"hosted_tool": 1}, {"200": 2})
    assert report.spent_usd == pytest.approx(2 * COST)
    (usage,) = report.usage
    assert (usage["provider"], usage["requests"], usage["input_tokens"]) == ("openai", 2, 200)
    assert report.last_error == "gateway"
    assert "gone" in report.message


def test_a_gateway_that_died_is_started_anew_once_and_knows_what_was_spent(tmp_path: Path) -> None:
    made = {"prices": {"m-1": Price(100, 100)}, "max_usd_per_trial": 1.5 * COST, "spent_usd": 1.0}
    with stub_model() as stub, gateway(tmp_path, settings(stub, **made)) as run:
        door = run.open_door("t/1")
        assert call(door, CHAT, ASKED)[0] == 200
        kill(run, tmp_path / "gateway.jsonl", 1)
        again, other = run.open_door("t/1"), run.open_door("t/2")
        assert [call(again, CHAT, ASKED)[0] for _ in range(2)] == [200, 400], "its money is that of all its tries"
        assert call(other, CHAT, ASKED)[0] == 200
        assert run.heartbeat() == pytest.approx(1 + 3 * COST)
        assert run.close_door(door).requests == 0
        kill(run, tmp_path / "gateway.jsonl", 4)
        with pytest.raises(GatewayError, match="gone"):
            run.open_door("t/3")


def test_a_stopped_gateway_is_not_started_again(tmp_path: Path) -> None:
    with stub_model() as stub, gateway(tmp_path, settings(stub)) as run:
        door = run.open_door("t/1")
        run.stop()
        with pytest.raises(GatewayError):
            run.open_door("t/2")
        assert run.close_door(door).last_error == "gateway"


def test_a_lost_line_is_taken_up_again_and_nothing_done_twice(tmp_path: Path, monkeypatch) -> None:
    ask, lost = ControlLine.ask, []

    def deaf(line: ControlLine, order: dict) -> dict:
        answer = ask(line, order)
        if "again" not in order:
            lost.append(order["op"])
            raise TimeoutError("timed out")
        return answer

    with stub_model() as stub, gateway(tmp_path, settings(stub)) as run:
        monkeypatch.setattr(ControlLine, "ask", deaf)
        door = run.open_door("t/1")
        assert call(door, CHAT, ASKED)[0] == 200
        run.heartbeat()
        assert run.close_door(door).requests == 1
    assert lost[:3] == ["open", "beat", "close"]


def test_every_order_gets_an_answer(tmp_path: Path) -> None:
    with stub_model() as stub, gateway(tmp_path, settings(stub)) as run:
        line = ControlLine.to(tmp_path / "doors" / "control")
        for order in ({}, {"op": "open", "door": "../x", "trial": "t"}, {"op": "close"}):
            assert "error" in line.ask(order)
        (tmp_path / "doors").chmod(0o500)
        try:
            if os.getuid():
                assert "error" in line.ask({"op": "open", "door": "ab" * 8, "trial": "t"})
        finally:
            (tmp_path / "doors").chmod(0o700)
        (tmp_path / "doors" / ("cd" * 8)).write_text("in the way")
        assert "FileExistsError" in line.ask({"op": "open", "door": "cd" * 8, "trial": "t"})["error"]
        line.close()
        assert call(run.open_door("t/1"), CHAT, ASKED)[0] == 200


def test_a_frozen_gateway_is_an_error_of_its_trial_and_closing_does_not_raise(tmp_path: Path, monkeypatch) -> None:
    with stub_model() as stub, gateway(tmp_path, settings(stub)) as run:
        door = run.open_door("t/1")
        process = run._box.processes[0]
        process.send_signal(signal.SIGSTOP)
        monkeypatch.setattr("containers.control.ANSWER_S", 0.3)
        run._control._connection.settimeout(0.3)
        with pytest.raises(GatewayError, match="does not answer"):
            run.open_door("t/2")
        assert run.close_door(door).last_error == "gateway"
        process.send_signal(signal.SIGCONT)
        monkeypatch.undo()
        assert call(run.open_door("t/3"), CHAT, ASKED)[0] == 200


def test_a_cut_line_of_the_journal_is_passed_over(tmp_path: Path) -> None:
    journal = tmp_path / "j"
    journal.write_text('{"trial": "a"}\n{"trial": "b", "co{"trial": "c"}\n' + json.dumps({"trial": "d"}))
    assert [entry["trial"] for entry in entries(journal)] == ["a", "d"]
    assert not list(entries(tmp_path / "none"))
