"""What a request body may not ask for: tools that run at the vendor, and files that the vendor would fetch.

A box has no network; a hosted search tool or a remote file would be one. So the tools that are known to run in the
client pass, and all others are refused: a new hosted tool is shut out before anybody has heard of it. Names are
compared without case and underscores: vendors take ``fileUri`` and ``file_uri``, and some take ``FileURI``.
"""

from collections.abc import Iterator
from typing import Any

from .settings import Refusal

OPENAI_LOCAL = {"function", "custom", "local_shell", "apply_patch", "namespace", "tool_search"}
ANTHROPIC_LOCAL = ("bash_", "text_editor_", "memory_", "computer_", "tool_search_tool_")
GEMINI_LOCAL = {"functionDeclarations", "function_declarations"}
FORBIDDEN = {
    "websearchoptions": "hosted web search",
    "searchparameters": "hosted web search",
    "plugins": "hosted plug-ins",
    "mcpservers": "remote MCP servers",
    "container": "a container at the vendor",
    "background": "background mode (it would run on unmetered)",
    "conversation": "a conversation kept at the vendor",
    "prompt": "a prompt kept at the vendor",
    "cachedcontent": "content kept at the vendor",
}
"""Names at the top of a body."""
ADDRESSES = {
    f"{what}{kind}"
    for what in ("file", "image", "video", "audio", "input", "document", "pdf", "media", "gcs")
    for kind in ("url", "uri")
}
"""Names whose value the vendor fetches, unless it is the content itself (``data:``)."""
OPAQUE = {"arguments", "args", "schema", "parameters", "response", "responseschema", "responsejsonschema"}
"""Not walked: the model's or the tools' own words, never fetched."""
SEARCH_MODELS = ("search-preview", "search-api", ":online", "deep-research")


def fold(name: str) -> str:
    """Return a name as it is compared."""
    return name.replace("_", "").lower()


def check(api: str, body: dict[str, Any], model: str) -> None:
    """Let a request pass, or not.

    Raises:
        Refusal: ``hosted_tool`` or ``remote_file``; the message names what was asked for.
    """
    if any(mark in model for mark in SEARCH_MODELS):
        raise Refusal("hosted_tool", f"model {model} searches the web at the vendor; the trial has no network")
    for key, value in body.items():
        if value and fold(key) in FORBIDDEN:
            raise Refusal("hosted_tool", f"`{key}` asks for {FORBIDDEN[fold(key)]}; the trial has no network")
    for entry in objects(api, body):
        refuse_remote(entry)
        for key, value in entry.items():
            if fold(key) == "tools":  # newer Codex models carry their tools in the input
                refuse_hosted(api, value)


def objects(api: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all objects of a body but those that are a tool's or a model's own words."""
    waiting: list[Any] = [body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            yield value
            used = api == "messages" and value.get("type") in ("tool_use", "server_tool_use")
            waiting += [
                inner
                for key, inner in value.items()
                if (name := fold(key)) != "tools" and name not in OPAQUE and not (used and key == "input")
            ]


def refuse_hosted(api: str, tools: Any) -> None:
    """Refuse a declaration of tools where one of them runs at the vendor."""
    if tools is None:
        return
    if not isinstance(tools, list):
        raise Refusal("hosted_tool", "`tools` is no list")
    for tool in tools:
        if not isinstance(tool, dict):
            raise Refusal("hosted_tool", "a tool is declared that is no object")
        for name in tool if api == "gemini" else tool_types(tool):
            if not is_local(api, name):
                raise Refusal("hosted_tool", f"tool `{name[:100]}` runs at the vendor; the trial has no network")


def tool_types(tool: dict[str, Any]) -> Iterator[str]:
    """Yield the type of a tool and of those grouped in it."""
    kinds = [value for key, value in tool.items() if fold(key) == "type"]
    kind = str((kinds[0] if kinds else "") or "function")
    environment = tool.get("environment")
    if kind == "shell" and isinstance(environment, dict) and environment.get("type") == "local":
        kind = "local_shell"
    yield kind if len(kinds) < 2 else "of two types"
    if kind == "namespace":
        inner = tool.get("tools") or []
        if not isinstance(inner, list):
            raise Refusal("hosted_tool", "`tools` is no list")
        for entry in inner:
            yield from tool_types(entry) if isinstance(entry, dict) else iter([f"{entry} (no object)"])


def is_local(api: str, name: str) -> bool:
    """Whether a tool runs in the client."""
    if api == "gemini":
        return name in GEMINI_LOCAL
    if api == "messages":
        return name in ("function", "custom") or name.startswith(ANTHROPIC_LOCAL)
    return name in OPENAI_LOCAL


def refuse_remote(entry: dict[str, Any]) -> None:
    """Refuse an object that stands for something the vendor would fetch."""
    for key, value in entry.items():
        name = fold(key)
        if name == "source" and isinstance(value, dict):
            remote = value.get("type") == "url" or any(fold(inner) in ("url", "uri") for inner in value)
        elif name in ADDRESSES:
            remote = not is_content(value)
        else:  # some routers fetch what stands in the place of a file's content
            remote = name == "filedata" and isinstance(value, str) and "://" in value[:100]
        if remote:
            raise Refusal("remote_file", "a file is given by its address; the trial has no network. Send its content.")


def is_content(value: Any) -> bool:
    """Whether the value of an address is the content itself, or nothing."""
    if isinstance(value, dict):
        inner = [found for key, found in value.items() if fold(key) in ("url", "uri")]
        return all(map(is_content, inner)) and not any(isinstance(found, dict) for found in inner)
    return not value or (isinstance(value, str) and value[:5].lower() == "data:")
