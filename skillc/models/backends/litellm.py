"""The way out: litellm, imported late, told to keep still and to fetch nothing by itself."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import re
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes
from weakref import WeakKeyDictionary, WeakSet

from skillc.models.calls import Usage
from skillc.models.failures import CallFailed, WireFailure
from skillc.text import shown

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
    with watched(authorization) as met:
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
    watch(LiteLLMAiohttpTransport)
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


# The longest reply of a model, thought and log-probabilities included, is a few MiB of JSON.
MOST_BYTES = 32 * 1024 * 1024

_REDIRECTS = range(300, 400)
_ERRORS = frozenset(str(status) for status in range(400, 600))
_NOT_PASSED_ON = frozenset({"content-encoding", "content-length", "transfer-encoding"})
_TAG = re.compile(r"<(?:script|style).*?</(?:script|style)>|<[^>]*>", re.DOTALL | re.IGNORECASE)


class Told(NamedTuple):
    """An error in a provider's words; `code` is empty without one."""

    message: str
    code: str


class Wire:
    """What the last request of an attempt met.

    Args:
        authorization: a header that takes the place of the provider's own, for an address with user and password.

    Attributes:
        status: of the answer, None where none came.
        headers: likewise, names in lower case.
        body: likewise, whole.
        failure: how the request failed; no further one is sent.
    """

    __slots__ = ("authorization", "body", "failure", "headers", "status")

    def __init__(self, authorization: str | None = None) -> None:
        self.authorization = authorization
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self.body = b""
        self.failure: Exception | None = None

    def told(self, problem: Exception) -> Exception:
        """The error behind one of litellm's: its own where nothing was sent."""
        if isinstance(self.failure, WireFailure):
            return self.failure
        if self.status is None:
            return problem
        name, found = type(problem).__name__, error_in(self.body)
        if self.status < _REDIRECTS.start:
            status = int(found.code) if found is not None and found.code in _ERRORS else None
            if found is None or status is None:
                what = f"an error in place of a reply: {found.message}" if found else excerpt(self.body)
                return WireFailure("malformed", f"what came is no reply in the provider's format: {what}", name=name)
            return WireFailure("refused", found.message, status=status, code=found.code, name=name)
        message, code = found or (excerpt(self.body), "")
        return WireFailure("refused", message or name, status=self.status, headers=self.headers, code=code, name=name)


_WIRE: ContextVar[Wire | None] = ContextVar("skillc_wire", default=None)
_USERS: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
_USED: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakSet[Any]] = WeakKeyDictionary()


@contextmanager
def watched(authorization: str | None = None) -> Iterator[Wire]:
    """Watches the requests that are sent inside; travels with the context, tasks included."""
    wire = Wire(authorization)
    token = _WIRE.set(wire)
    try:
        yield wire
    finally:
        _WIRE.reset(token)


def watch(transport: Any) -> None:
    """Has a class of httpx transports pass its requests through here. Those that nobody watches stay as they are."""
    original = transport.handle_async_request
    if getattr(original, "watched", False):
        return

    async def handle(self: Any, request: Any) -> Any:
        wire = _WIRE.get()
        if wire is None:
            return await original(self, request)
        if wire.failure is not None:
            # Litellm sends a request again over a new connection: one that nobody has reserved.
            raise wire.failure
        if wire.authorization is not None:
            request.headers["authorization"] = wire.authorization
        _USED.setdefault(asyncio.get_running_loop(), WeakSet()).add(self)
        try:
            return await _answer(wire, request, await original(self, request))
        except Exception as problem:
            wire.failure = _failure(problem, str(request.url.host))
            raise wire.failure from problem

    handle.watched = True  # type: ignore[attr-defined]
    transport.handle_async_request = handle


async def begin() -> None:
    """Notes a user of the running loop's connections, which `end` counts off again."""
    loop = asyncio.get_running_loop()
    _USERS[loop] = _USERS.get(loop, 0) + 1


async def end() -> None:
    """Closes the running loop's connections where nobody else uses them."""
    loop = asyncio.get_running_loop()
    _USERS[loop] = _USERS.get(loop, 0) - 1
    if _USERS[loop] <= 0:
        del _USERS[loop]
        await disconnect()


