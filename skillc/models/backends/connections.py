"""Requests over pooled connections, one pool for each event loop; a response is read whole, within bounds.

Proxies and certificates come from the same variables as litellm's: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`,
`NO_PROXY`, `DISABLE_AIOHTTP_TRUST_ENV`; `SSL_VERIFY`, `SSL_CERT_FILE`, `SSL_SECURITY_LEVEL`, `SSL_ECDH_CURVE`. aiohttp
is imported late, since that takes a tenth of a second.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import errno
import io
import os
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_to_bytes
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

from skillc.models.failures import WireFailure

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    import aiohttp

# The longest reply of a model, with reasoning and log-probabilities, is a few MiB of JSON.
MOST_BYTES = 32 * 1024 * 1024
REDIRECTS = range(300, 400)
# Seconds to wait for a connection, and how long an unused one is kept.
_CONNECT, _KEPT = 30.0, 60.0
# Files that the rest of the process may open beside the connections.
_OTHER_FILES = 64
_NO_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
# Bytes of a request that aiohttp sends in pieces, as for images.
_LARGE = 1024 * 1024
_FALSE = frozenset({"false", "0", "no", "off"})


class Response(NamedTuple):
    """A response; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Pool:
    """The connections of one event loop."""

    def __init__(self) -> None:
        import aiohttp

        connector = aiohttp.TCPConnector(limit=_most_connections(), keepalive_timeout=_KEPT, ttl_dns_cache=60)
        self.session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT),
        )
        self._proxies: dict[tuple[str, str], str | None] = {}

    def proxy(self, scheme: str, host: str) -> str | None:
        """Return the proxy for an address; the variables are read once, because that is slow."""
        if (scheme, host) not in self._proxies:
            self._proxies[scheme, host] = _proxy_for(scheme, host)
        return self._proxies[scheme, host]


_POOLS: dict[asyncio.AbstractEventLoop, _Pool] = {}
_USERS: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
_CLOSERS: list[Callable[[], Awaitable[None]]] = []


async def post(url: str, headers: Mapping[str, str], body: bytes) -> Response:
    """Send one request and read its response; redirects are not followed.

    Raises `WireFailure` if there is no whole response.
    """
    pool = _POOLS.get(asyncio.get_running_loop()) or _open_pool()
    try:
        address = _parsed(url)
        if not address.host or address.scheme not in ("http", "https"):
            raise WireFailure("unreachable", "the address cannot be used: write it like `http://localhost:8000/v1`")
        async with pool.session.post(
            address,
            data=body if len(body) < _LARGE else io.BytesIO(body),
            headers=headers,
            allow_redirects=False,
            proxy=pool.proxy(address.scheme, address.host),
            ssl=certificates() if address.scheme == "https" else True,
        ) as response:
            return await _read(address, response)
    except WireFailure:
        raise
    except Exception as problem:
        failure = classify(problem, _host(url))
        if failure is None:
            raise
        raise failure from problem


def _open_pool() -> _Pool:
    _forget_pools()
    pool = _POOLS[asyncio.get_running_loop()] = _Pool()
    return pool


def _forget_pools() -> None:
    """Drop the pools of loops that were closed with connections open, as after `asyncio.run`, without a complaint."""
    for loop in [loop for loop in _POOLS if loop.is_closed()]:
        closing = _POOLS.pop(loop).session.close()
        # Nothing is waited for on a closed loop.
        with suppress(StopIteration):
            closing.send(None)


atexit.register(_forget_pools)


