"""Calls to OpenAI, vLLM, and other servers that speak OpenAI's protocol, without litellm.

It sends what litellm sends for these providers, and reads replies as litellm does, in a fraction of its processor time
(`tests/models/test_openai_wire.py` compares both). Requests that litellm changes in ways that are not repeated here are
left to it: other parameters, other kinds of content, reasoning models before gpt-5.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from skillc import __version__
from skillc.models.backends.chat_replies import NotAReplyError, chat_reply
from skillc.models.backends.connections import late, post, split_credentials
from skillc.models.backends.error_bodies import failure_in
from skillc.models.backends.litellm import endpoint_at, price_list, send_by_litellm
from skillc.models.backends.responses import responses_body, responses_reply
from skillc.models.endpoint import VLLM_PROVIDERS, Backend, Endpoint, Transport
from skillc.plan.schema import ModelPlan, provider_of

_RESPONSES = "responses/"
_OPENAI = "https://api.openai.com/v1"
# Headers that OpenAI's own library sends; of two variables the later one counts.
_OWNERS = (
    ("OPENAI_ORG_ID", "OpenAI-Organization"),
    ("OPENAI_ORGANIZATION", "OpenAI-Organization"),
    ("OPENAI_PROJECT_ID", "OpenAI-Project"),
)
# Providers whose protocol is OpenAI's, but with other parameters: only plain calls to a declared address. In replies of
# the first, litellm puts the provider before the model's name.
_PREFIXED = frozenset(
    {"cerebras", "deepinfra", "hyperbolic", "litellm_proxy", "llamafile", "lm_studio", "nvidia_nim", "perplexity"}
    | {"sambanova"}
)
_ALIKE = _PREFIXED | {"deepseek", "mistral", "together_ai", "xai"}
_PLAIN = frozenset({"max_tokens", "temperature", "top_p"})
# Parameters of OpenAI that litellm passes on unchanged.
_STANDARD = _PLAIN | {
    *("frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "n", "parallel_tool_calls"),
    *("presence_penalty", "prompt_cache_key", "response_format", "seed", "service_tier", "stop", "store"),
    *("tool_choice", "tools", "top_logprobs"),
}
# Parameters of vLLM, SGLang and llama.cpp, of which litellm knows none.
_ENGINES = frozenset(
    {
        *("add_generation_prompt", "allowed_token_ids", "bad_words", "cache_salt", "chat_template", "documents"),
        *("chat_template_kwargs", "continue_final_message", "echo", "grammar", "guided_choice", "guided_grammar"),
        *("guided_json", "guided_regex", "ignore_eos", "include_stop_str_in_output", "kv_transfer_params"),
        *("length_penalty", "min_p", "min_tokens", "mm_processor_kwargs", "no_stop_trim", "priority", "regex"),
        *("prompt_logprobs", "repetition_penalty", "separate_reasoning", "skip_special_tokens", "stop_regex"),
        *("spaces_between_special_tokens", "stop_token_ids", "structured_outputs", "thinking_token_budget"),
        *("top_k", "truncate_prompt_tokens", "typical_p", "use_beam_search", "vllm_xargs"),
    }
)
_GPT5 = frozenset(
    {"max_completion_tokens", "max_tokens", "prompt_cache_key", "response_format", "seed", "service_tier", "store"}
)
_EFFORTS = frozenset({"low", "medium", "high"})
# Models that litellm sends otherwise: they have no schema of replies, or take other messages.
_OTHERWISE = re.compile(r"(?:.*/)?(?:o\d|gpt-4$|gpt-3\.5-turbo-16k$|responses/)|.*audio|.*search")
_REASONING = re.compile(r"(?:responses/)?o\d")
_GPT5_NAME = re.compile(r"gpt-[56]")
# What OpenAI refuses at the top of a tool's schema; litellm rewrites it for OpenAI's own address.
_COMBINATORS = frozenset({"allOf", "anyOf", "const", "enum", "not", "oneOf"})
_ENVELOPE = frozenset({"api_base", "api_key", "extra_body", "extra_headers", "messages", "model", "timeout"})


def _connect(model: ModelPlan, environ: Mapping[str, str], root: Path) -> tuple[Endpoint, Transport] | None:
    """Return the endpoint of a model whose requests need no litellm, by its name, address and parameters."""
    declared = model.base_url is not None or model.base_url_env is not None
    parameters = _sent_by_name(model.parameters)
    if by_litellm(environ) or not speaks_openai(model.model, declared) or not _passes(model.model, parameters):
        return None
    return endpoint_at(model, environ), send


def by_litellm(environ: Mapping[str, str]) -> bool:
    """Whether the user wants all calls sent through litellm."""
    return environ.get("SKILLC_LITELLM", "").strip().lower() in ("1", "true", "yes", "on")


def speaks_openai(model: str, declared: bool) -> bool:
    """Whether this backend can answer for a model; `declared` if the program declares its address."""
    provider, name = provider_of(model), _bare(model)
    if provider in VLLM_PROVIDERS:
        return True
    if provider in _ALIKE:
        return declared
    if provider != "openai" or (_OTHERWISE.match(name) and not has_responses_only(model)):
        return False
    row = price_list().get(name)
    return ("/" in model or row is not None) and (row is None or row.get("mode", "chat") in ("chat", "responses"))


def has_responses_only(model: str) -> bool:
    """Whether a model of OpenAI is called by the responses API."""
    name = _bare(model)
    return provider_of(model) == "openai" and (
        name.startswith(_RESPONSES) or price_list().get(name, {}).get("mode") == "responses"
    )


async def send(arguments: Mapping[str, Any]) -> Any:
    """Send one request, within `timeout` seconds in total, through litellm if it has to change it.

    Raises `WireFailure`, or litellm's own errors.
    """
    model, seconds = str(arguments["model"]), arguments.get("timeout")
    body = body_of(arguments)
    if body is None:
        # litellm's `vllm` is an engine inside of this process.
        of_server = f"hosted_vllm/{_bare(model)}" if provider_of(model) == "vllm" else model
        return await send_by_litellm({**arguments, "model": of_server})
    address, authorization = split_credentials(arguments.get("api_base"))
    headers = _headers(arguments, authorization)
    try:
        async with asyncio.timeout(seconds):
            response = await post(_url(address or _OPENAI, model), headers, body)
    except TimeoutError:
        raise late(seconds) from None
    if not 200 <= response.status < 300:
        raise failure_in(response.status, response.headers, response.body)
    try:
        if has_responses_only(model):
            return responses_reply(response.body, _bare(model).removeprefix(_RESPONSES))
        reply = chat_reply(response.body)
    except NotAReplyError:
        raise failure_in(response.status, response.headers, response.body) from None
    if reply["model"] and (provider := provider_of(model)) in _PREFIXED:
        reply["model"] = f"{provider}/{reply['model']}"
    return reply


def _headers(arguments: Mapping[str, Any], authorization: str | None) -> dict[str, str]:
    headers = {
        "Authorization": authorization or f"Bearer {arguments.get('api_key') or 'none-needed'}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": f"skillc/{__version__}",
    }
    if provider_of(str(arguments["model"])) == "openai":
        headers |= {name: os.environ[variable] for variable, name in _OWNERS if os.environ.get(variable)}
    return {**headers, **(arguments.get("extra_headers") or {})}


def _url(base: str, model: str) -> str:
    parts = urlsplit(base)
    path = parts.path.rstrip("/")
    if has_responses_only(model):
        path += "/responses"
    elif not (provider_of(model) in VLLM_PROVIDERS and path.endswith("/chat/completions")):
        path += "/chat/completions"
    return urlunsplit(parts._replace(path=path, fragment=""))


# ---- requests -------------------------------------------------------------------------------------


def body_of(arguments: Mapping[str, Any]) -> bytes | None:
    """Return the body of a request; None if litellm would change it in a way that is not known here."""
    model = str(arguments["model"])
    parameters = _sent_by_name(arguments)
    extra = arguments.get("extra_body") or {}
    headers = arguments.get("extra_headers") or {}
    if not isinstance(extra, dict) or not isinstance(headers, dict) or not _passes(model, parameters):
        return None
    if not all(isinstance(value, str) for value in headers.values()):
        return None
    if has_responses_only(model):
        given = arguments["messages"]
        if _REASONING.match(_bare(model)) and any(message.get("role") == "developer" for message in given):
            return None
        return None if extra or headers else responses_body(_bare(model).removeprefix(_RESPONSES), given, parameters)
    messages = _messages(arguments["messages"], plain=provider_of(model) in _ALIKE)
    tools = _tools(parameters.pop("tools", None), model, arguments.get("api_base"))
    if messages is None or tools is None:
        return None
    if _is_gpt5(model) and "max_tokens" in parameters:
        parameters["max_completion_tokens"] = parameters.pop("max_tokens")
    sent = {"model": _bare(model), "messages": messages, **parameters, **({"tools": tools} if tools else {}), **extra}
    return json.dumps(sent).encode()


def _bare(model: str) -> str:
    return model.partition("/")[2] or model


def _is_gpt5(model: str) -> bool:
    return provider_of(model) == "openai" and bool(_GPT5_NAME.search(model)) and "gpt-5-chat" not in model


def _sent_by_name(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name not in _ENVELOPE}


def _passes(model: str, parameters: Mapping[str, Any]) -> bool:
    """Whether litellm passes parameters on as they are, but for the name of `max_tokens`."""
    provider, names = provider_of(model), set(parameters)
    if any(value is None for value in parameters.values()) or ("tool_choice" in names and "tools" not in names):
        return False
    if provider in _ALIKE:
        return names <= _PLAIN
    effort = parameters.get("reasoning_effort")
    if _REASONING.match(_bare(model)) and parameters.get("temperature", 1) != 1:
        return False
    if _is_gpt5(model):
        known = price_list().get(_bare(model), {})
        if effort is not None and (effort not in _EFFORTS or known.get(f"supports_{effort}_reasoning_effort") is False):
            return False
        if {"max_tokens", "max_completion_tokens"} <= names or parameters.get("temperature", 1) != 1:
            return False
        return names <= _GPT5 | _ENGINES | {"reasoning_effort", "temperature"}
    if effort is not None and provider == "openai" and _bare(model).removeprefix(_RESPONSES) in price_list():
        return False
    return names <= _STANDARD | _ENGINES | {"reasoning_effort"}


def _messages(messages: Sequence[Mapping[str, Any]], *, plain: bool) -> list[Mapping[str, Any]] | None:
    """Return the messages as litellm sends them, None if it changes their content; `plain` allows text only."""
    sent: list[Mapping[str, Any]] = []
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if len(message) == 2 and isinstance(content, str) and role in ("system", "user", "assistant"):
            sent.append(message)
        elif plain or not _is_known(message):
            return None
        else:
            kept = {name: value for name, value in message.items() if value is not None}
            sent.append({**kept, "role": "system"} if role == "developer" else kept)
    return sent


def _is_known(message: Mapping[str, Any]) -> bool:
    role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
    if not message.keys() <= {"role", "content", "tool_calls", "tool_call_id"}:
        return False
    if isinstance(content, list):
        return role in ("system", "user") and not calls and all(map(_is_known_part, content))
    if not (isinstance(content, str) or (content is None and calls)):
        return False
    return role in ("system", "developer", "user", "assistant", "tool") and all(map(_is_known_call, calls or ()))


def _is_known_part(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    if part.get("type") == "text":
        return part.keys() == {"type", "text"}
    image = part.get("image_url")
    return part.keys() == {"type", "image_url"} and isinstance(image, dict) and image.keys() <= {"url", "detail"}


def _is_known_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, dict) and call.keys() == {"id", "type", "function"} else None
    return isinstance(function, dict) and isinstance(function.get("arguments"), str)


def _tools(tools: Any, model: str, address: str | None) -> list[Any] | None:
    """Return tools as litellm sends them, None if it rewrites their schemas in a way that is not known here."""
    if not tools:
        return []
    own = not address or (urlsplit(address).hostname or "").endswith("openai.com")
    for tool in tools:
        function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
        if not isinstance(function, dict):
            return None
        schema = function.get("parameters") or {}
        if own and (not isinstance(schema, dict) or not _COMBINATORS.isdisjoint(schema)):
            return None
    if '"cache_control"' in json.dumps(tools):
        return None
    if provider_of(model) in VLLM_PROVIDERS:
        return [_without_strictness(tool) for tool in tools]
    return list(tools) if all(map(_is_valid, _patterns(tools))) else None


def _patterns(value: Any) -> Iterator[Any]:
    """Yield the patterns of texts in a schema."""
    if isinstance(value, list):
        for each in value:
            yield from _patterns(each)
    elif isinstance(value, dict):
        if "pattern" in value:
            yield value["pattern"]
        for each in value.values():
            yield from _patterns(each)


def _is_valid(pattern: Any) -> bool:
    """Whether Python can read a pattern; litellm leaves others out."""
    try:
        return not isinstance(pattern, str) or bool(re.compile(pattern))
    except (re.error, OverflowError, RecursionError):
        return False


def _without_strictness(value: Any) -> Any:
    """Return a schema without what servers of open models refuse."""
    if isinstance(value, list):
        return [_without_strictness(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _without_strictness(each)
        for name, each in value.items()
        if name != "strict" and not (name == "additionalProperties" and each is False)
    }


def load() -> None:
    """Import what the first request needs."""
    import aiohttp  # noqa: F401


OPENAI = Backend("openai", _connect, networked=True, keeps_prefixes=True, load=load)
