"""Run an example through the plan's kind of rollout, and distinguish failures from answers; skills as DSPy modules."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import field, replace
from pathlib import Path

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.json_values import JsonObject
from skillc.models.calls import Completion
from skillc.models.client import Client
from skillc.models.failures import CallFailed, find_failure, redact
from skillc.models.scope import scope
from skillc.outcomes import Example, UnmeasuredKind
from skillc.plan.company import company_of
from skillc.plan.models import TARGET
from skillc.plan.schema import Plan
from skillc.redaction import NOTHING, Redactor
from skillc.tasks.kind import RolloutFailed, RolloutKind, Site, Skill, find_kind
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
        self._one_turn = plan.task.rollout.one_turn
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
                # A rollout of one turn does nothing beside its call; what is left is the delay of a busy machine.
                wall = 0.0 if self._one_turn else time.monotonic() - start
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
