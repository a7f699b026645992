"""The gateway, as a process of this host: keys, metering, refusals, money, silence."""

import gzip
import http.client
import json
import socket
import threading
import time
from pathlib import Path

import pytest

from containers.door import Gateway, GatewayError
from containers.endpoints import GatewaySettings, Price, Upstream, is_loopback
from tests.stub_model.host_gateway import Connection, HostEngine, call, gateway
from tests.stub_model.script import Failure, Script, Tokens, Turn
from tests.stub_model.server import StubModel

KEYS = {"openai": "canary-openai-51c0", "anthropic": "canary-anthropic-77aa", "google": "canary-google-9b1e"}
TOKENS = Tokens(input=700, cache_read=200, cache_write=100, output=60, reasoning=25)
PATHS = {
    "responses": "/openai/v1/responses",
    "chat": "/openai/v1/chat/completions",
    "messages": "/anthropic/v1/messages?beta=true",
    "gemini": "/google/v1beta/models/m-1:streamGenerateContent?alt=sse",
}
HISTORY = {"responses": "input", "chat": "messages", "messages": "messages", "gemini": "contents"}


def settings(stub: StubModel, **more) -> GatewaySettings:
    upstreams = (
        Upstream("openai", "openai", f"{stub.url}/v1", "bearer", KEYS["openai"]),
        Upstream("anthropic", "anthropic", stub.url, "x-api-key", KEYS["anthropic"]),
        Upstream("google", "google", stub.url, "x-goog-api-key", KEYS["google"]),
    )
    return GatewaySettings(upstreams, **more)


def body(api: str, *, stream: bool = True, **more) -> dict:
    """A request with one tool, so that it is a turn and no aside."""
    tool = {"type": "function", "name": "bash", "input_schema": {}}
    asked = {"model": "m-1", "stream": stream, "tools": [tool], HISTORY[api]: [{"role": "user", "content": "hello"}]}
    if api == "chat":
        asked["tools"] = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]
    if api == "gemini":
        asked = {
            "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
            "tools": [{"functionDeclarations": [{"name": "bash"}]}],
        }
    return asked | more


def script(**turn) -> Script:
    return Script((Turn(text="The answer is 42.", tokens=TOKENS, **turn),))


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("stream", [True, False])
def test_usage_is_metered_exactly_and_the_key_is_swapped(tmp_path: Path, api: str, stream: bool) -> None:
    path = PATHS[api] if stream else PATHS[api].replace(":streamG", ":g").replace("?alt=sse", "")
    with StubModel(script()) as stub, gateway(tmp_path, settings(stub)) as run:
        door = run.open_door("t/1")
        status, answer = call(door, path, body(api, stream=stream))
        report = run.close_door(door)
        journal = (tmp_path / "gateway.jsonl").read_text()
    assert status == 200
    assert b"answer" in answer
    provider = path.split("/")[1]
    expected = {
        "model": "m-1",
        "provider": provider,
        "requests": 1,
        "input_tokens": 800 if api == "gemini" else 700,  # Gemini does not tell what it wrote to its cache
        "cache_read_tokens": 200,
        "cache_write_tokens": 0 if api == "gemini" else 100,
        "output_tokens": 60,
        "reasoning_tokens": 0 if api == "messages" else 25,  # Anthropic counts thinking as output
    }
    assert report.usage == (expected,)
    assert (report.requests, report.unmetered, report.last_error) == (1, 0, "")
    sent = stub.requests[0].headers
    own = {"openai": "authorization", "anthropic": "x-api-key", "google": "x-goog-api-key"}[provider]
    assert KEYS[provider] in sent[own]
    assert not any("box" in sent.get(name, "") for name in ("authorization", "x-api-key", "x-goog-api-key"))
    assert not any(key in journal for key in KEYS.values())
    assert "hello" not in journal
    assert "hello" not in report.message


