"""The size of the judges' calls for one rollout: at least, about, at most."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from skillc.budget.spend import Extent, Sizes, Spend, SpendBound, one_call
from skillc.gates import units
from skillc.plan.judges import JudgePlan, judges_of
from skillc.plan.schema import Plan, PricePlan, RubricPlan
from skillc.tokens import count_tokens

# Tokens around a prompt's own content, as measured on the templates; of a reason; around a verdict; of a second
# question with the problem of the first reply.
_AROUND, _A_REASON, _AROUND_VERDICT, _ASKED_AGAIN = 420, 50, 30, 60
_A_LEVEL = 4
# Around a statement: its heading, the question and the words for its answer.
_A_STATEMENT = 40
_A_STEP = 150


def share_of(part: float | Fraction | None, whole: float | Fraction | None) -> float | None:
    """Return the share that judges take of a run; None if a figure is unknown, or the run takes nothing."""
    return float(part / whole) if part is not None and whole else None


def with_share(text: str, share: float | None) -> str:
    """Render what judges take with its share: `995 calls (51 %)`."""
    return text if share is None else f"{text} ({units.percent(share)})"


def judged(
    plan: Plan,
    sizes: Sizes,
    prices: Mapping[str, PricePlan | None],
    *,
    role: str | None = None,
    initial: bool = False,
) -> SpendBound:
    """The calls of all judges for one rollout, or of those with a role.

    Args:
        plan: the program.
        sizes: of the data.
        prices: by role.
        role: of the judges; None for all.
        initial: whether the rollout is the initial skill's, which is not compared with itself.
    """
    found = SpendBound()
    for judge in judges_of(plan):
        if initial and judge.against == "initial":
            continue
        for asked in judge.roles:
            if role in (None, asked):
                found += one_judge(plan, judge, sizes, asked, prices.get(asked))
    return found


def one_judge(plan: Plan, judge: JudgePlan, sizes: Sizes, role: str, price: PricePlan | None) -> SpendBound:
    """One judge on one rollout: a call, two for a comparison; each reply may be asked for once more.

    Equal answers are compared without a call.
    """
    model, optimize = plan.models.get(role), plan.optimize
    longest, reply = plan.models["target"].max_reply, model.max_reply if model is not None else _A_REASON
    pair, steps = judge.against is not None, "trajectory" in judge.rubric.sees
    shown = 1 + pair + ("gold" in judge.rubric.sees)
    number, rubric = _rubric_size(judge.rubric, sizes)
    prompt = _AROUND + rubric.mean + sizes.inputs.mean + shown * sizes.outputs.mean
    verdict = min(_AROUND_VERDICT + _A_REASON * number, reply)
    about = one_call(prompt + steps * min(_A_STEP, optimize.trajectory_limit), verdict, price)
    largest = _AROUND + rubric.most + sizes.inputs.most + longest + steps * optimize.trajectory_limit
    largest += (shown - 1) * max(longest, sizes.outputs.most) + reply + _ASKED_AGAIN
    calls = 2 if pair else 1
    return SpendBound(Spend() if pair else about, about, one_call(largest, reply, price)).times(calls, calls, 2 * calls)


def _tokens(rubric: RubricPlan) -> int:
    return sum(
        count_tokens(each.question) + sum(count_tokens(meaning) + _A_LEVEL for _, meaning in each.levels)
        for each in rubric.criteria
    )


def _rubric_size(rubric: RubricPlan, sizes: Sizes) -> tuple[int, Extent]:
    """Return the usual number of criteria, and their tokens; statements that code checks count too."""
    if rubric.each is None:
        return len(rubric.criteria), Extent(_tokens(rubric), _tokens(rubric))
    count, tokens = sizes.statements.get(rubric.each, (Extent(1, 1), Extent()))
    return count.mean, Extent(tokens.mean + _A_STATEMENT * count.mean, tokens.most + _A_STATEMENT * count.most)
