"""Named addresses for a command without a network: a proxy outside that connects to them and to nothing else.

The command's end of it is `forward`, which listens inside the sandbox and passes each connection on through a Unix
socket. An address of this machine is at the same port inside; the others are reached by the usual proxy variables.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from skillc.processes.command import temporary_folder

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_HEAD = 64 * 1024
_CHUNK = 65536
_CONNECT_SECONDS = 30.0
_PROXY_PORT = 3128


def loopback_ports(hosts: Sequence[str]) -> list[int]:
    """Return the ports of the addresses that are on this machine."""
    return [port for host, port in map(_address, hosts) if host in _LOOPBACK]


def proxy_port(hosts: Sequence[str]) -> int:
    """Return the port of the proxy inside, which no address of this machine has."""
    return next(port for port in range(_PROXY_PORT, 2**16) if port not in loopback_ports(hosts))


def proxy_environment(hosts: Sequence[str]) -> Mapping[str, str]:
    """Return the variables by which programs find the proxy."""
    url = f"http://127.0.0.1:{proxy_port(hosts)}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return {name: url for upper in names for name in (upper, upper.lower())} | {
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "NODE_USE_ENV_PROXY": "1",
    }


@asynccontextmanager
async def gateway(hosts: Sequence[str]) -> AsyncIterator[Path]:
    """Yield the path of a Unix socket that speaks the protocol of an HTTP proxy for these addresses only."""
    allowed = {_address(host) for host in hosts}
    allowed |= {(name, port) for host, port in allowed if host in _LOOPBACK for name in _LOOPBACK}
    served: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        served.add(task)
        try:
            await _serve(allowed, reader, writer)
        except asyncio.CancelledError:
            # The gateway closes. To asyncio a cancelled connection would be an error.
            pass
        finally:
            writer.close()
            served.discard(task)

    # Its own short path: the system allows about a hundred bytes.
    async with temporary_folder() as folder:
        path = folder / "hosts"
        server = await asyncio.start_unix_server(serve, path)
        try:
            yield path
        finally:
            server.close()
            open_ = tuple(served)
            for task in open_:
                task.cancel()
            await asyncio.gather(*open_, return_exceptions=True)


def _address(host: str) -> tuple[str, int]:
    """Return name and port of `host:port`; without a port it is that of HTTPS."""
    found = urlsplit(f"//{host}")
    return (found.hostname or "").lower(), found.port or 443


async def _serve(allowed: set[tuple[str, int]], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        method, target, version = line.decode("ascii").split(" ")
        if method == "CONNECT":
            address, first = _address(target), b""
        else:
            url = urlsplit(target)
            address = ((url.hostname or "").lower(), url.port or 80)
            path = url._replace(scheme="", netloc="").geturl() or "/"
            # One request a connection, or the next one could be for another address.
            headers = [each for each in rest.split(b"\r\n") if not each.lower().startswith((b"connection:", b"proxy-"))]
            first = b"\r\n".join([f"{method} {path} {version}".encode(), b"Connection: close", *headers])
        if address not in allowed:
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
        else:
            await _connect(address, first, method == "CONNECT", reader, writer)


async def _connect(
    address: tuple[str, int], first: bytes, tunnel: bool, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            far_reader, far_writer = await asyncio.open_connection(*address)
    except OSError:
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        return
    try:
        if tunnel:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        far_writer.write(first)
        await asyncio.gather(_pipe(reader, far_writer), _pipe(far_reader, writer))
    finally:
        far_writer.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(_CHUNK):
        writer.write(chunk)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
