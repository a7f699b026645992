"""Agent folders: from a registry of this test's own, over the user's settings, by checksum, into the cache."""

import base64
import hashlib
import io
import json
import os
import stat
import subprocess
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import unquote

import pytest

from containers import agents, npm
from containers.agents import AgentError, install, installed, release, table
from containers.box import Captured
from containers.npm import Registry, RegistryError, parse_npmrc, read_settings

FILES = {
    "package/vendor/bin/tool": (b"#!/bin/sh\necho hello\n", 0o755),
    "package/vendor/notes.txt": (b"notes", 0o644),
    "package/vendor/voice/big.bin": (b"x" * 1000, 0o644),
    "package/package.json": (b"{}", 0o644),
    "package/vendor/../../evil": (b"out", 0o644),
}
TABLE = """
[tool]
version = "1.2.3"
binary = "bin/tool"
certificates = true
prepare = ["bin/tool", "--once"]
prepare_env = {{ TOOL_HOME = "{{folder}}" }}
[[tool.packages]]
name = "@maker/tool"
version = "{{version}}-linux-{{arch}}"
from = "package/vendor"
drop = ["voice"]
any = "{integrity}"
"""


def archive() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, (content, mode) in FILES.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("package/vendor/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return buffer.getvalue()


ARCHIVE = archive()
INTEGRITY = "sha512-" + base64.b64encode(hashlib.sha512(ARCHIVE).digest()).decode()


class FakeRegistry:
    """Serves one package; ``plain`` answers only for whole documents, as some mirrors do."""

    def __init__(self, *, plain: bool = False, token: str = "", content: bytes = ARCHIVE) -> None:
        self.asked: list[tuple[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args) -> None:
                pass

            def do_GET(self) -> None:
                path = unquote(self.path)
                outer.asked.append((path, self.headers.get("Authorization", "")))
                if token and self.headers.get("Authorization") != f"Bearer {token}":
                    return self.send(401, b"{}")
                if path.endswith(".tgz"):
                    return self.send(200, content)
                versions = {
                    f"{version}-linux-{arch}": {"dist": {"tarball": f"{outer.url}/tool.tgz", "integrity": INTEGRITY}}
                    for version in ("1.2.3", "2.0.0")
                    for arch in ("x64", "arm64")
                }
                if path == "/npm/@maker/tool":
                    return self.send(200, json.dumps({"versions": versions}).encode())
                found = versions.get(path.removeprefix("/npm/@maker/tool/"))
                return self.send(200, json.dumps(found).encode()) if found and not plain else self.send(404, b"{}")

            def send(self, status: int, data: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/npm"

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class OneShot:
    """The part of an engine that preparing needs."""

    def __init__(self, exit_code: int = 0) -> None:
        self.specs = []
        self.exit_code = exit_code

    def run(self, spec, *, stdin=b"", timeout_s, keep_bytes=0) -> Captured:
        self.specs.append(spec)
        (spec.mounts[0].source / "unpacked").write_text("by itself")
        return Captured(self.exit_code, b"", b"no luck", timed_out=False, oom_killed=False, seconds=0)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch) -> Path:
    """A home without settings, no npm on PATH, and a table of one agent."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    for name in list(os.environ):
        if name.lower().startswith("npm_config_") or "proxy" in name.lower():
            monkeypatch.delenv(name)
    monkeypatch.setattr(npm, "npmrc_files", lambda environ: [tmp_path / "home" / ".npmrc"])
    monkeypatch.setattr(npm.shutil, "which", lambda name: None)
    (tmp_path / "agents.toml").write_text(TABLE.format(integrity=INTEGRITY))
    monkeypatch.setattr(agents, "TABLE", tmp_path / "agents.toml")
    return tmp_path / "home"


def bring(tmp_path: Path, url: str, **more):
    registry = Registry({"npm_config_registry": url})
    return install("tool", cache=tmp_path / "cache", engine=OneShot(), image="base", registry=registry, **more)


def test_an_agent_is_fetched_checked_unpacked_and_prepared_once(tmp_path: Path) -> None:
    engine, seen = OneShot(), []
    with FakeRegistry() as fake:
        registry = Registry({"npm_config_registry": fake.url + "/"})
        arguments = {"cache": tmp_path / "cache", "engine": engine, "image": "base", "registry": registry}
        assert installed("tool", tmp_path / "cache") is None
        folder = install("tool", **arguments, progress=lambda got, total: seen.append((got, total)))
        assert install("tool", **arguments) == folder == installed("tool", tmp_path / "cache")
        assert len([path for path, _ in fake.asked if path.endswith(".tgz")]) == 1
    assert folder == tmp_path / "cache" / "agents" / "tool-1.2.3"
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert names == ["agent.json", "bin/tool", "ca-certificates.crt", "notes.txt", "unpacked"]
    assert stat.S_IMODE((folder / "bin/tool").stat().st_mode) == 0o755
    assert subprocess.run([folder / "bin/tool"], capture_output=True, check=True).stdout == b"hello\n"
    assert seen[-1] == (len(ARCHIVE), len(ARCHIVE))
    assert json.loads((folder / "agent.json").read_text())["pinned"] is True
    spec = engine.specs[0]
    assert (spec.network, spec.command, spec.env["TOOL_HOME"]) == (
        "none",
        ("/opt/agents/tool/bin/tool", "--once"),
        "/opt/agents/tool",
    )
    assert not list((tmp_path / "cache" / "agents").glob(".tool*/"))


def test_an_archive_that_is_not_the_pinned_one_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with FakeRegistry(content=ARCHIVE + b"more") as fake, pytest.raises(AgentError, match="checksum"):
        bring(tmp_path, fake.url)
    assert installed("tool", tmp_path / "cache") is None
    assert not [path for path in (tmp_path / "cache" / "agents").iterdir() if path.is_dir()]


def test_another_version_is_checked_by_the_registrys_own_count(tmp_path: Path) -> None:
    with FakeRegistry() as fake:
        folder = bring(tmp_path, fake.url, version="2.0.0")
        with pytest.raises(AgentError, match=r"3\.0\.0.*is the version right"):
            bring(tmp_path, fake.url, version="3.0.0")
    assert json.loads((folder / "agent.json").read_text())["pinned"] is False
    assert folder.name == "tool-2.0.0"


def test_a_mirror_that_serves_whole_documents_only_will_do(tmp_path: Path) -> None:
    with FakeRegistry(plain=True) as fake:
        assert (bring(tmp_path, fake.url) / "bin" / "tool").is_file()


def test_a_private_mirror_is_asked_with_the_users_token_and_no_other_host_gets_it(tmp_path: Path, home: Path) -> None:
    with FakeRegistry(token="s3cret") as fake, FakeRegistry() as other:
        host = fake.url.removeprefix("http:")
        (home / ".npmrc").write_text(
            f"# settings\n@maker:registry={fake.url}\nregistry={other.url}\n{host}/:_authToken=${{MY_TOKEN}}\n"
        )
        registry = Registry({"MY_TOKEN": "s3cret"})
        assert registry.address("@maker/tool") == fake.url
        install("tool", cache=tmp_path / "cache", engine=OneShot(), image="base", registry=registry)
        assert {token for _, token in fake.asked} == {"Bearer s3cret"}
        assert not other.asked
        assert registry.dist("@maker/tool", "1.2.3-linux-x64").integrity == INTEGRITY
        with pytest.raises(RegistryError, match="answers 401"):
            Registry({}).dist("@maker/tool", "1.2.3-linux-x64")


def test_the_environment_outranks_the_files_and_npm_comes_last(tmp_path: Path, home: Path, monkeypatch) -> None:
    (home / ".npmrc").write_text('registry = "http://file.test/"\ncafile=/none\n')
    assert Registry({}).address("x") == "http://file.test"
    assert Registry({"NPM_CONFIG_REGISTRY": "http://env.test"}).address("x") == "http://env.test"
    (home / ".npmrc").unlink()
    monkeypatch.setattr(npm, "npm_says", lambda key: "http://npm.test/")
    assert Registry({}).address("x") == "http://npm.test"


def test_without_any_registry_the_error_says_what_to_set() -> None:
    with pytest.raises(RegistryError, match="npm_config_registry"):
        Registry({}).address("@maker/tool")


def test_npms_own_word_is_taken_where_npm_is_there(tmp_path: Path, monkeypatch) -> None:
    script = tmp_path / "npm"
    script.write_text('#!/bin/sh\n[ "$1 $2 $3" = "config get registry" ] && echo http://said.test/ || echo undefined\n')
    script.chmod(0o755)
    monkeypatch.setattr(npm.shutil, "which", lambda name: str(script))
    assert npm.npm_says("registry") == "http://said.test/"
    assert npm.npm_says("other") == ""


def test_a_registry_that_is_not_there_is_named_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(AgentError) as error:
        bring(tmp_path, "http://user:hush@127.0.0.1:9/npm")
    assert "127.0.0.1" in str(error.value)
    assert "hush" not in str(error.value)


def test_a_first_start_that_fails_is_said(tmp_path: Path) -> None:
    with FakeRegistry() as fake:
        registry = Registry({"npm_config_registry": fake.url})
        with pytest.raises(AgentError, match="no luck"):
            install("tool", cache=tmp_path / "cache", engine=OneShot(3), image="base", registry=registry)
    assert installed("tool", tmp_path / "cache") is None


def test_two_at_once_fetch_once(tmp_path: Path) -> None:
    with FakeRegistry() as fake, ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(lambda _: bring(tmp_path, fake.url), range(4)))
        assert len(folders) == 1
        assert len([path for path, _ in fake.asked if path.endswith(".tgz")]) == 1


def test_npmrc_lines_are_read_as_npm_reads_them() -> None:
    text = '; a remark\nkey = value\n//host/:_authToken=${TOKEN}\nquoted="yes"\nflag\n'
    assert dict(parse_npmrc(text, {"TOKEN": "t"})) == {"key": "value", "//host/:_authToken": "t", "quoted": "yes"}
    assert read_settings({"npm_config_https_proxy": "http://p"})["https-proxy"] == "http://p"


def test_an_unknown_agent_is_answered_with_the_known_ones() -> None:
    with pytest.raises(AgentError, match="there are tool"):
        release("hammer")


def test_the_real_table_pins_every_package(monkeypatch) -> None:
    monkeypatch.setattr(agents, "TABLE", Path(agents.__file__).parent / "agents.toml")
    assert {"codex", "claude-code", "copilot-cli", "gemini-cli", "opencode"} <= table().keys()
    for cli in table():
        found = release(cli)
        assert found.pinned
        for package in found.packages:
            assert package.integrity.startswith("sha512-")
            assert len(base64.b64decode(package.integrity.removeprefix("sha512-"))) == 64
            assert "{" not in package.name + package.version + package.source
        assert not release(cli, "0.0.1").pinned
        assert release(cli, "0.0.1").packages[0].integrity == ""
