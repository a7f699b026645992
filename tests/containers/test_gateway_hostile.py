"""What a box may send to harm the gateway, to get round its rules, or to outspend its limit."""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from containers.door import Gateway
from containers.endpoints import GatewaySettings, Price, Upstream
from tests.stub_model.host_gateway import call, gateway
from tests.stub_model.script import Script, Tokens, Turn
from tests.stub_model.server import StubModel

CHAT, MESSAGES, RESPONSES = "/openai/v1/chat/completions", "/anthropic/v1/messages", "/openai/v1/responses"
GEMINI, COUNT = "/google/v1beta/models/m-1:generateContent", "/google/v1beta/models/m-1:countTokens"
TOKENS = Tokens(input=1000, output=100)
SEARCH = [{"type": "web_search"}]
REMOTE = {"fileData": {"fileUri": "https://x/y"}}


def settings(stub: StubModel, **more) -> GatewaySettings:
    upstreams = (
        Upstream("openai", "openai", f"{stub.url}/v1", "bearer", "k"),
        Upstream("anthropic", "anthropic", stub.url, "x-api-key", "k"),
        Upstream("google", "google", stub.url, "x-goog-api-key", "k"),
    )
    return GatewaySettings(upstreams, **more)


def script(**turn) -> Script:
    return Script((Turn(text="Good.", tokens=TOKENS, **turn),))


def chat(**more) -> dict:
    tool = {"type": "function", "function": {"name": "bash", "parameters": {}}}
    return {"model": "m-1", "messages": [{"role": "user", "content": "hello"}], "tools": [tool], **more}


