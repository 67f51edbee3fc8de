"""Estimated time left of a run: the calls that the plan expects, at the rate measured so far; for display only.

The estimate counts every planned step, and the caps. A run that ends by `patience` or with a perfect skill ends sooner.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from fractions import Fraction

from pydantic import JsonValue

from skillc.budget.bounds import Bounds
from skillc.dataclass import dataclass
from skillc.json_values import objects_in
from skillc.language.loop import BudgetPlan
from skillc.plan.schema import Plan

# Minimum evidence for an estimate.
LEAST_CALLS = 20
LEAST_SECONDS = 10.0
FINAL = ("final test", "final test again", "no skill", "always read")


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """Calls that the plan expects.

    Attributes:
        before: before the first step.
        step: in one step, epoch ends included.
        steps: number of steps; 0 for a run without steps.
        after: final test and comparison with no skill.
    """

    before: int
    step: Fraction = Fraction(0)
    steps: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True)
class RunUsage:
    """Charged calls, tokens and nano-dollars (None if unknown), and sent calls."""

    calls: int = 0
    tokens: int = 0
    cost: int | None = 0
    sent: int = 0

    @classmethod
    def read(cls, snapshot: Mapping[str, JsonValue]) -> RunUsage:
        """Read the totals of a ledger's snapshot."""
        charged, paid = book_total(snapshot, "charged"), book_total(snapshot, "paid")
        cost = charged.get("cost_nano", 0)
        cost = cost if isinstance(cost, int) else None
        return cls(_whole(charged.get("calls")), _whole(charged.get("tokens")), cost, _whole(paid.get("calls")))


def book_total(snapshot: Mapping[str, JsonValue], book: str) -> Mapping[str, JsonValue]:
    """Return the total of one book (`charged`, `paid`) of a ledger's snapshot."""
    lines = snapshot.get(book)
    total = lines.get("total") if isinstance(lines, dict) else None
    return total if isinstance(total, dict) else {}


def role_totals(snapshot: Mapping[str, JsonValue]) -> dict[str, RunUsage]:
    """Return the charged usage of each role in a ledger's snapshot; `sent` is not known by role."""
    book = snapshot.get("charged")
    found: dict[str, RunUsage] = {}
    for line in objects_in(book.get("lines")) if isinstance(book, dict) else ():
        before = found.get(str(line["role"]), RunUsage())
        cost = line.get("cost_nano")
        known = isinstance(cost, int) and before.cost is not None
        found[str(line["role"])] = RunUsage(
            before.calls + _whole(line.get("calls")),
            before.tokens + _whole(line.get("tokens")),
            (before.cost or 0) + int(str(cost)) if known else None,
        )
    return found


def _whole(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def expected_calls(bounds: Bounds, plan: Plan) -> ExpectedCalls:
    """Return the calls of a compile as its plan estimates them."""
    if plan.optimize.method != "skillc":
        return ExpectedCalls(bounds.total.estimate.calls)
    steps = max(1, bounds.expected_steps)
    repeated = sum(stage.bound.estimate.calls for stage in bounds.stages if stage.each_step)
    once = {stage.name: stage.bound.estimate.calls for stage in bounds.stages if not stage.each_step}
    after = sum(once.get(name, 0) for name in FINAL)
    return ExpectedCalls(sum(once.values()) - after, Fraction(repeated, steps), steps, after)


class TimeLeft:
    """Measures the rate of calls and estimates what is left.

    Args:
        expected: None for no estimate.
        clock: a monotonic clock in seconds.
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
        """Note that step `number` begins, counted from 1."""
        self.elapsed(spent)
        if self._step == 0:
            self._at_first_step = spent
        if number > self._step:
            self._step, self._at_step = number, spent

    def stage(self, name: str, spent: RunUsage) -> None:
        """Note that a stage begins."""
        self.elapsed(spent)
        if name in FINAL and not self._ending:
            self._ending, self._at_end = True, spent

    @property
    def started(self) -> bool:
        """Return whether a call was sent."""
        return self._start is not None

    def elapsed(self, spent: RunUsage) -> float | None:
        """Return the seconds since the first call was sent, None before; cached replies take no time."""
        if self._first_sent is None:
            self._first_sent = spent.sent
        if self._start is None and spent.sent > self._first_sent:
            self._start = self._clock(), self._first_sent
        return None if self._start is None else self._clock() - self._start[0]

    def seconds(self, spent: RunUsage) -> float | None:
        """Return the estimated seconds left, None while too little was measured."""
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
        # The plan's estimate counts as one step in addition to the measured ones.
        each = (expected.step + self._at_step.calls - self._at_first_step.calls) / (1 + whole)
        open_ = max(Fraction(0), each - (spent.calls - self._at_step.calls))
        return open_ + each * max(0, expected.steps - self._step) + expected.after

    def _capped(self, calls: Fraction, spent: RunUsage) -> Fraction:
        """Limit calls to what the caps admit, at the measured usage per call."""
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
    """Return a duration in words: `about 40 s left`, `about 12 min left`, `about 2.5 h left`."""
    if seconds < 90:
        return f"about {max(10, round(seconds, -1)):.0f} s left"
    minutes = seconds / 60
    return f"about {minutes:.0f} min left" if minutes < 90 else f"about {minutes / 60:.1f} h left"
