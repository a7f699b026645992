"""Credentials: found by name, said to be missing by name, and shown to nobody."""

import base64
import json
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from runners.keys import (
    AsksModel,
    KeyMissingError,
    find_logins,
    find_upstream,
    find_upstreams,
    host_proxies,
    logs_in_itself,
    providers,
    read_variables,
    split_model,
)


@dataclass
class Asking:
    name: str
    provider: str
    model: str = "m"


def jwt(expires: float) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expires}).encode()).decode().rstrip("=")
    return f"e30.{claims}.c2ln"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("gpt-5.5", ("openai", "gpt-5.5")),
        ("claude-sonnet-5", ("anthropic", "claude-sonnet-5")),
        ("gemini-2.5-pro", ("google", "gemini-2.5-pro")),
        ("azure/gpt-5.5", ("azure", "gpt-5.5")),
        ("openai/claude-by-a-proxy", ("openai", "claude-by-a-proxy")),
        ("Qwen/Qwen3-Coder", ("openai", "Qwen/Qwen3-Coder")),
    ],
)
def test_a_models_name_says_who_serves_it(typed: str, expected: tuple[str, str]) -> None:
    assert split_model(typed) == expected


@pytest.mark.parametrize(
    ("provider", "variables", "base_url", "auth", "source"),
    [
        ("openai", {"OPENAI_API_KEY": "k"}, "https://api.openai.com/v1", "bearer", "OPENAI_API_KEY"),
        (
            "openai",
            {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://10.0.0.5:8000/v1"},
            "http://10.0.0.5:8000/v1",
            "bearer",
            "OPENAI_API_KEY",
        ),
        ("openai", {"OPENAI_BASE_URL": "http://localhost:11434/v1"}, "http://localhost:11434/v1", "none", ""),
        ("anthropic", {"ANTHROPIC_API_KEY": "k"}, "https://api.anthropic.com", "x-api-key", "ANTHROPIC_API_KEY"),
        ("anthropic", {"ANTHROPIC_AUTH_TOKEN": "k"}, "https://api.anthropic.com", "bearer", "ANTHROPIC_AUTH_TOKEN"),
        (
            "google",
            {"GOOGLE_API_KEY": "k"},
            "https://generativelanguage.googleapis.com",
            "x-goog-api-key",
            "GOOGLE_API_KEY",
        ),
    ],
)
def test_endpoints_and_keys_come_from_the_variables(provider, variables, base_url, auth, source) -> None:
    found = find_upstream(provider, variables, "h")
    assert (found.base_url, found.auth, found.source) == (base_url, auth, source)
    assert "k'" not in repr(found)


def test_azure_has_an_endpoint_of_ones_own_and_a_version() -> None:
    variables = {
        "AZURE_OPENAI_BASE_URL": "https://r.example/openai/v1",
        "AZURE_OPENAI_API_KEY": "k",
        "AZURE_OPENAI_API_VERSION": "preview",
    }
    found = find_upstream("azure", variables, "codex")
    assert (found.dialect, found.auth, found.query) == ("openai", "api-key", {"api-version": "preview"})
    with pytest.raises(KeyMissingError, match="AZURE_OPENAI_BASE_URL is not set"):
        find_upstream("azure", {"AZURE_OPENAI_API_KEY": "k"}, "codex")


def test_a_claude_subscription_is_a_bearer_with_its_header() -> None:
    found = find_upstream("anthropic", {"CLAUDE_CODE_OAUTH_TOKEN": "tok"}, "claude-code")
    assert (found.auth, found.key) == ("bearer", "tok")
    assert "anthropic-beta" in found.headers
    assert "tok" not in repr(found)


def test_a_codex_login_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "auth.json"
    bearer = jwt(time.time() + 3600)
    file.write_text(json.dumps({"tokens": {"access_token": bearer, "account_id": "acc", "refresh_token": "never"}}))
    found = find_upstream("openai", {"CODEX_AUTH_JSON_PATH": str(file)}, "codex")
    assert (found.key, found.headers) == (bearer, {"chatgpt-account-id": "acc"})
    assert "never" not in json.dumps([found.key, dict(found.headers)])
    file.write_text(json.dumps({"tokens": {"access_token": jwt(time.time() - 10)}}))
    with pytest.raises(KeyMissingError, match="out of date"):
        find_upstream("openai", {"CODEX_AUTH_JSON_PATH": str(file)}, "codex")
    for content in ("{}", "[", "[]", '{"tokens": 3}'):
        file.write_text(content)
        with pytest.raises(KeyMissingError, match="holds no Codex login"):
            find_upstream("openai", {"CODEX_AUTH_JSON_PATH": str(file)}, "codex")


def test_all_that_is_missing_is_said_at_once_with_the_harness() -> None:
    asking: list[AsksModel] = [Asking("codex", "openai"), Asking("claude-code", "anthropic"), Asking("x", "google")]
    with pytest.raises(KeyMissingError) as error:
        find_upstreams(asking, {"GEMINI_API_KEY": "k"})
    lines = str(error.value).splitlines()
    assert len(lines) == 2
    assert "codex" in lines[0]
    assert "OPENAI_API_KEY" in lines[0]
    assert "claude-code" in lines[1]
    assert "ANTHROPIC_API_KEY" in lines[1]
    assert [u.name for u in find_upstreams([asking[2], asking[2]], {"GEMINI_API_KEY": "k"})] == ["google"]


def test_a_key_file_overrides_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# mine\nexport OPENAI_API_KEY='from file'\nOTHER=1\n\n")
    found = read_variables(file, {"OPENAI_API_KEY": "from environment", "HOME": "/h"})
    assert found == {"OPENAI_API_KEY": "from file", "OTHER": "1", "HOME": "/h"}
    file.write_text("what is this\n")
    with pytest.raises(KeyMissingError, match="line 1"):
        read_variables(file, {})
    with pytest.raises(KeyMissingError, match="No such file"):
        read_variables(tmp_path / "none", {})


def test_the_table_is_whole() -> None:
    for name, entry in providers().items():
        assert entry["dialect"] in ("openai", "anthropic", "google"), name
        if logs_in_itself(name):
            assert entry["login_variables"] and entry["login_hosts"] and entry["harnesses"], name
            continue
        assert entry["ways"], name
        assert entry.get("base_url") or entry.get("base_url_example"), name


def test_the_hosts_proxies_go_along() -> None:
    assert host_proxies({"HTTPS_PROXY": "http://p:1", "PATH": "/", "no_proxy": ""}) == {"HTTPS_PROXY": "http://p:1"}


def test_a_github_token_is_said_to_be_another_way() -> None:
    with pytest.raises(KeyMissingError, match="--model github/NAME with --allow-login-in-box") as error:
        find_upstream("openai", {"GH_TOKEN": "gho_secret"}, "copilot-cli")
    assert "gho_secret" not in str(error.value)


def test_a_login_enters_the_box_only_where_it_is_allowed() -> None:
    asking: list[AsksModel] = [Asking("copilot-cli", "github"), Asking("codex", "openai")]
    variables = {"COPILOT_GITHUB_TOKEN": "gho_secret", "OPENAI_API_KEY": "k"}
    with pytest.raises(KeyMissingError, match="--allow-login-in-box allows that; every report then says so") as error:
        find_logins(asking, variables, allowed=False)
    assert "gho_secret" not in str(error.value)
    with pytest.raises(KeyMissingError, match="COPILOT_GITHUB_TOKEN is not set"):
        find_logins(asking, {}, allowed=True)
    found = find_logins(asking, variables, allowed=True)
    assert list(found) == ["github"] and found["github"].token == "gho_secret"
    assert "api.github.com:443" in found["github"].hosts and "gho_secret" not in repr(found)
    assert [upstream.name for upstream in find_upstreams(asking, variables)] == ["openai"]
