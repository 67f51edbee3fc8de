"""What a run keeps back for its final test, so that a cap that ends the loop still leaves it a result."""

from __future__ import annotations

import math
from fractions import Fraction

from skillc.budget.bounds import Bounds
from skillc.budget.spend import Spend
from skillc.models.accounts import Amount
from skillc.models.ledger import Book, Ledger, Tally

_BASELINE = "baseline"
_TEST = "final test"
_NANO_A_DOLLAR = 10**9


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
        """Keeps it back from here on; to be called once the baseline is done."""
        if not self._test.calls:
            return
        for book in (self._ledger.charged, self._ledger.paid):
            book.account.set_aside(self._amount(book))

    def open_reserve(self) -> None:
        """Frees it, for the final test."""
        self._ledger.open_reserve()

    def _amount(self, book: Book) -> Amount:
        calls = _of_baseline(self._ledger.charged).calls
        taken, share = _of_baseline(book), Fraction(calls, max(1, self._baseline.calls))
        return Amount(
            calls=math.ceil(self._test.calls * _excess(taken.calls, calls)),
            tokens=math.ceil(
                self._test.tokens * _excess(taken.prompt + taken.completion, self._baseline.tokens * share)
            )
            + self._held.tokens,
            cost=math.ceil(_nano(self._test) * _excess(taken.cost, _nano(self._baseline) * share) + _nano(self._held)),
        )


def _of_baseline(book: Book) -> Tally:
    """What the baseline took, all roles together."""
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
    """How many times as much was taken as was expected, at least 1."""
    return max(Fraction(1), Fraction(taken) / expected) if expected else Fraction(1)
