"""litellm: the only file that imports, patches or reads it. `tests/models/test_litellm_surface.py` lists what it uses.

litellm is imported late, since that takes seconds, without telemetry, downloads and log output. It turns a reset, a
page of HTML and a bad certificate into one error with an invented status, follows redirects with the key in their
headers, resends requests by itself, and reads a reply of any length. So each request of an attempt is watched in the
transport of all of litellm's async providers.
"""

from __future__ import annotations

import ast
import asyncio
import json
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.models.backends.connections import (
    MOST_BYTES,
    REDIRECTS,
    classify,
    closes,
    late,
    redirected,
    split_credentials,
    too_long,
)
from skillc.models.backends.error_bodies import failure_in
from skillc.models.endpoint import (
    KEY_VARIABLES,
    LOCAL_PROVIDERS,
    NO_KEY,
    VLLM_PROVIDERS,
    Backend,
    Endpoint,
    Transport,
    declared_url,
    key_of,
    normalised_of,
)
from skillc.models.failures import OFFLINE, WireFailure
from skillc.plan.schema import ModelPlan

# The variables of a provider's address, where litellm does not name them after the provider.
_ADDRESSES = {
    "anthropic": ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
    "bedrock": ("AWS_BEDROCK_RUNTIME_ENDPOINT",),
    "fireworks_ai": ("FIREWORKS_API_BASE",),
    "huggingface": ("HF_API_BASE", "HUGGINGFACE_API_BASE"),
    "ollama_chat": ("OLLAMA_API_BASE",),
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "vertex_ai": ("VERTEXAI_API_BASE", "VERTEX_API_BASE"),
}
_PRICES = "model_prices_and_context_window_backup.json"
_PROVIDERS = ("types/utils.py", "LlmProviders")
_NOT_PASSED_ON = frozenset({"content-encoding", "content-length", "transfer-encoding"})


async def send_by_litellm(arguments: Mapping[str, Any]) -> Any:
    """Send one request through litellm, within `timeout` seconds in total.

    Raises `WireFailure`, or litellm's own error if nothing was sent or the provider uses another transport.
    """
    litellm = load_litellm()
    seconds = arguments.get("timeout")
    address, authorization = split_credentials(arguments.get("api_base"))
    if authorization is not None:
        arguments = {**arguments, "api_base": address}
    with watched(authorization) as request:
        try:
            # The timeout of an HTTP client holds for each read: a reply that drips in is never late.
            async with asyncio.timeout(seconds):
                return await litellm.acompletion(**arguments, num_retries=0, max_retries=0)
        except TimeoutError:
            raise late(seconds) from None
        except Exception as problem:
            raise request.error_behind(problem) from problem


def _connect(model: ModelPlan, environ: Mapping[str, str], root: Path) -> tuple[Endpoint, Transport]:
    return endpoint_at(model, environ), send_by_litellm


def endpoint_at(model: ModelPlan, environ: Mapping[str, str]) -> Endpoint:
    """Return the endpoint of any model. A provider's standard key is never sent to an address from the program."""
    provider = model.provider
    url = declared_url(model, environ)
    if url is None:
        # litellm would read these by itself, but the address has to be in the cache key.
        names = _ADDRESSES.get(provider, (f"{provider.upper()}_API_BASE",))
        url = next((environ[name] for name in names if environ.get(name)), None)
    if url is None and provider in VLLM_PROVIDERS:
        raise SkillcError(
            f"model `{model.role}` (`{model.model}`) has no server address",
            hint='add `base_url = "http://localhost:8000/v1"` to its block, or `serve = vllm {}` to have skillc '
            f"start a server, or {OFFLINE}",
        )
    declared = model.base_url is not None or model.base_url_env is not None
    key_env = model.key_env or (None if declared else KEY_VARIABLES.get(provider))
    key = key_of(model, environ, key_env) or (NO_KEY if url or provider in LOCAL_PROVIDERS else None)
    return Endpoint(normalised_of(model, url) if url else provider, url, key, key_env)


# ---- loading litellm, and reading its data without loading it ----


def quiet() -> None:
    """Keep litellm from downloading its price list; call it before litellm is imported."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ.setdefault("LITELLM_LOG", "ERROR")


@cache
def load_litellm() -> Any:
    """Import litellm without telemetry or log output, and watch its requests."""
    quiet()
    warnings.filterwarnings("ignore", message="Item '.*' on TypedDict class .*ReadOnly")
    # From calls that are cancelled while litellm prepares them.
    warnings.filterwarnings("ignore", message="coroutine '.*completion' was never awaited", category=RuntimeWarning)
    import litellm
    import openai.resources.chat  # noqa: F401 - litellm would import it at its first call
    from litellm.llms.custom_httpx.aiohttp_transport import LiteLLMAiohttpTransport

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.drop_params = False
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx"):
        logging.getLogger(name).setLevel(logging.ERROR)
    watch(LiteLLMAiohttpTransport)
    return litellm


@cache
def price_list() -> dict[str, dict[str, Any]]:
    """Return litellm's prices by model from its data file; empty if it cannot be read."""
    with suppress(OSError, ValueError):
        table: dict[str, dict[str, Any]] = json.loads(_file(_PRICES).read_text(encoding="utf-8"))
        return table
    return {}


