"""Ask the judges of a plan: one judge about one case, and all judges about one rollout."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any

from skillc.errors import SkillcError
from skillc.gates.terms import CallTerm
from skillc.json_values import JsonObject
from skillc.metrics.judging.combine import TIED, Judged, combine_levels, combine_pairs
from skillc.metrics.judging.prompt import (
    Case,
    again_messages,
    case_code,
    case_of,
    judge_messages,
    right_answers,
    shown_text,
)
from skillc.metrics.judging.statements import Finding, asked, combine_statements, statements_of
from skillc.metrics.judging.verdict import JudgeFailed, MalformedVerdict, Reply, Verdict, read_verdict
from skillc.metrics.primitives import same
from skillc.models.calls import Call
from skillc.models.client import Client
from skillc.models.concurrency import gather
from skillc.models.failures import CallFailed
from skillc.outcomes import Example
from skillc.plan.judges import JudgePlan, judges_of
from skillc.plan.schema import Plan, RubricPlan
from skillc.text import cut
from skillc.trajectories.trajectory import Trajectory

_SHOWN = 120
Verdicts = Mapping[CallTerm, Judged | JudgeFailed]
"""The result of each call of `judge` in the metrics of a plan."""


class NoReference(SkillcError):  # noqa: N818 -- as the other failures
    """An example has no right answer that a judge compares with, or no statement that it is asked about."""


async def ask_judge(
    client: Client,
    role: str,
    rubric: RubricPlan,
    case: Case,
    *,
    swapped: bool = False,
    sample: tuple[int, ...] = (0,),
    stage: str = "judge",
) -> Reply:
    """Return the verdict of one judge. A reply that cannot be read, a refusal included, is asked for once more.

    Equal cases of one `sample` share a call, another sample is judged anew; `swapped` is that of `judge_messages`.

    Raises:
        PermanentFailure, BudgetReached: from the model.
    """
    pair, code = case.reference is not None, case_code(rubric, case)
    messages = judge_messages(rubric, case, swapped=swapped)
    problem = ""
    for again in (0, 1):
        try:
            reply = (await client.complete(Call(role, stage, messages, (*sample, again), judges=True))).text
        except CallFailed as failure:
            return JudgeFailed(role, client.hide.message(f"judge `{role}`: {failure}"))
        try:
            return _without_secrets(client, read_verdict(role, rubric, reply, code=code, pair=pair))
        except MalformedVerdict as found:
            problem = f"{found}; it replied {cut(' '.join(reply.split()), _SHOWN)!r}"
            messages = again_messages(messages, reply, str(found))
    return JudgeFailed(role, client.hide.message(f"judge `{role}`: no verdict in two replies: {problem}"))


def _without_secrets(client: Client, verdict: Verdict) -> Verdict:
    if not client.hide:
        return verdict
    return replace(verdict, marks=tuple(replace(each, reason=client.hide(each.reason)) for each in verdict.marks))


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

        `initial` is the initial skill's rollout of the same example, if a judge compares with it.

        Raises:
            PermanentFailure, BudgetReached: from the models.
            NoReference: the example lacks the right answer, or the statements, that a judge needs.
        """
        sample = (self._first + sample[0], *sample[1:])
        found = await gather(
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
        statements: tuple[str, ...] = ()
        whole, found = judge, dict[int, Finding]()
        if judge.rubric.each is not None:
            statements = statements_of(judge.rubric, example)
            if not statements:
                raise NoReference(
                    f"no statement in `{judge.rubric.each}`, which the rubric asks about each example",
                    hint="give each row one or more statements, or leave the row out",
                )
            output = shown_text((trajectory.answer or {}).get(judge.output))
            left, found = asked(judge, statements, output)
            if left is None:
                return combine_statements(statements, None, found, reveal=self._reveals)
            judge = left
        if judge.against is not None and same(
            (trajectory.answer or {}).get(judge.output), (reference or {}).get(judge.output)
        ):
            return TIED
        case = case_of(self._plan, judge, example, trajectory, reference)
        judged = await self.ask(judge, case, sample=sample, stage=stage)
        if whole is judge or isinstance(judged, JudgeFailed):
            return judged
        return combine_statements(statements, judged, found, reveal=self._reveals)

    @property
    def _reveals(self) -> bool:
        """Whether feedback may quote statements, which can contain the right answer."""
        return "gold" in self._plan.optimize.sees

    async def ask(
        self, judge: JudgePlan, case: Case, *, sample: tuple[int, ...] = (0,), stage: str = "judge"
    ) -> Judged | JudgeFailed:
        """Return the result of one judge, or of its panel, on a case.

        Raises:
            PermanentFailure, BudgetReached: from the models.
        """

        def reply(role: str, swapped: bool = False) -> Coroutine[Any, Any, Reply]:
            return ask_judge(self._client, role, judge.rubric, case, swapped=swapped, sample=sample, stage=stage)

        reveal = "gold" in self._plan.optimize.sees or not judge.sees_gold
        if judge.against is None:
            return combine_levels(judge, await gather([reply(role) for role in judge.roles]), reveal=reveal)
        replies = await gather([reply(role, swapped) for role in judge.roles for swapped in (False, True)])
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
        first = next(iter(right_answers(self._plan, judge.output, example.gold)), None)
        if first is None or first == []:
            raise NoReference(
                f"no right answer for `{judge.output}`", hint="a judge with `against = gold` compares with it"
            )
        return {judge.output: first}
