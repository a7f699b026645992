"""What a build takes from the host it runs on."""

from pathlib import Path

import pytest

from containers import debian
from containers.box import EngineError
from containers.build_host import ca_bundle, pip_conf, proxy_args, render_pip_conf
from containers.debian import Source, apt_sources, ensure_root, mirrors
from containers.scripted_engine import Reply, ScriptedEngine

SOURCES = """
Types: deb
# a comment
URIs: http://mirror.test/debian/
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/x.gpg

Types: deb-src
URIs: http://mirror.test/source
Suites: bookworm

Types: deb
URIs: http://mirror.test/security
Suites: bookworm-security
Components: main

Enabled: no
Types: deb
URIs: http://mirror.test/off
Suites: bookworm
"""


def test_indexes_on_the_hosts_disk_are_left_out():
    listing = (
        "global.index-url='https://a.test/simple'\n"
        "global.extra-index-url='file:///srv/simple https://b.test/simple'\n"
        "global.find-links='/srv/wheels'\n"
        "global.cert='/etc/ssl/x.pem'\n"
        "install.timeout='30'\n"
        ":env:.index-url='https://u:p%40@c.test/simple'\n"
    )
    assert render_pip_conf(listing) == (
        "[global]\nindex-url = https://u:p%40@c.test/simple\nextra-index-url = https://b.test/simple\ntimeout = 30\n"
    )
    assert render_pip_conf("") == "[global]\n"


def test_pip_itself_is_asked(monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "https://only.test/simple")
    assert "index-url = https://only.test/simple\n" in pip_conf()


def test_proxies_in_both_spellings():
    assert proxy_args({"HTTP_PROXY": "http://p:1", "no_proxy": "h", "OTHER": "x"}) == {
        "http_proxy": "http://p:1",
        "HTTP_PROXY": "http://p:1",
        "no_proxy": "h",
        "NO_PROXY": "h",
    }
    assert proxy_args({}) == {}


def test_certificates_named_by_the_environment_come_first(tmp_path):
    bundle = tmp_path / "ca.pem"
    bundle.write_bytes(b"PEM")
    assert ca_bundle({"SSL_CERT_FILE": str(bundle)}) == b"PEM"
    assert ca_bundle({"SSL_CERT_FILE": str(tmp_path / "none"), "REQUESTS_CA_BUNDLE": str(bundle)}) == b"PEM"


@pytest.fixture
def apt(tmp_path) -> Path:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "debian.sources").write_text(SOURCES)
    (tmp_path / "sources.list").write_text(
        "# deb http://off.test x main\ndeb [arch=amd64] https://one.test/d bookworm main\n"
    )
    return tmp_path


def test_package_sources_of_both_formats(apt):
    assert apt_sources(apt) == [
        Source("https://one.test/d", ("bookworm",)),
        Source("http://mirror.test/debian", ("bookworm", "bookworm-updates")),
        Source("http://mirror.test/security", ("bookworm-security",)),
    ]


@pytest.fixture
def debian_host(monkeypatch):
    monkeypatch.setattr(debian, "is_debian", lambda: True)
    monkeypatch.setattr(debian.os, "geteuid", lambda: 0)
    monkeypatch.setattr(debian.shutil, "which", lambda _: "/usr/sbin/debootstrap")
    monkeypatch.delenv("HAB_DEBIAN_MIRROR", raising=False)


def test_mirror_is_the_hosts_own(apt, debian_host, monkeypatch):
    updates = [
        "deb http://mirror.test/debian bookworm-updates main",
        "deb http://mirror.test/security bookworm-security main",
    ]
    assert mirrors(apt) == ("https://one.test/d", updates)
    monkeypatch.setenv("HAB_DEBIAN_MIRROR", "http://chosen.test/debian")
    assert mirrors(apt)[0] == "http://chosen.test/debian"


def test_what_is_missing_is_said_at_once(tmp_path, debian_host, monkeypatch):
    monkeypatch.setattr(debian.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(debian.shutil, "which", lambda _: None)
    with pytest.raises(
        EngineError, match=r"docker pull debian:bookworm-slim.*be root; install debootstrap.*HAB_DEBIAN_MIRROR"
    ):
        mirrors(tmp_path)


def test_pulled_root_is_preferred(tmp_path):
    engine = ScriptedEngine(lambda _: Reply())
    said = []
    assert ensure_root(engine, tmp_path, said.append) == "hab-suite/debian:bookworm"
    assert engine.record.steps == ["pull"] and said == ["pulling debian:bookworm-slim"]
    assert ensure_root(engine, tmp_path, said.append) and engine.record.steps == ["pull"]


def test_without_a_registry_it_is_built(tmp_path, debian_host, apt, monkeypatch):
    engine = ScriptedEngine(lambda _: Reply())
    engine.pull = lambda _: False
    commands = []

    def run(command):
        commands.append(command)
        if command[0] == "debootstrap":
            for folder in ("etc/apt", "var/cache/apt"):
                (Path(command[-2]) / folder).mkdir(parents=True)
        else:
            root = Path(command[command.index("-C") + 1])
            assert "bookworm-security" in (root / "etc/apt/sources.list").read_text()
            Path(command[-2]).write_bytes(b"tar")

    monkeypatch.setattr(debian, "_run", run)
    monkeypatch.setattr(debian, "APT", apt)
    ensure_root(engine, tmp_path / "", lambda _: None)
    assert [command[0] for command in commands] == ["debootstrap", "tar"] and commands[0][-1] == "https://one.test/d"
    assert engine.images() == ["hab-suite/debian:bookworm"]
