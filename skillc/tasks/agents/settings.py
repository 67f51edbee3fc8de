"""The settings of an agent, as declared in the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from pydantic import JsonValue

from skillc.errors import SkillcError
from skillc.language.loop import BudgetPlan
from skillc.models.ledger import NANO_PER_DOLLAR, Spending
from skillc.models.prices import Price
from skillc.plan.schema import AnswerPlan
from skillc.sandbox.policy import DeclaredSandbox, Limits, declared_sandbox

QUESTION = "{question}"
_LIMITS = Limits(time=600, memory=4 * 10**9, processes=256, disk=10**9, output=64 * 2**20)


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What a program declares of its agent; the table of kinds describes each setting.

    Attributes:
        tokens: the most of one rollout; None if it declares none.
        cost: nano-dollars, as `tokens`.
        environment: names of variables.
    """

    sandbox: DeclaredSandbox
    prompt: str = QUESTION
    files: str | None = None
    tokens: int | None = None
    cost: int | None = None
    hosts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    answer: AnswerPlan = field(default=AnswerPlan())

    @classmethod
    def of(cls, settings: Mapping[str, JsonValue]) -> AgentSettings:
        """Read the settings of a plan's rollout."""
        given: Mapping[str, Any] = settings
        cost, answer = given.get("cost"), given.get("answer")
        return cls(
            sandbox=declared_sandbox(
                given.get("sandbox"), replace(_LIMITS, time=float(given.get("time", _LIMITS.time)))
            ),
            prompt=given.get("prompt", QUESTION),
            files=given.get("files"),
            tokens=given.get("tokens"),
            cost=None if cost is None else int(Fraction(str(cost)) * NANO_PER_DOLLAR),
            hosts=tuple(given.get("hosts", ())),
            reads=tuple(given.get("reads", ())),
            environment=tuple(each["arguments"][0] for each in given.get("environment", ())),
            answer=AnswerPlan.of(answer["function"], answer["arguments"][0])
            if isinstance(answer, dict)
            else AnswerPlan(),
        )

    def reservation(self, budget: BudgetPlan, price: Price | None) -> Spending:
        """Return the most that one rollout may spend; without a declared maximum only the call itself.

        Raises:
            SkillcError: the budget caps tokens or cost, and no maximum is declared that it could reserve.
        """
        for cap, declared in (("tokens", self.tokens), ("cost", self.cost if self.tokens is None else self.tokens)):
            if getattr(budget, cap) is not None and declared is None:
                raise SkillcError(
                    f"the budget caps {cap}, and no rollout of the agent has a declared maximum",
                    hint="add `tokens = 200_000 tokens` to the settings of `rollout`: the most that one may use",
                )
        if self.tokens is None:
            return Spending(1, 0, self.cost or 0)
        dearest = max(price.most(self.tokens, 0), price.most(0, self.tokens)) if price is not None else 0
        return Spending(1, self.tokens, dearest if self.cost is None else self.cost)
