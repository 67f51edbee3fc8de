"""Agents for tests: small programs that a kind of rollout runs, and one rollout by them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace

from model_plans import Scripted, model, plan_of

from skillc.document.skill import document_of
from skillc.models.client import Client
from skillc.outcomes import Example
from skillc.plan.schema import PricePlan, RolloutPlan
from skillc.processes.guard import is_dead, stat_of
from skillc.sandbox.run import problem_of
from skillc.tasks.kind import Skill
from skillc.tasks.runner import RolloutRunner

SKILL = Skill.of(document_of("route-tickets", "routes", [("rules", "trainable", "- Invoices go to billing.", None)]))
URL = "http://localhost:9099/v1"
PRICE = PricePlan(input=1, output=2)
UNSAFE = {"sandbox": "unsafe"}
SANDBOXES = ["unsafe", *(kind for kind in ("bubblewrap", "landlock") if problem_of(kind) is None)]


def program(folder: Path, code: str, name: str = "agent") -> Path:
    """Write an executable."""
    path = folder / name
    path.write_text(f"#!{sys.executable} -IS\n{code}")
    path.chmod(0o755)
    return path


def plan(kind="command", arguments=(), budget=None, target=None, **settings):
    made = plan_of(target or model(name="openai/tiny", price=PRICE, base_url=URL), model("optimizer"), **(budget or {}))
    rollout = RolloutPlan(kind=kind, arguments=arguments, settings={**UNSAFE, **settings})
    return made.model_copy(update={"task": made.task.model_copy(update={"rollout": rollout})})


def run(made, root, skill=SKILL, rollouts=1, client=None, example="1"):
    """Run rollouts of one example; returns the first, the notes, and the client."""
    notes = []
    with client or Client(made, transport=Scripted(), root=root) as client:
        client.pacing.report = notes.append

        async def scenario():
            runner = RolloutRunner(made, client, root=root)
            given = Example(example, {"ticket": "my invoice"}, {}, {}, example)
            runs = (runner(skill, given, sample, "rollout") for sample in range(rollouts))
            return await asyncio.gather(*runs, return_exceptions=rollouts > 1)

        done = asyncio.run(scenario())
    first = done[0]
    return SimpleNamespace(
        rollout=first, all=done, notes=notes, client=client, trajectory=getattr(first, "trajectory", None)
    )


def is_alive(pid: int) -> bool:
    fields = stat_of(pid)
    return fields is not None and not is_dead(fields)