@cache
def litellm_providers() -> frozenset[str]:
    """Return the providers that litellm knows, parsed from its source unless it is loaded."""
    path, name = _PROVIDERS
    if "litellm" not in sys.modules:
        with suppress(OSError, SyntaxError):
            body = ast.parse(_file(path).read_text(encoding="utf-8")).body
            enum = next((each for each in body if isinstance(each, ast.ClassDef) and each.name == name), None)
            values = [each.value for each in enum.body if isinstance(each, ast.Assign)] if enum else []
            names = frozenset(str(value.value) for value in values if isinstance(value, ast.Constant))
            if names:
                return names
    return frozenset(str(getattr(each, "value", each)) for each in load_litellm().provider_list)


def _file(path: str) -> Path:
    """Return the path of a file of the installed litellm."""
    found = find_spec("litellm")
    for home in (found.submodule_search_locations or ()) if found else ():
        return Path(home) / path
    raise FileNotFoundError(path)


# ---- watching requests ----


@dataclass(slots=True)
class WatchedRequest:
    """The last request of an attempt with its response or failure.

    Attributes:
        authorization: header for an address with user and password, in place of the provider's.
        status: of the response, if any.
        headers: names in lower case.
        failure: how the request failed; no further one is sent.
    """

    authorization: str | None = None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    failure: Exception | None = None

    def error_behind(self, problem: Exception) -> Exception:
        """Return the error behind one of litellm's, or litellm's if nothing was sent."""
        if isinstance(self.failure, WireFailure):
            return self.failure
        if self.status is None:
            return problem
        return failure_in(self.status, self.headers, self.body, type(problem).__name__)


_REQUEST: ContextVar[WatchedRequest | None] = ContextVar("skillc_request", default=None)
_USED: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakSet[Any]] = WeakKeyDictionary()


@contextmanager
def watched(authorization: str | None = None) -> Iterator[WatchedRequest]:
    """Watch the requests sent inside; travels with the context, tasks included."""
    request = WatchedRequest(authorization)
    token = _REQUEST.set(request)
    try:
        yield request
    finally:
        _REQUEST.reset(token)


def watch(transport: Any) -> None:
    """Patch a class of httpx transports so that watched requests pass through here."""
    original = transport.handle_async_request
    if getattr(original, "watched", False):
        return

    async def handle(self: Any, request: Any) -> Any:
        watching = _REQUEST.get()
        if watching is None:
            return await original(self, request)
        if watching.failure is not None:
            # litellm resends a request over a new connection, without a reservation.
            raise watching.failure
        if watching.authorization is not None:
            request.headers["authorization"] = watching.authorization
        _USED.setdefault(asyncio.get_running_loop(), WeakSet()).add(self)
        try:
            return await _read(watching, request, await original(self, request))
        except Exception as problem:
            watching.failure = _classify(problem, str(request.url.host))
            raise watching.failure from problem

    handle.watched = True  # type: ignore[attr-defined]
    transport.handle_async_request = handle


@closes
async def _disconnect() -> None:
    """Close the connections that watched requests opened on the running loop."""
    for transport in list(_USED.pop(asyncio.get_running_loop(), ())):
        with suppress(Exception):
            await transport.aclose()
    _forget_clients()


def _forget_clients() -> None:
    """Remove the running loop's clients from litellm's cache.

    It keeps them for an hour by the id of the loop, which a later loop may have too. A client that was closed in
    between, as `litellm.close_litellm_async_clients` closes all of them, would fail every request of that loop.
    """
    litellm = sys.modules.get("litellm")
    if litellm is None:
        return
    with suppress(AttributeError):
        clients = litellm.in_memory_llm_clients_cache
        of_this_loop = clients.update_cache_key_with_event_loop("")
        for key in [key for key in clients.cache_dict if key.endswith(of_this_loop)]:
            clients.delete_cache(key)


async def _read(watching: WatchedRequest, request: Any, response: Any) -> Any:
    """Read the body of a response, unless it redirects or is too long."""
    import httpx
    from yarl import URL

    watching.status = response.status_code
    watching.headers = {name.lower(): value for name, value in response.headers.items()}
    if response.status_code in REDIRECTS:
        await response.aclose()
        raise redirected(response.status_code, watching.headers.get("location"), URL(str(request.url)))
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MOST_BYTES:
            await response.aclose()
            raise too_long()
    watching.body = bytes(body)
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _NOT_PASSED_ON]
    return httpx.Response(response.status_code, headers=headers, content=watching.body, request=request)


def _classify(problem: Exception, host: str) -> WireFailure:
    """Classify an error of httpx, or of aiohttp under it."""
    import aiohttp
    import httpx

    if isinstance(problem, WireFailure):
        return problem
    if isinstance(problem.__cause__, aiohttp.ClientConnectorError | aiohttp.ClientSSLError):
        found = classify(problem.__cause__, host)
        if found is not None:
            return found
    if isinstance(problem, httpx.ConnectTimeout):
        return WireFailure("unreachable", f"no connection to `{host}`: it does not answer")
    if isinstance(problem, httpx.TimeoutException | TimeoutError):
        return late(None)
    if isinstance(problem, httpx.DecodingError):
        return WireFailure("malformed", "the response cannot be decoded")
    if isinstance(problem, httpx.TransportError) and not isinstance(problem, httpx.UnsupportedProtocol):
        return WireFailure("broken", "the connection closed before the reply was complete")
    return WireFailure("unreachable", "the address cannot be used: write it like `http://localhost:8000/v1`")


LITELLM = Backend("litellm", _connect, networked=True, keeps_prefixes=True, load=load_litellm)
