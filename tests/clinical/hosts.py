"""Local servers that speak the protocols of the sources, with their refusals and with the faults of real networks."""

import base64
import hashlib
import io
import json
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pyarrow as pa


@dataclass
class Reply:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]


@dataclass
class Faults:
    """What goes wrong, in turn; each list is used up by the answers that carry a file's bytes."""

    cuts: list[int] = field(default_factory=list)
    """The connection is cut after so many bytes of the body."""
    first: list[Reply] = field(default_factory=list)
    """Sent instead of the answer (429, 503 ...), to any request."""
    extra: int = 0
    """Bytes sent beyond what a HEAD told."""
    missing: int = 0
    """Bytes fewer than a HEAD told."""
    slow_s: float = 0.0
    """Pause before each block of 64 KiB."""
    silent: int = 0
    """So many answers stop in the middle and say nothing more."""
    no_ranges: bool = False
    then: Callable[[], None] | None = None
    """Called after the first cut: a file replaced at the source, say."""


class Host:
    """A server on 127.0.0.1; ``files`` maps names to bytes."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.faults = Faults()
        self.asked: list[Asked] = []
        self.sent_bytes = 0
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()
        host = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                host._serve(self)

            do_HEAD = do_GET  # noqa: N815 (the library's name)

            def log_message(self, *_: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_: object) -> None:
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def gets(self, ending: str = "") -> list[Asked]:
        return [one for one in self.asked if one.method == "GET" and urlsplit(one.path).path.endswith(ending)]

    def answer(self, asked: Asked) -> Reply:
        raise NotImplementedError

    def etag(self, body: bytes) -> str:
        return f'"{hashlib.md5(body).hexdigest()}"'

    def ranged(self, asked: Asked, body: bytes, **headers: str) -> Reply:
        """Answer with a file, or the part of it that was asked for."""
        head = {"ETag": self.etag(body), "Accept-Ranges": "bytes", "Last-Modified": "Tue, 27 Apr 2021 08:00:00 GMT"}
        head |= {name.replace("_", "-"): value for name, value in headers.items()}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", asked.headers.get("range", ""))
        if wanted and not self.faults.no_ranges:
            start, stop = int(wanted[1]), int(wanted[2]) + 1 if wanted[2] else len(body)
            if start >= len(body):
                return Reply(416, {"Content-Range": f"bytes */{len(body)}"})
            stop = min(stop, len(body))
            return Reply(206, head | {"Content-Range": f"bytes {start}-{stop - 1}/{len(body)}"}, body[start:stop])
        return Reply(200, head, body)

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        asked = Asked(handler.command, handler.path, {k.lower(): v for k, v in handler.headers.items()})
        with self._lock:
            self.asked.append(asked)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            reply = self.faults.first.pop(0) if self.faults.first else None
        try:
            self._send(handler, asked, reply or self.answer(asked))
        except OSError:
            handler.close_connection = True
        finally:
            with self._lock:
                self.at_once -= 1

    def _send(self, handler: BaseHTTPRequestHandler, asked: Asked, reply: Reply) -> None:
        carries = asked.method == "GET" and reply.status in (200, 206) and "ETag" in reply.headers
        body = reply.body
        with self._lock:
            cut = self.faults.cuts.pop(0) if carries and self.faults.cuts else None
            silent = carries and self.faults.silent > 0
            self.faults.silent -= silent
        if carries and self.faults.extra:
            body += b"x" * self.faults.extra
        if carries and self.faults.missing:
            body = body[: -self.faults.missing]
        handler.send_response(reply.status)
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if asked.method == "HEAD":
            return
        stop = len(body) if cut is None else min(cut, len(body))
        if silent:
            stop = len(body) // 2
        for start in range(0, stop, 1 << 16):
            if carries and self.faults.slow_s:
                time.sleep(self.faults.slow_s)
            handler.wfile.write(body[start : min(start + (1 << 16), stop)])
            self.sent_bytes += min(1 << 16, stop - start)
        handler.wfile.flush()
        if silent:
            handler.connection.settimeout(300)
            handler.connection.recv(1)  # until the client has had enough
        if cut is not None or silent:
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
            if self.faults.then is not None:
                self.faults.then, then = None, self.faults.then
                then()


def path_of(asked: Asked) -> str:
    return unquote(urlsplit(asked.path).path)


class PhysioNetHost(Host):
    """``/files/<project>/<version>/<name>``: 401 for a wrong password, 403 where the agreement is not signed."""

    def __init__(self, project: str, files: dict[str, bytes], *, users: dict[str, str] | None = None) -> None:
        super().__init__(files)
        self.project = project
        self.users = users
        self.signed = set(users or ())
        self.sums = True
        self.login_page = False
        """Whether who is not let in is led to a page to log in, as a browser would be."""

    def answer(self, asked: Asked) -> Reply:
        prefix = f"/files/{self.project}/"
        if self.users is not None:
            user, _, word = base64.b64decode(asked.headers.get("authorization", "Basic ")[6:]).decode().partition(":")
            if path_of(asked) == "/login/":
                return Reply(200, {"Content-Type": "text/html; charset=utf-8"}, b"<html>Log in</html>")
            if self.login_page and self.users.get(user) != word:
                return Reply(302, {"Location": "/login/"})
            if self.users.get(user) != word or not word:
                return Reply(401, {"WWW-Authenticate": 'Basic realm="PhysioNet"'}, b"Unauthorized")
            if user not in self.signed:
                return Reply(403, {}, b"<h1>403 Forbidden</h1>")
        name = path_of(asked).removeprefix(prefix)
        files = self.files
        if self.sums and name == "SHA256SUMS.txt" and name not in files:
            lines = [f"{hashlib.sha256(body).hexdigest()} {file}\n" for file, body in sorted(files.items())]
            return self.ranged(asked, "".join(lines).encode())
        if not path_of(asked).startswith(prefix) or name not in files:
            return Reply(404, {}, b"<h1>404 Not Found</h1>")
        return self.ranged(asked, files[name])


class StoreHost(Host):
    """What a hub leads to: signed addresses, and an error where a credential comes along."""

    def answer(self, asked: Asked) -> Reply:
        if "authorization" in asked.headers:
            return Reply(400, {}, b"<Code>InvalidArgument</Code> Only one auth mechanism allowed")
        if asked.method != "GET":
            return Reply(403, {}, b"<Code>SignatureDoesNotMatch</Code>")
        name = path_of(asked).removeprefix("/store/")
        return self.ranged(asked, self.files[name]) if name in self.files else Reply(404)


class HubHost(Host):
    """A gated data set of the hub: large files lie in a store, small ones in the repository."""

    COMMIT = "4ad7c1a90f25a5a5d9fbd5b5e2f0f0b1b39f1c11"

    def __init__(self, repository: str, files: dict[str, bytes], *, token: str) -> None:
        super().__init__(files)
        self.store = StoreHost(files)
        self.repository = repository
        self.token = token
        self.accepted = True
        self.former = ""
        """An earlier name of the data set, which leads to the present one."""

    def close(self) -> None:
        super().close()
        self.store.close()

    def answer(self, asked: Asked) -> Reply:
        word = asked.headers.get("authorization", "").removeprefix("Bearer ")
        if word != self.token:
            message = "Invalid username or password." if word else "Access to this dataset is restricted."
            code = {} if word else {"X-Error-Code": "GatedRepo"}
            return Reply(401, {"X-Error-Message": message, **code}, b"")
        if not self.accepted:
            return Reply(403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "You must accept the conditions"})
        path = path_of(asked)
        if self.former and path.startswith(f"/datasets/{self.former}/"):
            return Reply(307, {"Location": path.replace(self.former, self.repository)})
        tree = f"/api/datasets/{self.repository}/tree/main"
        if path.startswith(tree):
            return self._tree(asked, path.removeprefix(tree).lstrip("/"))
        name = path.removeprefix(f"/datasets/{self.repository}/resolve/main/")
        if name not in self.files:
            return Reply(404, {"X-Error-Code": "EntryNotFound"})
        body = self.files[name]
        if name.endswith(".csv"):
            return self.ranged(asked, body, X_Repo_Commit=self.COMMIT)
        headers = {
            "X-Repo-Commit": self.COMMIT,
            "X-Linked-Size": str(len(body)),
            "X-Linked-Etag": f'"{hashlib.sha256(body).hexdigest()}"',
            "Location": f"{self.store.url}/store/{name}?signature=abc",
        }
        return Reply(302, headers)

    def _tree(self, asked: Asked, folder: str) -> Reply:
        names = sorted(name for name in self.files if name.startswith(folder))
        page = int(parse_qs(urlsplit(asked.path).query).get("cursor", ["0"])[0])
        rows = [{"type": "file", "path": name, "size": len(self.files[name])} for name in names[page : page + 2]]
        more = f'<{self.url}{urlsplit(asked.path).path}?recursive=true&cursor={page + 2}>; rel="next"'
        return Reply(200, {"Link": more} if page + 2 < len(names) else {}, json.dumps(rows).encode())


class BucketHost(Host):
    """A public bucket: keys, listings of two keys a page, errors as XML."""

    def answer(self, asked: Asked) -> Reply:
        if "authorization" in asked.headers:
            return Reply(403, {}, b"<Error><Code>InvalidAccessKeyId</Code></Error>")
        query = parse_qs(urlsplit(asked.path).query)
        if path_of(asked) == "/" and "list-type" in query:
            keys = sorted(key for key in self.files if key.startswith(query["prefix"][0]))
            page = int(query.get("continuation-token", ["0"])[0])
            text = "".join(f"<Contents><Key>{escape(key)}</Key></Contents>" for key in keys[page : page + 2])
            if page + 2 < len(keys):
                text += f"<NextContinuationToken>{page + 2}</NextContinuationToken>"
            return Reply(200, {}, f"<ListBucketResult>{text}</ListBucketResult>".encode())
        key = path_of(asked).lstrip("/")
        if key not in self.files:
            return Reply(404, {}, b"<Error><Code>NoSuchKey</Code></Error>")
        return self.ranged(asked, self.files[key])


class WebHost(Host):
    """Plain files; some hosts refuse a client without a name of its own."""

    def answer(self, asked: Asked) -> Reply:
        agent = asked.headers.get("user-agent", "")
        if not agent or agent.startswith("python-requests"):
            return Reply(406, {}, b"Not Acceptable")
        name = path_of(asked).lstrip("/")
        return self.ranged(asked, self.files[name]) if name in self.files else Reply(404)


class RedivisHost(Host):
    """A table of files: an Arrow listing, bytes by id, a bearer token."""

    def __init__(self, table: str, files: dict[str, bytes], *, token: str) -> None:
        super().__init__(files)
        self.table = table
        self.token = token
        self.granted = True
        self.ids = {
            f"{number:04d}-{hashlib.md5(name.encode()).hexdigest()[:8]}": name for number, name in enumerate(files)
        }

    def answer(self, asked: Asked) -> Reply:
        if asked.headers.get("authorization") != f"Bearer {self.token}":
            return Reply(401, {}, b'{"error": {"code": 401, "message": "Invalid token"}}')
        if not self.granted:
            return Reply(403, {}, b'{"error": {"code": 403, "message": "Access to this table is restricted"}}')
        path = path_of(asked)
        if path == f"/tables/{self.table}/rawFiles":
            return Reply(200, {}, self._listing())
        name = self.ids.get(path.removeprefix("/rawFiles/"), "")
        return self.ranged(asked, self.files[name]) if name else Reply(404)

    def _listing(self) -> bytes:
        rows = [
            {
                "file_id": number,
                "file_name": name,
                "size": len(self.files[name]),
                "md5_hash": base64.b64encode(hashlib.md5(self.files[name]).digest()).decode(),
            }
            for number, name in self.ids.items()
        ]
        table = pa.Table.from_pylist(rows)
        out = io.BytesIO()
        with pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)
        return out.getvalue()