async def disconnect() -> None:
    """Closes the connections that watched requests opened on the running loop; later requests open new ones."""
    for transport in list(_USED.pop(asyncio.get_running_loop(), ())):
        with suppress(Exception):
            await transport.aclose()
    # Sockets are closed in the turn after.
    await asyncio.sleep(0)


async def _answer(wire: Wire, request: Any, response: Any) -> Any:
    """The answer with its body read.

    Raises:
        WireFailure: it leads elsewhere, or does not end.
    """
    import httpx

    wire.status = response.status_code
    wire.headers = {name.lower(): value for name, value in response.headers.items()}
    if response.status_code in _REDIRECTS:
        await response.aclose()
        location = wire.headers.get("location")
        if location is None:
            raise WireFailure("malformed", f"what came is no reply: status {response.status_code}")
        where = f"the address leads elsewhere, to `{_shown(request, location)}`"
        raise WireFailure("redirected", where, status=response.status_code)
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MOST_BYTES:
            await response.aclose()
            raise WireFailure("malformed", f"the reply does not end: it is longer than {MOST_BYTES >> 20} MiB")
    wire.body = bytes(body)
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _NOT_PASSED_ON]
    return httpx.Response(response.status_code, headers=headers, content=wire.body, request=request)


def _failure(problem: Exception, host: str) -> WireFailure:
    """What an error of httpx, or of aiohttp under it, means."""
    import aiohttp
    import httpx

    if isinstance(problem, WireFailure):
        return problem
    cause = problem.__cause__
    if isinstance(cause, aiohttp.ClientConnectorDNSError):
        return WireFailure("unreachable", f"the name `{host}` is not known")
    if isinstance(cause, aiohttp.ClientSSLError):
        return WireFailure("unreachable", f"no secure connection to `{host}`: {_reason(cause)}")
    if isinstance(cause, aiohttp.ClientConnectorError):
        return WireFailure("unreachable", f"no connection to `{host}`: {_reason(cause)}")
    if isinstance(problem, httpx.ConnectTimeout):
        return WireFailure("unreachable", f"no connection to `{host}`: it does not answer")
    if isinstance(problem, httpx.TimeoutException | TimeoutError):
        return WireFailure("late", "no whole reply came in time")
    if isinstance(problem, httpx.DecodingError):
        return WireFailure("malformed", "what came cannot be decoded")
    if isinstance(problem, httpx.TransportError) and not isinstance(problem, httpx.UnsupportedProtocol):
        return WireFailure("broken", "the connection ended before a whole reply came")
    return WireFailure("unreachable", f"the address cannot be used: {problem}")


def _reason(problem: BaseException) -> str:
    """Why there is no connection, in the system's words."""
    under = getattr(problem, "os_error", None)
    found = getattr(problem, "certificate_error", None) or under or problem
    if isinstance(under, ConnectionRefusedError) or "Connect call failed" in str(found):
        return "connection refused"
    return str(getattr(found, "strerror", None) or found).lower().rstrip(".") or "it was closed at once"


def error_in(body: bytes) -> Told | None:
    """The error in a body as providers write it; None where there is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    found = found[0] if isinstance(found, list) and found else found
    if not isinstance(found, dict):
        return None
    error = found.get("error", found.get("errors"))
    error = error[0] if isinstance(error, list) and error else error
    inner = error if isinstance(error, dict) else found
    code = next((str(inner[name]) for name in ("code", "status", "type") if inner.get(name) not in (None, "")), "")
    message = (
        error
        if isinstance(error, str)
        else next((inner[name] for name in ("message", "detail", "msg") if inner.get(name)), "")
    )
    if not message and not isinstance(error, dict):
        return None
    return Told(message if isinstance(message, str) else json.dumps(message), code)


def excerpt(body: bytes) -> str:
    """The beginning of what stands in a body, as one line and without the tags of a page."""
    text = _TAG.sub(" ", body[:4096].decode("utf-8", "replace")).strip()
    return shown(text, 120) if text else "nothing"


def _shown(request: Any, location: str) -> str:
    """Where a redirect leads, without user, password and query."""
    import httpx

    try:
        target = request.url.join(location)
        return str(target.copy_with(username=None, password=None, query=None, fragment=None))
    except (httpx.InvalidURL, ValueError):
        return "an address that cannot be read"
