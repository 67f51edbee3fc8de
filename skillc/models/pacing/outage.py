"""Whether one endpoint can be reached at all: a circuit breaker without its own clock."""

from __future__ import annotations

import math

from skillc.models.pacing.retries import Retries

# Seconds between two probes at most: a server that was started again is found soon, at next to no cost.
_LONGEST_PAUSE = 10.0


class Outage:
    """Opens when an endpoint that has answered before cannot be reached; the next answer of any kind closes it.

    While it is open one attempt at a time probes the endpoint, at growing intervals, and all others wait. Moments and
    times in seconds, of whatever clock the caller has.

    Args:
        patience: how long the endpoint may stay away.
        retries: how the intervals between probes grow.

    Attributes:
        known: whether the endpoint has answered before; one that never did is none that went away.
        told: why the last attempt reached nobody.
        over: whether the endpoint stayed away for longer than the patience.
    """

    def __init__(self, patience: float, retries: Retries) -> None:
        self.patience = patience
        self.known = False
        self.told = ""
        self.over = False
        self._retries = retries
        self._since: float | None = None
        self._next = -math.inf
        self._probes = 0
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Whether the endpoint is away."""
        return self._since is not None

    def wait(self, now: float) -> float:
        """Seconds until an attempt may be sent; infinite while a probe is under way."""
        if not self.is_open:
            return 0.0
        return math.inf if self._probing else max(0.0, self._next - now)

    def sent(self) -> bool:
        """An attempt goes out; returns whether it is a probe."""
        self._probing = self._probing or self.is_open
        return self.is_open

    def ended(self, probe: bool) -> None:
        """An attempt came to its end, whatever that was."""
        if probe:
            self._probing = False

    def missed(self, now: float, told: str) -> bool:
        """An attempt reached nobody; returns whether the outage begins with it."""
        self.told = told
        begins = self._since is None
        if self._since is None:
            self._since, self._probes = now, 0
        end = self._since + self.patience
        self.over = now >= end
        pause = min(_LONGEST_PAUSE, self._retries.delay(self._probes, None))
        self._probes += 1
        # The last probe comes when the patience ends, not before.
        self._next = min(now + pause, end) if now < end else now + pause
        return begins

    def answered(self, now: float) -> float | None:
        """Somebody answered; returns the seconds that the endpoint was away, None where it was not."""
        self.known = True
        since, self._since, self.over = self._since, None, False
        self._next = -math.inf
        return None if since is None else now - since

    def forget(self) -> None:
        """Closes without a report: another server answers at the same address, or another event loop takes over."""
        self._since, self.over, self._probing = None, False, False
        self._next = -math.inf
