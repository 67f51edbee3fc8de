"""An estimate of the time that a run still takes: calls that the plan expects, at the rate measured so far.

It is for display only. It counts every planned step, so a run that ends by `patience` or with a perfect skill is done
sooner; a cap that ends it sooner is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from skillc.budget.bounds import Bounds
from skillc.language.loop import BudgetPlan

# There is no estimate before so many calls were answered over so many seconds.
LEAST_CALLS = 20
LEAST_SECONDS = 10.0
FINAL = ("final test", "final test again", "no skill")


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """Calls that the plan expects.

    Attributes:
        before: before the first step.
        step: in one step, epoch ends included.
        steps: number of steps; 0 where the run has none, and `before` is all of it.
        after: final test and comparison with no skill.
    """

    before: int
    step: Fraction = Fraction(0)
    steps: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True)
class RunUsage:
    """Calls, tokens and nano-dollars that were charged, and calls that were sent; `cost` is None if unknown."""

    calls: int = 0
    tokens: int = 0
    cost: int | None = 0
    sent: int = 0


def expected_calls(bounds: Bounds, *, own_method: bool) -> ExpectedCalls:
    """The calls of a compile as its plan estimates them."""
    if not own_method:
        return ExpectedCalls(bounds.estimate.calls)
    steps = max(1, bounds.expected_steps)
    repeated = sum(stage.bound.estimate.calls for stage in bounds.stages if stage.each_step)
    once = {stage.name: stage.bound.estimate.calls for stage in bounds.stages if not stage.each_step}
    after = sum(once.get(name, 0) for name in FINAL)
    return ExpectedCalls(sum(once.values()) - after, Fraction(repeated, steps), steps, after)


class TimeLeft:
    """Measures the rate of calls and estimates what is left.

    Args:
        expected: None where nothing is known of it.
        budget: its caps.
        clock: seconds, from anywhere.
    """

    def __init__(
        self, expected: ExpectedCalls | None, budget: BudgetPlan, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._expected, self._budget, self._clock = expected, budget, clock
        self._start: tuple[float, int] | None = None
        self._first_sent: int | None = None
        self._at_first_step = self._at_step = self._at_end = RunUsage()
        self._step = 0
        self._ending = False

    def step(self, number: int, spent: RunUsage) -> None:
        """Step `number`, from 1, begins."""
        self.elapsed(spent)
        if self._step == 0:
            self._at_first_step = spent
        if number > self._step:
            self._step, self._at_step = number, spent

    def stage(self, name: str, spent: RunUsage) -> None:
        """A stage begins."""
        self.elapsed(spent)
        if name in FINAL and not self._ending:
            self._ending, self._at_end = True, spent

    @property
    def started(self) -> bool:
        """Whether a call was sent."""
        return self._start is not None

    def elapsed(self, spent: RunUsage) -> float | None:
        """Seconds since the first call was sent; None before. What the cache answers takes no time."""
        if self._first_sent is None:
            self._first_sent = spent.sent
        if self._start is None and spent.sent > self._first_sent:
            self._start = self._clock(), self._first_sent
        return None if self._start is None else self._clock() - self._start[0]

    def seconds(self, spent: RunUsage) -> float | None:
        """About how many seconds are left; None while too little was measured."""
        elapsed = self.elapsed(spent)
        if self._expected is None or elapsed is None or self._start is None:
            return None
        sent = spent.sent - self._start[1]
        if sent < LEAST_CALLS or elapsed < LEAST_SECONDS:
            return None
        left = float(self._capped(self._calls(self._expected, spent), spent)) * elapsed / sent
        if self._budget.time is not None:
            left = min(left, max(0.0, float(self._budget.time) - elapsed))
        return left

    def _calls(self, expected: ExpectedCalls, spent: RunUsage) -> Fraction:
        if self._ending:
            return Fraction(max(0, expected.after - (spent.calls - self._at_end.calls)))
        if self._step == 0:
            done = max(0, expected.before - spent.calls)
            return done + expected.step * expected.steps + expected.after
        whole = self._step - 1
        # The plan's figure counts as one step beside those that were measured.
        each = (expected.step + self._at_step.calls - self._at_first_step.calls) / (1 + whole)
        open_ = max(Fraction(0), each - (spent.calls - self._at_step.calls))
        return open_ + each * max(0, expected.steps - self._step) + expected.after

    def _capped(self, calls: Fraction, spent: RunUsage) -> Fraction:
        """No more calls than the caps admit, at what one has taken so far."""
        budget = self._budget
        if budget.calls is not None:
            calls = min(calls, Fraction(max(0, budget.calls - spent.calls)))
        if budget.tokens is not None and spent.tokens:
            calls = min(calls, Fraction(max(0, budget.tokens - spent.tokens) * spent.calls, spent.tokens))
        if budget.cost is not None and spent.cost:
            left = max(Fraction(0), budget.cost * 10**9 - spent.cost)
            calls = min(calls, left * spent.calls / spent.cost)
        return calls


def describe_seconds_left(seconds: float) -> str:
    """`about 40 s left`, `about 12 min left`, `about 2.5 h left`."""
    if seconds < 90:
        return f"about {max(10, round(seconds, -1)):.0f} s left"
    minutes = seconds / 60
    return f"about {minutes:.0f} min left" if minutes < 90 else f"about {minutes / 60:.1f} h left"