@pytest.mark.parametrize(
    ("upstream", "sent"),
    [
        (
            {"auth": "api-key", "query": {"api-version": "preview"}},
            {"api-key": "canary-own", "path": "/v1/chat/completions?api-version=preview"},
        ),
        (
            {"auth": "bearer", "headers": {"chatgpt-account-id": "acc"}},
            {"authorization": "Bearer canary-own", "chatgpt-account-id": "acc", "path": "/v1/chat/completions"},
        ),
        ({"auth": "none", "key": ""}, {"authorization": "", "path": "/v1/chat/completions"}),
    ],
)
def test_other_ways_of_being_let_in(tmp_path: Path, upstream: dict, sent: dict) -> None:
    with StubModel(script()) as stub:
        words = {"name": "openai", "dialect": "openai", "base_url": f"{stub.url}/v1", "key": "canary-own", **upstream}
        with gateway(tmp_path, GatewaySettings((Upstream(**words),))) as run:
            door = run.open_door("t/1")
            forged = {"chatgpt-account-id": "other", "OpenAI-Organization": "other", "Cookie": "a=b"}
            assert call(door, PATHS["chat"] + "?key=box", body("chat"), headers=forged)[0] == 200
    (request,) = stub.requests
    assert {name: request.headers.get(name, "") for name in sent if name != "path"} == {
        name: value for name, value in sent.items() if name != "path"
    }
    assert request.path == sent["path"]
    assert not {"openai-organization", "cookie"} & request.headers.keys()


def test_a_subscriptions_header_is_added_to_the_clients_own(tmp_path: Path) -> None:
    with StubModel(script()) as stub:
        upstream = Upstream(
            "anthropic", "anthropic", stub.url, "bearer", "canary-sub", headers={"anthropic-beta": "oauth-2025-04-20"}
        )
        with gateway(tmp_path, GatewaySettings((upstream,))) as run:
            door = run.open_door("t/1")
            for headers in ({"anthropic-beta": "effort-2025-11-24"}, {}):
                assert call(door, PATHS["messages"], body("messages"), headers=headers)[0] == 200
    assert [request.headers["anthropic-beta"] for request in stub.requests] == [
        "effort-2025-11-24,oauth-2025-04-20",
        "oauth-2025-04-20",
    ]
    assert {request.headers["authorization"] for request in stub.requests} == {"Bearer canary-sub"}


def test_keys_are_in_no_argument_no_environment_and_no_specification(tmp_path: Path) -> None:
    engine = HostEngine()
    with StubModel(script()) as stub:
        made = settings(stub)
        run = Gateway(
            engine, image="-", folder=tmp_path / "d", journal=tmp_path / "j", labels={"a": "b"}, settings=made
        )
        run.start()
        try:
            process = engine.boxes[0].processes[0]
            shown = repr(engine.boxes[0].spec) + repr(made) + repr(run.__dict__)
            for name in ("cmdline", "environ"):
                shown += Path(f"/proc/{process.pid}/{name}").read_text()
        finally:
            run.stop()
    assert "-m" in shown
    assert not any(key in shown for key in KEYS.values())


def test_a_stream_passes_token_by_token(tmp_path: Path) -> None:
    """The model sends an event only once the one before has come out: what holds one back waits for ever."""
    steps = threading.Semaphore(1)
    stepwise = Script((Turn(text="one two three four five six seven eight", steps=steps),))
    with StubModel(stepwise) as stub, gateway(tmp_path, settings(stub)) as run:
        door = run.open_door("t/1")
        connection = Connection(door.mount.source / "model")
        connection.request("POST", PATHS["chat"], json.dumps(body("chat")))
        answer, events = connection.getresponse(), 0
        while line := answer.readline():
            if line == b"\n":
                events += 1
                steps.release()
        connection.close()
        assert events == len(stub.requests[0].events_sent) > 4


