"""Replies of OpenAI's chat completions, read as litellm reads them: finish reasons, thoughts, tool calls and usage."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

# Reasons that other engines give for the end of a reply; an unknown one is `stop`.
_FINISH = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "function_call",
    "content_filter": "content_filter",
    **dict.fromkeys(("max_tokens", "MAX_TOKENS", "compaction"), "length"),
    "tool_use": "tool_calls",
    **dict.fromkeys(
        (
            *("ERROR_TOXIC", "refusal", "sensitive", "guardrail_intervened", "content_filtered", "SAFETY"),
            *("RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"),
            *("IMAGE_PROHIBITED_CONTENT", "NO_IMAGE", "IMAGE_RECITATION", "IMAGE_OTHER", "ESCALATION"),
        ),
        "content_filter",
    ),
}
# Thoughts before the answer, from a server without a parser for them.
_THOUGHTS = re.compile(r"<(?:think|thinking|budget:thinking)>.*?</(?:think|thinking|budget:thinking)>(.*)", re.DOTALL)


class NotAReplyError(ValueError):
    """The body has not the form of a reply."""


def chat_reply(body: bytes) -> dict[str, Any]:
    """Return the reply in a body, in the normal form of `attempts.read_reply`; raise `NotAReplyError` if it is none."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise NotAReplyError from None
    if not isinstance(data, dict) or _has_error(data.get("error")):
        raise NotAReplyError
    choices = data.get("choices")
    if not isinstance(choices, list):
        raise NotAReplyError
    model = data.get("model")
    return {
        "choices": [_choice(choice) for choice in choices],
        "usage": usage_of(data.get("usage")),
        "model": "" if model is None else str(model),
    }


def _has_error(error: Any) -> bool:
    """Whether an error is more than a placeholder, which some servers send with every reply."""
    if isinstance(error, dict):
        return bool(error.get("message")) or error.get("code") is not None
    return error is not None and error != ""


def _choice(choice: Any) -> dict[str, Any]:
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise NotAReplyError
    content, calls = message.get("content"), message.get("tool_calls")
    if not (content is None or isinstance(content, str)) or not (calls is None or isinstance(calls, list)):
        raise NotAReplyError
    if content and "reasoning_content" not in message and "reasoning" not in message:
        thoughts = _THOUGHTS.match(content)
        content = thoughts[1] if thoughts else content
    tools = [fixed for i, call in enumerate(calls or ()) for fixed in _tool_calls(call, i)]
    finish = choice.get("finish_reason") or choice.get("finish_details") or "stop"
    finish = _FINISH.get(finish, "stop") if isinstance(finish, str) else "stop"
    if finish == "stop" and tools:
        finish = "tool_calls"
    reply: dict[str, Any] = {"message": {"content": content, "tool_calls": tools}, "finish_reason": finish}
    if choice.get("logprobs") is not None:
        reply["logprobs"] = choice["logprobs"]
    return reply


def _tool_calls(call: Any, index: int) -> Iterator[dict[str, Any]]:
    """Yield a tool call in its normal form, or those in a call of `multi_tool_use.parallel`, which models invent."""
    if not isinstance(call, dict):
        raise NotAReplyError
    function = call.get("function")
    if not isinstance(function, dict):
        if call.get("type") in (None, "function"):
            raise NotAReplyError
        yield dict(call)
        return
    arguments, name = function.get("arguments"), function.get("name")
    written = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
    id_ = call.get("id") or f"call_{index}"
    together = _called_together(written) if name == "multi_tool_use.parallel" else None
    if together is None:
        rest = {key: value for key, value in call.items() if key not in ("function", "id", "type")}
        yield {**rest, "function": {"arguments": written, "name": name}, "id": id_, "type": "function"}
        return
    for number, (inner, given) in enumerate(together):
        yield {
            "function": {"arguments": json.dumps(given), "name": inner},
            "id": f"{id_}_{number}",
            "type": "function",
        }


def _called_together(written: str) -> list[tuple[str, Any]] | None:
    try:
        uses = json.loads(written)["tool_uses"]
        return [(str(use["recipient_name"]).removeprefix("functions."), use["parameters"]) for use in uses]
    except (ValueError, KeyError, TypeError):
        return None


def usage_of(reported: Any) -> dict[str, Any] | None:
    """Return the usage in its normal form, None without a usable one; raise `NotAReplyError` if it has another form."""
    if not reported and not isinstance(reported, list):
        return None
    if not isinstance(reported, Mapping):
        raise NotAReplyError
    cached = _count(_inner(reported, "prompt_tokens_details").get("cached_tokens"))
    # As DeepSeek and Anthropic name them.
    for name in ("prompt_cache_hit_tokens", "cache_read_input_tokens"):
        if type(reported.get(name)) is int:
            cached = _count(reported[name])
    reasoning = _inner(reported, "completion_tokens_details").get("reasoning_tokens")
    thought = _count(reported.get("reasoning_tokens") if reasoning is None else reasoning)
    prompt, completion = _count(reported.get("prompt_tokens")), _count(reported.get("completion_tokens"))
    if min(prompt, completion, cached, thought) < 0:
        return None
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }


def _inner(reported: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = reported.get(name)
    return found if isinstance(found, Mapping) else {}


def _count(value: Any) -> int:
    """Return a number of tokens, which some servers write as a text or with a decimal point."""
    if value is None:
        return 0
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise NotAReplyError from None
    if not number.is_integer():
        raise NotAReplyError
    return int(number)
