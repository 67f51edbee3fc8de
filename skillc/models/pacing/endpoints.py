"""The pace of every endpoint; roles with one endpoint share it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skillc.models.pacing.pace import Pace
from skillc.models.pacing.quota import Quota
from skillc.models.pacing.retries import Retries
from skillc.models.pacing.slots import Sleep, Slots
from skillc.models.roles import Role


@dataclass(frozen=True, slots=True)
class PaceNow:
    """How one endpoint fares: attempts in flight at most, requests a second if they are spaced, refusals so far."""

    concurrency: int
    rate: float | None
    refusals: int


class Pacing:
    """What was learned of each endpoint, and the queue in front of it, which belongs to an event loop.

    Args:
        roles: all that may call.
        concurrency: the most attempts in flight at one endpoint, where a role does not declare its own.
        retries: how long refusals are waited for.
        sleep: how a pause is waited for.
    """

    def __init__(self, roles: Mapping[str, Role], concurrency: int, retries: Retries, sleep: Sleep) -> None:
        self.sleep = sleep
        self._endpoint = {name: role.endpoint.id for name, role in roles.items()}
        self._quotas: dict[str, dict[str, Quota]] = {}
        ceilings: dict[str, int] = {}
        for name, role in roles.items():
            at, declared = role.endpoint.id, role.plan.pacing
            self._quotas.setdefault(at, {})[name] = Quota(declared)
            ceilings[at] = max(ceilings.get(at, 0), declared.concurrency or concurrency)
        self._paces = {at: Pace(ceiling, retries) for at, ceiling in ceilings.items()}
        self.move()

    def move(self) -> None:
        """Forgets the event loop, because another one takes over; what was learned stays."""
        self._slots = {at: Slots(pace, self._quotas[at], self.sleep) for at, pace in self._paces.items()}

    def slots(self, role: str) -> Slots:
        """The queue in front of a role's endpoint."""
        return self._slots[self._endpoint[role]]

    def hold(self, role: str) -> None:
        """Sends nothing more to a role's endpoint until `free`; what is in flight goes on, all else waits."""
        self._paces[self._endpoint[role]].held = True

    def free(self, role: str) -> None:
        """Opens the endpoint again, as one of which nothing is known."""
        self._paces[self._endpoint[role]].reopen()
        self.slots(role).wake()

    def now(self) -> dict[str, PaceNow]:
        """How each endpoint fares, by its id."""
        found = {}
        for at, pace in self._paces.items():
            rate = pace.rate.value
            found[at] = PaceNow(pace.limit, rate if rate != float("inf") else None, pace.refusals)
        return found