@pytest.mark.parametrize(
    ("api", "more", "kind"),
    [
        ("responses", {"tools": [{"type": "web_search"}]}, "hosted_tool"),
        ("responses", {"tools": [{"type": "web_search_preview_2025_03_11"}]}, "hosted_tool"),
        ("responses", {"tools": [{"type": "mcp", "server_url": "https://x"}]}, "hosted_tool"),
        ("responses", {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}, "hosted_tool"),
        ("responses", {"tools": [{"type": "namespace", "tools": [{"type": "web_search"}]}]}, "hosted_tool"),
        ("responses", {"input": [{"type": "additional_tools", "tools": [{"type": "web_search"}]}]}, "hosted_tool"),
        ("responses", {"background": True}, "hosted_tool"),
        (
            "responses",
            {"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "http://x"}]}]},
            "remote_file",
        ),
        ("responses", {"input": [{"role": "user", "content": [{"image_url": "https://x/i.png"}]}]}, "remote_file"),
        ("chat", {"web_search_options": {}, "model": "gpt-4o-search-preview"}, "hosted_tool"),
        ("chat", {"plugins": [{"id": "web"}]}, "hosted_tool"),
        ("chat", {"messages": [{"role": "user", "content": [{"image_url": {"url": "http://x"}}]}]}, "remote_file"),
        ("messages", {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "hosted_tool"),
        ("messages", {"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}, "hosted_tool"),
        ("messages", {"tools": [{"type": "code_execution_20250825", "name": "code"}]}, "hosted_tool"),
        ("messages", {"mcp_servers": [{"type": "url", "url": "https://x"}]}, "hosted_tool"),
        (
            "messages",
            {"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "x"}}]}]},
            "remote_file",
        ),
        ("gemini", {"tools": [{"googleSearch": {}}]}, "hosted_tool"),
        ("gemini", {"tools": [{"url_context": {}}]}, "hosted_tool"),
        ("gemini", {"tools": [{"codeExecution": {}}]}, "hosted_tool"),
        ("gemini", {"contents": [{"role": "user", "parts": [{"fileData": {"fileUri": "https://x"}}]}]}, "remote_file"),
    ],
)
def test_what_would_reach_the_network_at_the_vendor_is_refused(tmp_path: Path, api: str, more: dict, kind: str) -> None:
    with StubModel(script()) as stub, gateway(tmp_path, settings(stub)) as run:
        door = run.open_door("t/1")
        status, answer = call(door, PATHS[api], body(api, **more))
        report = run.close_door(door)
    error = json.loads(answer)["error"]
    assert status in (400, 403)
    assert f"[{kind}]" in error["message"]
    assert report.refusals == {kind: 1}
    assert not stub.requests


def test_what_tools_and_files_a_client_may_use_passes(tmp_path: Path) -> None:
    asked = {
        "responses": body(
            "responses",
            tools=[
                {"type": "custom", "name": "apply_patch"},
                {"type": "local_shell"},
                {"type": "function", "name": "bash"},
            ],
            input=[
                {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA=="}]},
                {"type": "function_call", "arguments": '{"file_url": "http://x"}'},
            ],
        ),
        "messages": body(
            "messages",
            tools=[{"name": "Bash", "input_schema": {"properties": {"file_url": {}}}}, {"type": "bash_20250124"}],
            messages=[{"role": "assistant", "content": [{"type": "tool_use", "input": {"image_url": "http://x"}}]}],
        ),
    }
    with StubModel(script()) as stub, gateway(tmp_path, settings(stub)) as run:
        door = run.open_door("t/1")
        assert [call(door, PATHS[api], asked[api])[0] for api in asked] == [200, 200]


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/", {}, 404),
        ("HEAD", "/anthropic/api/hello", {}, 404),
        ("POST", "/openai/v1/files", {}, 404),
        ("POST", "/openai/v1/../admin/responses", {}, 404),
        ("GET", "/openai/v1/models/../files", {}, 404),
        ("GET", "/openai/v1/models/%2e%2e/files", {}, 404),
        ("GET", "/anthropic/v1/models/x/../../organizations", {}, 404),
        ("GET", "/openai/v1/models//files", {}, 404),
        ("GET", "/openai/v1/responses", {"Upgrade": "websocket", "Connection": "Upgrade"}, 426),
        ("GET", "http://169.254.169.254/latest/meta-data/", {}, 403),
        ("DELETE", "/openai/v1/models/m-1", {}, 404),
        ("POST", "/google/v1beta/models/m-1:batchGenerateContent", {}, 404),
    ],
)
def test_unknown_paths_and_hosts_are_refused_and_nobody_is_asked(tmp_path: Path, method, path, headers, status) -> None:
    with StubModel(script()) as stub, gateway(tmp_path, settings(stub)) as run:
        door = run.open_door("t/1")
        assert call(door, path, method=method, headers=headers)[0] == status
    assert not stub.requests


def test_compressed_and_broken_bodies_are_refused(tmp_path: Path) -> None:
    with StubModel(script()) as stub, gateway(tmp_path, settings(stub)) as run:
        door = run.open_door("t/1")
        assert call(door, PATHS["chat"], gzip.compress(b"{}"), headers={"Content-Encoding": "gzip"})[0] == 415
        assert call(door, PATHS["chat"], b"{")[0] == 400
        assert call(door, PATHS["chat"], b"[1]")[0] == 400
        assert call(door, PATHS["chat"], b"[" * 100_000)[0] == 400
    assert not stub.requests


PRICE = Price(input=1000, output=5000, cache_read=100, cache_write=1250)
COST = (700 * 1000 + 200 * 100 + 100 * 1250 + 60 * 5000) / 1e6


def test_a_trial_is_stopped_at_its_limit_and_the_run_goes_on(tmp_path: Path) -> None:
    with StubModel(script()) as stub:
        made = settings(stub, prices={"m-1": PRICE}, max_usd_per_trial=2.5 * COST)
        with gateway(tmp_path, made) as run:
            door, other = run.open_door("t/1"), run.open_door("t/2")
            statuses = [call(door, PATHS["responses"], body("responses"))[0] for _ in range(5)]
            again = call(other, PATHS["responses"], body("responses"))[0]
            retry = run.open_door("t/1")
            assert call(retry, PATHS["responses"], body("responses"))[0] == 400, "a retry shares its trial's money"
            report = run.close_door(door)
            spent = run.heartbeat()
    assert statuses == [200, 200, 200, 400, 400]
    assert again == 200
    assert report.refusals == {"budget": 2}
    assert report.spent_usd == pytest.approx(3 * COST)
    assert report.spent_usd - 2.5 * COST < COST, "within one request of the limit"
    assert spent == pytest.approx(4 * COST)


def test_a_run_is_stopped_at_its_limit_also_after_a_resume(tmp_path: Path) -> None:
    with StubModel(script()) as stub:
        made = settings(stub, prices={"m-1": PRICE}, max_usd=10.5 * COST, spent_usd=9 * COST)
        with gateway(tmp_path, made) as run:
            doors = [run.open_door(f"t/{n}") for n in range(3)]
            assert [call(door, PATHS["messages"], body("messages"))[0] for door in doors] == [200, 200, 403]
            assert run.heartbeat() == pytest.approx(11 * COST)


def test_a_model_without_a_price_is_refused_where_there_is_a_limit(tmp_path: Path) -> None:
    with StubModel(script()) as stub, gateway(tmp_path, settings(stub, max_usd=1)) as run:
        door = run.open_door("t/1")
        status, answer = call(door, PATHS["chat"], body("chat"))
        assert (status, call(door, "/openai/v1/models")[0]) == (400, 200)
    assert b"[unpriced]" in answer


def test_an_answer_that_breaks_off_is_charged_by_estimate_and_said_to_be_unmetered(tmp_path: Path) -> None:
    with (
        StubModel(script(cut=True)) as stub,
        gateway(tmp_path, settings(stub, prices={"m-1": PRICE}, max_usd=99)) as run,
    ):
        door = run.open_door("t/1")
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            call(door, PATHS["responses"], body("responses"))
        report = run.close_door(door)
    assert (report.unmetered, report.last_error, report.usage) == (1, "cut", ())
    assert report.spent_usd > 0


@pytest.mark.parametrize(("where", "error"), [("headers", "silence"), ("middle", "silence")])
def test_a_silent_model_is_cut_off(tmp_path: Path, where: str, error: str) -> None:
    with StubModel(script(silent=where)) as stub, gateway(tmp_path, settings(stub, silence_s=0.5)) as run:
        door = run.open_door("t/1")
        if where == "headers":
            assert call(door, PATHS["chat"], body("chat"))[0] == 504
        else:
            with pytest.raises((http.client.IncompleteRead, ConnectionError)):
                call(door, PATHS["chat"], body("chat"))
        assert run.close_door(door).last_error == error


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("status", [401, 429, 500])
def test_errors_pass_through_with_their_headers(tmp_path: Path, api: str, status: int) -> None:
    failing = script(failure=Failure(status, message="as scripted", headers={"retry-after": "7"}))
    with StubModel(failing) as stub, gateway(tmp_path, settings(stub)) as run:
        door = run.open_door("t/1")
        connection = Connection(door.mount.source / "model")
        connection.request("POST", PATHS[api], json.dumps(body(api)))
        answer = connection.getresponse()
        assert (answer.status, answer.headers["retry-after"]) == (status, "7")
        assert b"as scripted" in answer.read()
        connection.close()
        report = run.close_door(door)
    assert report.statuses == {str(status): 1}
    assert report.last_error
    assert report.message.startswith("as scripted")
    assert (report.last_status, "look at" in report.message) == (status, status == 401)
    assert report.spent_usd == 0


def test_an_error_inside_a_stream_is_seen(tmp_path: Path) -> None:
    failing = script(failure=Failure(529, code="overloaded_error", in_stream=True))
    with StubModel(failing) as stub, gateway(tmp_path, settings(stub)) as run:
        door = run.open_door("t/1")
        assert call(door, PATHS["messages"], body("messages"))[0] == 200
        assert run.close_door(door).last_error == "overloaded_error"


def test_a_client_that_leaves_upon_an_error_in_the_stream_has_left_because_of_it(tmp_path: Path) -> None:
    failing = script(failure=Failure(529, code="overloaded_error", in_stream=True), pace_s=30)
    with StubModel(failing) as stub, gateway(tmp_path, settings(stub)) as run:
        door = run.open_door("t/1")
        client = Connection(door.mount.source / "model")
        client.request("POST", PATHS["messages"], json.dumps(body("messages")), {"Authorization": "Bearer box"})
        answer = client.getresponse()
        assert b"overloaded_error" in answer.read1()
        answer.close()
        client.close()
        report = run.close_door(door)
        stub.closing.set()
    assert (report.requests, report.last_error) == (1, "overloaded_error")


def test_an_endpoint_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with StubModel(script()) as stub:
        pass
    with gateway(tmp_path, settings(stub)) as run:
        door = run.open_door("t/1")
        assert call(door, PATHS["chat"], body("chat"))[0] == 502
        assert run.close_door(door).last_error == "unreachable"


def test_nothing_passes_once_the_orchestrator_is_gone(tmp_path: Path) -> None:
    """After a minute, in a run; here after less."""
    assert GatewaySettings(()).stale_s == 60
    with StubModel(script()) as stub, gateway(tmp_path, settings(stub, stale_s=3)) as run:
        door = run.open_door("t/1")
        answers = [call(door, PATHS["chat"], body("chat"))]
        assert answers[0][0] == 200
        while answers[-1][0] == 200:
            time.sleep(0.2)
            answers.append(call(door, PATHS["chat"], body("chat")))
        status, answer = answers[-1]
        assert (status, b"[stale]" in answer) == (503, True)
        run.heartbeat()
        assert call(door, PATHS["chat"], body("chat"))[0] == 200
    assert len(stub.requests) == len(answers), "one less, and one more"


def test_a_closed_door_is_gone_and_others_stay(tmp_path: Path) -> None:
    with StubModel(script()) as stub, gateway(tmp_path, settings(stub)) as run:
        door, other = run.open_door("t/1"), run.open_door("t/2")
        assert door.mount.source.stat().st_mode & 0o777 == 0o755
        assert (door.mount.source / "model").stat().st_mode & 0o777 == 0o666
        assert (tmp_path / "doors").stat().st_mode & 0o077 == 0
        run.close_door(door)
        assert not door.mount.source.exists()
        assert run.close_door(door).requests == 0
        assert call(other, PATHS["chat"], body("chat"))[0] == 200


def test_closing_a_door_cuts_what_is_under_way(tmp_path: Path) -> None:
    with StubModel(script(silent="headers")) as stub, gateway(tmp_path, settings(stub)) as run:
        door = run.open_door("t/1")
        connection = Connection(door.mount.source / "model")
        connection.request("POST", PATHS["chat"], json.dumps(body("chat")))
        while not stub.requests:
            time.sleep(0.01)
        report = run.close_door(door)
        connection.close()
    assert (report.requests, report.last_error) == (1, "gone")


def test_tunnels_reach_listed_hosts_only(tmp_path: Path) -> None:
    def connect(door, target: str) -> bytes:
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(120)
        line.connect(str(door.mount.source / "connect"))
        line.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        head = line.recv(4096)
        if b" 200 " in head.split(b"\r\n")[0]:
            line.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            while chunk := line.recv(4096):
                head += chunk
        line.close()
        return head

    with StubModel(script()) as stub:
        listed = stub.url.removeprefix("http://")
        with gateway(tmp_path, settings(stub, connect_hosts=(listed,))) as run:
            door = run.open_door("t/1")
            assert door.env["HTTPS_PROXY"] == "http://127.0.0.1:8081"
            assert b'"object": "list"' in connect(door, listed)
            for other in ("127.0.0.1:22", "169.254.169.254:80", listed + "0", "example.org:443"):
                assert b" 403 " in connect(door, other).split(b"\r\n")[0]
    with StubModel(script()) as stub, gateway(tmp_path / "plain", settings(stub)) as run:
        door = run.open_door("t/1")
        assert not door.env
        assert not (door.mount.source / "connect").exists()


def test_a_gateway_that_does_not_start_says_why(tmp_path: Path) -> None:
    with StubModel(script()) as stub:
        wrong = settings(stub, max_usd=1, prices={"m-1": {"input": "dear"}})
    run = Gateway(HostEngine(), image="-", folder=tmp_path / "d", journal=tmp_path / "j", labels={}, settings=wrong)
    with pytest.raises(GatewayError, match=r"(?s)did not start: .*Price"):
        run.start()


def test_a_gateway_that_died_is_an_engine_error(tmp_path: Path) -> None:
    with StubModel(script()) as stub, gateway(tmp_path, settings(stub)) as run:
        run.heartbeat()
        run.stop()
        with pytest.raises(GatewayError, match="gone"):
            run.open_door("t/1")


def test_a_very_long_path_is_no_obstacle(tmp_path: Path) -> None:
    deep = tmp_path / ("a" * 100) / ("b" * 100)
    deep.mkdir(parents=True)
    with StubModel(script()) as stub, gateway(deep, settings(stub)) as run:
        assert run.heartbeat() == 0


def test_loopback_addresses_are_known() -> None:
    assert all(
        map(is_loopback, ["http://localhost:11434/v1", "http://127.0.0.1:1", "http://[::1]:8000", "127.0.0.2:3128"])
    )
    assert not any(map(is_loopback, ["https://api.example.com/v1", "http://10.0.0.5:8000", ""]))
