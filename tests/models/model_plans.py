"""Plans and transports for tests of the model layer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from skillc.gates.terms import Constant
from skillc.language.loop import BudgetPlan
from skillc.models.backends.registry import connect
from skillc.models.endpoint import Endpoint
from skillc.plan.schema import (
    DataPlan,
    FieldPlan,
    GatePlan,
    MetricPlan,
    ModelPlan,
    Plan,
    SectionPlan,
    SkillPlan,
    TaskPlan,
    TypePlan,
)

TEAM = TypePlan(kind="labels", labels=("billing", "shipping"))
TASK = TaskPlan(
    inputs=(FieldPlan(name="ticket", type=TypePlan(kind="text"), column="ticket", about="as written"),),
    outputs=(FieldPlan(name="team", type=TEAM, column="team"),),
)


def model(role: str = "target", name: str = "openai/gpt-4o-mini", **settings: Any) -> ModelPlan:
    return ModelPlan(role=role, model=name, **{"base_url": "http://localhost:9", **settings})


def endpoint_of(model: ModelPlan, environ: Mapping[str, str], root: Path = Path()) -> Endpoint:
    return connect(model, environ, root)[1]


def plan_of(*models: ModelPlan, task: TaskPlan = TASK, skill: SkillPlan | None = None, **budget: Any) -> Plan:
    one = Constant(value=Fraction(1), unit="")
    return Plan(
        task=task,
        skill=skill
        or SkillPlan(
            name="route_tickets",
            artifact="route-tickets",
            about="Route a ticket.",
            sections=(SectionPlan(name="rules", mode="trainable", limit=800),),
        ),
        models={m.role: m for m in models or (model(), model("optimizer"))},
        data=DataPlan(source="tickets.jsonl"),
        metrics=(MetricPlan(name="correct", term=one, low=Fraction(0), high=Fraction(1), goal=True),),
        budget=BudgetPlan(**budget),
        gates=(GatePlan(name="g", term=one, text="1", stage="text"),),
    )


def reply(text: str = "hi", *, finish: str = "stop", usage: tuple[int, int] | None = (5, 2)) -> dict[str, Any]:
    counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1]} if usage else None
    return {"choices": [{"message": {"content": text}, "finish_reason": finish}], "usage": counts, "model": "m"}


class Scripted:
    """A transport that answers from a function, and remembers what was sent."""

    def __init__(self, answer: Callable[[Mapping[str, Any]], Any] | None = None) -> None:
        self._answer = answer or (lambda sent: reply())
        self.sent: list[dict[str, Any]] = []
        self.most_at_once = 0
        self._now = 0

    async def __call__(self, sent: Mapping[str, Any]) -> Any:
        self.sent.append(dict(sent))
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        await asyncio.sleep(0)
        self._now -= 1
        answer = self._answer(sent)
        if isinstance(answer, BaseException):
            raise answer
        return answer
