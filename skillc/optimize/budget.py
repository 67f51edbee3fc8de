"""The edit budget where the program leaves it to the optimizer: `edits = model`."""

from __future__ import annotations

from collections.abc import Sequence

from skillc.optimize.briefing import briefing
from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.prompting import budget_messages
from skillc.optimize.proposals import Proposal, edit_view
from skillc.optimize.replies import BudgetReply


async def choose_budget(engine: Engine, state: State, proposals: Sequence[Proposal], budget: int, place: Place) -> int:
    """How many edits this step may make; the scheduled number unless the schedule is `model` and the model answers."""
    if engine.plan.optimize.edits.kind != "model" or not proposals:
        return budget
    engine.observer.stage("edit budget", 1)
    messages = budget_messages(
        edits=[edit_view(proposal) for proposal in proposals], most=budget, **briefing(engine, state)
    )
    reply = await engine.optimizer.ask(BudgetReply, messages, stage="select", sample=(place.epoch, place.step, 0))
    return budget if reply is None else max(0, min(budget, reply.edits))
