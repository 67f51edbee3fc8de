"""OpenAI's responses API for plain calls to the models that have no other: texts in, one text out.

Requests and replies are those of litellm's bridge from chat completions, which answers the rest: tools, images, stop
sequences and seeds, which the API does not know.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from skillc.models.backends.chat_replies import NotAReplyError, usage_of

# The API refuses fewer tokens.
_FEWEST = 16
_PASSED = frozenset({"service_tier", "store", "temperature", "top_p"})
_LIMITS = ("max_tokens", "max_completion_tokens")
_PARAMETERS = _PASSED | {*_LIMITS, "reasoning_effort", "response_format"}


def responses_body(model: str, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]) -> bytes | None:
    """Return the body of a request, None if litellm's bridge has to make it."""
    if not parameters.keys() <= _PARAMETERS or set(_LIMITS) <= parameters.keys():
        return None
    instructions: list[str] = []
    items: list[dict[str, Any]] = []
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if message.keys() != {"role", "content"} or not isinstance(content, str):
            return None
        if role in ("system", "developer") and not items:
            instructions.append(content)
        elif role in ("system", "developer", "user", "assistant"):
            kind = "output_text" if role == "assistant" else "input_text"
            role = "system" if role == "developer" else role
            items.append({"type": "message", "role": role, "content": [{"type": kind, "text": content}]})
        else:
            return None
    sent: dict[str, Any] = {"model": model, "input": items}
    if any(instructions):
        sent["instructions"] = " ".join(instructions)
    for name in _LIMITS:
        if name in parameters:
            sent["max_output_tokens"] = max(_FEWEST, int(parameters[name]))
    if "reasoning_effort" in parameters:
        sent["reasoning"] = {"effort": parameters["reasoning_effort"]}
    if "response_format" in parameters:
        form = _text_format(parameters["response_format"])
        if form is None:
            return None
        sent["text"] = {"format": form}
    sent |= {name: parameters[name] for name in sorted(_PASSED & parameters.keys())}
    return json.dumps(sent).encode()


def _text_format(response_format: Any) -> dict[str, Any] | None:
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    if kind in ("json_object", "text"):
        return {"type": kind}
    schema = response_format.get("json_schema") if kind == "json_schema" else None
    if not isinstance(schema, dict):
        return None
    return {
        "type": kind,
        "name": schema.get("name", "response_schema"),
        "schema": schema.get("schema", {}),
        "strict": schema.get("strict", False),
    }


def responses_reply(body: bytes, model: str) -> dict[str, Any]:
    """Return the reply in a body as `chat_replies.chat_reply`; `model` is the name that was asked."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise NotAReplyError from None
    if not isinstance(data, dict) or data.get("error") is not None or not isinstance(data.get("output"), list):
        raise NotAReplyError
    messages = [item for item in data["output"] if isinstance(item, dict) and item.get("type") == "message"]
    parts = [part for message in messages for part in message.get("content") or () if isinstance(part, dict)]
    details = data.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    incomplete = data.get("status") == "incomplete" or reason is not None
    if not parts and not incomplete:
        raise NotAReplyError
    finish = "stop" if not incomplete else "content_filter" if reason == "content_filter" else "length"
    text = "".join(str(part.get("text") or "") for part in parts)
    message = {"content": text, "tool_calls": []}
    return {
        "choices": [{"message": message, "finish_reason": finish}],
        "usage": _usage(data.get("usage")),
        "model": model,
    }


def _usage(reported: Any) -> dict[str, Any] | None:
    if not isinstance(reported, dict):
        return usage_of(reported)
    return usage_of(
        {
            "prompt_tokens": reported.get("input_tokens"),
            "completion_tokens": reported.get("output_tokens"),
            "prompt_tokens_details": reported.get("input_tokens_details"),
            "completion_tokens_details": reported.get("output_tokens_details"),
        }
    )
