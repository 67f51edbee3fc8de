"""A compiled skill of any kind of rollout as a DSPy module."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import dspy

from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.language.loop import BudgetPlan
from skillc.models.client import Client
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.program.inputs import caller_inputs
from skillc.tasks.kind import Skill
from skillc.tasks.runner import RolloutRunner


class RolloutModule(dspy.Module):  # type: ignore[misc]  # dspy has no types
    """Runs a rollout for each call, with the plan's own target and no budget.

    The prediction has the outputs of the task, and the `trajectory`.
    """

    def __init__(self, plan: Plan, root: Path, skill: Document) -> None:
        super().__init__()
        self._plan = plan.model_copy(update={"budget": BudgetPlan()})
        self._root = root
        self._skill = Skill.of(skill)

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Run one rollout, as `aforward`."""
        return asyncio.run(self.aforward(**inputs))

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Run one rollout.

        Raises:
            SkillcError: the rollout failed, or its answer could not be read.
        """
        with Client(self._plan, root=self._root) as client:
            runner = RolloutRunner(self._plan, client, root=self._root)
            try:
                async with client.connected():
                    given = caller_inputs(self._plan.task, inputs, Path.cwd())
                    done = await runner(self._skill, Example("", given, {}, {}, ""), 0, "program")
            finally:
                await runner.close()
        if done.failure is not None:
            raise SkillcError(f"the rollout failed ({done.failure}): {done.detail}")
        if done.prediction is None:
            raise SkillcError(done.trajectory.problem or "the answer could not be read")
        return dspy.Prediction(**done.prediction, trajectory=done.trajectory)
