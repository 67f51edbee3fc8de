"""What all calls cost, per role and stage, in two accounts.

`charged` counts every logical call once, whether the network or the cache answered: it is pure, and decides where a run
stops. `paid` counts what the network took, attempts and orphans included. Neither may pass a cap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from pydantic import JsonValue

from skillc.models.accounts import Account, Amount, Caps
from skillc.models.calls import Usage
from skillc.plan.schema import BudgetPlan


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
        """Counts one call."""
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

    def settle(self, where: Where, reserved: Amount, usage: Usage, cost: int | None) -> None:
        """Replaces a reservation by what one call used."""
        self.lines.setdefault(where, Tally()).add(usage, cost)
        self.account.settle(reserved, Amount(1, usage.total, cost or 0))

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

    def set_aside(self, amount: Amount) -> None:
        """Keeps an amount for the final test."""
        self.charged.account.set_aside(amount)
        self.paid.account.set_aside(amount)

    def open_reserve(self) -> None:
        """Frees what was set aside, for the final test."""
        self.charged.account.open_reserve()
        self.paid.account.open_reserve()

    def snapshot(self) -> dict[str, JsonValue]:
        """Both books as JSON values: totals, and a line per role and stage. Costs in nano-dollars, null if unknown."""
        return {"charged": self.charged.as_json(), "paid": self.paid.as_json(), "stopped": self.stopped}
