"""The reverse proxy behind one door: judge a request, swap its key, stream the answer through, meter it."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web

from . import dialects, hosted
from .dialects import Route
from .ledger import Ledger, Reservation, Tally
from .meter import BYTES_PER_TOKEN, TOKENS, Meter
from .settings import Dialect, Refusal, Settings

MAX_BODY = 64 << 20
HOP_BY_HOP = {
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
}  # fmt: skip
KEPT_BACK = HOP_BY_HOP | {
    "host", "content-length", "authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "accept-encoding",
    "forwarded", "x-forwarded-for", "openai-organization", "openai-project", "chatgpt-account-id",
}  # fmt: skip
"""Request headers that stay here: the box's placeholder key, and whatever would name another account."""
NOT_RETURNED = HOP_BY_HOP | {"set-cookie", "content-length", "openai-organization", "anthropic-organization-id"}
LOST = (aiohttp.ClientError, ConnectionError)


@dataclass
class Exchange:
    """One request and what became of it: a line of the journal."""

    route: Route
    model: str
    bytes_in: int
    streamed: bool
    started: float = field(default_factory=time.monotonic)
    judged: float = 0.0
    first: float = 0.0
    status: int = 0
    error: str = ""
    message: str = ""
    ended: bool = False
    """Whether the answer came to its end."""


class Proxy:
    """Serves one door."""

    def __init__(
        self,
        tally: Tally,
        *,
        settings: Settings,
        ledger: Ledger,
        session: aiohttp.ClientSession,
        gate: Callable[[], None],
        journal: Callable[[Any], None],
    ) -> None:
        self.tally = tally
        self._settings = settings
        self._ledger = ledger
        self._session = session
        self._gate = gate
        """Called before every request; raises ``Refusal`` where the orchestrator is gone."""
        self._journal = journal

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request from the box."""
        dialect: Dialect = "openai"
        try:
            self._gate()
            if request.headers.get("Upgrade"):
                raise Refusal("upgrade", "no web sockets here; use plain HTTP", status=426)
            if "://" in request.raw_path.split("?", 1)[0]:
                raise Refusal("unknown_host", "this is no proxy for other hosts", status=403)
            route = dialects.route(request.method, request.path, dict(self._settings.upstreams))
            dialect = route.upstream.dialect
            body, exchange = await self._read(request, route)
            size = exchange.bytes_in // BYTES_PER_TOKEN
            reserved = self._ledger.reserve(self.tally.trial, exchange.model, size) if route.api else Reservation()
        except Refusal as refusal:
            return self._refused(dialect, refusal)
        return await self._forward(request, exchange, body, reserved)

    def _refused(self, dialect: Dialect, refusal: Refusal) -> web.Response:
        self.tally.refuse(refusal)
        self._journal({"at": now(), "trial": self.tally.trial, "refused": refusal.kind, "message": str(refusal)})
        return say(dialect, refusal)

    async def _read(self, request: web.Request, route: Route) -> tuple[bytes, Exchange]:
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise Refusal("encoded", "compressed request bodies cannot be judged; send them plain", status=415)
        try:
            body = await request.read()
            parsed = json.loads(body) if route.api else {}
        except web.HTTPRequestEntityTooLarge:
            raise Refusal("too_large", f"a request body may have {MAX_BODY} bytes", status=413) from None
        except (ValueError, RecursionError):
            raise Refusal("bad_body", "the request body is no JSON", status=400) from None
        if not isinstance(parsed, dict):
            raise Refusal("bad_body", "the request body is no JSON object", status=400)
        model = route.model or str(parsed.get("model") or "")
        if route.api:
            hosted.check(route.api, parsed, model)
        streamed = bool(parsed.get("stream")) or "alt=sse" in request.query_string
        if route.api == "chat" and streamed and not (parsed.get("stream_options") or {}).get("include_usage"):
            # without it nobody learns what the request used
            parsed["stream_options"] = {**(parsed.get("stream_options") or {}), "include_usage": True}
            body = json.dumps(parsed).encode()
        return body, Exchange(route, model, len(body), streamed)

    async def _forward(
        self, request: web.Request, exchange: Exchange, body: bytes, reserved: Reservation
    ) -> web.StreamResponse:
        meter = Meter(exchange.route.api, streamed=exchange.streamed)
        exchange.judged = time.monotonic()
        try:
            return await self._stream(request, exchange, body, meter)
        except Refusal as refusal:
            exchange.error, exchange.message = refusal.kind, str(refusal)
            return say(exchange.route.upstream.dialect, refusal)
        finally:
            meter.close()
            self._close(exchange, meter, reserved)

    async def _stream(self, request: web.Request, exchange: Exchange, body: bytes, meter: Meter) -> web.StreamResponse:
        upstream = exchange.route.upstream
        headers = {name.lower(): value for name, value in request.headers.items() if name.lower() not in KEPT_BACK}
        for name, value in ((name.lower(), value) for name, value in upstream.credentials().items()):
            headers[name] = f"{headers[name]},{value}" if name == "anthropic-beta" and name in headers else value
        query = {name: value for name, value in request.query.items() if name != "key"} | dict(upstream.query)
        try:
            answer = await self._session.request(
                request.method,
                upstream.base_url.rstrip("/") + exchange.route.tail,
                params=query,
                headers={**headers, "Accept-Encoding": "identity"},
                data=body or None,
                allow_redirects=False,
            )
        except TimeoutError:
            raise Refusal(
                "silence", f"the model endpoint was silent for {self._settings.silence_s:g} s", status=504
            ) from None
        except LOST as error:
            raise Refusal(
                "unreachable", f"the model endpoint did not answer: {type(error).__name__}", status=502
            ) from None
        async with answer:
            exchange.status, exchange.first = answer.status, time.monotonic()
            meter.streamed = "text/event-stream" in answer.headers.get("Content-Type", "")
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in NOT_RETURNED}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            await self._pump(request, answer, response, exchange, meter)
            return response

    async def _pump(
        self,
        request: web.Request,
        answer: aiohttp.ClientResponse,
        response: web.StreamResponse,
        exchange: Exchange,
        meter: Meter,
    ) -> None:
        try:
            async for chunk in answer.content.iter_any():
                meter.feed(chunk)
                await response.write(chunk)
            exchange.ended = True
            await response.write_eof()
        except TimeoutError:
            exchange.error = "silence"
        except LOST as error:
            here = request.transport is not None and not request.transport.is_closing()
            exchange.error = "cut" if here else "gone"
            exchange.message = type(error).__name__
        if exchange.error and request.transport is not None:
            request.transport.abort()  # the client must see a cut, not a clean end

    def _close(self, exchange: Exchange, meter: Meter, reserved: Reservation) -> None:
        tokens = meter.usage
        good = 200 <= exchange.status < 300
        if tokens is None and good and exchange.route.api:
            # the vendor counts what was sent and made; for the budget, so do we
            self.tally.unmetered += 1
            estimate = {"input_tokens": exchange.bytes_in, "output_tokens": meter.bytes}
            tokens = dict.fromkeys(TOKENS, 0) | {name: size // BYTES_PER_TOKEN for name, size in estimate.items()}
            metered = False
        else:
            metered = tokens is not None
        cost = self._ledger.settle(reserved, tokens or dict.fromkeys(TOKENS, 0))
        self.tally.spent_usd += cost
        if metered and tokens is not None:
            self.tally.count(exchange.route.upstream.dialect, exchange.model, tokens)
        if exchange.route.api:
            error = exchange.error or meter.error or ("" if good else str(exchange.status or "gone"))
            if good and not exchange.ended and not error:
                error = "gone"  # the client left
            exchange.error = error
            remedy = exchange.route.upstream.remedy(exchange.status, exchange.model)
            message = (exchange.message or meter.error_text) + remedy
            self.tally.answered(exchange.status, error, message, meter.stop)
        self._journal(line(self.tally.trial, exchange, meter, cost, metered=metered))


def say(dialect: Dialect, refusal: Refusal) -> web.Response:
    """Answer in the gateway's own name."""
    status = refusal.status or dialects.STATUS[dialect]
    return web.json_response(dialects.error_body(dialect, status, refusal.kind, str(refusal)), status=status)


