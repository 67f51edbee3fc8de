"""Assemble replies from streams of OpenAI's and Anthropic's protocols; convert requests and replies to messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from skillc.sessions.readers.records import list_of, object_of, parsed, text_of

Protocol: TypeAlias = Literal["chat", "responses", "anthropic"]

_PATHS: Mapping[str, Protocol] = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "anthropic",
}


def protocol_of(path: str) -> Protocol | None:
    """Return the protocol of a request by the end of its path; None if it is not a model call."""
    return next((protocol for end, protocol in _PATHS.items() if path.rstrip("/").endswith(end)), None)


# ---- streams ---------------------------------------------------------------------------------------


def whole_reply(protocol: Protocol, body: bytes) -> Mapping[str, Any]:
    """Return the reply in a body: a single object, or the one assembled from its server-sent events.

    A stream that broke off gives what had arrived, without a finish reason.
    """
    text = body.decode(errors="replace")
    if not text.lstrip().startswith(("data:", "event:", ":")):
        return object_of(parsed(text))
    events = [object_of(parsed(data)) for data in _events(text)]
    match protocol:
        case "chat":
            return _chat(events)
        case "responses":
            ended = ("response.completed", "response.incomplete", "response.failed")
            whole = (object_of(each.get("response")) for each in reversed(events) if each.get("type") in ended)
            return next(whole, {"output": _items(events)})
        case "anthropic":
            return _anthropic(events)


def _events(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith("data:") and (data := line[5:].strip()) and data != "[DONE]":
            yield data


def _chat(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    content, finish, model = "", None, ""
    calls: dict[int, dict[str, str]] = {}
    usage: Mapping[str, Any] = {}
    for event in events:
        usage, model = event.get("usage") or usage, event.get("model") or model
        for choice in map(object_of, list_of(event.get("choices"))):
            if choice.get("index", 0) != 0:
                continue
            delta = object_of(choice.get("delta"))
            content += text_of(delta.get("content"))
            finish = choice.get("finish_reason") or finish
            for each in map(object_of, list_of(delta.get("tool_calls"))):
                call = calls.setdefault(int(each.get("index") or 0), {"name": "", "arguments": ""})
                made = object_of(each.get("function"))
                call["name"] += str(made.get("name") or "")
                call["arguments"] += str(made.get("arguments") or "")
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [{"type": "function", "function": call} for _, call in sorted(calls.items())]
    return {"model": model, "choices": [{"message": message, "finish_reason": finish}], "usage": usage}


def _items(events: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [each["item"] for each in events if each.get("type") == "response.output_item.done" and "item" in each]


def _anthropic(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    reply: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        delta, index = object_of(event.get("delta")), int(event.get("index") or 0)
        match event.get("type"):
            case "message_start":
                reply = dict(object_of(event.get("message")))
            case "content_block_start":
                blocks[index] = dict(object_of(event.get("content_block")))
            case "content_block_delta" if index in blocks:
                if "text" in delta:
                    blocks[index]["text"] = blocks[index].get("text", "") + str(delta["text"])
                elif "partial_json" in delta:
                    blocks[index]["json"] = blocks[index].get("json", "") + str(delta["partial_json"])
            case "message_delta":
                reply |= {name: value for name, value in delta.items() if value is not None}
                reply["usage"] = {**object_of(reply.get("usage")), **object_of(event.get("usage"))}
    for block in blocks.values():
        if "json" in block:
            block["input"] = parsed(block.pop("json"))
    return {**reply, "content": [blocks[index] for index in sorted(blocks)]}


# ---- as messages -----------------------------------------------------------------------------------


def asked_messages(protocol: Protocol, request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the messages of a request in the chat form, without its system instructions."""
    if protocol != "responses":
        return [object_of(each) for each in list_of(request.get("messages"))]
    given = request.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else messages_of_items(list_of(given))


def reply_messages(protocol: Protocol, reply: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the messages of a reply in the chat form; none if it is an error."""
    match protocol:
        case "chat":
            choices = list_of(reply.get("choices"))
            return [object_of(object_of(choices[0]).get("message"))] if choices else []
        case "responses":
            return messages_of_items(list_of(reply.get("output")))
        case "anthropic":
            return [{"role": "assistant", "content": reply["content"]}] if reply.get("content") else []


def messages_of_items(items: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Return items of the Responses API as chat messages; thoughts are left out."""
    found: list[Mapping[str, Any]] = []
    for item in map(object_of, items):
        match item.get("type", "message"):
            case "message":
                found.append({"role": item.get("role"), "content": item.get("content")})
            case "function_call" | "custom_tool_call":
                made = {"name": item.get("name"), "arguments": item.get("arguments", item.get("input"))}
                found.append({"role": "assistant", "tool_calls": [{"function": made}]})
            case "function_call_output" | "custom_tool_call_output":
                output = item.get("output")
                found.append({"role": "tool", "content": output if isinstance(output, str) else json.dumps(output)})
    return found


def system_of(protocol: Protocol, request: Mapping[str, Any]) -> str:
    """Return the system instructions that a request has beside its messages."""
    return text_of(request.get("instructions" if protocol == "responses" else "system"))
