"""What calls cost: accounts with caps, the books of a run, and the reserve for its final test.

Nothing is sent without a reservation, and no cap is exceeded, not by one call. `charged` counts every logical call
once, from the network or the cache: it is pure, and decides where a run stops. `paid` counts what the network took,
retries and orphaned attempts included. The invariants are in docs/design/budgets.md.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from pydantic import JsonValue

from skillc.budget.bounds import Bounds
from skillc.budget.spend import Spend
from skillc.errors import SkillcError
from skillc.language.loop import BudgetPlan
from skillc.models.calls import Usage
from skillc.models.failures import BudgetReached

_NANO_A_DOLLAR = 1_000_000_000


class Spending(NamedTuple):
    """Calls, tokens, and nano-dollars."""

    calls: int = 0
    tokens: int = 0
    cost: int = 0

    def plus(self, other: Spending) -> Spending:
        """The sum."""
        return Spending(self.calls + other.calls, self.tokens + other.tokens, self.cost + other.cost)

    def minus(self, other: Spending) -> Spending:
        """The difference."""
        return Spending(self.calls - other.calls, self.tokens - other.tokens, self.cost - other.cost)

    def most(self, other: Spending) -> Spending:
        """The larger of each."""
        return Spending(max(self.calls, other.calls), max(self.tokens, other.tokens), max(self.cost, other.cost))

    def times(self, count: int) -> Spending:
        """So many times as much."""
        return Spending(self.calls * count, self.tokens * count, self.cost * count)


@dataclass(frozen=True, slots=True)
class Caps:
    """The most of each; None means no cap."""

    calls: int | None = None
    tokens: int | None = None
    cost: int | None = None

    @classmethod
    def of(cls, budget: BudgetPlan) -> Caps:
        """The caps that a program declares; dollars become whole nano-dollars, rounded down."""
        cost = None if budget.cost is None else int(Fraction(budget.cost) * _NANO_A_DOLLAR)
        return cls(budget.calls, budget.tokens, cost)

    def passed_by(self, amount: Spending) -> str | None:
        """The first cap that an amount passes."""
        caps = {"calls": self.calls, "tokens": self.tokens, "cost": self.cost}
        for (name, cap), value in zip(caps.items(), amount, strict=True):
            if cap is not None and value > cap:
                return name
        return None


class Account:
    """Reservations are granted first in, first out; all on one event loop.

    The head of the queue that does not fit waits for what is in flight, since each settlement frees the difference
    between the worst case and what was used. If nothing is in flight and it still does not fit, the account is closed:
    the head and all behind it get `BudgetReached`. So where a run stops depends on the order of its calls alone.
    """

    def __init__(self, caps: Caps) -> None:
        self._caps = caps
        self._queue: deque[tuple[Spending, asyncio.Future[None]]] = deque()
        self._aside = Spending()
        self.spent = Spending()
        self.reserved = Spending()
        self.largest = Spending()
        self.closed_by: str | None = None
        self._refusal: SkillcError | None = None

    def ask(self, amount: Spending) -> asyncio.Future[None]:
        """Take a place in the queue; the future is done when the amount is reserved, or raises.

        It raises `BudgetReached`, or what `refuse` was given.
        """
        self.largest = self.largest.most(amount)
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((amount, granted))
        self._advance()
        return granted

    async def reserve(self, amount: Spending) -> None:
        """Wait until the amount is reserved.

        Raises:
            BudgetReached: a cap does not admit it.
        """
        await self.granted(amount, self.ask(amount))

    def try_reserve(self, amount: Spending) -> bool:
        """Reserve an amount now if it fits and the queue is empty; close nothing where it does not."""
        self._advance()
        if self._queue or self.closed_by or self._refusal is not None or self._passed(amount):
            return False
        self.reserved = self.reserved.plus(amount)
        return True

    async def granted(self, amount: Spending, place: asyncio.Future[None]) -> None:
        """Wait for a place that `ask` gave; a caller that is cancelled leaves the queue and holds nothing."""
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.release(amount)
            else:
                place.cancel()
                self._advance()
            raise

    def settle(self, reserved: Spending, actual: Spending) -> None:
        """Replace a reservation by what was used."""
        self.spent = self.spent.plus(actual)
        self.release(reserved)

    def release(self, reserved: Spending) -> None:
        """Give a reservation back."""
        self.reserved = self.reserved.minus(reserved)
        self._advance()

    def set_aside(self, amount: Spending) -> None:
        """Keep an amount from all calls until `open_reserve`: what the final test will need."""
        self._aside = amount

    def open_reserve(self) -> None:
        """Free what was set aside, and reopen an account that its caps had closed."""
        self._aside = Spending()
        self.closed_by = None

    def admits(self, calls: int) -> bool:
        """Whether so many calls, each as large as the largest so far, would fit beside all that is spent and kept."""
        return self._passed(self.largest.times(calls)) is None

    def refuse(self, problem: SkillcError) -> None:
        """Refuse all calls from here on, those that wait included: what one call used passed what it had reserved."""
        self._refusal = self._refusal or problem
        self._advance()

    def check(self) -> None:
        """Raise what `refuse` was given: for a call that has reserved and waits to be sent."""
        if self._refusal is not None:
            raise self._refusal

    def _passed(self, amount: Spending) -> str | None:
        return self._caps.passed_by(self.spent.plus(self.reserved).plus(self._aside).plus(amount))

    def _advance(self) -> None:
        while self._queue:
            amount, granted = self._queue[0]
            if granted.cancelled():
                self._queue.popleft()
                continue
            if self._refusal is not None:
                self._queue.popleft()
                granted.set_exception(self._refusal)
                continue
            passed = None if self.closed_by else self._passed(amount)
            if passed and self.reserved.calls:
                return
            self._queue.popleft()
            if self.closed_by or passed:
                self.closed_by = self.closed_by or passed
                granted.set_exception(BudgetReached(str(self.closed_by)))
            else:
                self.reserved = self.reserved.plus(amount)
                granted.set_result(None)


@dataclass(slots=True)
class Tally:
    """Running totals.

    Attributes:
        cost: nano-dollars.
        unpriced: calls whose price is not known.
        bounds: calls whose usage was not reported, so that their reservation is counted.
        bound_tokens: tokens of those calls, a part of `prompt` and `completion`.
    """

    calls: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int = 0
    cost: int = 0
    unpriced: int = 0
    bounds: int = 0
    bound_tokens: int = 0

    def add(self, usage: Usage, cost: int | None) -> None:
        """Count one call."""
        self.calls += 1
        self.prompt += usage.prompt
        self.cached += usage.cached
        self.completion += usage.completion
        self.reasoning += usage.reasoning
        self.cost += cost or 0
        self.unpriced += cost is None
        self.bounds += usage.bound
        self.bound_tokens += usage.total if usage.bound else 0

    def as_json(self) -> dict[str, JsonValue]:
        """By name; `cost` is null where a call had no known price."""
        return {
            "calls": self.calls,
            "prompt": self.prompt,
            "cached": self.cached,
            "completion": self.completion,
            "reasoning": self.reasoning,
            "tokens": self.prompt + self.completion,
            "cost_nano": None if self.unpriced else self.cost,
            "bounds": {"calls": self.bounds, "tokens": self.bound_tokens},
        }


# Role and stage.
Where: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class Book:
    """One account with its totals per (role, stage)."""

    account: Account
    lines: dict[Where, Tally] = field(default_factory=dict)

    def settle(self, where: Where, reserved: Spending, usage: Usage, cost: int | None) -> None:
        """Replace a reservation by what one call used."""
        self.lines.setdefault(where, Tally()).add(usage, cost)
        self.account.settle(reserved, Spending(1, usage.total, cost or 0))

    def as_json(self) -> dict[str, JsonValue]:
        """The total, and a line per role and stage in alphabetical order."""
        total = Tally()
        lines: list[JsonValue] = []
        for (role, stage), tally in sorted(self.lines.items()):
            lines.append({"role": role, "stage": stage, **tally.as_json()})
            for name in Tally.__slots__:
                setattr(total, name, getattr(total, name) + getattr(tally, name))
        return {"total": total.as_json(), "lines": lines}


class Ledger:
    """The two books of a run."""

    def __init__(self, budget: BudgetPlan) -> None:
        caps = Caps.of(budget)
        self.charged = Book(Account(caps))
        self.paid = Book(Account(caps))

    @property
    def stopped(self) -> str | None:
        """The cap that stopped the run, None while none has."""
        return self.charged.account.closed_by or self.paid.account.closed_by

    def set_aside(self, amount: Spending) -> None:
        """Keep an amount for the final test."""
        self.charged.account.set_aside(amount)
        self.paid.account.set_aside(amount)

    def open_reserve(self) -> None:
        """Free what was set aside, for the final test."""
        self.charged.account.open_reserve()
        self.paid.account.open_reserve()

    def snapshot(self) -> dict[str, JsonValue]:
        """Both books as JSON values: totals, and a line per role and stage. Costs in nano-dollars, null if unknown."""
        return {"charged": self.charged.as_json(), "paid": self.paid.as_json(), "stopped": self.stopped}


_BASELINE = "baseline"
_TEST = "final test"


class ClosingReserve:
    """The final test of two skills as the plan estimates it, corrected by what the baseline took.

    Where the baseline took more than its own estimate (the provider counts other tokens than the plan, attempts were
    tried again), the test is taken to do so in the same proportion. On top comes the reservation of one largest call:
    a call is sent only where its worst case fits, the last one too.
    """

    def __init__(self, ledger: Ledger, bounds: Bounds) -> None:
        estimates = {stage.name: stage.bound.estimate for stage in bounds.stages}
        self._ledger = ledger
        self._test = estimates.get(_TEST, Spend())
        self._baseline = estimates.get(_BASELINE, Spend())
        held = [spend for role, spend in bounds.held.items() if role != "optimizer"]
        self._held = max(held, key=lambda spend: spend.tokens, default=Spend())

    def set_aside(self) -> None:
        """Set the reserve aside; call it once the baseline is done."""
        if not self._test.calls:
            return
        for book in (self._ledger.charged, self._ledger.paid):
            book.account.set_aside(self._amount(book))

    def open_reserve(self) -> None:
        """Free it, for the final test."""
        self._ledger.open_reserve()

    def _amount(self, book: Book) -> Spending:
        calls = _of_baseline(self._ledger.charged).calls
        taken, share = _of_baseline(book), Fraction(calls, max(1, self._baseline.calls))
        return Spending(
            calls=math.ceil(self._test.calls * _excess(taken.calls, calls)),
            tokens=math.ceil(
                self._test.tokens * _excess(taken.prompt + taken.completion, self._baseline.tokens * share)
            )
            + self._held.tokens,
            cost=math.ceil(_nano(self._test) * _excess(taken.cost, _nano(self._baseline) * share) + _nano(self._held)),
        )


def _of_baseline(book: Book) -> Tally:
    """The baseline's totals, all roles together."""
    total = Tally()
    for (_, stage), tally in book.lines.items():
        if stage == _BASELINE:
            total.calls += tally.calls
            total.prompt += tally.prompt
            total.completion += tally.completion
            total.cost += tally.cost
    return total


def _nano(spend: Spend) -> Fraction:
    return (spend.cost or Fraction(0)) * _NANO_A_DOLLAR


def _excess(taken: int, expected: Fraction | int) -> Fraction:
    """The ratio of taken to expected, at least 1."""
    return max(Fraction(1), Fraction(taken) / expected) if expected else Fraction(1)
