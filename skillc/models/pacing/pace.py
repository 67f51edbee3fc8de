"""How fast one endpoint takes calls, learned from how they fare: a state machine without a clock of its own."""

from __future__ import annotations

import math

from skillc.models.pacing.rate import Rate
from skillc.models.pacing.retries import Retries

START = 16
_RETURN = 0.85  # of what was too much: as far as the concurrency doubles again after a cut
_PAUSE = 4  # requests that the first pause is worth where the rate is known, twice as many the second time
_ROUNDS = 30  # refusals in a row that use up any patience
_STEP = 0.05  # of the concurrency, or 1: what it then grows by while as many calls end as are in flight


class Pace:
    """Concurrency, pauses and spacing of one endpoint. Moments and times in seconds, of whatever clock the caller has.

    The concurrency doubles while as many calls are served as are in flight (slow start), is halved by a sign of
    overload, doubles again to a little below where that came, and grows slowly on. A refusal also pauses the endpoint,
    for as long as the server asks or for a backoff that grows while nothing is let through. Once refusals have told a
    rate, requests are spaced: further refusals slow the spacing, and the concurrency is only kept from running ahead of
    it. Attempts that were sent before the last cut tell nothing new, and cut nothing.

    Attributes:
        held: whether nothing is sent until further notice.
        admitted: how many attempts came back whole so far.
        refusals: how many were refused.
        dead: whether nothing was let through for longer than the patience.
    """

    def __init__(self, ceiling: int, retries: Retries) -> None:
        self._ceiling = ceiling
        self._retries = retries
        self._epoch = 0
        self._paused_until = -math.inf
        self.rate = Rate()
        self.held = False
        self.admitted = self.refusals = 0
        self._begin()

    def _begin(self) -> None:
        self._window = float(min(START, self._ceiling))
        self._threshold = math.inf
        self._streak = 0
        self._waited = 0.0
        self.dead = False

    @property
    def _spaced(self) -> bool:
        return self.rate.value < math.inf

    @property
    def limit(self) -> int:
        """The most attempts in flight at present."""
        return int(self._window)

    def wait(self, now: float, in_flight: int) -> float:
        """Seconds until an attempt may be sent; infinite where something has to happen first."""
        if self.held or in_flight >= self.limit:
            return math.inf
        return max(0.0, self._paused_until - now, self.rate.next - now)

    def sent(self, now: float) -> int:
        """An attempt goes out; what is returned belongs to it."""
        self.rate.sent(now)
        return self._epoch

    def served(self, epoch: int, in_flight: int) -> None:
        """An attempt came back whole; `in_flight` counts it still, here and below."""
        self.admitted += 1
        self._streak, self._waited, self.dead = 0, 0.0, False
        step = 0.0
        if self._spaced or (epoch == self._epoch and in_flight >= self.limit and self._window < self._threshold):
            step = 1.0
        elif epoch == self._epoch and in_flight >= self.limit:
            step = max(1.0, _STEP * self._window) / self._window
        self._window = min(self._window + step, float(self._ceiling))

    def strained(self, epoch: int, in_flight: int) -> None:
        """An attempt was lost on the way, or took too long."""
        if epoch == self._epoch:
            self._cut(in_flight)

    def refused(self, epoch: int, now: float, in_flight: int, asked: float | None) -> None:
        """The server sent an attempt away; `asked` is how long it wants to be left alone, in seconds."""
        self.refusals += 1
        if epoch != self._epoch:
            if asked is not None:
                self._pause(now, asked)
            return
        self._cut(in_flight, 1.0 if self._spaced else 0.5)
        self.rate.refused(now)
        pause = self._pause_after(asked)
        self._streak += 1
        # Each counts for something, so that pauses of no length come to an end as well.
        self._waited += max(pause, self._retries.patience / _ROUNDS)
        self.dead = 0 < self._retries.patience <= self._waited
        self._pause(now, min(pause, self._retries.most) if self.dead else pause)

    def _pause_after(self, asked: float | None) -> float:
        """Seconds; while nothing is let through they grow, whatever the server asks."""
        pause = self._retries.delay(self._streak, asked)
        if asked is None:
            # Where the rate is known, so is about how long a first pause is worth.
            return min(pause, _PAUSE * 2.0 ** min(self._streak, 64) / self.rate.value) if self._spaced else pause
        return max(pause, self._retries.delay(self._streak - 2, None)) if self._streak > 1 else pause

    def reopen(self) -> None:
        """Forgets pauses and failures: another server answers at the same address."""
        self.held = False
        self._paused_until = -math.inf
        self.rate = Rate()
        self._epoch += 1
        self._begin()

    def recovered(self) -> None:
        """Begins anew, because the endpoint was away; the rate that its refusals have shown stays."""
        self._epoch += 1
        self._begin()

    def _pause(self, now: float, seconds: float) -> None:
        until = now + seconds
        if until > self._paused_until:
            self._paused_until = until

    def _cut(self, in_flight: int, share: float = 0.5) -> None:
        reached = min(self._window, float(max(1, in_flight)))
        self._threshold = _RETURN * reached
        self._window = max(1.0, reached * share)
        self._epoch += 1
