"""Serves the site of runs on this machine and makes it anew while they go on."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from results.folder import RunFolder
from results.pricing import PriceBook
from results.site.build import Options, SiteError, build_site

REFRESH_S = 10


class Fresh:
    """Builds the site when a journal has grown, and not otherwise."""

    def __init__(self, runs: Sequence[RunFolder], out: Path, options: Options, prices: PriceBook | None = None) -> None:
        self.out = out
        self._runs, self._options, self._prices = runs, replace(options, refresh_s=REFRESH_S), prices
        self._lock = Lock()
        self._seen: tuple[int, ...] | None = None

    def update(self) -> None:
        with self._lock:
            sizes = tuple(run.events_file.stat().st_size if run.events_file.exists() else 0 for run in self._runs)
            if sizes != self._seen:
                build_site(self._runs, self.out, self._options, prices=self._prices)
                self._seen = sizes


class Handler(SimpleHTTPRequestHandler):
    """Static files; the front page is made fresh first."""

    def __init__(self, *args: Any, fresh: Fresh, **kwargs: Any) -> None:
        self.fresh = fresh
        super().__init__(*args, directory=str(fresh.out), **kwargs)

    def do_GET(self) -> None:
        if self.path.partition("?")[0] in ("/", "/index.html"):
            self.fresh.update()
        super().do_GET()

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing: the terminal belongs to the command."""


def serve_site(
    runs: Sequence[RunFolder],
    options: Options | None = None,
    *,
    port: int = 0,
    prices: PriceBook | None = None,
    ready: Callable[[str], None] = print,
) -> None:
    """Serve on 127.0.0.1 until interrupted; ``ready`` is told the address. Port 0 takes a free one.

    Raises:
        SiteError: the port is taken.
    """
    with TemporaryDirectory(prefix="hab-suite-site-") as folder:
        fresh = Fresh(runs, Path(folder), options or Options(), prices)
        fresh.update()
        try:
            made = ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, fresh=fresh))
        except OSError as error:
            raise SiteError(f"--port {port}: {error.strerror}; name another, or 0 for a free one") from None
        with made as server:
            ready(f"http://127.0.0.1:{server.server_port}/")
            server.serve_forever()
