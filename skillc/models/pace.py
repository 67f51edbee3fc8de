"""How fast and whether one endpoint takes calls, as state machines without a clock.

Retry policy, learned rate and concurrency, declared quotas, and the circuit breaker. Times are in seconds, moments in
those of the caller's clock.
"""

from __future__ import annotations

import math
import random

from skillc.dataclass import dataclass
from skillc.plan.schema import PacingPlan


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How failed attempts are retried; times in seconds.

    Attributes:
        attempts: attempts of one call, refusals not counted.
        first: the first backoff, before the jitter.
        most: the longest backoff.
        patience: total of the pauses after which the calls of an endpoint that refuses all of them give up; with 0 a
            refusal counts as an attempt.
        refusals: refusals of one call while its endpoint serves others.
    """

    attempts: int = 6
    first: float = 0.5
    most: float = 60.0
    patience: float = 600.0
    refusals: int = 24

    def delay(self, attempt: int, asked: float | None) -> float:
        """Return the seconds to wait after attempt number `attempt`, from 0: as the server asks, else a backoff."""
        if asked is not None:
            return float(asked + random.uniform(0, min(self.first, 0.1 * asked)))
        return random.uniform(0.5, 1.0) * min(self.most, self.first * 2.0 ** min(attempt, 64))


_BELOW = 0.95  # of the estimate, to pay back requests above the rate
_PLATEAU = 0.97  # of the refused rate
_GROWTH = 0.05  # of the plateau, in as long again as the way to it took
_SECONDS, _REQUESTS = 10.0, 100  # the way to the plateau takes this long, or as long as this many requests
_SLOWEST = 1 / 60
_INSTANT = 5e-3


class Rate:
    """Spaces requests once a second refusal has shown how many the endpoint admits.

    Between two refusals a server's bucket of admissions goes from empty to empty, so its rate is at least the rate it
    admitted in that time; more if the bucket overflowed, as in a pause. It is less than the rate of requests. The
    estimate is the geometric mean of the two. From there the rate returns along a cubic to a little below the refused
    rate, and grows slowly on (as CUBIC does with its window, RFC 9438). Only time in which requests follow each other
    counts, so an idle hour forgets nothing.
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
        """Requests a second; infinite until refusals have shown it."""
        if math.isinf(self._top):
            return self._top
        way = self._grown / max(_SECONDS, _REQUESTS / self._top)
        if way < 1:
            return self._top - (self._top - self._start) * (1 - way) ** 3
        return self._top * (1 + _GROWTH * (way - 1) ** 3)

    def sent(self, now: float) -> None:
        """Note that a request is sent."""
        self._sent += 1
        value = self.value
        if math.isfinite(value):
            self._grown += min(now - self._last, 1.5 / value)
            self._spaced += min(now - self._last, 1 / value)
            self.next = now + 1 / value
        self._last = now

    def refused(self, now: float) -> None:
        """Note that a request sent since the last refusal was refused for lack of capacity."""
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
QUEUEING_START = 64
"""For a server that queues what it cannot answer yet, and refuses nothing."""
_RETURN = 0.85  # of the concurrency that was too much: up to here it doubles again after a cut
_PAUSE = 4  # requests that the first pause costs at a known rate; it doubles with each further one
_ROUNDS = 30  # refusals in a row that use up any patience
_STEP = 0.05  # of the concurrency, at least 1: growth while as many calls end as are in flight


class Pace:
    """Concurrency, pauses and spacing of one endpoint.

    The concurrency doubles while as many calls are served as are in flight (slow start), is halved at a sign of
    overload, doubles again to a little below that point, and grows slowly on. A refusal also pauses the endpoint, for
    as long as the server asks or for a backoff that grows while all calls are refused. Once refusals have shown a rate,
    requests are spaced: further refusals slow the spacing, and the concurrency only keeps up with it. Attempts that
    were sent before the last cut are no new evidence, and cut nothing. It begins with `start`,
    or with `START` if that is more.

    Attributes:
        held: whether nothing is sent until further notice.
        served_count: attempts served so far.
        dead: whether all calls were refused for longer than the patience.
    """

    def __init__(self, ceiling: int, retries: RetryPolicy, start: int = 0) -> None:
        self._ceiling = ceiling
        self._start = min(max(start, START), ceiling)
        self._retries = retries
        self._epoch = 0
        self._paused_until = -math.inf
        self.rate = Rate()
        self.held = False
        self.served_count = 0
        self._begin()

    def _begin(self) -> None:
        self._window = float(self._start)
        self._threshold = math.inf
        self._streak = 0
        self._waited = 0.0
        self.dead = False

    @property
    def _spaced(self) -> bool:
        return self.rate.value < math.inf

    @property
    def limit(self) -> int:
        """The current limit of attempts in flight."""
        return int(self._window)

    def wait(self, now: float, in_flight: int) -> float:
        """Return the seconds until an attempt may be sent; infinite if an event must come first."""
        if self.held or in_flight >= self.limit:
            return math.inf
        return max(0.0, self._paused_until - now, self.rate.next - now)

    def sent(self, now: float) -> int:
        """Note that an attempt is sent; return its epoch."""
        self.rate.sent(now)
        return self._epoch

    def served(self, epoch: int, in_flight: int) -> None:
        """Note that an attempt was served; `in_flight` still counts it, here and below."""
        self.served_count += 1
        self._streak, self._waited, self.dead = 0, 0.0, False
        step = 0.0
        if self._spaced or (epoch == self._epoch and in_flight >= self.limit and self._window < self._threshold):
            step = 1.0
        elif epoch == self._epoch and in_flight >= self.limit:
            step = max(1.0, _STEP * self._window) / self._window
        self._window = min(self._window + step, float(self._ceiling))

    def strained(self, epoch: int, in_flight: int) -> None:
        """Note that an attempt was lost or took too long."""
        if epoch == self._epoch:
            self._cut(in_flight)

    def refused(self, epoch: int, now: float, in_flight: int, asked: float | None) -> None:
        """Note that the server refused an attempt; `asked` is the seconds that it wants to be left alone."""
        if epoch != self._epoch:
            if asked is not None:
                self._pause(now, asked)
            return
        self._cut(in_flight, 1.0 if self._spaced else 0.5)
        self.rate.refused(now)
        pause = self._pause_after(asked)
        self._streak += 1
        # At least a share, so that pauses of no length end too.
        self._waited += max(pause, self._retries.patience / _ROUNDS)
        self.dead = 0 < self._retries.patience <= self._waited
        self._pause(now, min(pause, self._retries.most) if self.dead else pause)

    def _pause_after(self, asked: float | None) -> float:
        """Seconds; they grow while all calls are refused, whatever the server asks."""
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
        """Start over because the endpoint was away; the rate that its refusals have shown stays."""
        self._epoch += 1
        self._begin()

    def _pause(self, now: float, seconds: float) -> None:
        self._paused_until = max(self._paused_until, now + seconds)

    def _cut(self, in_flight: int, share: float = 0.5) -> None:
        reached = min(self._window, float(max(1, in_flight)))
        self._threshold = _RETURN * reached
        self._window = max(1.0, reached * share)
        self._epoch += 1