async def _read(address: Any, response: aiohttp.ClientResponse) -> Response:
    """Read the body of a response, unless it redirects or is too long."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    if response.status in REDIRECTS:
        response.close()
        raise redirected(response.status, headers.get("location"), address)
    if (response.content_length or MOST_BYTES) < MOST_BYTES and "content-encoding" not in headers:
        return Response(response.status, headers, await response.read())
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > MOST_BYTES:
            response.close()
            raise too_long()
    return Response(response.status, headers, bytes(body))


def redirected(status: int, location: str | None, address: Any) -> WireFailure:
    """Return the failure of a response that redirects from `address`, an URL of yarl."""
    from yarl import URL

    if location is None:
        return WireFailure("malformed", f"the response is not a reply: status {status}")
    try:
        target = address.join(URL(location))
        where = (
            str(target.with_user(None).with_query(None).with_fragment(None)) if target.host else "an invalid address"
        )
    except (ValueError, TypeError):
        where = "an invalid address"
    return WireFailure("redirected", f"the address redirects to `{where}`", status_code=status)


def too_long() -> WireFailure:
    """Return the failure of a response with too long a body."""
    return WireFailure("malformed", f"the reply is longer than {MOST_BYTES >> 20} MiB")


def late(seconds: float | None) -> WireFailure:
    """Return the failure of an attempt that was not complete in its time."""
    return WireFailure(
        "late", f"no complete reply within {seconds:g} s" if seconds else "no complete reply came in time"
    )


def split_credentials(address: str | None) -> tuple[str | None, str | None]:
    """Move user and password from an address, which libraries would log, into a header."""
    scheme, found, rest = (address or "").partition("://")
    user, at, _ = rest.partition("/")[0].rpartition("@")
    if not (found and at):
        return address, None
    token = base64.b64encode(unquote_to_bytes(user if ":" in user else f"{user}:")).decode()
    return f"{scheme}://{rest[len(user) + 1 :]}", f"Basic {token}"


@lru_cache(maxsize=64)
def _parsed(url: str) -> Any:
    from yarl import URL

    return URL(url)


def _host(url: str) -> str:
    try:
        return _parsed(url).host or url
    except ValueError:
        return "an invalid address"


# ---- the environment ----


def _proxy_for(scheme: str, host: str) -> str | None:
    """Return the proxy that the environment names for an address."""
    if os.environ.get("DISABLE_AIOHTTP_TRUST_ENV", "").strip().lower() == "true" or proxy_bypass(host):
        return None
    proxies = getproxies()
    found = proxies.get(scheme) or proxies.get("all")
    return f"http://{found}" if found and "://" not in found else found


def certificates() -> ssl.SSLContext | bool:
    """Return the certificates to trust; False where the environment turns verification off."""
    names = ("SSL_VERIFY", "SSL_CERT_FILE", "SSL_SECURITY_LEVEL", "SSL_ECDH_CURVE")
    return _certificates(*(os.environ.get(name, "") for name in names))


@lru_cache(maxsize=4)
def _certificates(verify: str, bundle: str, ciphers: str, curve: str) -> ssl.SSLContext | bool:
    if verify.strip().lower() in _FALSE:
        return False
    import certifi

    files = [name for name in (verify, bundle) if name and os.path.exists(name)]  # noqa: PTH110 - as litellm
    context = ssl.create_default_context(cafile=files[0] if files else certifi.where())
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ciphers:
        context.set_ciphers(ciphers)
    if curve:
        context.set_ecdh_curve(curve)
    return context


def _most_connections() -> int:
    """Return how many connections the limit of open files admits; calls beyond that wait for one."""
    if sys.platform == "win32":
        return 512
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 0
    try:
        taken = len(os.listdir("/dev/fd"))  # noqa: PTH208 - only their number
    except OSError:
        taken = 0
    return max(1, soft - taken - _OTHER_FILES)


# ---- users, and the end of connections ----


def closes(close: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    """Register what closes connections of another library on the running loop."""
    _CLOSERS.append(close)
    return close


async def begin() -> None:
    """Count a user of the running loop's connections, until `end`."""
    loop = asyncio.get_running_loop()
    _USERS[loop] = _USERS.get(loop, 0) + 1


async def end() -> None:
    """Close the running loop's connections if they have no other user."""
    loop = asyncio.get_running_loop()
    _USERS[loop] = _USERS.get(loop, 0) - 1
    if _USERS[loop] <= 0:
        del _USERS[loop]
        await disconnect()


async def disconnect() -> None:
    """Close the connections of the running loop; later requests open new ones."""
    pool = _POOLS.pop(asyncio.get_running_loop(), None)
    if pool is not None:
        await pool.session.close()
    for close in _CLOSERS:
        await close()
    # Sockets are closed in the next iteration of the loop.
    await asyncio.sleep(0)


# ---- failures ----


def classify(problem: BaseException, host: str) -> WireFailure | None:
    """Classify an error of a connection, None if it is another."""
    import aiohttp

    if isinstance(problem, aiohttp.ClientConnectorDNSError):
        return WireFailure("unreachable", f"the host `{host}` is unknown")
    if isinstance(problem, aiohttp.ClientSSLError):
        return WireFailure("unreachable", f"no secure connection to `{host}`: {_reason(problem)}")
    if isinstance(problem, aiohttp.ClientConnectorError):
        if problem.os_error.errno in _NO_FILES:
            return WireFailure("unsent", f"no connection to `{host}`: {_reason(problem)}; raise `ulimit -n`")
        where = "the proxy " if isinstance(problem, aiohttp.ClientProxyConnectionError) else ""
        return WireFailure("unreachable", f"no connection to {where}`{problem.host or host}`: {_reason(problem)}")
    if isinstance(problem, aiohttp.ClientHttpProxyError):
        return WireFailure("unreachable", f"the proxy does not connect to `{host}`: status {problem.status}")
    if isinstance(problem, aiohttp.ConnectionTimeoutError):
        return WireFailure("unreachable", f"no connection to `{host}`: it does not answer")
    if isinstance(problem, TimeoutError):
        return late(None)
    if isinstance(problem, aiohttp.InvalidURL | ValueError):
        return WireFailure("unreachable", "the address cannot be used: write it like `http://localhost:8000/v1`")
    if isinstance(problem, aiohttp.ClientResponseError):
        return WireFailure("malformed", "the response is not HTTP")
    if isinstance(problem, aiohttp.ClientPayloadError) and isinstance(
        problem.__cause__, aiohttp.http_exceptions.ContentEncodingError
    ):
        return WireFailure("malformed", "the response cannot be decoded")
    if isinstance(problem, aiohttp.ClientError | OSError):
        return WireFailure("broken", "the connection closed before the reply was complete")
    return None


def _reason(problem: BaseException) -> str:
    """Return the system's reason why there is no connection."""
    under = getattr(problem, "os_error", None)
    found = getattr(problem, "certificate_error", None) or under or problem
    if isinstance(under, ConnectionRefusedError) or "Connect call failed" in str(found):
        return "connection refused"
    return str(getattr(found, "strerror", None) or found).lower().rstrip(".") or "it was closed at once"
