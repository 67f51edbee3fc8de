"""What a program declares that a role may send: so many at once, requests and tokens a minute."""

from __future__ import annotations

import math

from skillc.plan.schema import PacingPlan

_MINUTE = 60.0


class Bucket:
    """A token bucket: full at first, with an even inflow.

    One amount that is larger than the bucket waits until it is full, and leaves it in debt.
    """

    def __init__(self, full: float, a_minute: float) -> None:
        self._full = full
        self._a_second = a_minute / _MINUTE
        self._level = full
        self._at = -math.inf

    def wait(self, now: float, amount: float) -> float:
        """Seconds until the amount may be taken."""
        self._fill(now)
        needed = min(amount, self._full)
        # A millionth is what floats may lose on the way.
        return 0.0 if self._level >= needed * (1 - 1e-6) else (needed - self._level) / self._a_second

    def take(self, now: float, amount: float) -> None:
        """Takes the amount out."""
        self._fill(now)
        self._level -= amount

    def give(self, amount: float) -> None:
        """Puts back what was not used."""
        self._level = min(self._full, self._level + amount)

    def _fill(self, now: float) -> None:
        if now > self._at:
            self._level = min(self._full, self._level + (now - self._at) * self._a_second)
            self._at = now


class Quota:
    """The declared limits of one role. Tokens are counted as reserved when a call is sent, as used when it ends.

    A bucket holds little and gains the rest in a minute: 0.1 s worth of requests, but one at least, and 3 s worth of
    tokens. So calls come evenly, and in no minute more than is declared, unless one call reserves more tokens than the
    bucket holds.
    """

    def __init__(self, declared: PacingPlan) -> None:
        self._at_once = math.inf if declared.concurrency is None else declared.concurrency
        self._requests = self._tokens = None
        if declared.rpm is not None:
            full = max(1.0, declared.rpm / 600)
            self._requests = Bucket(full, declared.rpm + 1 - full)
        if declared.tpm is not None:
            self._tokens = Bucket(declared.tpm / 20, declared.tpm * 19 / 20)

    def wait(self, now: float, in_flight: int, tokens: int) -> float:
        """Seconds until a call may be sent; infinite where one that is in flight has to end first."""
        if in_flight >= self._at_once:
            return math.inf
        wait = 0.0
        if self._requests is not None:
            wait = self._requests.wait(now, 1)
        if self._tokens is not None:
            wait = max(wait, self._tokens.wait(now, tokens))
        return wait

    def sent(self, now: float, tokens: int) -> None:
        """A call goes out that has reserved so many tokens."""
        if self._requests is not None:
            self._requests.take(now, 1)
        if self._tokens is not None:
            self._tokens.take(now, tokens)

    def ended(self, unused: int) -> None:
        """A call ended and used so many tokens fewer than it had reserved."""
        if self._tokens is not None and unused:
            self._tokens.give(unused)