class Bucket:
    """A token bucket: full at first, with an even inflow, unlimited by default.

    An amount larger than the bucket waits until it is full, and leaves it in debt.
    """

    def __init__(self, full: float = math.inf, a_minute: float = math.inf) -> None:
        self._full = full
        self._a_second = a_minute / 60
        self._level = full
        self._at = -math.inf

    def wait(self, now: float, amount: float) -> float:
        """Return the seconds until the amount may be taken."""
        self._fill(now)
        needed = min(amount, self._full)
        # A millionth allows for rounding.
        return 0.0 if self._level >= needed * (1 - 1e-6) else (needed - self._level) / self._a_second

    def take(self, now: float, amount: float) -> None:
        """Take the amount out."""
        self._fill(now)
        self._level -= amount

    def give(self, amount: float) -> None:
        """Put back an unused amount."""
        self._level = min(self._full, self._level + amount)

    def _fill(self, now: float) -> None:
        if now > self._at:
            self._level = min(self._full, self._level + (now - self._at) * self._a_second)
            self._at = now


class Quota:
    """The declared limits of one role. Tokens are counted as reserved when a call is sent, as used when it ends.

    A bucket holds little and gains the rest in a minute: requests for 0.1 s, but at least one, and tokens for 3 s. So
    calls come evenly, and no minute has more than is declared, unless one call reserves more tokens than the bucket
    holds.
    """

    def __init__(self, declared: PacingPlan) -> None:
        self._concurrency = math.inf if declared.concurrency is None else declared.concurrency
        self._requests, self._tokens = Bucket(), Bucket()
        if declared.rpm is not None:
            full = max(1.0, declared.rpm / 600)
            self._requests = Bucket(full, declared.rpm + 1 - full)
        if declared.tpm is not None:
            self._tokens = Bucket(declared.tpm / 20, declared.tpm * 19 / 20)

    def wait(self, now: float, in_flight: int, tokens: int) -> float:
        """Return the seconds until a call may be sent; infinite if one in flight has to end first."""
        if in_flight >= self._concurrency:
            return math.inf
        return max(self._requests.wait(now, 1), self._tokens.wait(now, tokens))

    def sent(self, now: float, tokens: int) -> None:
        """Note that a call is sent that has reserved so many tokens."""
        self._requests.take(now, 1)
        self._tokens.take(now, tokens)

    def ended(self, unused: int) -> None:
        """Note that a call ended, and return its unused tokens."""
        self._tokens.give(unused)


# Seconds between two probes at most: a restarted server is found soon, at almost no cost.
_LONGEST_PAUSE = 10.0


class Outage:
    """Circuit breaker: opens when an endpoint that has answered before cannot be reached, closes at the next answer.

    While it is open one attempt at a time probes the endpoint, at growing intervals, and all others wait.

    Attributes:
        patience: how long the endpoint may stay out of reach.
        known: whether the endpoint has answered before.
        over: whether the endpoint stayed out of reach for longer than the patience.
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

    def wait(self, now: float) -> float:
        """Return the seconds until an attempt may be sent; infinite while a probe is in flight."""
        if self._since is None:
            return 0.0
        return math.inf if self._probing else max(0.0, self._next - now)

    def sent(self) -> bool:
        """Note that an attempt is sent; return whether it is a probe."""
        is_open = self._since is not None
        self._probing = self._probing or is_open
        return is_open

    def ended(self, probe: bool) -> None:
        """Note that an attempt ended."""
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
        """Note an answer; return the seconds that the endpoint was out of reach, None if it was not."""
        self.known = True
        since, self._since, self.over = self._since, None, False
        self._next = -math.inf
        return None if since is None else now - since

    def forget(self) -> None:
        """Close without a report: another server has the address, or another event loop takes over."""
        self._since, self.over, self._probing = None, False, False
        self._next = -math.inf
