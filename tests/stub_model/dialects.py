"""An answer in each API's own form: a list of events, and the one body of an answer without streaming."""

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

from tests.stub_model.script import Failure, Tokens, Turn

Event = tuple[str, Any]
"""Name (empty for none) and data; the data ``[DONE]`` is sent as it stands."""
PIECE = 12


def events(api: str, model: str, turn: Turn, calls: list[dict[str, Any]]) -> list[Event]:
    """Return the events of a streamed answer."""
    make = {"responses": responses, "chat": chat, "messages": messages, "gemini": gemini}[api]
    return list(make(model, turn, calls))


def whole(api: str, model: str, turn: Turn, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the body of an answer that is not streamed."""
    stream = events(api, model, turn, calls)
    if api == "responses":
        return stream[-1][1]["response"]
    if api == "gemini":
        return gemini_whole(model, turn, calls)
    if api == "chat":
        return {
            "id": "chatcmpl-stub",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": turn.text, "tool_calls": chat_calls(calls) or None},
                    "finish_reason": finish(turn, calls, "length", "content_filter", "tool_calls", "stop"),
                }
            ],
            "usage": chat_usage(turn.tokens),
        }
    return {
        **message_head(model, turn),
        "content": blocks(turn, calls),
        "stop_reason": finish(turn, calls, "max_tokens", "refusal", "tool_use", "end_turn"),
        "usage": message_usage(turn.tokens),
    }


def finish(turn: Turn, calls: list[Any], length: str, refusal: str, tools: str, end: str) -> str:
    return {"length": length, "refusal": refusal}.get(turn.stop) or (tools if calls else end)


def pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


# -- OpenAI Responses


def responses(model: str, turn: Turn, calls: list[dict[str, Any]]) -> Iterator[Event]:
    base = {
        "id": "resp_" + uuid.uuid4().hex,
        "object": "response",
        "created_at": int(time.time()),
        "model": model,
        "status": "in_progress",
        "output": [],
        "error": None,
        "incomplete_details": None,
        "usage": None,
    }
    items = response_items(turn, calls)
    yield event("response.created", response=base)
    for index, item in enumerate(items):
        opened = {"message": {"content": []}, "reasoning": {"summary": []}, "function_call": {"arguments": ""}}
        yield event("response.output_item.added", output_index=index, item=item | opened.get(item["type"], {}))
        if item["type"] == "message":
            where = {"item_id": item["id"], "output_index": index, "content_index": 0}
            part = item["content"][0]
            yield event("response.content_part.added", **where, part=part | {"text": ""})
            for piece in pieces(part["text"]):
                yield event("response.output_text.delta", **where, delta=piece)
            yield event("response.output_text.done", **where, text=part["text"])
            yield event("response.content_part.done", **where, part=part)
        yield event("response.output_item.done", output_index=index, item=item)
    end = base | {"status": "completed", "output": items, "usage": response_usage(turn.tokens)}
    if turn.stop:
        reason = "max_output_tokens" if turn.stop == "length" else "content_filter"
        end |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
    yield event(f"response.{end['status']}", response=end)


def event(name: str, **data: Any) -> Event:
    return name, {"type": name, **data}


def response_items(turn: Turn, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if turn.reasoning:
        summary = [{"type": "summary_text", "text": turn.reasoning}]
        items.append({"type": "reasoning", "id": "rs_" + uuid.uuid4().hex[:16], "summary": summary})
    if turn.text:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        head = {"type": "message", "id": "msg_" + uuid.uuid4().hex[:16], "status": "completed", "role": "assistant"}
        items.append({**head, "content": content})
    for call in calls:
        custom = "input" in call
        item = {"type": "custom_tool_call" if custom else "function_call", "id": "fc_" + uuid.uuid4().hex[:16]}
        payload = {"input": call["input"]} if custom else {"arguments": json.dumps(call["arguments"])}
        items.append({**item, "status": "completed", "call_id": call["id"], "name": call["name"], **payload})
    return items


def response_usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": tokens.prompt,
        "input_tokens_details": {"cached_tokens": tokens.cache_read, "cache_write_tokens": tokens.cache_write},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.prompt + tokens.output,
    }


# -- OpenAI Chat Completions


def chat(model: str, turn: Turn, calls: list[dict[str, Any]]) -> Iterator[Event]:
    base = {"id": "chatcmpl-stub", "object": "chat.completion.chunk", "created": int(time.time()), "model": model}

    def chunk(delta: dict[str, Any], reason: str | None = None) -> Event:
        return "", {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(turn.text):
        yield chunk({"content": piece})
    for index, call in enumerate(chat_calls(calls)):
        yield chunk({"tool_calls": [{"index": index, **call}]})
    yield chunk({}, finish(turn, calls, "length", "content_filter", "tool_calls", "stop"))
    yield "", {**base, "choices": [], "usage": chat_usage(turn.tokens)}
    yield "", "[DONE]"


def chat_calls(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
        }
        for call in calls
    ]


def chat_usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "prompt_tokens": tokens.prompt,
        "prompt_tokens_details": {"cached_tokens": tokens.cache_read, "cache_write_tokens": tokens.cache_write},
        "completion_tokens": tokens.output,
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.prompt + tokens.output,
    }


# -- Anthropic Messages


def messages(model: str, turn: Turn, calls: list[dict[str, Any]]) -> Iterator[Event]:
    yield event("message_start", message=message_head(model, turn))
    for index, block in enumerate(blocks(turn, calls)):
        empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}
        yield event("content_block_start", index=index, content_block=block | empty[block["type"]])
        for delta in deltas(block):
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    reason = finish(turn, calls, "max_tokens", "refusal", "tool_use", "end_turn")
    end = {"stop_reason": reason, "stop_sequence": None}
    yield event("message_delta", delta=end, usage=message_usage(turn.tokens))
    yield event("message_stop")


def message_head(model: str, turn: Turn) -> dict[str, Any]:
    head = {"id": "msg_" + uuid.uuid4().hex[:20], "type": "message", "role": "assistant", "model": model}
    usage = message_usage(turn.tokens) | {"output_tokens": 1}
    return {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}


def blocks(turn: Turn, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if turn.reasoning:
        found.append({"type": "thinking", "thinking": turn.reasoning, "signature": "c3R1Yg=="})
    if turn.text:
        found.append({"type": "text", "text": turn.text})
    for call in calls:
        found.append({"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]})
    return found


def deltas(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        for piece in pieces(block["text"]):
            yield {"type": "text_delta", "text": piece}
    elif block["type"] == "thinking":
        yield {"type": "thinking_delta", "thinking": block["thinking"]}
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}


def message_usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": tokens.input,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation_input_tokens": tokens.cache_write,
        "output_tokens": tokens.output,
    }


# -- Gemini


def gemini(model: str, turn: Turn, calls: list[dict[str, Any]]) -> Iterator[Event]:
    for piece in pieces(turn.text):
        yield "", {"candidates": [{"content": {"role": "model", "parts": [{"text": piece}]}, "index": 0}]}
    yield "", gemini_whole(model, Turn(tokens=turn.tokens, stop=turn.stop, reasoning=turn.reasoning), calls)


def gemini_whole(model: str, turn: Turn, calls: list[dict[str, Any]]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": turn.reasoning, "thought": True}] if turn.reasoning else []
    parts += [{"text": turn.text}] if turn.text else []
    for call in calls:
        named = {"id": call["id"], "name": call["name"], "args": call["arguments"]}
        parts.append({"functionCall": named, "thoughtSignature": "c3R1Yg=="})
    reason = finish(turn, [], "MAX_TOKENS", "SAFETY", "", "STOP")
    content = {"role": "model", "parts": parts or [{"text": ""}]}
    tokens = turn.tokens
    return {
        "candidates": [{"content": content, "finishReason": reason, "index": 0}],
        "usageMetadata": {
            "promptTokenCount": tokens.prompt,
            "cachedContentTokenCount": tokens.cache_read,
            "candidatesTokenCount": tokens.output - tokens.reasoning,
            "thoughtsTokenCount": tokens.reasoning,
            "totalTokenCount": tokens.prompt + tokens.output,
        },
        "modelVersion": model,
    }


# -- errors


def error_body(api: str, failure: Failure) -> dict[str, Any]:
    message = failure.message or f"scripted {failure.status}"
    if api == "messages":
        kinds = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error"}
        kinds |= {404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
        kind = failure.code or kinds.get(failure.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
    if api == "gemini":
        kinds = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
        kinds |= {429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
        status = failure.code or kinds.get(failure.status, "INTERNAL")
        return {"error": {"code": failure.status, "message": message, "status": status}}
    codes = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
    kinds = {429: "rate_limit_exceeded", 500: "server_error", 503: "server_error"}
    kind = kinds.get(failure.status, "invalid_request_error")
    return {
        "error": {"message": message, "type": kind, "code": failure.code or codes.get(failure.status), "param": None}
    }


def error_event(api: str, failure: Failure) -> Event:
    body = error_body(api, failure)
    if api == "messages":
        return "error", body
    if api == "responses":
        error = {"code": body["error"]["code"] or body["error"]["type"], "message": body["error"]["message"]}
        response = {"id": "resp_stub", "object": "response", "status": "failed", "output": [], "error": error}
        return event("response.failed", response=response)
    return "", body
