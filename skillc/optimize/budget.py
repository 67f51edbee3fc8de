"""The edit budget where the program leaves it to the optimizer: `edits = model`."""

from __future__ import annotations

from collections.abc import Sequence

from skillc.optimize.engine import Engine, Place
from skillc.optimize.prompting import budget_messages
from skillc.optimize.proposals import Proposal
from skillc.optimize.replies import BudgetReply


async def choose_budget(engine: Engine, proposals: Sequence[Proposal], budget: int, place: Place) -> int:
    """How many edits this step may make; the scheduled number unless the schedule is `model` and the model answers."""
    if engine.plan.optimize.edits.kind != "model" or not proposals:
        return budget
    engine.observer.stage("edit budget", 1)
    messages = budget_messages(edits=[proposal.to_json() for proposal in proposals], most=budget)
    reply = await engine.optimizer.ask(BudgetReply, messages, stage="select", sample=(place.epoch, place.step, 0))
    return budget if reply is None else max(0, min(budget, reply.edits))
