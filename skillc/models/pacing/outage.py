"""Retries, and the circuit breaker of one endpoint, without a clock."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retries:
    """Times in seconds. The jitter spreads attempts and decides nothing.

    Attributes:
        attempts: how often one call is tried where attempts fail otherwise than by a refusal.
        first: the first backoff, before the jitter.
        most: the longest backoff.
        patience: how long, in pauses put together, an endpoint may let nothing through before its calls give up; with 0
            a refusal uses up an attempt as any other failure does.
        refusals: how often one call may be refused while its endpoint lets others through.
    """

    attempts: int = 6
    first: float = 0.5
    most: float = 60.0
    patience: float = 600.0
    refusals: int = 24

    def delay(self, attempt: int, asked: float | None) -> float:
        """Seconds before the attempt after number `attempt`, counted from 0: what the server asks, else backoff."""
        if asked is not None:
            return float(asked + random.uniform(0, min(self.first, 0.1 * asked)))
        return random.uniform(0.5, 1.0) * min(self.most, self.first * 2.0 ** min(attempt, 64))


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
        over: whether the endpoint stayed away for longer than the patience.
    """

    def __init__(self, patience: float, retries: Retries) -> None:
        self.patience = patience
        self.known = False
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

    def missed(self, now: float) -> bool:
        """Note that an attempt could not connect; return whether the outage begins with it."""
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
        """Note an answer; return the seconds that the endpoint was away, None where it was not."""
        self.known = True
        since, self._since, self.over = self._since, None, False
        self._next = -math.inf
        return None if since is None else now - since

    def forget(self) -> None:
        """Close without a report: another server answers at the same address, or another event loop takes over."""
        self._since, self.over, self._probing = None, False, False
        self._next = -math.inf
