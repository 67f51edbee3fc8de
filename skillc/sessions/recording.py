"""Recording proxy on the loopback interface for OpenAI and Anthropic clients.

Requests and replies pass unchanged, streams piece by piece. A call is written as one line when its reply is complete,
without headers, secrets and personal data. A recording that fails, as on a full disk, never fails a call.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.redaction import redact_value
from skillc.sessions.privacy import Cleaner
from skillc.sessions.readers.records import object_of, parsed, time_of
from skillc.sessions.streams import protocol_of, whole_reply

if TYPE_CHECKING:
    from aiohttp import ClientSession, web

LARGEST = 64 * 2**20
"""Bytes of a request or a reply that is recorded; a larger one passes without."""

# Those of one connection, not of the message.
_OF_CONNECTION = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
        *("transfer-encoding", "upgrade", "host", "content-length", "accept-encoding", "content-encoding"),
    }
)


@dataclass(slots=True)
class Recorder:
    """Writes calls to a file.

    Attributes:
        name: of the recording, the beginning of the keys of its sessions.
        project: the folder that the sessions belong to.
        warn: reports, once, that recording has failed.
        calls: that were written.
        lost: that could not be written or were too large.
    """

    path: Path
    name: str
    project: str
    warn: Callable[[str], None]
    cleaner: Cleaner = field(default_factory=Cleaner)
    calls: int = 0
    lost: int = 0
    _hide: Callable[[str], str] = field(init=False)

    def __post_init__(self) -> None:
        self._hide = self.cleaner.hider()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch(0o600)

    def add(self, path: str, agent: str, request: bytes, status: int, reply: bytes, began: float) -> None:
        """Write a call; what cannot be written is counted."""
        protocol = protocol_of(path)
        if protocol is None:
            return
        try:
            asked = parsed(request.decode(errors="replace"))
            line: dict[str, Any] = {
                "skillc_recording": self.name,
                "protocol": protocol,
                "agent": agent,
                "project": self.project,
                "began": time_of(began),
                "ended": time_of(time.time()),
                "status": status,
                "request": object_of(asked),
                "reply": whole_reply(protocol, reply),
            }
            text = json.dumps(redact_value(line, self._hide), ensure_ascii=True)
            with self.path.open("a", encoding="ascii") as file:
                file.write(text + "\n")
        except (OSError, ValueError, RecursionError) as problem:
            self.skip(f"a call was not recorded: {problem}")
            return
        self.calls += 1

    def skip(self, message: str) -> None:
        """Count a call that is not recorded; the first one is reported."""
        if not self.lost:
            self.warn(message)
        self.lost += 1


async def serve(
    recorder: Recorder, upstream: str, port: int, ready: Callable[[int], None], stop: asyncio.Event
) -> None:
    """Pass requests on to the upstream and record them until `stop` is set.

    Args:
        recorder: gets each call.
        upstream: the provider's address, to which the path of each request is added.
        port: of the loopback interface; 0 for a free one.
        ready: called with the port.
        stop: set to end; calls in flight are finished for at most five seconds.

    Raises:
        SkillcError: the port is in use.
    """
    from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

    # Redaction takes milliseconds, so it must not delay pieces of other replies. One thread keeps the order of calls.
    writer = ThreadPoolExecutor(1, thread_name_prefix="skillc-record")

    def record(*call: Any) -> None:
        writer.submit(recorder.add, *call)

    timeout = ClientTimeout(total=None, sock_connect=30)
    async with ClientSession(timeout=timeout, connector=TCPConnector(limit=0), auto_decompress=True) as session:
        # Bodies are streamed, and large ones are not rejected here.
        app = web.Application(client_max_size=2**40)

        async def handle(request: web.Request) -> web.StreamResponse:
            return await _pass(request, session, recorder, record, upstream.rstrip("/"))

        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=5, handler_cancellation=True)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", port)
            try:
                await site.start()
            except OSError as problem:
                raise SkillcError(f"port {port} is in use", hint="name another one with `--port`") from problem
            ready(runner.addresses[0][1])
            await stop.wait()
        finally:
            await runner.cleanup()
            await asyncio.to_thread(writer.shutdown)


async def _pass(
    request: web.Request, session: ClientSession, recorder: Recorder, record: Callable[..., None], upstream: str
) -> web.StreamResponse:
    from aiohttp import ClientError, web
    from multidict import CIMultiDict

    began, body = time.time(), await request.read()
    headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _OF_CONNECTION]
    agent = request.headers.get("User-Agent", "").split(" ")[0][:80]
    kept = bytearray()
    status, whole = 502, True
    response: web.StreamResponse | None = None
    try:
        async with session.request(
            request.method,
            upstream + request.path_qs,
            data=body or None,
            headers=[*headers, ("Accept-Encoding", "identity")],
            allow_redirects=False,
        ) as answer:
            status = answer.status
            passed = [(name, value) for name, value in answer.headers.items() if name.lower() not in _OF_CONNECTION]
            response = web.StreamResponse(status=status, reason=answer.reason, headers=CIMultiDict(passed))
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                if len(kept) <= LARGEST:
                    kept += piece
                await response.write(piece)
            await response.write_eof()
            return response
    except (ClientError, TimeoutError, OSError) as problem:
        whole = False
        if response is None:
            message = f"skillc sessions record: `{upstream}` cannot be reached: {problem}"
            return web.json_response({"error": {"message": message, "type": "upstream_error"}}, status=502)
        # The reply has begun, so all that is left is to cut it off, as the provider did.
        if request.transport is not None:
            request.transport.close()
        return response
    except asyncio.CancelledError:
        whole = False
        raise
    finally:
        if len(body) > LARGEST or len(kept) > LARGEST:
            recorder.skip("a call was not recorded: it is larger than 64 MiB")
        else:
            record(request.path, agent, bytes(body), status if whole else 0, bytes(kept), began)
