"""Receipts: an attempt's reservation is on the disk before it is sent, and what it used is added when it ends."""

from __future__ import annotations

from typing import Any

from skillc.models.calls import Usage
from skillc.models.failures import PermanentFailure
from skillc.models.ledger import Book, Spending, Where
from skillc.store.run_store import RunStore


class Receipts:
    """Books what the network takes, over all sessions of one run.

    An attempt that was in flight when a session was killed stays in the book with its whole reservation.

    Args:
        paid: the book, to which earlier sessions are added.
        store: where the receipts are kept; None keeps none.

    Raises:
        SkillcError: the store cannot be read.
    """

    def __init__(self, paid: Book, store: RunStore | None = None) -> None:
        self._paid = paid
        self._store = store
        self._models = store.models() if store is not None else {}
        self._next = 0
        for attempt in store.attempts() if store is not None else ():
            self._next = attempt.number + 1
            if attempt.state != "refused":
                self._add((attempt.role, attempt.stage), Spending(*attempt.reserved), attempt.used)

    async def sent(self, where: Where, reserved: Spending) -> int:
        """Record an attempt and return its number; it may be sent then."""
        number, self._next = self._next, self._next + 1
        if self._store is not None:
            await self._store.add_attempt(number, *where, reserved)
        return number

    def ended(self, number: int, where: Where, reserved: Spending, usage: Usage, cost: int | None) -> None:
        """Replace the reservation of an attempt by what it used, `cost` in nano-dollars."""
        self._paid.settle(where, reserved, usage, cost)
        if self._store is not None:
            self._store.end_attempt(number, {"usage": usage.counts, "bound": usage.bound, "cost": cost})

    def unserved(self, number: int, reserved: Spending) -> None:
        """Release the reservation of an attempt that was refused or reached nobody, which no cap counts."""
        self._paid.account.release(reserved)
        if self._store is not None:
            self._store.refuse_attempt(number)

    def answered(self, role: str, model: str) -> None:
        """Check the model that answered for a role against earlier replies.

        Raises:
            PermanentFailure: it is another one than earlier in this run.
        """
        before = self._models.get(role)
        if before is None:
            self._models[role] = model
            if self._store is not None:
                self._store.add_model(role, model)
        elif before != model:
            raise PermanentFailure(
                f"model `{role}` answered as `{before}` earlier in this run and answers as `{model}` now",
                hint="scores of two models are never mixed: name one version of the model, or start anew: `--fresh`",
            )

    def _add(self, where: Where, reserved: Spending, used: dict[str, Any] | None) -> None:
        self._paid.account.reserved = self._paid.account.reserved.plus(reserved)
        if used is None:
            self._paid.settle(where, reserved, Usage(prompt=reserved.tokens, bound=True), reserved.cost)
        else:
            self._paid.settle(where, reserved, Usage.of(used["usage"], used["bound"]), used["cost"])
