"""Run an example through the plan's kind of rollout, and distinguish failures from answers; skills as DSPy modules."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dspy

from skillc.diagnostics.suggest import spelling_hint
from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.json_values import JsonObject
from skillc.language.loop import BudgetPlan
from skillc.models.calls import Completion
from skillc.models.client import Client
from skillc.models.dspy_lm import scope
from skillc.models.failures import CallFailed, find_failure, redact
from skillc.outcomes import Example, UnmeasuredKind
from skillc.plan.company import company_of
from skillc.plan.models import TARGET
from skillc.plan.schema import Plan
from skillc.program.inputs import caller_inputs
from skillc.redaction import NOTHING, Redactor
from skillc.tasks.kind import RolloutFailed, RolloutKind, Site, Skill, find_kind
from skillc.text import listed
from skillc.tools.tool import Tool
from skillc.trajectories.trajectory import Trajectory, redacted

_UNMEASURED_BY: dict[str, UnmeasuredKind] = {
    "transient": "transport",
    "malformed": "transport",
    "empty": "empty",
    "cut": "cut",
}


@dataclass(frozen=True, slots=True)
class Rollout:
    """The result of one rollout: what happened, or why it is unmeasured.

    Attributes:
        trajectory: with the tokens and cost of all calls, failed rollouts included.
        failure: why the rollout is unmeasured, else None.
        detail: the cause of a failure: the provider's status and message, an agent's last line.
    """

    trajectory: Trajectory = field(default_factory=Trajectory)
    failure: UnmeasuredKind | None = None
    detail: str = ""

    @property
    def prediction(self) -> JsonObject | None:
        """Value by output; None without a readable answer."""
        return self.trajectory.answer


class RolloutRunner:
    """Runs rollouts of a plan's task with the model of a role; `root` is the program's folder.

    At most `most` rollouts are in flight at once, None for as many as the kind admits.

    Raises:
        SkillcError: the kind of rollout is unknown, or this machine lacks what it needs.
    """

    def __init__(
        self, plan: Plan, client: Client, *, role: str = TARGET, root: Path | None = None, most: int | None = None
    ) -> None:
        self._client = client
        kind = find_kind(plan)
        if plan.skill.load == "on_demand" and not kind.opens:
            raise SkillcError(
                f"a target of `rollout = {plan.task.rollout.kind}` cannot open skills", hint="write `load = always`"
            )
        self._hide = hide = client.hide
        company = company_of(plan, root or Path())
        if company.offered and not kind.opens:
            raise SkillcError(f"a target of `rollout = {plan.task.rollout.kind}` cannot open the other skills")
        site = Site(
            plan, client, role, root or Path(), lambda message: client.pacing.report(hide.message(message)), company
        )
        self._kind: RolloutKind = kind(site) if plan.task.executor is None else _on_cluster(site)
        if plan.task.executor is None:
            _check_scripts(plan, self._kind)
        slots = [each for each in (self._kind.slots, most) if each is not None]
        self._slots = asyncio.Semaphore(min(slots)) if slots else None

    @property
    def folders(self) -> bool:
        """Whether targets get the skill's folder, and can open its files."""
        return self._kind.folders

    async def __call__(self, skill: Skill | None, example: Example, sample: int, stage: str) -> Rollout:
        """Run an example with a skill, None for no skill.

        A kind with a limited number of slots takes its place in the order of calls only with a slot: an earlier place
        of a rollout that waits for a slot would hold up the second call of one that has it.

        Raises:
            PermanentFailure, BudgetReached: from the models.
        """
        async with self._slots or nullcontext():
            with self._client.ticket(), scope(stage, sample) as inside:
                start = time.monotonic()
                try:
                    trajectory = await self._kind.run(skill, example, sample=sample)
                except Exception as raised:
                    return failed_rollout(raised, inside.completions, self._hide)
                if self._hide:
                    trajectory = redacted(trajectory, self._hide)
                wall = time.monotonic() - start
                return Rollout(with_usage(_with_time(trajectory, wall, inside.completions), inside.completions))

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of an agent."""
        return self._kind.tools

    async def close(self) -> None:
        """End everything that rollouts have started."""
        await self._kind.close()


def _check_scripts(plan: Plan, kind: RolloutKind) -> None:
    """Refuse a kind whose targets cannot run the scripts that the program trains."""
    if kind.folders or kind.scripts or all(section.tests is None for section in plan.skill.sections):
        return
    hint = "give the function the parameter `folder`" if plan.task.rollout.kind == "python" else None
    raise SkillcError(f"a target of `rollout = {plan.task.rollout.kind}` cannot run the skill's scripts", hint=hint)


def _on_cluster(site: Site) -> RolloutKind:
    from skillc.tasks.cluster import ClusterRollouts

    return ClusterRollouts(site)


def failed_rollout(raised: Exception, completions: Sequence[Completion], hide: Redactor = NOTHING) -> Rollout:
    """Return the unmeasured rollout of an infrastructure failure; any other error is raised again.

    `hide` redacts the messages of errors.
    """
    failure = raised if isinstance(raised, RolloutFailed) else find_failure(raised)
    used = with_usage(Trajectory(), completions)
    if isinstance(failure, RolloutFailed):
        return Rollout(used, failure.kind, hide.message(failure.detail))
    if isinstance(failure, CallFailed):
        return Rollout(used, _UNMEASURED_BY[failure.kind], hide.message(failure.detail))
    raise redact(failure, hide) if failure is not None else raised from None


def _with_time(trajectory: Trajectory, wall: float, completions: Sequence[Completion]) -> Trajectory:
    """Add the time of a rollout, in which each call counts with the time that it took when it was sent."""
    known = [each.seconds for each in completions if each.seconds is not None]
    outside = max(0.0, wall - sum(each.waited for each in completions))
    return replace(trajectory, seconds=round(outside + sum(known), 3), timed=len(known) == len(completions))


def with_usage(trajectory: Trajectory, completions: Sequence[Completion]) -> Trajectory:
    """Add the tokens and cost of calls to a trajectory."""
    costs = [trajectory.cost, *(completion.cost for completion in completions)]
    known = [cost for cost in costs if cost is not None]
    return replace(
        trajectory,
        tokens=trajectory.tokens + sum(completion.usage.total for completion in completions),
        cost=sum(known) if len(known) == len(costs) else None,
    )


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
