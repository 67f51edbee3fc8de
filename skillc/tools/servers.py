"""Tools of MCP servers, over stdio and streamable HTTP, by the official SDK: one session a server.

All sessions of a run live in one event loop on a thread, which outlives the loops that call their tools. A command is
started in a new session; its processes carry the guard's mark, so they end with skillc however that ends.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import shlex
import tempfile
import threading
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.json_values import JsonObject, as_text
from skillc.processes.command import last_line
from skillc.processes.guard import GUARD, MARK, ending
from skillc.text import cut
from skillc.tools.functions import plain_schema
from skillc.tools.tool import Tool, ToolFailed, ToolServerDown

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")

START = 120.0
CONNECT = 30.0
"""Seconds for a command to start, which may first download a package, and for an address to answer."""
PROBE = 5.0
"""Seconds for a server to show that it lives, after a call that took too long."""
_RESTARTS = 1
_GRACE = 2.0
_TAIL = 2000


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server is.

    Attributes:
        text: a command line, or the address of a server that runs, `https://...`.
        folder: in which a command runs.
        key: a token for an address, sent as `Authorization: Bearer`.
        environment: variables for a command, beside `PATH`, `HOME` and other harmless ones.
    """

    text: str
    folder: Path
    key: str | None = None
    environment: Mapping[str, str] | None = None

    @property
    def is_url(self) -> bool:
        """Whether it is the address of a server that runs, not a command."""
        return self.text.startswith(("http://", "https://"))

    @property
    def shown(self) -> str:
        """The server in messages."""
        return f'mcp("{self.text}")'


class ServerLoop:
    """An event loop on a separate thread, for the sessions of a run."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="skillc tools", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work on the loop, and wait for it from a thread without a loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work on the loop, and wait for it on another one; a cancelled wait cancels the work."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class ToolServer:
    """A session with one MCP server; it is started again when the server has died.

    A command that dies again before it has answered a call is not started a third time.

    Raises:
        SkillcError: the extra `mcp` is not installed.
    """

    def __init__(self, address: ServerAddress, loop: ServerLoop) -> None:
        try:
            importlib.import_module("mcp.client.client")
        except ImportError as problem:
            hint = 'install it: `pip install "skillc[mcp]"`'
            raise SkillcError("`mcp(...)` needs the MCP SDK, which is not installed", hint=hint) from problem
        self._address = address
        self._on = loop
        self._session: _Session | None = None
        self._lock: asyncio.Lock | None = None
        self._failures = 0
        self._closing: set[asyncio.Future[None]] = set()

    def start(self) -> list[Tool]:
        """Start the session and return the server's tools.

        Raises:
            SkillcError: the server cannot be started or reached.
        """
        try:
            return self._on.wait(self._start())
        except ToolServerDown as problem:
            fix = "check the address, and that the server runs"
            if not self._address.is_url:
                fix = f"run `{self._address.text}` in a terminal to see why"
            raise SkillcError(f"the tool server `{self._address.shown}` cannot be used: {problem}", hint=fix) from None

    async def close(self) -> None:
        """End the session and the server's processes."""
        await self._on.run(self.closed())

    # ---- on the loop of the session ----

    async def closed(self) -> None:
        """As `close`, on the loop of the session."""
        if self._session is not None:
            self._drop(self._session)
        await asyncio.gather(*self._closing)

    async def _start(self) -> list[Tool]:
        self._lock = asyncio.Lock()
        self._session = await _open(self._address)
        try:
            listed = await asyncio.wait_for(self._session.all_tools(), CONNECT)
        except Exception as problem:
            self._drop(self._session)
            raise ToolServerDown(f"it does not list its tools: {_describe(problem)}") from problem
        return [self._tool(each) for each in listed]

    def _tool(self, listed: Any) -> Tool:
        schema = plain_schema(listed.input_schema)
        arguments = {
            name: each if isinstance(each, dict) else {} for name, each in schema.get("properties", {}).items()
        }

        async def call(given: JsonObject, seconds: float) -> str:
            return await self._on.run(self._call(listed.name, given, seconds))

        about = " ".join((listed.description or listed.title or "").split())
        return Tool(listed.name, about, arguments, tuple(schema.get("required", ())), call, self._address.shown)

    async def _call(self, name: str, arguments: JsonObject, seconds: float) -> str:
        session = await self._connected()
        try:
            async with asyncio.timeout(seconds):
                result = await session.call(name, arguments)
        except TimeoutError:
            if await self._answers(session):
                raise
            self._drop(session)
            raise ToolServerDown(f"`{self._address.shown}` hangs since a call of `{name}`") from None
        except Exception as problem:
            refused = _refusal(problem)
            if refused is not None and not session.ended:
                self._failures = 0
                raise ToolFailed(refused) from problem
            self._drop(session)
            raise ToolServerDown(
                f"`{self._address.shown}` died in a call of `{name}`: {_describe(problem)}"
            ) from problem
        self._failures = 0
        text = _text(result)
        if result.is_error:
            raise ToolFailed(text)
        return text

    async def _connected(self) -> _Session:
        assert self._lock is not None
        async with self._lock:
            if self._session is not None and self._session.ended:
                self._drop(self._session)
            if self._session is None:
                if self._failures > _RESTARTS and not self._address.is_url:
                    raise ToolServerDown(f"`{self._address.shown}` died again after a restart")
                try:
                    self._session = await _open(self._address)
                except ToolServerDown:
                    self._failures += 1
                    raise
            return self._session

    async def _answers(self, session: _Session) -> bool:
        """Whether the server answers a harmless question: it is the tool that took too long."""
        try:
            async with asyncio.timeout(PROBE):
                await session.all_tools()
        except Exception:
            return False
        return True

    def _drop(self, session: _Session) -> None:
        """Give up a session; a server that hangs takes a while to end."""
        if self._session is session:
            self._session = None
            self._failures += 1
        task = asyncio.ensure_future(session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


class _Session:
    """An open session. It is entered and left by one task, as the SDK requires."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._mark = GUARD.mark()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the session
        self._leave = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._live())
        self.ended = False

    async def opened(self) -> None:
        """Wait until it can be used; raises what prevents that."""
        await asyncio.shield(self._ready)

    async def call(self, name: str, arguments: JsonObject) -> Any:
        """Call a tool."""
        client = self._ready.result()
        return await self._alive(client.call_tool(name, dict(arguments)))

    async def all_tools(self) -> list[Any]:
        """List the server's tools, from all pages."""
        client, found, cursor = self._ready.result(), list[Any](), None
        while True:
            page = await self._alive(client.list_tools(cursor=cursor, cache_mode="bypass"))
            found += page.tools
            cursor = page.next_cursor
            if not cursor:
                return found

    async def close(self) -> None:
        """Leave the session; end what is left of the server."""
        self._leave.set()
        await asyncio.wait([self._task])
        for step in ending(set(), self._mark, _GRACE) if not self._address.is_url else ():
            await asyncio.sleep(step)
        self._log.close()

    def last_words(self) -> str:
        """Return the end of what a command has written to standard error."""
        with suppress(OSError, ValueError):
            self._log.seek(0, os.SEEK_END)
            self._log.seek(max(0, self._log.tell() - _TAIL))
            return cut(last_line(self._log.read()), 300)
        return ""

    async def _alive(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for work, but not longer than the session lives."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, self._task}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ConnectionError("the connection was closed")
            return task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _live(self) -> None:
        from mcp import Client

        try:
            async with AsyncExitStack() as stack:
                transport = await self._transport(stack)
                client = await stack.enter_async_context(Client(transport))
                self._ready.set_result(client)
                await self._leave.wait()
        except BaseException as problem:
            if not self._ready.done():
                self._ready.set_exception(problem if isinstance(problem, Exception) else ConnectionError(str(problem)))
                self._ready.exception()
            if not isinstance(problem, Exception | asyncio.CancelledError):
                raise
        finally:
            self.ended = True

    async def _transport(self, stack: AsyncExitStack) -> Any:
        address = self._address
        if address.is_url:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            headers = {"Authorization": f"Bearer {address.key}"} if address.key else {}
            timeout = httpx2.Timeout(30.0, read=None)
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=timeout))
            return streamable_http_client(address.text, http_client=http)
        from mcp.client.stdio import StdioServerParameters, stdio_client

        command, *rest = shlex.split(address.text)
        parameters = StdioServerParameters(
            command=command, args=rest, env={**(address.environment or {}), MARK: self._mark}, cwd=address.folder
        )
        return stdio_client(parameters, errlog=self._log)  # type: ignore[arg-type]  # needs a file number only


