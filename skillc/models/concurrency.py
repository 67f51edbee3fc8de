"""The event loop of calls, their order (tickets), many jobs at once, single flight, and prefix warm-up."""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import threading
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from skillc.dataclass import dataclass
from skillc.models.backends.connections import disconnect

T = TypeVar("T")


class CallLoop:
    """Binds calls to the first event loop that sends one, so that an async caller has no overhead.

    A synchronous first caller binds them to the loop of a thread, which all clients of the process share from then on.
    When the bound loop is closed, as after `asyncio.run`, the next caller's loop replaces it.
    """

    def __init__(self, on_move: Callable[[], None]) -> None:
        self._on_move = on_move
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    async def run(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run on the bound loop, from any loop."""
        here = asyncio.get_running_loop()
        home = self._choose(here)
        if home is here:
            return await start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(start(), home))

    def run_sync(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run on the bound loop and wait; on that loop itself, where this would be a deadlock, raise `RuntimeError`."""
        home = self._choose(None)
        if home is _running():
            raise RuntimeError("a synchronous model call inside the event loop that would answer it; await `acall`")
        return asyncio.run_coroutine_threadsafe(start(), home).result()

    def bind(self) -> None:
        """Bind now, to the running loop if none is bound."""
        self._choose(_running())

    def post(self, action: Callable[[], None]) -> None:
        """Run an action on the bound loop: at once if it is the running loop, else soon."""
        home = self._loop
        if home is None or home.is_closed() or home is _running():
            action()
        else:
            home.call_soon_threadsafe(action)

    def _choose(self, caller: asyncio.AbstractEventLoop | None) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._loop.is_closed():
                running = SHARED_LOOP.running()
                self._loop = running or (caller if caller is not None else SHARED_LOOP.loop())
                self._on_move()
            return self._loop


class BackgroundLoop:
    """The loop of a background thread, one for the process: litellm's worker does not support alternating loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def running(self) -> asyncio.AbstractEventLoop | None:
        """Return the loop if it was started."""
        with self._lock:
            return self._loop if self._thread is not None and self._thread.is_alive() else None

    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the running loop, and start it first if necessary."""
        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="skillc models", daemon=True)
                self._thread.start()
                # Without this the interpreter reports open tasks at its end.
                atexit.register(_stop, self._loop, self._thread)
            return self._loop


SHARED_LOOP = BackgroundLoop()


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    if thread.is_alive() and not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(disconnect())
    finally:
        loop.close()


@dataclass(eq=False, slots=True)
class Ticket:
    """A place in the queue, taken before the call is prepared."""

    left: bool = False
    ahead: asyncio.Future[None] | None = None


class TicketQueue:
    """Calls reach the ledger in the order of the plan, however long each takes to prepare.

    `take` is for any thread, all else for one event loop.
    """

    def __init__(self) -> None:
        self._tickets: deque[Ticket] = deque()

    def take(self) -> Ticket:
        """Take the next place, to be left in the end, used or not."""
        ticket = Ticket()
        self._tickets.append(ticket)
        return ticket

    async def reach(self, ticket: Ticket) -> None:
        """Wait until all earlier tickets have left."""
        if ticket.left or self._tickets[0] is ticket:
            return
        ticket.ahead = asyncio.get_running_loop().create_future()
        await ticket.ahead

    def leave(self, ticket: Ticket) -> None:
        """Leave the queue and wake the next one."""
        ticket.left = True
        while self._tickets and self._tickets[0].left:
            self._tickets.popleft()
        if self._tickets:
            ahead = self._tickets[0].ahead
            if ahead is not None and not ahead.done():
                ahead.set_result(None)


# Enough to keep any queue of calls full, and so few that a large split fits into memory.
MOST_TASKS = 512


async def gather(jobs: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Return all results in order. The first error cancels the rest and waits for their end.

    Jobs start in order, at most `MOST_TASKS` at once.
    """
    results: dict[int, T] = {}
    waiting = iter(enumerate(jobs))

    async def work() -> None:
        for i, job in waiting:
            results[i] = await job

    tasks = [asyncio.ensure_future(work()) for _ in range(min(MOST_TASKS, len(jobs)))]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _, job in waiting:
            job.close()
        raise
    return [results[i] for i in range(len(jobs))]


K = TypeVar("K")


class SingleFlight(Generic[K, T]):
    """Runs each key once at a time; all on one event loop. A flight without waiting callers is cancelled."""

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[T]] = {}
        self._waiting: dict[K, int] = {}

    async def join(self, key: K, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of the flight in progress, or of a new one."""
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(start())
            self._tasks[key] = task
            self._waiting[key] = 0
        self._waiting[key] += 1
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._tasks.get(key) is task and self._waiting[key] == 1:
                del self._tasks[key], self._waiting[key]
                task.cancel()
                # A cancelled caller may rely on its work having ended.
                await asyncio.wait({task})
                if not task.cancelled():
                    # Nobody else reads its error, which asyncio would print.
                    task.exception()
            raise
        finally:
            if self._tasks.get(key) is task:
                self._waiting[key] -= 1
                if task.done():
                    del self._tasks[key], self._waiting[key]


# Providers cache prefixes of at least 1,024 tokens; a token is about four bytes of English.
SHORTEST = 4096
_KEPT = 4096


class PrefixWarmup:
    """Send the first call of a long system message alone, so that the provider caches it for the rest.

    A call whose first messages are short, or were sent before, waits for nothing.
    """

    def __init__(self) -> None:
        self._sent: OrderedDict[bytes, asyncio.Event] = OrderedDict()

    @asynccontextmanager
    async def warmed(self, endpoint: str, arguments: Mapping[str, Any]) -> AsyncIterator[None]:
        """Wait until the first call with the same prefix has ended, unless this is the first."""
        prefix = _prefix(endpoint, arguments)
        if prefix is None:
            yield
        elif (first := self._sent.get(prefix)) is not None:
            self._sent.move_to_end(prefix)
            await first.wait()
            yield
        else:
            ended = self._sent[prefix] = asyncio.Event()
            if len(self._sent) > _KEPT:
                self._sent.popitem(last=False)
            try:
                yield
            finally:
                ended.set()


def _prefix(endpoint: str, arguments: Mapping[str, Any]) -> bytes | None:
    """Return the digest of a call's system message; None if it is too short to be cached."""
    first = arguments["messages"][0] if arguments["messages"] else None
    text = first.get("content") if first is not None and first.get("role") == "system" else None
    if not isinstance(text, str) or len(text) < SHORTEST:
        return None
    return hashlib.sha256(f"{endpoint}\n{arguments['model']}\n{text}".encode("utf-8", "surrogatepass")).digest()
