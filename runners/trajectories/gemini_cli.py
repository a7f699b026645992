"""Gemini CLI: the session file has the messages and their tokens, standard output the results of calls and the end."""

from pathlib import Path
from typing import Any

from runners.trajectories.log import flatten, parsed, rows, session_file
from runners.trajectories.story import Step, Story, Tokens, ToolCall


def read_gemini(stdout: Path, chats: Path) -> Story:
    """Return the story of a run."""
    story = Story(agent="gemini-cli")
    first = next((row for row in rows(stdout, story) if row.get("type") == "init"), {})
    story.session, story.model = str(first.get("session_id") or ""), str(first.get("model") or "")
    session = session_file(chats, "session-*.json*", story.session)
    if session is not None:
        read_session(story, session)
    else:
        story.warn("gemini-cli left no session file: no steps to tell")
    for row in rows(stdout, story):
        match row.get("type"):
            case "tool_result":
                call = story.call(str(row.get("tool_id")))
                if call is not None:
                    call.result = str(row.get("output") or flatten((row.get("error") or {}).get("message")))
            case "error":
                story.warn("gemini-cli: " + str(row.get("message"))[:300])
            case "result":
                story.closed = row.get("status") == "success"
                if not story.closed:
                    error = row.get("error") or {}
                    story.errors.append(f"{error.get('type', '')} {error.get('message', '')}".strip())
    return story


def read_session(story: Story, path: Path) -> None:
    """Add the session's messages: one line each, and again whenever one grows."""
    messages: dict[str, dict[str, Any]] = {}
    for row in rows(path, story):
        grown = (row.get("$set") or {}).get("messages") or [row]
        messages |= {str(message["id"]): message for message in grown if "id" in message}
    for message in messages.values():
        at, content = str(message.get("timestamp") or ""), flatten(message.get("content"))
        if message.get("type") == "user" and content:  # without text it only carries the results of calls
            story.add(Step("user", content, at))
        elif message.get("type") == "gemini":
            story.add(agent_step(story, message, content, at))


def agent_step(story: Story, message: dict[str, Any], content: str, at: str) -> Step:
    """Return the step of one answer, and count its tokens."""
    model = str(message.get("model") or story.model)
    step = Step("agent", content, at, model=model)
    thoughts = (str(thought.get("description") or "") for thought in message.get("thoughts") or [])
    step.reasoning = "\n".join(filter(None, thoughts))
    for call in message.get("toolCalls") or []:
        story.ask(step, ToolCall(str(call.get("id")), str(call.get("name")), parsed(call.get("args") or {})))
    if message.get("tokens"):
        step.tokens = tokens_of(message["tokens"])
        story.spend(model, step.tokens)
    return step


def tokens_of(tokens: dict[str, Any]) -> Tokens:
    """Translate Gemini CLI's counts: input includes the cached, output excludes the thoughts."""
    cached, thoughts = int(tokens.get("cached") or 0), int(tokens.get("thoughts") or 0)
    return Tokens(
        input=max(0, int(tokens.get("input") or 0) + int(tokens.get("tool") or 0) - cached),
        cache_read=cached,
        output=int(tokens.get("output") or 0) + thoughts,
        reasoning=thoughts,
    )
