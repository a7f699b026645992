"""Credentials and endpoints: which variables, for which harness. They go to the gateway and nowhere else."""

import base64
import json
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from containers.endpoints import Upstream, is_loopback

TABLE = Path(__file__).parent / "providers.toml"
PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy")

GITHUB_TOKENS = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
ALLOW_LOGIN = "--allow-login-in-box"


class KeyMissingError(Exception):
    """A credential is missing or cannot be used; the message names the variable and the harness."""


@runtime_checkable
class AsksModel(Protocol):
    """A harness that asks a model: what this module needs to know of it."""

    name: str
    provider: str
    """A table of ``providers.toml``."""
    model: str
    """The model's name as the provider knows it."""


@cache
def providers() -> dict[str, Any]:
    """Return ``providers.toml``."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def split_model(model: str, default: str = "openai") -> tuple[str, str]:
    """Return provider and name of a model as typed: ``anthropic/claude-x``, or ``claude-x`` by its beginning."""
    provider, slash, name = model.partition("/")
    if slash and provider in providers():
        return provider, name
    for known, entry in providers().items():
        if model.startswith(tuple(entry.get("models", ()))):
            return known, model
    return default, model


def read_variables(key_file: Path | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment, overridden by a key file's ``NAME=value`` lines.

    Raises:
        KeyMissingError: the file cannot be read, or a line is none.
    """
    if key_file is None:
        return dict(environ)
    try:
        lines = key_file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no text in UTF-8"
        raise KeyMissingError(f"--key-file {key_file}: {why}; it must hold NAME=value lines") from None
    found = dict(environ)
    for number, line in enumerate(lines, 1):
        text = line.strip().removeprefix("export ")
        name, equals, value = text.partition("=")
        if text and not text.startswith("#"):
            if not equals or not name.strip().isidentifier():
                raise KeyMissingError(f"--key-file {key_file}: line {number} is not NAME=value")
            found[name.strip()] = value.strip().strip("\"'")
    return found


@dataclass(frozen=True)
class Way:
    """One way to be let in, as ``providers.toml`` has it."""

    variable: str
    auth: str
    login: str = ""
    base_url: str = ""
    headers: Mapping[str, str] | None = None


def find_upstream(provider: str, variables: Mapping[str, str], harness: str) -> Upstream:
    """Return a provider's endpoint with its credential.

    Raises:
        KeyMissingError: what is missing, and for which harness.
    """
    entry = providers()[provider]
    ways = [Way(**raw) for raw in entry["ways"]]
    way = next((way for way in ways if variables.get(way.variable)), None)
    base_url = variables.get(entry["base_url_variable"]) or (way and way.base_url) or entry.get("base_url", "")
    if not base_url:
        raise KeyMissingError(
            f"--harness {harness}: {entry['base_url_variable']} is not set; it names the endpoint, "
            f"such as {entry['base_url_example']}."
        )
    query = {name: variables[variable] for name, variable in entry.get("query", {}).items() if variables.get(variable)}
    if way is None:
        if is_loopback(base_url):  # a model served on this machine asks for no key
            return Upstream(provider, entry["dialect"], base_url, "none", query=query)
        names = " or ".join(way.variable for way in ways)
        hint = ""
        if harness == "copilot-cli" and any(variables.get(name) for name in GITHUB_TOKENS):
            hint = f" A GitHub login has to enter the box: --model github/NAME with {ALLOW_LOGIN}."
        raise KeyMissingError(
            f"--harness {harness}: {names} is not set; models of {provider} need it "
            f"(in the environment, or as a line of --key-file).{hint}"
        )
    key, headers = variables[way.variable], dict(way.headers or {})
    if way.login:
        key, more = codex_login(Path(key).expanduser(), way.variable)
        headers |= more
    return Upstream(provider, entry["dialect"], base_url, way.auth, key, headers, query, way.variable)


def codex_login(path: Path, variable: str) -> tuple[str, dict[str, str]]:
    """Return the bearer and further headers of a Codex login file; it is used as it is, never refreshed.

    Raises:
        KeyMissingError: no such file, no login in it, or out of date.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        tokens = content.get("tokens") or {}
        bearer, account = str(tokens["access_token"]), str(tokens.get("account_id") or "")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise KeyMissingError(f"{variable}: {path} holds no Codex login ({type(error).__name__})") from None
    if expiry(bearer) < time.time():
        raise KeyMissingError(f"{variable}: the login in {path} is out of date; start `codex` once to renew it.")
    return bearer, {"chatgpt-account-id": account} if account else {}


def expiry(token: str) -> float:
    """Return when a JSON web token ends, seconds since 1970; infinity where it does not say."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return float(claims["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        return float("inf")


@dataclass(frozen=True)
class BoxLogin:
    """A subscription that only the CLI itself can use: its token enters the box."""

    variable: str
    token: str = field(repr=False)
    hosts: tuple[str, ...]
    """``host:port`` that the box may then reach."""


def logs_in_itself(provider: str) -> bool:
    """Whether a provider's login has to be in the box."""
    return "login_variables" in providers()[provider]


def find_login(provider: str, variables: Mapping[str, str], harness: str, *, allowed: bool) -> BoxLogin:
    """Return the login of a provider that takes no other.

    Raises:
        KeyMissingError: it is not allowed, or missing.
    """
    entry = providers()[provider]
    names = entry["login_variables"]
    if not allowed:
        raise KeyMissingError(
            f"--harness {harness}: the login of {provider} ({names[0]}) would have to enter the box, where the agent "
            f"could read it and reach {', '.join(entry['login_hosts'])}. {ALLOW_LOGIN} allows that; "
            "every report then says so."
        )
    name = next((name for name in names if variables.get(name)), None)
    if name is None:
        raise KeyMissingError(f"--harness {harness}: {' or '.join(names)} is not set; models of {provider} need it.")
    return BoxLogin(name, variables[name], tuple(entry["login_hosts"]))


def find_logins(asking: list[AsksModel], variables: Mapping[str, str], *, allowed: bool) -> dict[str, BoxLogin]:
    """Return provider -> login of those harnesses whose login has to be in the box."""
    wanted = {harness.provider: harness.name for harness in asking if logs_in_itself(harness.provider)}
    return {name: find_login(name, variables, harness, allowed=allowed) for name, harness in wanted.items()}


def find_upstreams(asking: list[AsksModel], variables: Mapping[str, str]) -> tuple[Upstream, ...]:
    """Return the endpoints that these harnesses need, each once; none for those that sign in by themselves.

    Raises:
        KeyMissingError: with one line per harness that lacks something.
    """
    found: dict[str, Upstream] = {}
    missing: dict[str, None] = {}
    for harness in asking:
        try:
            if harness.provider not in found and not logs_in_itself(harness.provider):
                found[harness.provider] = find_upstream(harness.provider, variables, harness.name)
        except KeyMissingError as error:
            missing[str(error)] = None
    if missing:
        raise KeyMissingError("\n".join(missing))
    return tuple(found.values())


def host_proxies(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the proxies that this host uses itself."""
    return {name: variables[name] for name in PROXIES if variables.get(name)}
