"""A plan whose rollouts are no DSPy module, as a DSPy module."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dspy

from skillc.diagnostics.suggest import spelling_hint
from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.language.loop import BudgetPlan
from skillc.models.client import Client
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.program.inputs import caller_inputs
from skillc.tasks.kind import Skill
from skillc.tasks.runner import RolloutRunner
from skillc.text import listed


class RolloutModule(dspy.Module):  # type: ignore[misc]  # dspy has no types
    """Runs a rollout for each call, with the plan's own target and no budget.

    A call gets the inputs of the task by name, and those fields of the data and right answers that an environment, a
    simulated user or a workspace needs. The prediction has the outputs of the task, and the `trajectory`.
    """

    def __init__(self, plan: Plan, root: Path, skill: Document) -> None:
        super().__init__()
        self._plan = plan.model_copy(update={"budget": BudgetPlan()})
        self._root = root
        self._skill = Skill.of(skill)

    def forward(self, **values: Any) -> dspy.Prediction:
        """Run one rollout, as `aforward`."""
        return asyncio.run(self.aforward(**values))

    async def aforward(self, **values: Any) -> dspy.Prediction:
        """Run one rollout.

        Raises:
            SkillcError: a value is missing or unknown, the rollout failed, or its answer could not be read.
        """
        example, left_out = self._example(values)
        with Client(self._plan, root=self._root) as client:
            runner = RolloutRunner(self._plan, client, root=self._root)
            try:
                async with client.connected():
                    done = await runner(self._skill, example, 0, "program")
            finally:
                await runner.close()
        if done.failure is not None:
            hint = f"not given: {listed(left_out, 'and')}, which an environment may need" if left_out else None
            raise SkillcError(f"the rollout failed ({done.failure}): {done.detail}", hint=hint)
        if done.prediction is None:
            raise SkillcError(done.trajectory.problem or "the answer could not be read")
        return dspy.Prediction(**done.prediction, trajectory=done.trajectory)

    def _example(self, values: Mapping[str, Any]) -> tuple[Example, list[str]]:
        """Return the values of a call as an example, and the fields of the data that are not given.

        Raises:
            SkillcError: an input or the goal of a simulated user is missing, or the program has no such name.
        """
        task, fields = self._plan.task, self._plan.data.fields
        known = [field.name for field in (*task.inputs, *fields, *task.outputs)]
        for name in values:
            if name not in known:
                hint = spelling_hint(name, known) or f"valid names: {listed(known)}"
                raise SkillcError(f"the program has no input or field `{name}`", hint=hint)
        given = caller_inputs(
            task, {each.name: values[each.name] for each in task.inputs if each.name in values}, Path.cwd()
        )
        lacking = [each.name for each in task.inputs if each.name not in values and not each.type.optional]
        left_out = [each.name for each in fields if each.name not in values and not each.type.optional]
        user = task.rollout.settings.get("user")
        goal = user.get("goal") if isinstance(user, dict) else None
        lacking += [goal] if goal in left_out else []
        if lacking:
            call = ", ".join(f"{name}=..." for name in dict.fromkeys((*(each.name for each in task.inputs), *lacking)))
            raise SkillcError(
                f"a call of the program lacks {listed(lacking, 'and')}", hint=f"call it as `program({call})`"
            )
        own = {each.name: values.get(each.name) for each in fields if each.name in values or each.type.optional}
        gold = {each.name: values[each.name] for each in task.outputs if each.name in values}
        return Example("", given, gold, own, ""), left_out
