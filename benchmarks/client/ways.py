"""The ways to make one call that are compared."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from skillc.gates.terms import Constant
from skillc.language.loop import BudgetPlan
from skillc.models.calls import Call, Message
from skillc.plan.schema import DataPlan, MetricPlan, ModelPlan, Plan, SkillPlan, TaskPlan

MODEL = "openai/gpt-4o-mini"
SKILL = "# Route tickets\n\n" + "\n".join(f'- If the ticket mentions "x{i}", answer billing.' for i in range(60))

Ask = Callable[[int], Awaitable[Any]]


def texts(number: int) -> list[tuple[str, str]]:
    """A prompt of about a thousand tokens that no other number has."""
    return [("system", SKILL), ("user", f"ticket {number}: I was charged twice.")]


def plan(url: str) -> Plan:
    one = Constant(1)
    return Plan(
        task=TaskPlan(inputs=(), outputs=()),
        skill=SkillPlan(name="route", artifact="route", about="Route.", sections=()),
        models={"target": ModelPlan(role="target", model=MODEL, base_url=url)},
        data=DataPlan(source="-"),
        metrics=(MetricPlan(name="m", term=one, low=0, high=1, goal=True),),
        budget=BudgetPlan(),
        gates=(),
    )


def plain(url: str, folder: Path) -> Ask:
    """`litellm.acompletion`, and nothing else."""
    from skillc.models.backends.litellm import load_litellm

    litellm = load_litellm()

    async def ask(number: int) -> Any:
        messages = [{"role": role, "content": text} for role, text in texts(number)]
        return await litellm.acompletion(
            model=MODEL, messages=messages, api_base=url, api_key="none", max_tokens=99, num_retries=0, max_retries=0
        )

    return ask


def _client(url: str, folder: Path) -> Any:
    from skillc.models.client import Client
    from skillc.store import RunStore

    made = Client(plan(url), cache_folder=folder / "cache")
    made.preload()
    made.bind_store(RunStore(folder / "run.db"), "")
    return made


def client(url: str, folder: Path) -> Ask:
    """skillc's client as a compile has it: cache and receipts on the disk."""
    made = _client(url, folder)

    async def ask(number: int) -> Any:
        messages = tuple(Message(role, text) for role, text in texts(number))
        return await made.complete(Call("target", "rollout", messages))

    return ask


def _of_lm(lm: Any) -> Ask:
    import dspy

    async def ask(number: int) -> Any:
        (_, system), (_, user) = texts(number)
        return await lm.acall(messages=[{"role": "system", "content": system}, {"role": "user", "content": user}])

    dspy.configure(lm=lm)
    return ask


def dspy_client(url: str, folder: Path) -> Ask:
    """`dspy.LM` with skillc's engine."""
    from skillc.models.dspy_lm import make_lm

    return _of_lm(make_lm(_client(url, folder), "target"))


def _dspy(url: str, **options: Any) -> Ask:
    import dspy

    os.environ.pop("OPENAI_API_BASE", None)
    return _of_lm(dspy.LM(MODEL, api_base=url, api_key="none", cache=False, max_tokens=99, **options))


def dspy_litellm(url: str, folder: Path) -> Ask:
    """`dspy.LM(engine="litellm")` without its cache."""
    return _dspy(url, engine="litellm")


def dspy_default(url: str, folder: Path) -> Ask:
    """`dspy.LM` as it comes, without its cache."""
    return _dspy(url)


WAYS: dict[str, Callable[[str, Path], Ask]] = {
    "litellm alone": plain,
    "skillc client": client,
    "dspy.LM, skillc engine": dspy_client,
    "dspy.LM, litellm engine": dspy_litellm,
    "dspy.LM, its own engine": dspy_default,
}
