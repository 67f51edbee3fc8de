"""Verdicts of one or several judges as one score with feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from statistics import median

from skillc.dataclass import dataclass
from skillc.gates.terms import CallTerm
from skillc.metrics.judging.prompt import TIE, A, B
from skillc.metrics.judging.verdict import JudgeFailed, Mark, Reply, Verdict
from skillc.plan.judges import JudgePlan
from skillc.plan.schema import CriterionPlan

_HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Marked:
    """The score of one criterion, from 0 to 1, and the reason, which no feedback shows."""

    criterion: str
    score: Fraction
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of a judge, or of a panel, on one rollout.

    Attributes:
        score: from 0 to 1.
        lines: feedback by criterion, each with the name of its criterion, empty for the only one.
        pairs: comparisons in both orders: criteria times judges.
        by_order: those of them in which the order decided, not the answers.
        instructions: verdicts that report instructions to the judge within the answer.
        marks: one for each criterion.
    """

    score: Fraction
    lines: tuple[tuple[str, str], ...] = ()
    pairs: int = 0
    by_order: int = 0
    instructions: int = 0
    marks: tuple[Marked, ...] = ()


TIED = Judged(_HALF)
"""The result of an answer that is equal to its reference, which needs no call."""


@dataclass(frozen=True, slots=True)
class _Opinion:
    """One judge on one criterion: None without a verdict."""

    role: str
    score: Fraction | None
    shown: str = ""
    reason: str = ""
    by_order: bool = False


def combine_levels(judge: JudgePlan, replies: Sequence[Reply], *, reveal: bool = True) -> Judged | JudgeFailed:
    """Combine the verdicts of all judges on the levels of an answer: the median by criterion, then the weighted mean.

    A judge that failed counts as its whole range: without an influence on the result it is scored all the same.
    `replies` has one for each judge, in order; only if `reveal` is set, feedback quotes reasons.
    """

    def opinion(role: str, reply: Reply, criterion: CriterionPlan) -> _Opinion:
        mark = _mark_of(reply, criterion)
        if mark is None:
            return _Opinion(role, None)
        assert isinstance(mark.value, int)
        return _Opinion(role, criterion.score(mark.value), _shown_level(criterion, mark.value), mark.reason)

    opinions = [
        [opinion(role, reply, criterion) for role, reply in zip(judge.roles, replies, strict=True)]
        for criterion in judge.rubric.criteria
    ]
    return _combined(judge, opinions, replies, reveal=reveal)


def combine_pairs(
    judge: JudgePlan, replies: Sequence[tuple[Reply, Reply]], *, reveal: bool = True
) -> Judged | JudgeFailed:
    """Combine comparisons in both orders: 1 if both prefer the answer, 0 if both prefer the reference, else a half.

    `replies` has two for each judge: with the answer as A, then as B.
    """
    other = "the right answer" if judge.against == "gold" else "the answer of the initial skill"

    def opinion(role: str, pair: tuple[Reply, Reply], criterion: CriterionPlan) -> _Opinion:
        first, second = (_mark_of(reply, criterion) for reply in pair)
        if first is None or second is None:
            return _Opinion(role, None)
        ours = (first.value == A) - (first.value == B), (second.value == B) - (second.value == A)
        if ours == (1, 1):
            return _Opinion(role, Fraction(1), f"better than {other}", first.reason)
        if ours == (-1, -1):
            return _Opinion(role, Fraction(0), f"worse than {other} (this answer is A)", first.reason)
        if first.value == TIE and second.value == TIE:
            return _Opinion(role, _HALF, f"as good as {other}", first.reason)
        return _Opinion(role, _HALF, f"neither better nor worse than {other}", "", sum(ours) == 0)

    opinions = [
        [opinion(role, pair, criterion) for role, pair in zip(judge.roles, replies, strict=True)]
        for criterion in judge.rubric.criteria
    ]
    return _combined(judge, opinions, [reply for pair in replies for reply in pair], reveal=reveal, pairs=True)


def counts_of(verdicts: Mapping[CallTerm, Judged | JudgeFailed]) -> tuple[int, int, int]:
    """Return the counts of all verdicts on a rollout together."""
    judged = [each for each in verdicts.values() if isinstance(each, Judged)]
    return (
        sum(each.pairs for each in judged),
        sum(each.by_order for each in judged),
        sum(each.instructions for each in judged),
    )


def _combined(
    judge: JudgePlan,
    opinions: Sequence[Sequence[_Opinion]],
    replies: Sequence[Reply],
    *,
    reveal: bool,
    pairs: bool = False,
) -> Judged | JudgeFailed:
    score, whole = Fraction(0), sum((each.weight for each in judge.rubric.criteria), Fraction(0))
    lines, marks = [], []
    for criterion, given in zip(judge.rubric.criteria, opinions, strict=True):
        low, high = (
            median([missing if each.score is None else each.score for each in given])
            for missing in (Fraction(0), Fraction(1))
        )
        if low != high:
            failed = [reply for reply in replies if isinstance(reply, JudgeFailed)]
            return JudgeFailed(failed[0].role, "; ".join(dict.fromkeys(each.detail for each in failed)))
        score += criterion.weight / whole * low
        lines.append((criterion.name, _line(given, low, reveal=reveal)))
        marks.append(Marked(criterion.name, low, _nearest(given, low).reason))
    heard = [each for given in opinions for each in given if each.score is not None]
    return Judged(
        score=score,
        lines=tuple(lines),
        pairs=len(heard) if pairs else 0,
        by_order=sum(each.by_order for each in heard),
        instructions=sum(isinstance(reply, Verdict) and reply.instructions for reply in replies),
        marks=tuple(marks),
    )


def _line(opinions: Sequence[_Opinion], score: Fraction, *, reveal: bool) -> str:
    """Describe the result on one criterion: what was said, by whom if several were asked, and why."""
    nearest = _nearest(opinions, score)
    said = nearest.shown
    if len(opinions) > 1:
        of = ", ".join(f"{each.role}: {each.shown or 'failed'}" for each in opinions)
        said = f"{said} ({of})" if any(each.shown != said for each in opinions) else f"{said} (all judges)"
    # Nothing is to be learned from the reasons for the best level.
    return f"{said}: {nearest.reason}" if reveal and nearest.reason and score < 1 else said


def _nearest(opinions: Sequence[_Opinion], score: Fraction) -> _Opinion:
    """Return the opinion whose score is nearest to the result's."""
    heard = [each for each in opinions if each.score is not None]
    return min(heard, key=lambda each: abs((each.score or Fraction(0)) - score))


def _mark_of(reply: Reply, criterion: CriterionPlan) -> Mark | None:
    if isinstance(reply, JudgeFailed):
        return None
    return next(mark for mark in reply.marks if mark.criterion == criterion.name)


def _shown_level(criterion: CriterionPlan, level: int) -> str:
    if not criterion.levels:
        return "yes" if level else "no"
    return f"{level} of {criterion.levels[0][0]}"


def feedback_lines(metric: str, judged: Judged) -> list[str]:
    """Return the feedback of a result, one line a criterion: `helpful, honest: 1 of 5: the reply promises ...`."""
    found = [f"{metric}, {name}: {line}" if name else f"{metric}: {line}" for name, line in judged.lines]
    if judged.instructions:
        found.append(f"{metric}: the answer contains instructions to its judge, which did not count")
    return found
