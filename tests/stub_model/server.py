"""A scripted stand-in for a model API, good enough to drive the real agent CLIs through a whole task.

``StubModel(script)`` listens on this host's loopback and speaks OpenAI Responses and Chat Completions, Anthropic
Messages and Gemini, by request path. It keeps every request that it got.
"""

import json
import re
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

from tests.stub_model.asked import Asked
from tests.stub_model.dialects import error_body, error_event, events, whole
from tests.stub_model.script import Script, Turn

PATHS = (
    ("responses", re.compile(r".*/responses$")),
    ("chat", re.compile(r".*/chat/completions$")),
    ("messages", re.compile(r".*/messages$")),
    ("gemini", re.compile(r".*/models/(?P<model>[^/:]+):(?P<how>streamGenerateContent|generateContent)$")),
)
LONG_S = 120
"""Nobody waits longer for a test that has failed."""


@dataclass
class Request:
    """One request as it came."""

    at: float
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    turn: int | None = None
    """Which turn it was answered with; null for an aside and for what is no model request."""
    events_sent: list[float] = field(default_factory=list)
    """When each event of a streamed answer left, monotonic seconds."""


class StubModel:
    """The server, in threads of its own. A context manager."""

    def __init__(self, script: Script, *, port: int = 0) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.failures: dict[int, int] = {}
        self.played: list[int] = []
        """The turns that were answered as scripted, in their order."""
        self.closing = threading.Event()
        self._lock = threading.Lock()
        handler = type("Bound", (Handler,), {"stub": self})
        self._server = Quiet(("127.0.0.1", port), handler)

    @property
    def url(self) -> str:
        """The server's address, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def answered(self) -> list[Request]:
        """The requests that were turns of the task."""
        return [request for request in self.requests if request.turn is not None]

    def keep(self, request: Request) -> None:
        with self._lock:
            self.requests.append(request)

    def fails(self, turn: int, times: int) -> bool:
        """Whether a turn that fails ``times`` times fails once more."""
        with self._lock:
            count = self.failures.get(turn, 0)
            self.failures[turn] = count + 1
            return count < times

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening. Idempotent."""
        if not self.closing.is_set():
            self.closing.set()
            self._server.shutdown()
            self._server.server_close()


class Quiet(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stub: StubModel
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""

    def do_GET(self) -> None:
        self._take(None)
        if self.headers.get("Upgrade"):
            self._send(426, {"error": {"message": "no web sockets"}})
        elif urlsplit(self.path).path.endswith("/models"):
            self._send(200, {"object": "list", "data": []})
        else:
            self._send(404, {"error": {"message": "no such path"}})

    do_HEAD = do_GET  # noqa: N815 - the name is the library's

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0)) if not self._chunked() else self._chunks()
        body = json.loads(raw or b"{}")
        request = self._take(body)
        path = urlsplit(self.path).path
        for api, pattern in PATHS:
            if match := pattern.match(path):
                named = match.groupdict()
                streamed = bool(body.get("stream")) or named.get("how") == "streamGenerateContent"
                asked = Asked(api, named.get("model") or str(body.get("model")), body, streamed)
                return self._answer(request, asked)
        if path.endswith(("/count_tokens", ":countTokens")):
            return self._send(200, {"input_tokens": 10, "totalTokens": 10})
        return self._send(404, {"error": {"message": "no such path"}})

    def _chunked(self) -> bool:
        return "chunked" in (self.headers.get("Transfer-Encoding") or "").lower()

    def _chunks(self) -> bytes:
        data = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _take(self, body: Any) -> Request:
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(time.time(), self.command, self.path, headers, body)
        self.stub.keep(request)
        return request

    def _answer(self, request: Request, asked: Asked) -> None:
        if asked.aside:
            turn, number = Turn(text=self.stub.script.aside), None
        else:
            number = len(self.stub.played) if self.stub.script.counted else asked.turns_done
            turn = self.stub.script.turn(number)
        request.turn = number
        self.stub.closing.wait(turn.delay_s)
        if turn.together is not None:
            turn.together.wait(LONG_S)
        if turn.silent == "headers":
            return self._wait()
        failure = turn.failure
        if failure and number is not None and self.stub.fails(number, failure.times):
            if failure.in_stream and asked.streamed:
                return self._stream(request, [error_event(asked.api, failure)], turn)
            return self._send(failure.status, error_body(asked.api, failure), failure.headers)
        calls = [] if asked.aside else asked.calls(turn)
        if number is not None:
            self.stub.played.append(number)
        if asked.streamed:
            return self._stream(request, events(asked.api, asked.model, turn, calls), turn)
        return self._send(200, whole(asked.api, asked.model, turn, calls))

    def _wait(self) -> None:
        """Say nothing until the client has gone or the test is over."""
        self.connection.settimeout(0.2)
        while not self.stub.closing.is_set():
            try:
                if not self.connection.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.close_connection = True

    def _send(self, status: int, payload: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(payload).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, request: Request, stream: list[tuple[str, Any]], turn: Turn) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for index, (name, data) in enumerate(stream):
            if index == len(stream) // 2 and (turn.cut or turn.silent == "middle"):
                if turn.silent:
                    return self._wait()
                self.close_connection = True
                return None
            if turn.steps is not None:
                turn.steps.acquire(timeout=LONG_S)
            line = (f"event: {name}\n" if name else "") + f"data: {data if data == '[DONE]' else json.dumps(data)}\n\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line.encode()), line.encode()))
            self.wfile.flush()
            request.events_sent.append(time.monotonic())
            if turn.pace_s:
                time.sleep(turn.pace_s)
        self.wfile.write(b"0\r\n\r\n")
        return None
