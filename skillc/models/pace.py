"""How fast and whether one endpoint takes calls, as state machines without a clock.

Retry policy, learned rate and concurrency, declared quotas, and the circuit breaker. Times are in seconds, moments in
those of the caller's clock.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from skillc.plan.schema import PacingPlan


@dataclass(frozen=True, slots=True)
class RetryPolicy:
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


_BELOW = 0.95  # of the estimate, so that what was overdrawn is paid back
_PLATEAU = 0.97  # of the rate that was refused
_GROWTH = 0.05  # of the plateau, in as long again as the way to it took
_SECONDS, _REQUESTS = 10.0, 100  # the way to the plateau takes so long, or as long as so many requests
_SLOWEST = 1 / 60
_INSTANT = 5e-3


class Rate:
    """Spaces requests once a second refusal has shown how many the endpoint admits.

    Between two refusals a server's bucket of admissions goes from empty to empty, so its rate is at least what it let
    through over that time; more, where the bucket overflowed meanwhile, as in a pause. And it is less than the rate at
    which it was asked. The estimate is the geometric mean of the two. From there the rate returns along a cubic to a
    little below what was refused, and slowly on (as CUBIC does with its window, RFC 9438). Only time in which requests
    follow each other counts, so an idle hour forgets nothing.
    """

    def __init__(self) -> None:
        self.next = -math.inf
        self._start = self._top = math.inf
        self._grown = 0.0
        self._since: float | None = None
        self._last = -math.inf
        self._sent = self._spaced = 0.0

    @property
    def value(self) -> float:
        """Requests a second; infinite as long as nothing is known."""
        if math.isinf(self._top):
            return self._top
        way = self._grown / max(_SECONDS, _REQUESTS / self._top)
        if way < 1:
            return self._top - (self._top - self._start) * (1 - way) ** 3
        return self._top * (1 + _GROWTH * (way - 1) ** 3)

    def sent(self, now: float) -> None:
        """A request goes out."""
        self._sent += 1
        value = self.value
        if math.isfinite(value):
            self._grown += min(now - self._last, 1.5 / value)
            self._spaced += min(now - self._last, 1 / value)
            self.next = now + 1 / value
        self._last = now

    def refused(self, now: float) -> None:
        """A request that was sent since the last such moment was refused for want of admissions."""
        if self._since is not None:
            self._learn(self._sent - 1, max(_INSTANT, now - self._since))
        self._since = now
        self._sent = self._spaced = 0.0

    def _learn(self, admitted: float, seconds: float) -> None:
        before = self.value
        if not admitted:
            if math.isfinite(before):
                self._start, self._grown = max(_SLOWEST, before / 2), 0.0
            return
        asked = self._sent / max(_INSTANT, self._spaced)
        found = math.sqrt(admitted / seconds * asked)
        if math.isfinite(before):
            found = min(max(found, before / 2), before * _BELOW)
        self._start = max(_SLOWEST, found)
        self._top = max(self._start, min(_PLATEAU * before, asked))
        self._grown = 0.0


START = 16
_RETURN = 0.85  # of what was too much: as far as the concurrency doubles again after a cut
_PAUSE = 4  # requests that the first pause is worth where the rate is known, twice as many the second time
_ROUNDS = 30  # refusals in a row that use up any patience
_STEP = 0.05  # of the concurrency, or 1: what it then grows by while as many calls end as are in flight


class Pace:
    """Concurrency, pauses and spacing of one endpoint. Moments and times in seconds, of whatever clock the caller has.

    The concurrency doubles while as many calls are served as are in flight (slow start), is halved by a sign of
    overload, doubles again to a little below where that came, and grows slowly on. A refusal also pauses the endpoint,
    for as long as the server asks or for a backoff that grows while nothing is let through. Once refusals have shown a
    rate, requests are spaced: further refusals slow the spacing, and the concurrency is only kept from running ahead of
    it. Attempts that were sent before the last cut show nothing new, and cut nothing.

    Attributes:
        held: whether nothing is sent until further notice.
        admitted: how many attempts came back whole so far.
        dead: whether nothing was let through for longer than the patience.
    """

    def __init__(self, ceiling: int, retries: RetryPolicy) -> None:
        self._ceiling = ceiling
        self._retries = retries
        self._epoch = 0
        self._paused_until = -math.inf
        self.rate = Rate()
        self.held = False
        self.admitted = 0
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
        """Note that an attempt is sent; return its epoch."""
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
            # A known rate bounds how long a first pause is useful.
            return min(pause, _PAUSE * 2.0 ** min(self._streak, 64) / self.rate.value) if self._spaced else pause
        return max(pause, self._retries.delay(self._streak - 2, None)) if self._streak > 1 else pause

    def reopen(self) -> None:
        """Forget pauses and failures: another server answers at the same address."""
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
        """Take the amount out."""
        self._fill(now)
        self._level -= amount

    def give(self, amount: float) -> None:
        """Put back what was not used."""
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

    def __init__(self, patience: float, retries: RetryPolicy) -> None:
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
