"""The queue in front of each endpoint, which sends calls at its pace; prefetched calls wait behind all others."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from skillc.models.failures import FIXES, AttemptOutcome, EndpointUnreachable
from skillc.models.pace import Outage, Pace, Quota, RetryPolicy
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


class Unanswered(Exception):  # noqa: N818
    """The endpoint has let nothing through for longer than its calls wait."""


class Away(Exception):  # noqa: N818
    """The endpoint could not be reached for longer than its roles wait."""


@dataclass(slots=True, eq=False)
class Slot:
    """An attempt in flight; what happened to it is noted here before the slot is given back.

    Attributes:
        role: whose.
        tokens: as reserved.
        epoch: the endpoint's, when it was sent.
        end: what it showed of the endpoint.
        asked: seconds to wait that a refusing server asked for, if it did.
        told: the error of a refusal or of a failed connection.
        used: tokens; None counts all that were reserved.
        probe: whether it tests if the endpoint is back.
    """

    role: str
    tokens: int
    epoch: int
    end: AttemptOutcome = "other"
    asked: float | None = None
    told: str = ""
    used: int | None = None
    probe: bool = False


@dataclass(slots=True, order=True)
class _Waiting:
    rank: bool
    number: int
    tokens: int = field(compare=False)
    place: asyncio.Future[Slot] = field(compare=False)


class Slots:
    """Slots of one endpoint on one event loop; first come, first served within a rank.

    A refused call rejoins at the end, so that one that is always refused holds up no others.

    Args:
        pace: what the endpoint takes.
        outage: whether it can be reached.
        quotas: what each of its roles may send.
        sleep: how a pause is waited for. Where it returns early, as in tests, the time counts as gone by.
        went_away: is given the error when the endpoint can no longer be reached.
        came_back: is given the seconds that it was away.

    Attributes:
        in_flight: attempts that hold a slot.
    """

    def __init__(
        self,
        pace: Pace,
        outage: Outage,
        quotas: Mapping[str, Quota],
        sleep: Sleep,
        went_away: Callable[[str], None],
        came_back: Callable[[float], None],
    ) -> None:
        self._pace = pace
        self._outage = outage
        self._went_away = went_away
        self._came_back = came_back
        self._quotas = quotas
        self._sleep = sleep
        self._flying = dict.fromkeys(quotas, 0)
        self.in_flight = 0
        self._queues: dict[str, list[_Waiting]] = {role: [] for role in quotas}
        self._numbers = count()
        self._skipped = 0.0
        self._timer: asyncio.Task[None] | None = None
        self._due = math.inf

    async def take(self, role: str, tokens: int) -> Slot:
        """Wait for a slot, which has to be given back.

        Raises:
            Unanswered: the endpoint lets nothing through.
            Away: it stays away.
        """
        now = self._now()
        queue = self._queues[role]
        if not queue and not self._wait(now, role, tokens):
            return self._send(now, role, tokens)
        place: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        heapq.heappush(queue, _Waiting(_PREFETCHING.get(), next(self._numbers), tokens, place))
        self.advance()
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                slot = place.result()
                slot.used = 0
                self.give(slot)
            else:
                place.cancel()
                self.advance()
            raise

    def give(self, slot: Slot) -> None:
        """Give a slot back."""
        pace, flying = self._pace, self.in_flight
        if slot.end == "served":
            pace.served(slot.epoch, flying)
        elif slot.end == "strained":
            pace.strained(slot.epoch, flying)
        elif slot.end == "refused":
            pace.refused(slot.epoch, self._now(), flying, slot.asked)
        self.in_flight -= 1
        self._flying[slot.role] -= 1
        if slot.used is not None:
            self._quotas[slot.role].ended(slot.tokens - slot.used)
        self._note_outage(slot)
        if self.dead and slot.end == "refused":
            self._give_up(Unanswered(slot.told))
        elif self.away and slot.end == "unreachable":
            self._give_up(Away(slot.told))
        self.advance()

    def _note_outage(self, slot: Slot) -> None:
        """Open or close the outage by what an attempt met, and report it."""
        outage = self._outage
        outage.ended(slot.probe)
        if slot.end == "unreachable" and outage.known and not self._pace.held:
            if outage.missed(self._now()):
                self._went_away(slot.told)
        elif slot.end in ("served", "refused", "answered"):
            seconds = outage.answered(self._now())
            if seconds is not None:
                self._pace.recovered()
                self._came_back(seconds)

    @property
    def awaited(self) -> bool:
        """Whether a call that cannot reach the endpoint waits until it is back."""
        return self._outage.known

    @property
    def away(self) -> bool:
        """Whether the endpoint could not be reached for longer than its roles wait."""
        return self._outage.over

    @property
    def served(self) -> int:
        """Number of attempts that came back whole so far."""
        return self._pace.admitted

    @property
    def dead(self) -> bool:
        """Whether the endpoint has let nothing through for longer than anybody waits."""
        return self._pace.dead

    def wake(self) -> None:
        """Check again which calls may go, after the endpoint was opened from outside."""
        if any(self._queues.values()):
            with suppress(RuntimeError):  # without a running loop nobody waits any more
                self.advance()

    def advance(self) -> None:
        """Release the calls that may go now, and set the timer for the next one."""
        now = self._now()
        while True:
            best, soonest = self._next(now)
            if best is None:
                break
            waiting = heapq.heappop(self._queues[best])
            waiting.place.set_result(self._send(now, best, waiting.tokens))
        self._arm(now, soonest)

    def _next(self, now: float) -> tuple[str | None, float]:
        """The role whose first waiting call may go, else the seconds until one may."""
        first: _Waiting | None = None
        best, soonest = None, math.inf
        for role, queue in self._queues.items():
            while queue and queue[0].place.done():
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
        wait = max(self._pace.wait(now, self.in_flight), self._outage.wait(now))
        return max(wait, self._quotas[role].wait(now, self._flying[role], tokens)) if wait < math.inf else wait

    def _send(self, now: float, role: str, tokens: int) -> Slot:
        self.in_flight += 1
        self._flying[role] += 1
        self._quotas[role].sent(now, tokens)
        return Slot(role, tokens, self._pace.sent(now), probe=self._outage.sent())

    def _give_up(self, problem: Unanswered | Away) -> None:
        for queue in self._queues.values():
            for waiting in queue:
                if not waiting.place.done():
                    waiting.place.set_exception(type(problem)(*problem.args))
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
    """The learned pace of each endpoint, and the queue in front of it, which belongs to an event loop.

    Args:
        roles: all that may call.
        concurrency: the most attempts in flight at one endpoint, where a role does not declare its own.
        retries: how long refusals are waited for.
        sleep: how a pause is waited for.

    Attributes:
        hear: is given a sentence when an endpoint goes out of reach and when it is back.
        lost: the first error of an endpoint that stayed out of reach.
    """

    def __init__(self, roles: Mapping[str, Role], concurrency: int, retries: RetryPolicy, sleep: Sleep) -> None:
        self.sleep = sleep
        self.hear: Callable[[str], None] = lambda note: None
        self.lost: EndpointUnreachable | None = None
        self._endpoint = {name: role.endpoint.id for name, role in roles.items()}
        self._quotas: dict[str, dict[str, Quota]] = {}
        self._roles: dict[str, list[Role]] = {}
        ceilings: dict[str, int] = {}
        for name, role in roles.items():
            at, declared = role.endpoint.id, role.plan.pacing
            self._quotas.setdefault(at, {})[name] = Quota(declared)
            self._roles.setdefault(at, []).append(role)
            ceilings[at] = max(ceilings.get(at, 0), declared.concurrency or concurrency)
        self._paces = {at: Pace(ceiling, retries) for at, ceiling in ceilings.items()}
        self._outages = {at: Outage(_patience(same), retries) for at, same in self._roles.items()}
        self.move()

    def move(self) -> None:
        """Forget the event loop, because another one takes over; what was learned stays."""
        for outage in self._outages.values():
            outage.forget()
        self._slots = {
            at: Slots(
                pace, self._outages[at], self._quotas[at], self.sleep, partial(self._left, at), partial(self._back, at)
            )
            for at, pace in self._paces.items()
        }

    def _left(self, at: str, told: str) -> None:
        wait = self._outages[at].patience
        until = "" if math.isinf(wait) else f", for {_time(wait)} at most"
        self.hear(f"{describe_roles(self._roles[at])} cannot be reached: {told}; its calls wait{until}")

    def _back(self, at: str, seconds: float) -> None:
        self.hear(f"{describe_roles(self._roles[at])} answers again after {_time(seconds)}")

    def slots(self, role: str) -> Slots:
        """The queue in front of a role's endpoint."""
        return self._slots[self._endpoint[role]]

    def answered(self, role: str) -> None:
        """Note that a role's endpoint answered: from here on a lost connection is an outage."""
        self._outages[self._endpoint[role]].known = True

    def away(self, role: str, told: str) -> EndpointUnreachable:
        """The error that ends a run whose endpoint stays away."""
        at = self._endpoint[role]
        seconds = self._outages[at].patience
        self.lost = self.lost or EndpointUnreachable(
            f"{describe_roles(self._roles[at])} could not be reached for {_time(seconds)}: {told}",
            hint=FIXES["away"].format(longer=_time(2 * seconds)),
        )
        return self.lost

    def hold(self, role: str) -> None:
        """Send nothing more to a role's endpoint until `free`; what is in flight goes on, all else waits."""
        self._paces[self._endpoint[role]].held = True

    def free(self, role: str) -> None:
        """Open the endpoint again, as one of which nothing is known."""
        self._paces[self._endpoint[role]].reopen()
        self._outages[self._endpoint[role]].forget()
        self.slots(role).wake()


def _patience(roles: list[Role]) -> float:
    """The longest that one of the roles waits; a server that skillc starts is started again instead."""
    own = any(role.endpoint.launch is not None and role.endpoint.launch.address is None for role in roles)
    return math.inf if own else max(float(role.plan.pacing.down) for role in roles)


def _time(seconds: float) -> str:
    """A duration as programs write it: `45 s`, `5 min`."""
    if seconds >= 60 and round(seconds) % 60 == 0:
        return f"{round(seconds) // 60} min"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s".replace(".0 s", " s")
