"""What a request asks: which API, how far its history is, which tools it offers."""

import json
import uuid
from dataclasses import dataclass
from typing import Any

from tests.stub_model.script import Turn

SHELLS = ("exec_command", "shell_command", "bash", "shell", "run_shell_command", "local_shell", "terminal")
OURS = ("function_call", "custom_tool_call", "local_shell_call", "reasoning")
TEXT_ONLY = "Respond with TEXT ONLY. Do NOT call any tools."
"""Claude Code's compaction offers tools and forbids them in words."""


@dataclass(frozen=True)
class Asked:
    """One request for an answer."""

    api: str
    model: str
    body: dict[str, Any]
    streamed: bool

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        """Name -> ``{"schema": ..., "kind": ...}`` of every tool offered."""
        found: dict[str, dict[str, Any]] = {}
        groups = [self.body.get("tools") or []]
        items = self.body.get("input")
        if isinstance(items, list):
            groups += [item["tools"] for item in items if "tools" in item]
        for tool in [tool for group in groups for tool in group]:
            found |= flat(tool)
        return found

    @property
    def history(self) -> list[dict[str, Any]]:
        key = {"responses": "input", "gemini": "contents"}.get(self.api, "messages")
        items = self.body.get(key) or []
        return [{"role": "user", "content": items}] if isinstance(items, str) else items

    @property
    def turns_done(self) -> int:
        """Answers that the history already holds."""
        count, inside = 0, False
        for item in self.history:
            ours = item.get("role") in ("assistant", "model") or item.get("type") in OURS
            count += ours and not inside
            inside = ours
        return count

    @property
    def aside(self) -> bool:
        """Whether this is no turn of the task: no tools offered, or forbidden."""
        choice = self.body.get("tool_choice")
        forbidden = choice == "none" or (isinstance(choice, dict) and choice.get("type") == "none")
        last = str(self.history[-1]) if self.history else ""
        return not self.tools or forbidden or TEXT_ONLY in last

    def calls(self, turn: Turn) -> list[dict[str, Any]]:
        """Return the turn's calls, each with an id."""
        calls = [self._shell(turn.shell)] if turn.shell else []
        return [{"id": "call_" + uuid.uuid4().hex[:20], **call} for call in [*calls, *turn.tools]]

    def _shell(self, command: str) -> dict[str, Any]:
        by_lower = {name.lower(): name for name in self.tools}
        name = next((by_lower[shell] for shell in SHELLS if shell in by_lower), None)
        if name is None:
            if self.tools.get("exec", {}).get("kind") == "custom":  # Codex's code mode takes JavaScript
                text = f"const r = await tools.exec_command({{cmd: {json.dumps(command)}}}); text(JSON.stringify(r));"
                return {"name": "exec", "input": text}
            raise AssertionError(f"no shell tool among {sorted(self.tools)}")
        schema = self.tools[name]["schema"]
        properties = schema.get("properties", {})
        arguments = {key: filler(properties.get(key, {})) for key in schema.get("required", [])}
        key = "cmd" if "cmd" in properties else "command"
        arguments[key] = ["bash", "-lc", command] if properties.get(key, {}).get("type") == "array" else command
        return {"name": name, "arguments": arguments}


def flat(tool: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the functions in a tool entry, whatever the API."""
    if tool.get("type") == "namespace":
        return {name: entry for inner in tool.get("tools", []) for name, entry in flat(inner).items()}
    if "functionDeclarations" in tool:
        return {
            entry["name"]: {
                "schema": entry.get("parametersJsonSchema") or entry.get("parameters") or {},
                "kind": "function",
            }
            for entry in tool["functionDeclarations"]
        }
    inner = tool["function"] if isinstance(tool.get("function"), dict) else tool
    kind = tool.get("type", "function")
    schema = inner.get("parameters") or inner.get("input_schema") or {}
    return {inner.get("name") or kind: {"schema": schema, "kind": kind}}


def filler(schema: dict[str, Any]) -> Any:
    """Return a harmless value of a schema."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else str(kind).lower()
    return {"integer": 10, "number": 10, "boolean": False, "array": [], "object": {}}.get(kind, "stub")
