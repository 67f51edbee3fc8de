"""Named addresses for a command without a network: a proxy outside that connects to them and to nothing else.

The command's end of it is `forward`, which listens inside the sandbox and passes each connection on through a Unix
socket. An address of this machine is at the same port inside; the others are reached by the usual proxy variables.

skillc's own Python runs `forward`. The image of a container may have none, or one with another C library, so it is
started by its own dynamic loader with its own libraries, all mounted read-only.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from skillc.dataclass import dataclass
from skillc.processes.command import temporary_folder
from skillc.sandbox.container import ENGINES, Engine, ask_in_container, failure_of
from skillc.sandbox.policy import WORK, Kind, Mount, Policy

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_HEAD = 64 * 1024
_CHUNK = 65536
_CONNECT_SECONDS = 30.0
_PROXY_PORT = 3128
_INSIDE = "/run/skillc"
_SECONDS = 20
# Prints the files that an interpreter with these modules has mapped as code: itself, its loader, its libraries.
_MAPPED = """
import signal, socket, threading
for line in open("/proc/self/maps"):
    fields = line.split(maxsplit=5)
    if "x" in fields[1] and fields[5:] and fields[5].startswith("/"):
        print(fields[5].strip())
"""


@asynccontextmanager
async def reaching_hosts(
    kind: Kind, policy: Policy, command: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[tuple[Policy, Sequence[str], Mapping[str, str]]]:
    """Give a command in a namespace without a network the addresses of its policy.

    Raises:
        OSError: skillc's own Python cannot run in a container.
    """
    interpreter = interpreter_in_container() if kind in ENGINES else _interpreter_here()
    async with gateway(policy.hosts) as path:
        mounts = (
            *interpreter.mounts,
            Mount(Path(__file__).with_name("forward.py"), f"{_INSIDE}/forward.py"),
            Mount(path, f"{_INSIDE}/hosts", writable=True),
        )
        start = [*interpreter.command, f"{_INSIDE}/forward.py", f"{_INSIDE}/hosts"]
        ports = ",".join(map(str, loopback_ports(policy.hosts)))
        yield (
            replace(policy, mounts=(*policy.mounts, *mounts)),
            [*start, str(_proxy_port(policy.hosts)), ports, *command],
            {**environment, **_proxy_environment(policy.hosts)},
        )


def problem_of_hosts(engine: Engine, policy: Policy) -> str | None:
    """Connect a container to a socket of this machine, and return why that fails, None if it does not."""
    why = "a container does not reach named hosts here"
    try:
        interpreter = interpreter_in_container()
    except (OSError, subprocess.SubprocessError) as problem:
        return f"{why}: {problem}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(policy.folder / "hosts"))
        server.listen()
        code = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        done = ask_in_container(
            engine, replace(policy, mounts=interpreter.mounts), [*interpreter.command, "-c", code, f"{WORK}/hosts"]
        )
    return f"{why}: {failure_of(done)}" if done.returncode else None


@dataclass(frozen=True, slots=True)
class Interpreter:
    """skillc's own Python inside a sandbox: the files that it consists of, and the start of its command line."""

    mounts: tuple[Mount, ...]
    command: tuple[str, ...]


def _interpreter_here() -> Interpreter:
    """Return the interpreter for a sandbox with the programs of this machine."""
    program = Path(sys.executable).resolve()
    mounts = () if program.is_relative_to("/usr") else (Mount(Path(sys.base_prefix).resolve()),)
    return Interpreter(mounts, (str(program), "-I", "-S"))


@cache
def interpreter_in_container() -> Interpreter:
    """Return the interpreter for any container of this machine.

    Raises:
        OSError: this system has no such files; only Linux has.
    """
    if sys.platform != "linux":
        raise OSError("it needs Linux")
    program = Path(sys.executable).resolve()
    command = [str(program), "-I", "-S", "-c", _MAPPED]
    done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=True, text=True)
    library = Path(os.__file__).resolve().parent
    mapped = [Path(line) for line in dict.fromkeys(done.stdout.splitlines())]
    libraries = [path for path in mapped if path != program and not path.is_relative_to(library)]
    loader = next((path for path in libraries if path.name.startswith("ld")), None)
    python = f"{_INSIDE}/python/bin/python3"
    home = f"{_INSIDE}/python/{sys.platlibdir}/python{sys.version_info.major}.{sys.version_info.minor}"
    named = [Mount(path, f"{_INSIDE}/{name}") for path in libraries for name in _names(path)]
    start = [f"{_INSIDE}/{loader.name}", "--library-path", _INSIDE] if loader is not None else []
    return Interpreter((Mount(program, python), Mount(library, home), *named), (*start, python, "-I", "-S"))


def _names(library: Path) -> list[str]:
    """Return the names of a library: that of its file, and of links beside it, by one of which programs look it up."""
    with os.scandir(library.parent) as entries:
        links = [Path(each.path) for each in entries if each.is_symlink()]
    return [library.name, *(link.name for link in links if link.readlink().name == library.name)]


def loopback_ports(hosts: Sequence[str]) -> list[int]:
    """Return the ports of the addresses that are on this machine."""
    return [port for host, port in map(_address, hosts) if host in _LOOPBACK]


def _proxy_port(hosts: Sequence[str]) -> int:
    """Return the port of the proxy inside, which no address of this machine has."""
    return next(port for port in range(_PROXY_PORT, 2**16) if port not in loopback_ports(hosts))


def _proxy_environment(hosts: Sequence[str]) -> Mapping[str, str]:
    """Return the variables by which programs find the proxy."""
    url = f"http://127.0.0.1:{_proxy_port(hosts)}"
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
