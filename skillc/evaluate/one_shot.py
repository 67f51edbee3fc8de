"""The one-shot arm: a skill that the optimizer model writes once, from the task and one batch of training examples."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillc.budget.call_sizes import CallSizer
from skillc.budget.spend import SpendBound
from skillc.data.dataset import Dataset, sizes_of
from skillc.dataclass import dataclass
from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.evaluate.measuring import as_target, until_stopped
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.models.prices import price_table
from skillc.optimize.host import NoReserve, Observer
from skillc.optimize.methods.bridge import section_texts
from skillc.optimize.methods.one_shot import one_shot
from skillc.plan.initial import initial_skill
from skillc.plan.schema import ModelPlan, Plan
from skillc.run.session import Session
from skillc.run.stop import Stop

if TYPE_CHECKING:
    from skillc.evaluate.job import EvalJob

OPTIMIZER = "optimizer"


@dataclass(frozen=True, slots=True)
class Written:
    """The skill that was written, or why there is none; `stopped` is why the evaluation ended."""

    skill: Document | None
    problem: str | None = None
    stopped: str | None = None


def check_one_shot(plan: Plan, root: Path) -> None:
    """Refuse a program whose skill has no section that a model may write.

    Raises:
        SkillcError: it has none, or no optimizer model.
    """
    if not section_texts(initial_skill(plan, root)):
        raise SkillcError("the skill has no section that may change, so no one-shot skill can be written")
    if OPTIMIZER not in plan.models:
        raise SkillcError("the program has no model `optimizer`, which writes the one-shot skill")


def one_shot_bound(
    plan: Plan, models: Sequence[ModelPlan], count: int, dataset: Dataset, root: Path, *, written: bool
) -> SpendBound:
    """Return the bound of `count` rollouts of the skill with every model and, if `written`, of writing it first."""
    plan = _for_one_shot(plan)
    sizes, prices = sizes_of(plan, dataset, root), price_table(plan)
    whole = SpendBound()
    for i, model in enumerate(models):
        sizer = CallSizer(as_target(plan, model), sizes, {**prices, "target": prices.get(model.role)})
        calls = sizer.all()
        whole += calls.rollout.times(*[count] * 3)
        if i == 0 and written:
            batch = min(plan.optimize.batch, len(dataset.train)) * plan.optimize.samples
            whole += sizer.arm(initial_skill(plan, root)).times(*[batch] * 3)
            # A reply that cannot be read is asked for once more.
            whole += calls.propose.times(1, 1, 2)
    return whole


def write_one_shot(job: EvalJob, observer: Observer, client: Client, stop: Stop | None) -> Written:
    """Measure the initial skill on one batch of train with the first model, and let the optimizer write from it.

    The calls are charged to the same ledger as the evaluation.

    Raises:
        SkillcError: models or metrics cannot be used.
    """
    plan = _for_one_shot(job.plan)
    session = Session(plan, client, observer, stop)
    rollouts = session.rollouts(Meter(plan, job.root, job.dataset.places), job.models[0].role)
    initial = initial_skill(plan, job.root)
    made = []

    async def write() -> None:
        engine = session.engine(job.dataset, rollouts, NoReserve())
        made.append(await one_shot(engine, initial, client))

    async def run() -> str | None:
        async with session.connected():
            return await until_stopped(session, write())

    stopped = asyncio.run(run())
    if not made:
        return Written(None, "it was not written before the end", stopped)
    (result,) = made
    if result.stopped not in ("method", "failed"):
        return Written(
            None, f"the budget's cap on `{result.stopped}` was reached before it was written", result.stopped
        )
    return Written(None, result.problem) if result.problem else Written(result.document)


def _for_one_shot(plan: Plan) -> Plan:
    return plan.model_copy(update={"optimize": replace(plan.optimize, method="one_shot")})