async def _open(address: ServerAddress) -> _Session:
    """Open a session.

    Raises:
        ToolServerDown: the server cannot be started or reached.
    """
    session, limit = _Session(address), CONNECT if address.is_url else START
    try:
        async with asyncio.timeout(limit):
            await session.opened()
    except Exception as problem:
        late = isinstance(problem, TimeoutError)
        reason = f"it did not start within {limit:g} seconds" if late else _describe(problem)
        session._task.cancel()
        said = session.last_words()
        await session.close()
        raise ToolServerDown(f"{reason}; it printed: {said}" if said else reason) from problem
    return session


def _refusal(problem: Exception) -> str | None:
    """Return the message of an error that the server itself has answered with, None for a broken connection."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    return problem.message if isinstance(problem, MCPError) and problem.code != CONNECTION_CLOSED else None


def _describe(problem: BaseException) -> str:
    """Name the innermost cause of a group on one line."""
    while isinstance(problem, BaseExceptionGroup) and problem.exceptions:
        problem = problem.exceptions[0]
    if isinstance(problem, FileNotFoundError) and problem.filename:
        return f"`{problem.filename}` is not installed"
    return cut(str(problem), 300) or type(problem).__name__


def _text(result: Any) -> str:
    """Return a result as text: its texts, a note for each part of another kind, or its structured content."""
    parts = [each.text if each.type == "text" else _noted(each) for each in result.content]
    if not parts and result.structured_content is not None:
        return as_text(result.structured_content)
    return "\n".join(parts)


def _noted(part: Any) -> str:
    resource = getattr(part, "resource", None)
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        return text
    uri = getattr(part, "uri", None) or getattr(resource, "uri", None)
    return f"[{part.type}{f' {uri}' if uri else ''}]"
