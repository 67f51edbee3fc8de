"""What skillc and DSPy add to one model call, measured in one process, one row after the other.

A rollout is the compiled DSPy module over the client: prompt, cache, ledger, parsing. The plain call is
`litellm.acompletion` with the same messages on a provider that answers at once.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from skillc.document.skill import Document
from skillc.gates.terms import Constant
from skillc.language.loop import BudgetPlan
from skillc.models.backends.litellm import load_litellm
from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.outcomes import Example
from skillc.plan.schema import DataPlan, FieldPlan, MetricPlan, ModelPlan, Plan, SkillPlan, TaskPlan, TypePlan
from skillc.tasks.kind import Skill
from skillc.tasks.runner import RolloutRunner

CALLS, REPEATS = 400, 5
TEXT = "# Route tickets\n\n## Rules\n\n" + "\n".join(
    f'- If the ticket mentions "x{i}", answer billing.' for i in range(40)
)
SKILL = Skill(Document("route-tickets", "routes tickets", ()), TEXT)
REPLY = "[[ ## team ## ]]\nbilling\n\n[[ ## completed ## ]]"


def plan_of(model: str) -> Plan:
    one = Constant(Fraction(1))
    labels = TypePlan(kind="labels", labels=("billing", "shipping"))
    return Plan(
        task=TaskPlan(
            inputs=(FieldPlan(name="ticket", type=TypePlan(kind="text"), column="ticket"),),
            outputs=(FieldPlan(name="team", type=labels, column="team"),),
        ),
        skill=SkillPlan(name="route_tickets", artifact="route-tickets", about="Route.", sections=()),
        models={"target": ModelPlan(role="target", model=model)},
        data=DataPlan(source="-"),
        metrics=(MetricPlan(name="correct", term=one, low=Fraction(0), high=Fraction(1), goal=True),),
        budget=BudgetPlan(),
        gates=(),
    )


async def nothing(sent: Mapping[str, Any]) -> Any:
    """A model that answers at once."""
    usage = {"prompt_tokens": 900, "completion_tokens": 20}
    return {"choices": [{"message": {"content": REPLY}, "finish_reason": "stop"}], "usage": usage, "model": "none"}


async def timed(one: Callable[[int], Awaitable[object]], *, at_once: int) -> list[float]:
    """Milliseconds a call, one figure per repeat; `one` gets a number that it never got before."""
    figures = []
    for repeat in range(REPEATS + 1):
        numbers = [repeat * CALLS + i for i in range(CALLS)]
        start = time.perf_counter()
        for i in range(0, CALLS, at_once):
            await asyncio.gather(*[one(number) for number in numbers[i : i + at_once]])
        figures.append((time.perf_counter() - start) / CALLS * 1000)
    return figures[1:]


async def main() -> None:
    litellm = load_litellm()
    example = Example("1", {"ticket": "a ticket " + "word " * 60}, {"team": "billing"}, {}, "1")
    plan = plan_of("rulebook/v1")
    rows: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        client = Client(plan, cache_folder=Path(folder), transport=nothing)
        runner = RolloutRunner(plan, client)
        seen: list[Mapping[str, Any]] = []

        async def keep(sent: Mapping[str, Any]) -> Any:
            seen.append(sent)
            return await nothing(sent)

        with Client(plan, transport=keep) as watched:
            await RolloutRunner(plan, watched)(SKILL, example, 0, "rollout")
        messages = seen[0]["messages"]
        call = tuple(Message(message["role"], message["content"]) for message in messages)

        async def plain(number: int) -> object:
            return await litellm.acompletion(
                model="openai/x", messages=messages, mock_response="billing", max_retries=0
            )

        rows["plain litellm call"] = await timed(plain, at_once=1)
        rows["client, no-op model"] = await timed(
            lambda i: client.complete(Call("target", "rollout", call, sample=i)), at_once=1
        )
        rows["client, from the cache"] = await timed(
            lambda i: client.complete(Call("target", "rollout", call, sample=i)), at_once=1
        )
        rows["rollout, no-op model"] = await timed(lambda i: runner(SKILL, example, 10**6 + i, "rollout"), at_once=1)
        rows["rollout, no-op model, 16 at once"] = await timed(
            lambda i: runner(SKILL, example, 2 * 10**6 + i, "rollout"), at_once=16
        )
        client.close()
        with Client(plan, cache_folder=Path(folder) / "whole") as whole:
            through = RolloutRunner(plan, whole)
            rows["rollout, rulebook through litellm"] = await timed(
                lambda i: through(SKILL, example, i, "rollout"), at_once=1
            )
    base = statistics.median(rows["plain litellm call"])
    print(f"{'':36}{'ms a call':>10}{'range':>16}{'of a plain call':>18}")
    for name, figures in rows.items():
        middle = statistics.median(figures)
        print(f"{name:36}{middle:10.3f}{min(figures):9.3f}-{max(figures):.3f}{middle / base:16.2f}x")


if __name__ == "__main__":
    asyncio.run(main())
