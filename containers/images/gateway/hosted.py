"""What a request body may not ask for: tools that run at the vendor, and files that the vendor would fetch.

A box has no network; a hosted search tool or a remote file would be one. So the tools that are known to run in the
client pass, and all others are refused: a new hosted tool is shut out before anybody has heard of it.
"""

from collections.abc import Iterator
from typing import Any

from .settings import Refusal

OPENAI_LOCAL = {"function", "custom", "local_shell", "apply_patch", "namespace", "tool_search"}
ANTHROPIC_LOCAL = ("bash_", "text_editor_", "memory_", "computer_", "tool_search_tool_")
GEMINI_LOCAL = {"functionDeclarations", "function_declarations"}
FORBIDDEN_KEYS = {
    "web_search_options": "hosted web search",
    "search_parameters": "hosted web search",
    "plugins": "hosted plug-ins",
    "mcp_servers": "remote MCP servers",
    "container": "a container at the vendor",
    "background": "background mode (it would run on unmetered)",
    "conversation": "a conversation kept at the vendor",
    "cachedContent": "content kept at the vendor",
    "cached_content": "content kept at the vendor",
}
REMOTE_KEYS = {"file_url", "fileUri", "file_uri"}
OPAQUE = {"tools", "arguments", "args", "schema", "parameters", "response", "functionResponse", "function_response"}
"""Not walked: the model's or the tools' own words, never fetched."""
SEARCH_MODELS = ("search-preview", "search-api", ":online", "deep-research")
DEPTH = 40


def check(api: str, body: dict[str, Any], model: str) -> None:
    """Let a request pass, or not.

    Raises:
        Refusal: ``hosted_tool`` or ``remote_file``; the message names what was asked for.
    """
    if any(mark in model for mark in SEARCH_MODELS):
        raise Refusal("hosted_tool", f"model {model} searches the web at the vendor; the trial has no network")
    for key, what in FORBIDDEN_KEYS.items():
        if body.get(key):
            raise Refusal("hosted_tool", f"`{key}` asks for {what}; the trial has no network")
    for name in declared(api, body):
        if not is_local(api, name):
            raise Refusal("hosted_tool", f"tool `{name}` runs at the vendor; the trial has no network")
    for key in ("input", "messages", "contents", "system", "systemInstruction"):
        refuse_remote(body.get(key), 0)


def declared(api: str, body: dict[str, Any]) -> Iterator[str]:
    """Yield the type of every tool that a body declares (for Gemini: each tool's keys)."""
    groups = [body.get("tools")]
    items = body.get("input")
    if isinstance(items, list):  # newer Codex models carry their tools in the input
        groups += [item.get("tools") for item in items if isinstance(item, dict) and "tools" in item]
    for tool in [tool for group in groups if isinstance(group, list) for tool in group]:
        if not isinstance(tool, dict):
            raise Refusal("hosted_tool", "a tool is declared that is no object")
        yield from tool if api == "gemini" else tool_types(tool)


def tool_types(tool: dict[str, Any]) -> Iterator[str]:
    """Yield the type of a tool and of those grouped in it."""
    kind = str(tool.get("type") or "function")
    environment = tool.get("environment")
    if kind == "shell" and isinstance(environment, dict) and environment.get("type") == "local":
        kind = "local_shell"
    yield kind
    if kind == "namespace":
        for inner in tool.get("tools") or []:
            yield from tool_types(inner) if isinstance(inner, dict) else iter([str(inner)])


def is_local(api: str, name: str) -> bool:
    """Whether a tool runs in the client."""
    if api == "gemini":
        return name in GEMINI_LOCAL
    if api == "messages":
        return name in ("function", "custom") or name.startswith(ANTHROPIC_LOCAL)
    return name in OPENAI_LOCAL


def refuse_remote(value: Any, depth: int) -> None:
    """Refuse contents that the vendor would fetch from an address."""
    if depth > DEPTH:
        raise Refusal("remote_file", f"the body is nested more than {DEPTH} deep")
    if isinstance(value, list):
        for entry in value:
            refuse_remote(entry, depth + 1)
    if not isinstance(value, dict):
        return
    image = value.get("image_url")
    address = image.get("url") if isinstance(image, dict) else image
    by_url = isinstance(value.get("source"), dict) and value["source"].get("type") == "url"
    if by_url or REMOTE_KEYS & value.keys() or (isinstance(address, str) and not address.startswith("data:")):
        raise Refusal("remote_file", "a file is given by its address; the trial has no network. Send its content.")
    tool_use = value.get("type") == "tool_use"
    for key, entry in value.items():
        if key not in OPAQUE and not (tool_use and key == "input"):
            refuse_remote(entry, depth + 1)