BOMBS = {
    "lists": b'{"a":[' + b"[]," * 5_000_000 + b"0]}",
    "numbers": b'{"a":[' + b"0.5," * 4_000_000 + b"0]}",
    "strings": b'{"a":[' + b'"",' * 5_000_000 + b"0]}",
    "objects": b'{"a":[' + b'{"b":1},' * 2_000_000 + b"0]}",
    "escapes": b'{"a":"' + b'\\"' * 7_900_000,
    "depth": b'{"a":' * 500 + b"1" + b"}" * 500,
    "quotes": b'"' * (15 << 20),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_body_made_to_harm_is_refused_with_little_work(tmp_path: Path, name: str) -> None:
    with StubModel(script()) as stub, gateway(tmp_path, settings(stub)) as run:
        door, before = run.open_door("t/1"), cpu_s(run)
        status, answer = call(door, CHAT, BOMBS[name])
        assert (status, b"[bad_body]" in answer) == (400, True)
        assert cpu_s(run) - before < 5
        assert peak_mb(run) < 200
    assert not stub.requests


def cpu_s(run: Gateway) -> float:
    """The processor's time that the gateway has taken."""
    fields = Path(f"/proc/{run._box.processes[0].pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mb(run: Gateway) -> int:
    """The most memory that the gateway ever had."""
    status = Path(f"/proc/{run._box.processes[0].pid}/status").read_text()
    return next(int(line.split()[1]) >> 10 for line in status.splitlines() if "VmHWM" in line)


def test_what_a_long_honest_session_sends_is_passed_on(tmp_path: Path) -> None:
    text = 'a,b,"c",{1},[2]\n' * 20_000
    messages = [{"role": "user", "content": [{"type": "text", "text": text}]} for _ in range(10)]
    messages += [{"role": "user", "content": [{"type": "text", "text": "x,y"}]} for _ in range(9_000)]
    with StubModel(script()) as stub, gateway(tmp_path, settings(stub)) as run:
        assert call(run.open_door("t/1"), CHAT, chat(messages=messages))[0] == 200
    assert stub.requests[0].body["messages"] == messages


@pytest.mark.parametrize(
    "text", [b'{"tools":[],"tools":[1]}', b'{"Tools":[],"tools":[1]}', b'{"a":{"b":1,"\\u0062":2}}', '{"a":1}'.encode("utf-16")]
)  # fmt: skip
def test_a_body_that_could_be_read_in_two_ways_is_refused(tmp_path: Path, text: bytes) -> None:
    with StubModel(script()) as stub, gateway(tmp_path, settings(stub)) as run:
        status, answer = call(run.open_door("t/1"), CHAT, text)
    assert (status, b"[bad_body]" in answer) == (400, True)
    assert not stub.requests


def test_one_box_cannot_stop_the_gateway_for_the_others(tmp_path: Path) -> None:
    bomb = json.dumps({"a": "x" * (15 << 20)}).encode()
    with StubModel(script()) as stub, gateway(tmp_path, settings(stub)) as run:
        hostile, other = run.open_door("t/1"), run.open_door("t/2")
        done, answers = threading.Event(), []

        def attack() -> None:
            while not done.is_set():
                try:
                    answers.append(call(hostile, CHAT, bomb)[0])
                except OSError:  # the door no longer listens to so many
                    answers.append(0)

        with ThreadPoolExecutor(12) as pool:
            attacks = [pool.submit(attack) for _ in range(12)]
            try:
                others = 0
                while len(answers) < 40:
                    assert call(other, CHAT, chat())[0] == 200
                    run.heartbeat()
                    others += 1
            finally:
                done.set()
        assert call(hostile, CHAT, b" " * (17 << 20))[0] == 413
        assert peak_mb(run) < 700
    assert all(attack.result() is None for attack in attacks)
    assert {200, 503} & set(answers)
    assert others >= 8, "who waits behind every one of the twelve is answered three times"


@pytest.mark.parametrize(
    ("path", "asked", "kind"),
    [
        (CHAT, chat(tools={"type": "web_search"}), "hosted_tool"),
        (RESPONSES, {"model": "m", "Tools": SEARCH}, "hosted_tool"),
        (RESPONSES, {"model": "m", "tools": [{"type": "namespace", "tools": {"function": 1}}]}, "hosted_tool"),
        (RESPONSES, {"model": "m", "type": "tool_use", "input": [{"file_url": "https://x"}]}, "remote_file"),
        (RESPONSES, {"model": "m", "prompt": {"id": "pmpt_1"}}, "hosted_tool"),
        (RESPONSES, {"model": "m", "input": [{"type": "function_call_output", "output": [{"image_url": "http://x"}]}]},
         "remote_file"),
        (CHAT, chat(messages=[{"content": [{"video_url": {"url": "https://x"}}]}]), "remote_file"),
        (CHAT, chat(messages=[{"content": [{"image_url": ["https://x"]}]}]), "remote_file"),
        (CHAT, chat(messages=[{"content": [{"file": {"file_data": "https://x/y.pdf"}}]}]), "remote_file"),
        (MESSAGES, {"model": "m", "system": [{"source": {"type": "url", "url": "x"}}]}, "remote_file"),
        (MESSAGES + "/count_tokens", {"model": "m", "messages": [{"content": [{"source": {"type": "url"}}]}]},
         "remote_file"),
        (MESSAGES + "/count_tokens", {"model": "m", "tools": [{"type": "web_fetch_20250910"}]}, "hosted_tool"),
        (GEMINI, {"contents": [], "system_instruction": {"parts": [REMOTE]}}, "remote_file"),
        (GEMINI, {"contents": [], "systemInstruction": {"parts": [{"file_data": {"file_uri": "x"}}]}}, "remote_file"),
        (GEMINI, {"contents": [{"parts": [{"functionResponse": {"response": {}, "parts": [REMOTE]}}]}]}, "remote_file"),
        (GEMINI, {"contents": [], "tools": {"googleSearch": {}}}, "hosted_tool"),
        (COUNT, {"generateContentRequest": {"contents": [{"parts": [REMOTE]}]}}, "remote_file"),
        (COUNT, {"generateContentRequest": {"tools": [{"url_context": {}}]}}, "hosted_tool"),
    ],
)  # fmt: skip
def test_no_other_spelling_reaches_the_network_at_the_vendor(tmp_path: Path, path: str, asked: dict, kind: str) -> None:
    with StubModel(script()) as stub, gateway(tmp_path, settings(stub)) as run:
        door = run.open_door("t/1")
        _, answer = call(door, path, asked)
        assert f"[{kind}]".encode() in answer, answer
        assert run.close_door(door).refusals == {kind: 1}
    assert not stub.requests


def test_a_models_and_a_tools_own_words_pass(tmp_path: Path) -> None:
    called = {"functionCall": {"args": {"fileUri": "https://x"}}}
    answered = {"functionResponse": {"response": {"file_url": "https://x", "tools": "none"}}}
    schema = {"functionDeclarations": [{"name": "bash", "parameters": {"properties": {"image_url": {}, "tools": {}}}}]}
    asked = {"contents": [{"parts": [called, answered, {"inlineData": {"data": "AA=="}}]}], "tools": [schema]}
    with StubModel(script()) as stub, gateway(tmp_path, settings(stub)) as run:
        assert call(run.open_door("t/1"), GEMINI, asked)[0] == 200


PRICE = Price(input=1000, output=10_000)
COST = (1000 * 1000 + 100 * 10_000) / 1e6


@pytest.mark.parametrize("limit", ["max_usd", "max_usd_per_trial"])
def test_many_requests_at_once_pass_a_limit_by_one_at_most(tmp_path: Path, limit: str) -> None:
    made = {"prices": {"m-1": PRICE}, limit: 4.5 * COST}
    with StubModel(script(delay_s=0.05)) as stub, gateway(tmp_path, settings(stub, **made)) as run:
        door = run.open_door("t/1")
        with ThreadPoolExecutor(60) as pool:
            statuses = [future.result()[0] for future in [pool.submit(call, door, CHAT, chat()) for _ in range(60)]]
        report = run.close_door(door)
    assert statuses.count(200) == 5, "what others might spend refuses nobody"
    assert report.refusals == {"budget": 55}
    assert report.spent_usd == pytest.approx(5 * COST)


def test_requests_that_leave_room_for_each_other_run_side_by_side(tmp_path: Path) -> None:
    made = {"prices": {"m-1": PRICE}, "max_usd": 1000.0}
    together = threading.Barrier(8)
    with StubModel(script(together=together)) as stub, gateway(tmp_path, settings(stub, **made)) as run:
        door = run.open_door("t/1")
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(call, door, CHAT, chat(max_tokens=200)) for _ in range(8)]
            assert [future.result()[0] for future in asked] == [200] * 8
