"""What is spent: calls, tokens, dollars; exact, and added up without rounding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from skillc.plan.schema import ModelPlan, PricePlan

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Spend:
    """Calls, tokens in prompts and in replies, and dollars; `cost` is None where a price is not known."""

    calls: int = 0
    prompt: int = 0
    reply: int = 0
    cost: Fraction | None = Fraction(0)

    @property
    def tokens(self) -> int:
        """Tokens sent and received."""
        return self.prompt + self.reply

    def __add__(self, other: Spend) -> Spend:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Spend(self.calls + other.calls, self.prompt + other.prompt, self.reply + other.reply, cost)

    def __mul__(self, times: int) -> Spend:
        if times == 0:
            return Spend()
        cost = None if self.cost is None else self.cost * times
        return Spend(self.calls * times, self.prompt * times, self.reply * times, cost)


def total(spends: Iterable[Spend]) -> Spend:
    """The sum."""
    result = Spend()
    for spend in spends:
        result += spend
    return result


def call(prompt: int, reply: int, price: PricePlan | None) -> Spend:
    """One call; `price` is None where nobody says it."""
    cost = None if price is None else price.call + (prompt * price.input + reply * price.output) / _MILLION
    return Spend(1, prompt, reply, cost)


def price_hint(model: ModelPlan) -> str:
    """How a price that nobody knows is declared."""
    if model.exec is not None:
        return "declare the most that one call costs: `price { call = $0.05 }`"
    return "declare it in dollars per million tokens: `price { input = $1; output = $4 }`, or `$0`"


@dataclass(frozen=True, slots=True)
class Bound:
    """The least that something may spend, an estimate, and the most."""

    least: Spend = Spend()
    estimate: Spend = Spend()
    most: Spend = Spend()

    def __add__(self, other: Bound) -> Bound:
        return Bound(self.least + other.least, self.estimate + other.estimate, self.most + other.most)

    def times(self, least: int, estimate: int, most: int) -> Bound:
        """So many times the least, so many times the estimate, so many times the most."""
        return Bound(self.least * least, self.estimate * estimate, self.most * most)
