"""An event loop whose time passes only while everybody waits, and servers that admit so much."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from model_plans import reply

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Jumps to the next timer where another loop would sleep."""

    def __init__(self) -> None:
        super().__init__()
        self._moment = 1000.0
        self._select = self._selector.select  # type: ignore[attr-defined]
        self._selector.select = self._jump  # type: ignore[attr-defined]

    def time(self) -> float:
        return self._moment

    def _jump(self, timeout: float | None) -> Any:
        if timeout is None:
            ready = self._select(10)  # a thread may be at work
            if not ready:
                raise RuntimeError("everybody waits, and nothing will ever happen")
            return ready
        self._moment += timeout
        return self._select(0)


def run(main: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """The result, and the virtual seconds that it took."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        before = loop.time()
        return runner.run(main), loop.time() - before


class Refusal(Exception):  # noqa: N818
    """What a server without room answers."""

    def __init__(self, status: int, headers: Mapping[str, str], text: str = "slow down") -> None:
        super().__init__(text)
        self.status_code = status
        self.response = object()
        self.litellm_response_headers = headers


# The present moment, to whether a request is admitted, else how long until one would be.
Admission = Callable[[float], float | None]


def bucket(rate: float, burst: float) -> Admission:
    """A token bucket."""
    level, at = burst, -math.inf

    def admit(now: float) -> float | None:
        nonlocal level, at
        level, at = (min(burst, level + (now - at) * rate) if at > -math.inf else burst), now
        if level < 1 - 1e-9:
            return (1 - level) / rate
        level -= 1
        return None

    return admit


def windows(count: int, seconds: float) -> Admission:
    """So many in each window that the server's clock begins."""
    began, left = -math.inf, 0

    def admit(now: float) -> float | None:
        nonlocal began, left
        if now // seconds != began:
            began, left = now // seconds, count
        if not left:
            return (began + 1) * seconds - now
        left -= 1
        return None

    return admit


def sliding(count: int, seconds: float, *, refusals_count: bool = False) -> Admission:
    """So many in any span of so many seconds."""
    seen: deque[float] = deque()

    def admit(now: float) -> float | None:
        while seen and seen[0] <= now - seconds:
            seen.popleft()
        full = len(seen) >= count
        if not full or refusals_count:
            seen.append(now)
            if len(seen) > count:
                seen.popleft()
        return seen[0] + seconds - now if full else None

    return admit


Told = Callable[[float], Mapping[str, str]]


def nothing(wait: float) -> Mapping[str, str]:
    return {}


def whole_seconds(wait: float) -> Mapping[str, str]:
    return {"retry-after": str(math.ceil(wait))}


def milliseconds(wait: float) -> Mapping[str, str]:
    return {"retry-after-ms": str(wait * 1000)}


class Server:
    """A transport that admits, takes its time, and counts.

    Args:
        admits: who is let in.
        told: what the headers of a refusal say.
        seconds: that an answer takes.
        room: requests that may be in it at once.
        status: of a refusal.
    """

    def __init__(
        self,
        admits: Admission | None = None,
        told: Told = nothing,
        *,
        seconds: float | Callable[[], float] = 0.001,
        room: float = math.inf,
        status: int = 429,
    ) -> None:
        self.admits, self.told, self.seconds, self.room, self.status = admits, told, seconds, room, status
        self.inside = self.most = 0
        self.served: list[float] = []
        self.refused: list[float] = []

    async def __call__(self, sent: Mapping[str, Any]) -> Any:
        now = asyncio.get_running_loop().time()
        wait = 1.0 if self.inside >= self.room else None
        if wait is None and self.admits is not None:
            wait = self.admits(now)
        if wait is not None:
            self.refused.append(now)
            await asyncio.sleep(0.001)
            raise Refusal(self.status, self.told(wait))
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await asyncio.sleep(self.seconds() if callable(self.seconds) else self.seconds)
        finally:
            self.inside -= 1
        self.served.append(now)
        return reply()
