"""The span of a call to a model, by the semantic conventions of OpenTelemetry for generative AI.

The span covers the logical call with its retries. A reply from skillc's cache has `skillc.cached` and no
`gen_ai.usage`, since no tokens were used.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from skillc.models.calls import Call, Completion, Usage
from skillc.models.roles import Role
from skillc.telemetry.spans import Attributes, Span, Value, active, span

_PORTS = {"http": 80, "https": 443}
# The well-known names of the conventions, where they differ from litellm's.
_PROVIDERS: Mapping[str, str] = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
_PARAMETERS: Mapping[str, str] = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "max_tokens": "gen_ai.request.max_tokens",
    "max_completion_tokens": "gen_ai.request.max_tokens",
    "seed": "gen_ai.request.seed",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "n": "gen_ai.request.choice.count",
    "reasoning_effort": "gen_ai.request.reasoning.level",
}


async def traced(role: Role | None, call: Call, work: Callable[[], Awaitable[Completion]]) -> Completion:
    """Do the work of a call in its span.

    Raises:
        Exception: as the work.
    """
    tracer = active()
    if tracer is None or role is None:
        return await work()
    name, attributes = f"chat {role.plan.bare_name or role.plan.model}", _request(role, call)
    with span(name, attributes, remote=not role.backend.embedded, hide=role.hide) as opened:
        if tracer.captures:
            opened.set({"gen_ai.input.messages": _json([_message(each.as_sent()) for each in call.messages])})
        completion = await work()
        _answered(opened, role, completion)
        if tracer.captures:
            opened.set({"gen_ai.output.messages": _json([_output(completion)])})
        return completion


@contextmanager
def traced_agent(role: Role, name: str, stage: str) -> Iterator[Callable[[Sequence[Usage] | None], None]]:
    """Record what a program that calls a model by itself does inside as one span; yields what takes its usage."""
    if active() is None:
        yield lambda usages: None
        return
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": _provider(role),
        "gen_ai.request.model": role.plan.bare_name or role.plan.model,
        "skillc.role": name,
        "skillc.stage": stage,
    }
    with span(f"invoke_agent {role.plan.bare_name or role.plan.model}", attributes, hide=role.hide) as opened:

        def used(usages: Sequence[Usage] | None) -> None:
            if usages is not None:
                opened.set(
                    {
                        "gen_ai.usage.input_tokens": sum(usage.prompt for usage in usages),
                        "gen_ai.usage.output_tokens": sum(usage.completion for usage in usages),
                    }
                )

        yield used


def _provider(role: Role) -> str:
    return _PROVIDERS.get(role.plan.provider, role.plan.provider)


def _request(role: Role, call: Call) -> Attributes:
    plan = role.plan
    found: dict[str, Value] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _provider(role),
        "gen_ai.request.model": plan.bare_name or plan.model,
        "gen_ai.request.stream": False,
        "skillc.role": call.role,
        "skillc.stage": call.stage,
        "skillc.sample": str(call.sample),
    }
    if call.response_format is not None:
        found["gen_ai.output.type"] = "json"
    for name, value in {**plan.parameters, **(call.parameters or {})}.items():
        attribute = _PARAMETERS.get(name)
        if attribute is not None and isinstance(value, int | float | str):
            found[attribute] = value
        elif name == "stop" and isinstance(value, str | list):
            stops = [value] if isinstance(value, str) else value
            found["gen_ai.request.stop_sequences"] = [str(each) for each in stops]
    return {**found, **_server(role.endpoint.url)}


def _server(url: str | None) -> Attributes:
    """Return host and port of an address; nothing for a provider's own."""
    if url is None:
        return {}
    parts = urlsplit(url if "://" in url else f"//{url}")
    try:
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        port = None
    if not parts.hostname:
        return {}
    return {"server.address": parts.hostname, **({"server.port": port} if port is not None else {})}


def _answered(opened: Span, role: Role, completion: Completion) -> None:
    usage = completion.usage
    found: dict[str, Value] = {
        "gen_ai.response.model": completion.model,
        "gen_ai.response.finish_reasons": [completion.finish],
        "skillc.cached": completion.cached,
    }
    if not completion.cached:
        found["gen_ai.usage.input_tokens"] = usage.prompt
        found["gen_ai.usage.output_tokens"] = usage.completion
        if usage.cached:
            found["gen_ai.usage.cache_read.input_tokens"] = usage.cached
        if usage.reasoning:
            found["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning
        if usage.bound:
            # The provider reported no usage: these are upper bounds.
            found["skillc.usage.bound"] = True
        cost = role.discounted_cost(usage)
        if cost is not None:
            found["skillc.cost"] = cost / 1e9
    opened.set(found)


# ---- contents -------------------------------------------------------------------------------------


def _message(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of the chat format in the form of the conventions."""
    role, content = str(sent.get("role")), sent.get("content")
    if role == "tool":
        part = {"type": "tool_call_response", "id": sent.get("tool_call_id"), "response": content}
        return {"role": role, "parts": [part]}
    parts = [_part(each) for each in content] if isinstance(content, list) else []
    if isinstance(content, str) and content:
        parts.append({"type": "text", "content": content})
    return {"role": role, "parts": [*parts, *_calls(sent.get("tool_calls") or ())]}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("type") == "text":
        return {"type": "text", "content": part.get("text", "")}
    source = part.get("image_url")
    uri = str(source.get("url", "")) if isinstance(source, Mapping) else ""
    if uri.startswith("data:"):
        # Its bytes would be many times larger than all texts.
        return {"type": "blob", "modality": "image", "mime_type": uri[5:].partition(";")[0], "content": ""}
    return {"type": "uri", "modality": "image", "uri": uri}


def _calls(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "type": "tool_call",
            "id": call.get("id"),
            "name": (call.get("function") or {}).get("name", ""),
            "arguments": (call.get("function") or {}).get("arguments"),
        }
        for call in calls
    ]


def _output(completion: Completion) -> dict[str, Any]:
    parts = [{"type": "text", "content": completion.text}] if completion.text else []
    return {
        "role": "assistant",
        "parts": [*parts, *_calls(completion.tool_calls)],
        "finish_reason": completion.finish,
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
