"""The requests a second that an endpoint admits, learned from its refusals."""

from __future__ import annotations

import math

_BELOW = 0.95  # of the estimate, so that what was overdrawn is paid back
_PLATEAU = 0.97  # of the rate that was refused
_GROWTH = 0.05  # of the plateau, in as long again as the way to it took
_SECONDS, _REQUESTS = 10.0, 100  # the way to the plateau takes so long, or as long as so many requests
_SLOWEST = 1 / 60
_INSTANT = 5e-3


class Rate:
    """Spaces requests once a second refusal has told how many there may be.

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
