"""The way out: litellm, imported late, told to keep still and to fetch nothing by itself."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import warnings
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any
from urllib.parse import unquote_to_bytes

from skillc.models import wire
from skillc.models.calls import Usage
from skillc.models.failures import CallFailed, WireFailure

# One attempt: arguments as `litellm.acompletion` takes them, to a reply in the OpenAI chat format.
Transport = Callable[[Mapping[str, Any]], Awaitable[Any]]


async def send(arguments: Mapping[str, Any]) -> Any:
    """One attempt through litellm: one request, which takes `timeout` seconds at most, all in all.

    Raises:
        WireFailure: what it met on the wire.
        Exception: litellm's own, where nothing was sent or the provider has a way of its own.
    """
    litellm = load_litellm()
    seconds = arguments.get("timeout")
    address, authorization = _signed(arguments.get("api_base"))
    if authorization is not None:
        arguments = {**arguments, "api_base": address}
    with wire.watched(authorization) as met:
        try:
            # The timeout of an HTTP client is that of each read: a reply that drips in is never late.
            async with asyncio.timeout(seconds):
                return await litellm.acompletion(**arguments, num_retries=0, max_retries=0)
        except TimeoutError:
            raise WireFailure("late", f"no whole reply within {seconds:g} s") from None
        except Exception as problem:
            raise met.told(problem) from problem


def _signed(address: str | None) -> tuple[str | None, str | None]:
    """An address without user and password, which libraries would log, and the header that says them."""
    scheme, found, rest = (address or "").partition("://")
    signs, at, _ = rest.partition("/")[0].rpartition("@")
    if not (found and at):
        return address, None
    token = base64.b64encode(unquote_to_bytes(signs if ":" in signs else f"{signs}:")).decode()
    return f"{scheme}://{rest[len(signs) + 1 :]}", f"Basic {token}"


@cache
def load_litellm() -> Any:
    """Litellm without telemetry, chatter, or a download of its price list. The rulebook is among its providers."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ.setdefault("LITELLM_LOG", "ERROR")
    warnings.filterwarnings("ignore", message="Item '.*' on TypedDict class .*ReadOnly")
    # A call that is cancelled while litellm puts it together leaves this behind.
    warnings.filterwarnings("ignore", message="coroutine '.*completion' was never awaited", category=RuntimeWarning)
    import litellm
    import openai.resources.chat  # noqa: F401 - which litellm leaves to its first call
    from litellm.llms.custom_httpx.aiohttp_transport import LiteLLMAiohttpTransport

    from skillc.models.rulebook import provider

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.drop_params = False
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx"):
        logging.getLogger(name).setLevel(logging.ERROR)
    provider.register()
    wire.watch(LiteLLMAiohttpTransport)
    return litellm


def read_reply(raw: Any) -> tuple[str, str, Usage | None, str, tuple[dict[str, Any], ...]]:
    """Text, finish reason, usage (None where the reply does not say), model, and tool calls.

    Raises:
        CallFailed: `malformed`: it is no reply in the chat format.
    """
    data = raw if isinstance(raw, dict) else _plain(raw)
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise CallFailed("malformed", "the reply holds no choices")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise CallFailed("malformed", "the reply holds no message")
    text = message.get("content")
    calls = tuple(call for call in message.get("tool_calls") or () if isinstance(call, dict))
    finish = choices[0].get("finish_reason") or "stop"
    return (
        whole(text) if isinstance(text, str) else "",
        str(finish),
        _usage(data.get("usage")),
        str(data.get("model") or ""),
        calls,
    )


def whole(text: str) -> str:
    """The text without lone surrogates, which no file and no further prompt can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _plain(raw: Any) -> Any:
    dump = getattr(raw, "model_dump", None)
    return dump() if callable(dump) else None


def _usage(reported: Any) -> Usage | None:
    if not isinstance(reported, dict):
        return None
    prompt, completion = reported.get("prompt_tokens"), reported.get("completion_tokens")
    if not isinstance(prompt, int) or not isinstance(completion, int) or not (prompt or completion):
        return None
    cached = (reported.get("prompt_tokens_details") or {}).get("cached_tokens")
    reasoning = (reported.get("completion_tokens_details") or {}).get("reasoning_tokens")
    return Usage(prompt, min(int(cached or 0), prompt), completion, int(reasoning or 0))
