"""The queue in front of each endpoint, which sends calls at its pace; prefetched calls wait behind all others."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import field
from itertools import count

from skillc.dataclass import dataclass
from skillc.models.endpoint import VLLM_PROVIDERS
from skillc.models.failures import FIXES, AttemptOutcome, EndpointUnreachable
from skillc.models.pace import QUEUEING_START, Outage, Pace, Quota, RetryPolicy
from skillc.models.roles import Role, describe_roles

Sleep = Callable[[float], Awaitable[None]]

_SAME = 1e-6

_PREFETCHING: ContextVar[bool] = ContextVar("skillc_prefetching", default=False)


@contextmanager
def prefetching() -> Iterator[None]:
    """Mark the calls made inside as prefetched: they wait for a slot behind all others. Travels with the context."""
    token = _PREFETCHING.set(True)
    try:
        yield
    finally:
        _PREFETCHING.reset(token)


class RefusedTooLong(Exception):  # noqa: N818
    """The endpoint has refused all calls for longer than they wait."""


class AwayTooLong(Exception):  # noqa: N818
    """The endpoint could not be reached for longer than its roles wait."""


@dataclass(slots=True, eq=False)
class Slot:
    """An attempt in flight, and its result once it has ended.

    Attributes:
        tokens: as reserved.
        epoch: of the endpoint's pace, when it was sent.
        retry_after: seconds to wait that a refusing server asked for.
        detail: the error of a refusal or of a failed connection.
        used: tokens; None counts all that were reserved.
        probe: whether it tests if the endpoint is back.
    """

    role: str
    tokens: int
    epoch: int
    outcome: AttemptOutcome = "other"
    retry_after: float | None = None
    detail: str = ""
    used: int | None = None
    probe: bool = False


@dataclass(slots=True, order=True)
class _Waiting:
    prefetched: bool
    number: int
    tokens: int = field(compare=False)
    slot: asyncio.Future[Slot] = field(compare=False)


class EndpointQueue:
    """Slots of one endpoint on one event loop; first in, first out within a rank.

    A refused call rejoins at the end, so that a call that is always refused holds up no others. If `sleep` returns
    early, as in tests, the time counts as passed. `report` gets a sentence when the endpoint goes out of reach and when
    it is back.
    """

    def __init__(
        self,
        roles: list[Role],
        pace: Pace,
        outage: Outage,
        quotas: Mapping[str, Quota],
        sleep: Sleep,
        report: Callable[[str], None],
    ) -> None:
        self.roles = roles
        self.pace = pace
        self.outage = outage
        self.quotas = quotas
        self.in_flight = 0
        self._sleep = sleep
        self._report = report
        self._flying = dict.fromkeys(quotas, 0)
        self._queues: dict[str, list[_Waiting]] = {role: [] for role in quotas}
        self._numbers = count()
        self._skipped = 0.0
        self._timer: asyncio.Task[None] | None = None
        self._due = math.inf

    async def take(self, role: str, tokens: int) -> Slot:
        """Wait for a slot, to be returned with `give`; raise `RefusedTooLong` or `AwayTooLong`."""
        now = self._now()
        queue = self._queues[role]
        if not queue and not self._wait(now, role, tokens):
            return self._send(now, role, tokens)
        slot: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        heapq.heappush(queue, _Waiting(_PREFETCHING.get(), next(self._numbers), tokens, slot))
        self.advance()
        try:
            return await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled() and slot.exception() is None:
                slot.result().used = 0
                self.give(slot.result())
            else:
                slot.cancel()
                self.advance()
            raise

    def give(self, slot: Slot) -> None:
        """Return a slot with its result."""
        if slot.outcome == "served":
            self.pace.served(slot.epoch, self.in_flight)
        elif slot.outcome == "strained":
            self.pace.strained(slot.epoch, self.in_flight)
        elif slot.outcome == "refused":
            self.pace.refused(slot.epoch, self._now(), self.in_flight, slot.retry_after)
        self.in_flight -= 1
        self._flying[slot.role] -= 1
        if slot.used is not None:
            self.quotas[slot.role].ended(slot.tokens - slot.used)
        self._update_outage(slot)
        if self.pace.dead and slot.outcome == "refused":
            self._fail_all(RefusedTooLong(slot.detail))
        elif self.outage.over and slot.outcome == "unreachable":
            self._fail_all(AwayTooLong(slot.detail))
        self.advance()

    def _update_outage(self, slot: Slot) -> None:
        outage = self.outage
        outage.ended(slot.probe)
        if slot.outcome == "unreachable" and outage.known and not self.pace.held:
            if outage.missed(self._now()):
                until = "" if math.isinf(outage.patience) else f" for up to {_duration(outage.patience)}"
                self._report(f"{describe_roles(self.roles)} cannot be reached: {slot.detail}; its calls wait{until}")
        elif slot.outcome in ("served", "refused", "answered"):
            seconds = outage.answered(self._now())
            if seconds is not None:
                self.pace.recovered()
                self._report(f"{describe_roles(self.roles)} answers again after {_duration(seconds)}")

    def wake(self) -> None:
        """Check again which calls may go, after the endpoint was opened from outside."""
        if any(self._queues.values()):
            with suppress(RuntimeError):  # no loop is running, so no call waits
                self.advance()

    def advance(self) -> None:
        """Release the calls that may go now, and set the timer for the next one."""
        now = self._now()
        while True:
            role, soonest = self._next(now)
            if role is None:
                break
            waiting = heapq.heappop(self._queues[role])
            waiting.slot.set_result(self._send(now, role, waiting.tokens))
        self._arm(now, soonest)

    def _next(self, now: float) -> tuple[str | None, float]:
        """Return the role whose first waiting call may go, else the seconds until one may."""
        first: _Waiting | None = None
        best, soonest = None, math.inf
        for role, queue in self._queues.items():
            while queue and queue[0].slot.done():
                heapq.heappop(queue)
            if not queue:
                continue
            wait = self._wait(now, role, queue[0].tokens)
            if wait:
                soonest = min(soonest, wait)
            elif first is None or queue[0] < first:
                best, first = role, queue[0]
        return best, soonest

    def _wait(self, now: float, role: str, tokens: int) -> float:
        wait = max(self.pace.wait(now, self.in_flight), self.outage.wait(now))
        return max(wait, self.quotas[role].wait(now, self._flying[role], tokens)) if wait < math.inf else wait

    def _send(self, now: float, role: str, tokens: int) -> Slot:
        self.in_flight += 1
        self._flying[role] += 1
        self.quotas[role].sent(now, tokens)
        return Slot(role, tokens, self.pace.sent(now), probe=self.outage.sent())

    def _fail_all(self, problem: RefusedTooLong | AwayTooLong) -> None:
        for queue in self._queues.values():
            for waiting in queue:
                if not waiting.slot.done():
                    waiting.slot.set_exception(type(problem)(*problem.args))
            queue.clear()

    def _arm(self, now: float, seconds: float) -> None:
        due = now + seconds
        if self._timer is not None:
            if abs(due - self._due) < _SAME:
                return
            self._timer.cancel()
            self._timer = None
        self._due = due
        if due < math.inf:
            self._timer = asyncio.get_running_loop().create_task(self._ring(due, seconds))

    async def _ring(self, due: float, seconds: float) -> None:
        await self._sleep(seconds)
        self._skipped += max(0.0, due - self._now())
        self._timer, self._due = None, math.inf
        self.advance()

    def _now(self) -> float:
        return asyncio.get_running_loop().time() + self._skipped


class Pacing:
    """The pace and the queue of each endpoint; roles with one endpoint share them.

    Attributes:
        report: receives a sentence when an endpoint goes out of reach and when it is back, from any thread.
        lost: the first error of an endpoint that stayed out of reach.
    """

    def __init__(self, roles: Mapping[str, Role], concurrency: int, retries: RetryPolicy, sleep: Sleep) -> None:
        self.retries = retries
        self.sleep = sleep
        self.report: Callable[[str], None] = lambda note: None
        self.lost: EndpointUnreachable | None = None
        by_endpoint: dict[str, dict[str, Role]] = {}
        for name, role in roles.items():
            by_endpoint.setdefault(role.endpoint.id, {})[name] = role
        self._queues: dict[str, EndpointQueue] = {}
        for same in by_endpoint.values():
            ceiling = max(role.plan.pacing.concurrency or concurrency for role in same.values())
            quotas = {name: Quota(role.plan.pacing) for name, role in same.items()}
            outage = Outage(_patience(list(same.values())), retries)
            queue = self._new_queue(list(same.values()), Pace(ceiling, retries, _start(same.values())), outage, quotas)
            self._queues.update(dict.fromkeys(same, queue))

    def _new_queue(self, roles: list[Role], pace: Pace, outage: Outage, quotas: Mapping[str, Quota]) -> EndpointQueue:
        return EndpointQueue(roles, pace, outage, quotas, self.sleep, lambda note: self.report(note))

    def move(self) -> None:
        """Replace the queues because another event loop takes over; the learned pace stays."""
        fresh: dict[EndpointQueue, EndpointQueue] = {}
        for role, queue in self._queues.items():
            if queue not in fresh:
                queue.outage.forget()
                fresh[queue] = self._new_queue(queue.roles, queue.pace, queue.outage, queue.quotas)
            self._queues[role] = fresh[queue]

    def queue(self, role: str) -> EndpointQueue:
        """Return the queue in front of a role's endpoint."""
        return self._queues[role]

    def answered(self, role: str) -> None:
        """Note that a role's endpoint answered: from here on a lost connection is an outage."""
        self._queues[role].outage.known = True

    def unreachable(self, role: str, detail: str) -> EndpointUnreachable:
        """Return the error that ends a run whose endpoint stays out of reach."""
        queue = self._queues[role]
        seconds = queue.outage.patience
        self.lost = self.lost or EndpointUnreachable(
            f"{describe_roles(queue.roles)} could not be reached for {_duration(seconds)}: {detail}",
            hint=FIXES["away"].format(longer=_duration(2 * seconds)),
        )
        return self.lost

    def hold(self, role: str) -> None:
        """Send nothing more to a role's endpoint until `free`; attempts in flight continue."""
        self._queues[role].pace.held = True

    def free(self, role: str) -> None:
        """Reopen a held endpoint as a new one."""
        queue = self._queues[role]
        queue.pace.reopen()
        queue.outage.forget()
        queue.wake()


def _start(roles: Collection[Role]) -> int:
    """Return the concurrency to begin with: what the program declares needs no probing; 0 is open."""
    declared = max((role.plan.pacing.concurrency or 0 for role in roles), default=0)
    queues = any(role.plan.provider in VLLM_PROVIDERS for role in roles)
    return max(declared, QUEUEING_START if queues else 0)


def _patience(roles: list[Role]) -> float:
    """Return the longest that one of the roles waits; a server that skillc starts is restarted instead."""
    own = any(role.endpoint.launch is not None and role.endpoint.launch.address is None for role in roles)
    return math.inf if own else max(float(role.plan.pacing.down) for role in roles)


def _duration(seconds: float) -> str:
    """Write a duration as programs do: `45 s`, `5 min`."""
    if seconds >= 60 and round(seconds) % 60 == 0:
        return f"{round(seconds) // 60} min"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s".replace(".0 s", " s")
