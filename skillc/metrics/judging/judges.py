"""All judges of a plan on one rollout."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from skillc.errors import SkillcError
from skillc.gates.terms import CallTerm
from skillc.json_values import JsonObject
from skillc.metrics.judging.ask import JudgeFailed, ask_judge
from skillc.metrics.judging.case import Case, case_of
from skillc.metrics.judging.combine import Judged, Reply, combine_levels, combine_pairs, tied
from skillc.metrics.primitives import same
from skillc.models.client import Client
from skillc.outcomes import Example
from skillc.plan.judges import JudgePlan, judges_of
from skillc.plan.schema import Plan
from skillc.trajectories.trajectory import Trajectory

T = TypeVar("T")
Verdicts = Mapping[CallTerm, Judged | JudgeFailed]
"""The result of each call of `judge` in the metrics of a plan."""


class NoReference(SkillcError):  # noqa: N818 -- as the other failures
    """An example has no right answer that a judge compares with."""


class Judges:
    """Asks the judges of a plan.

    Args:
        plan: whose metrics have judges, or none.
        client: sends the calls.
        first_sample: added to the index of each judgement, so that another measurement is judged anew.

    Attributes:
        each: the judges.
    """

    def __init__(self, plan: Plan, client: Client, *, first_sample: int = 0) -> None:
        self._plan, self._client, self._first = plan, client, first_sample
        self.each = judges_of(plan)

    def __bool__(self) -> bool:
        return bool(self.each)

    @property
    def compares_with_initial(self) -> bool:
        """Whether a judge needs the initial skill's rollout of the same example."""
        return any(each.against == "initial" for each in self.each)

    async def judge(
        self,
        example: Example,
        trajectory: Trajectory,
        *,
        initial: Trajectory | None = None,
        sample: tuple[int, ...] = (0,),
        stage: str = "judge",
    ) -> Verdicts:
        """Return the result of each judge on a rollout with an answer. All are asked at once.

        Args:
            example: of the rollout.
            trajectory: the rollout.
            initial: the initial skill's rollout of the same example, if a judge compares with it.
            sample: index of the judgement.
            stage: for the ledger.

        Raises:
            PermanentFailure, BudgetReached: from the models.
            NoReference: the example lacks the right answer that a judge compares with.
        """
        sample = (self._first + sample[0], *sample[1:])
        found = await _all(
            [self._one(each, example, trajectory, initial=initial, sample=sample, stage=stage) for each in self.each]
        )
        return {each.term: result for each, result in zip(self.each, found, strict=True)}

    async def _one(
        self,
        judge: JudgePlan,
        example: Example,
        trajectory: Trajectory,
        *,
        initial: Trajectory | None,
        sample: tuple[int, ...],
        stage: str,
    ) -> Judged | JudgeFailed:
        reference = self._reference(judge, example, initial)
        if isinstance(reference, JudgeFailed):
            return reference
        if judge.against is not None and same(
            (trajectory.answer or {}).get(judge.output), (reference or {}).get(judge.output)
        ):
            return tied(judge)
        case = case_of(self._plan, judge, example, trajectory, reference)
        return await self.ask(judge, case, sample=sample, stage=stage)

    async def ask(
        self, judge: JudgePlan, case: Case, *, sample: tuple[int, ...] = (0,), stage: str = "judge"
    ) -> Judged | JudgeFailed:
        """Return the result of one judge, or of its panel, on a case.

        Raises:
            PermanentFailure, BudgetReached: from the models.
        """

        def asked(role: str, swapped: bool = False) -> Coroutine[Any, Any, Reply]:
            return ask_judge(self._client, role, judge.rubric, case, swapped=swapped, sample=sample, stage=stage)

        reveal = "gold" in self._plan.optimize.sees or not judge.sees_gold
        if judge.against is None:
            return combine_levels(judge, await _all([asked(role) for role in judge.roles]), reveal=reveal)
        replies = await _all([asked(role, swapped) for role in judge.roles for swapped in (False, True)])
        return combine_pairs(judge, list(zip(replies[::2], replies[1::2], strict=True)), reveal=reveal)

    def _reference(
        self, judge: JudgePlan, example: Example, initial: Trajectory | None
    ) -> JsonObject | JudgeFailed | None:
        """Return the values that an output is compared with; None without a comparison."""
        if judge.against is None:
            return None
        if judge.against == "initial":
            if initial is None:
                return JudgeFailed(judge.roles[0], "the initial skill could not be measured on this example")
            return initial.answer or {}
        gold = example.gold.get(judge.output)
        field = next(each for each in self._plan.task.outputs if each.name == judge.output)
        first = gold[0] if isinstance(gold, list) and gold and field.type.kind != "list" else gold
        if first is None or first == []:
            raise NoReference(
                f"no right answer for `{judge.output}`", hint="a judge with `against = gold` compares with it"
            )
        return {judge.output: first}


async def _all(jobs: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Return all results in order; the first error cancels the rest and waits for their end."""
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
