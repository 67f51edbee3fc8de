"""An account with caps: what is not reserved is not sent, and no cap is passed, not by one call (ENGINE section 4)."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from skillc.errors import SkillcError
from skillc.models.failures import BudgetReached
from skillc.plan.schema import BudgetPlan

_NANO_A_DOLLAR = 1_000_000_000


class Amount(NamedTuple):
    """Calls, tokens, and nano-dollars."""

    calls: int = 0
    tokens: int = 0
    cost: int = 0

    def plus(self, other: Amount) -> Amount:
        """The sum."""
        return Amount(self.calls + other.calls, self.tokens + other.tokens, self.cost + other.cost)

    def minus(self, other: Amount) -> Amount:
        """The difference."""
        return Amount(self.calls - other.calls, self.tokens - other.tokens, self.cost - other.cost)

    def most(self, other: Amount) -> Amount:
        """The larger of each."""
        return Amount(max(self.calls, other.calls), max(self.tokens, other.tokens), max(self.cost, other.cost))

    def times(self, count: int) -> Amount:
        """So many times as much."""
        return Amount(self.calls * count, self.tokens * count, self.cost * count)


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

    def passed_by(self, amount: Amount) -> str | None:
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
        self._queue: deque[tuple[Amount, asyncio.Future[None]]] = deque()
        self._aside = Amount()
        self.spent = Amount()
        self.reserved = Amount()
        self.largest = Amount()
        self.closed_by: str | None = None
        self._refusal: SkillcError | None = None

    def ask(self, amount: Amount) -> asyncio.Future[None]:
        """Takes a place in the queue; the future is done when the amount is reserved, or raises.

        It raises `BudgetReached`, or what `refuse` was given.
        """
        self.largest = self.largest.most(amount)
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((amount, granted))
        self._advance()
        return granted

    async def reserve(self, amount: Amount) -> None:
        """Waits until the amount is reserved.

        Raises:
            BudgetReached: a cap does not admit it.
        """
        await self.granted(amount, self.ask(amount))

    def try_reserve(self, amount: Amount) -> bool:
        """Reserves an amount now where it fits and nobody waits; closes nothing where it does not."""
        self._advance()
        if self._queue or self.closed_by or self._refusal is not None or self._passed(amount):
            return False
        self.reserved = self.reserved.plus(amount)
        return True

    async def granted(self, amount: Amount, place: asyncio.Future[None]) -> None:
        """Waits for a place that `ask` gave; a caller that is cancelled leaves the queue and holds nothing."""
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.release(amount)
            else:
                place.cancel()
                self._advance()
            raise

    def settle(self, reserved: Amount, actual: Amount) -> None:
        """Replaces a reservation by what was used."""
        self.spent = self.spent.plus(actual)
        self.release(reserved)

    def release(self, reserved: Amount) -> None:
        """Gives a reservation back."""
        self.reserved = self.reserved.minus(reserved)
        self._advance()

    def set_aside(self, amount: Amount) -> None:
        """Keeps an amount from all calls until `open_reserve`: what the final test will need."""
        self._aside = amount

    def open_reserve(self) -> None:
        """Frees what was set aside, and opens an account that its caps had closed."""
        self._aside = Amount()
        self.closed_by = None

    def admits(self, calls: int) -> bool:
        """Whether so many calls, each as large as the largest so far, would fit beside all that is spent and kept."""
        return self._passed(self.largest.times(calls)) is None

    def refuse(self, problem: SkillcError) -> None:
        """Refuses all calls from here on, those that wait included: what one call used passed what it had reserved."""
        self._refusal = self._refusal or problem
        self._advance()

    def check(self) -> None:
        """Raises what `refuse` was given: for a call that has reserved and waits to be sent."""
        if self._refusal is not None:
            raise self._refusal

    def _passed(self, amount: Amount) -> str | None:
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
