"""Ask one judge about one case."""

from __future__ import annotations

from dataclasses import dataclass

from skillc.metrics.judging.case import Case
from skillc.metrics.judging.prompt import again_messages, case_code, judge_messages
from skillc.metrics.judging.verdict import MalformedVerdict, Mark, Verdict, read_verdict
from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.failures import CallFailed
from skillc.plan.schema import RubricPlan
from skillc.text import cut

_SHOWN = 120


@dataclass(frozen=True, slots=True)
class JudgeFailed:
    """A judge without a verdict: unmeasured, never a score."""

    role: str
    detail: str


async def ask_judge(
    client: Client,
    role: str,
    rubric: RubricPlan,
    case: Case,
    *,
    swapped: bool = False,
    sample: tuple[int, ...] = (0,),
    stage: str = "judge",
) -> Verdict | JudgeFailed:
    """Return the verdict of one judge. A reply that cannot be read, a refusal included, is asked for once more.

    Args:
        client: sends the call: cached, charged, paced and recorded as every other.
        role: the model that judges.
        rubric: the criteria.
        case: what is judged; with a reference the two are compared.
        swapped: in a comparison, whether the reference is shown first; otherwise criteria and levels are in reverse
            order.
        sample: index of the judgement: equal cases of one sample share a call, another sample is judged anew.
        stage: for the ledger.

    Raises:
        PermanentFailure, BudgetReached: from the model.
    """
    pair, code = case.reference is not None, case_code(rubric, case)
    messages = judge_messages(rubric, case, swapped=swapped)
    problem = ""
    for again in (0, 1):
        try:
            reply = (await client.complete(_call(role, stage, messages, (*sample, again)))).text
        except CallFailed as failure:
            return JudgeFailed(role, client.hide.message(f"judge `{role}`: {failure}"))
        try:
            return _without_secrets(client, read_verdict(role, rubric, reply, code=code, pair=pair))
        except MalformedVerdict as found:
            problem = f"{found}; it replied {cut(' '.join(reply.split()), _SHOWN)!r}"
            messages = again_messages(messages, reply, str(found))
    return JudgeFailed(role, client.hide.message(f"judge `{role}`: no verdict in two replies: {problem}"))


def _call(role: str, stage: str, messages: tuple[Message, ...], sample: tuple[int, ...]) -> Call:
    return Call(role, stage, messages, sample, judges=True)


def _without_secrets(client: Client, verdict: Verdict) -> Verdict:
    if not client.hide:
        return verdict
    marks = tuple(Mark(each.criterion, each.value, client.hide(each.reason)) for each in verdict.marks)
    return Verdict(verdict.role, marks, verdict.instructions)