def line(trial: str, exchange: Exchange, meter: Meter, cost: float, *, metered: bool) -> Mapping[str, Any]:
    """Return the journal's line of a request: no key, no body, no header."""
    end = time.monotonic()
    return {
        "at": now(),
        "trial": trial,
        "provider": exchange.route.upstream.name,
        "api": exchange.route.api or exchange.route.tail,
        "model": exchange.model,
        "status": exchange.status,
        "streamed": meter.streamed,
        "error": exchange.error,
        "stop": meter.stop,
        "judged_ms": round((exchange.judged - exchange.started) * 1000, 3),
        "first_s": round(exchange.first - exchange.started, 4) if exchange.first else None,
        "seconds": round(end - exchange.started, 4),
        "bytes_in": exchange.bytes_in,
        "bytes_out": meter.bytes,
        "usage": meter.usage,
        "metered": metered,
        "cost_usd": cost,
    }


def now() -> str:
    """Return the time, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def session(settings: Settings) -> aiohttp.ClientSession:
    """Open the connections to the endpoints: no limit on a request as a whole, one on its silence."""
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=min(30.0, settings.silence_s), sock_read=settings.silence_s
    )
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
        timeout=timeout,
        auto_decompress=False,
        trust_env=True,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("User-Agent", "Accept", "Content-Type"),
    )


async def serve(proxy: Proxy, path: str) -> web.AppRunner:
    """Listen at a socket path until the runner is cleaned up."""
    app = web.Application(client_max_size=MAX_BODY)
    app.router.add_route("*", "/{rest:.*}", proxy.handle)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    await web.UnixSite(runner, path).start()
    await asyncio.sleep(0)
    return runner
