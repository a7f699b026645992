"""The reverse proxy behind one door: judge a request, swap its key, stream the answer through, meter it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from . import dialects
from .body import MAX_BODY
from .dialects import Route
from .exchange import Exchange, judge, line, now
from .ledger import Ledger, Reservation, Tally
from .meter import BYTES_PER_TOKEN, TOKENS, Meter
from .settings import Dialect, Refusal, Settings

MAX_HELD = 64 << 20
"""Bytes of request bodies that one door may have under way: with what a body takes while it is parsed, the bound on
the memory that a box can take from the others."""
READ_AT_ONCE = 2
"""Bodies that are read and parsed at once, per door; the others wait in their sockets."""
PARSERS = ThreadPoolExecutor(max_workers=2 * READ_AT_ONCE, thread_name_prefix="parser")
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
        self._reading = asyncio.Semaphore(READ_AT_ONCE)
        self._held = 0

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
            async with self._body(request) as sent:
                body, exchange = await self._judge(request, route, sent)
                reserved = await self._reserve(exchange)
                return await self._forward(request, exchange, body, reserved)
        except Refusal as refusal:
            return self._refused(dialect, refusal)

    async def _reserve(self, exchange: Exchange) -> Reservation:
        if not exchange.route.api:
            return Reservation()
        size = exchange.bytes_in // BYTES_PER_TOKEN
        reserved = await self._ledger.reserve(self.tally.trial, exchange.model, size, exchange.output_tokens)
        try:
            self._gate()  # it may have waited for long
        except Refusal:
            self._ledger.settle(reserved, dict.fromkeys(TOKENS, 0))
            raise
        return reserved

    def _refused(self, dialect: Dialect, refusal: Refusal) -> web.Response:
        self.tally.refuse(refusal)
        self._journal({"at": now(), "trial": self.tally.trial, "refused": refusal.kind, "message": str(refusal)})
        return say(dialect, refusal)

    @asynccontextmanager
    async def _body(self, request: web.Request) -> AsyncIterator[bytes]:
        """Read a request's body, and count it for as long as it is under way."""
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise Refusal("encoded", "compressed request bodies cannot be judged; send them plain", status=415)
        async with self._reading:
            try:
                body = await request.read()
            except web.HTTPRequestEntityTooLarge:
                raise Refusal("too_large", f"a request body may have {MAX_BODY} bytes", status=413) from None
        if self._held + len(body) > MAX_HELD:
            raise Refusal("busy", f"requests of more than {MAX_HELD} bytes are under way; send fewer", status=503)
        self._held += len(body)
        try:
            yield body
        finally:
            self._held -= len(body)

    async def _judge(self, request: web.Request, route: Route, body: bytes) -> tuple[bytes, Exchange]:
        if not route.form:
            return body, Exchange(route, route.model, len(body), streamed=False)
        await self._reading.acquire()
        judged = asyncio.get_running_loop().run_in_executor(PARSERS, judge, route, body)
        # not sooner, though the client may leave: what waits for a thread is bounded too
        judged.add_done_callback(lambda _: self._reading.release())
        body, exchange = await asyncio.shield(judged)
        exchange.streamed = exchange.streamed or "alt=sse" in request.query_string
        return body, exchange

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
            # A client that hangs up upon an error in the stream has left because of it: the error is what counts.
            told = meter.error if exchange.error in ("", "gone") else ""
            error = told or exchange.error or ("" if good else str(exchange.status or "gone"))
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
