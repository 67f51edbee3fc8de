"""The pace of every endpoint; roles with one endpoint share it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from skillc.models.failures import FIXES, EndpointAway
from skillc.models.pacing.outage import Outage, Retries
from skillc.models.pacing.pace import Pace, Quota
from skillc.models.pacing.slots import Sleep, Slots
from skillc.models.roles import Role, roles_named


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

    def __init__(self, roles: Mapping[str, Role], concurrency: int, retries: Retries, sleep: Sleep) -> None:
        self.sleep = sleep
        self.hear: Callable[[str], None] = lambda note: None
        self.lost: EndpointAway | None = None
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
        self.hear(f"{roles_named(self._roles[at])} cannot be reached: {told}; its calls wait{until}")

    def _back(self, at: str, seconds: float) -> None:
        self.hear(f"{roles_named(self._roles[at])} answers again after {_time(seconds)}")

    def slots(self, role: str) -> Slots:
        """The queue in front of a role's endpoint."""
        return self._slots[self._endpoint[role]]

    def answered(self, role: str) -> None:
        """Note that a role's endpoint answered: from here on a lost connection is an outage."""
        self._outages[self._endpoint[role]].known = True

    def away(self, role: str, told: str) -> EndpointAway:
        """The error that ends a run whose endpoint stays away."""
        at = self._endpoint[role]
        seconds = self._outages[at].patience
        self.lost = self.lost or EndpointAway(
            f"{roles_named(self._roles[at])} could not be reached for {_time(seconds)}: {told}",
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
