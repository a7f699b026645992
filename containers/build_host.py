"""What a build needs of the host it runs on: certificates, proxies, package indexes. None of it stays in an image's
environment or history; the certificates stay in its trust store.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
CA_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "ftp_proxy")
PIP_SETTINGS = ("index-url", "extra-index-url", "find-links", "trusted-host", "proxy", "timeout", "retries", "no-index")
LOCATIONS = ("index-url", "extra-index-url", "find-links")
REMOTE = ("http://", "https://")


def build_files() -> dict[str, bytes]:
    """Return the files that every build context carries under ``host/``."""
    return {"host/ca.crt": ca_bundle(), "host/pip.conf": pip_conf().encode()}


def proxy_args(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the proxy settings as build arguments: the engine keeps these names out of an image's history."""
    lower = {name: environment.get(name) or environment.get(name.upper()) for name in PROXIES}
    return {spelt: value for name, value in lower.items() if value for spelt in (name, name.upper())}


def ca_bundle(environment: Mapping[str, str] = os.environ) -> bytes:
    """Return the host's trusted certificates in PEM; empty where it has none."""
    named = [environment[variable] for variable in CA_VARIABLES if environment.get(variable)]
    for path in map(Path, (*named, *CA_BUNDLES)):
        if path.is_file():
            return path.read_bytes()
    return b""


def pip_conf() -> str:
    """Return a pip.conf with the host's package indexes, as pip itself reads them; those on its disk are left out."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return render_pip_conf(answer.stdout)


def render_pip_conf(listing: str) -> str:
    """Turn ``pip config list`` (``global.index-url='...'``) into a pip.conf; the environment overrides the files."""
    chosen: dict[str, str] = {}
    lines = [line.partition("=") for line in listing.splitlines()]
    for section in ("global.", "install.", ":env:."):
        for key, _, quoted in lines:
            name = key.removeprefix(section)
            if not key.startswith(section) or name not in PIP_SETTINGS:
                continue
            words = " ".join(shlex.split(quoted)).split()
            if name in LOCATIONS:
                words = [word for word in words if word.startswith(REMOTE)]
            if words:
                chosen[name] = " ".join(words)
    return "[global]\n" + "".join(f"{name} = {value}\n" for name, value in chosen.items())
