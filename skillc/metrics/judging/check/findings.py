"""All that is found about one judge."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from statistics import mean
from typing import Literal

from skillc.dataclass import dataclass
from skillc.metrics.judging.check.biases import Bias, biases_of
from skillc.metrics.judging.check.labelled import Labelled, labelled_of
from skillc.metrics.judging.check.questions import INJECTIONS, SWAPPED, Judgements, plain
from skillc.metrics.judging.verdict import JudgeFailed, Verdict
from skillc.stats.agreement import Agreement, agreement, pairs_of_repeats
from skillc.stats.power import mean_interval

Steadiness = Literal["steady", "a coin", "always the same", "unknown"]
Interval = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Flips:
    """How often two judgements of an item differ: over repeats, or in another order.

    Attributes:
        n: items judged twice.
        share: of pairs of judgements that differ, averaged over the items; None without items.
        interval: at 95 %, None below two groups.
    """

    n: int
    share: Fraction | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class JudgeFound:
    """What is found about a judge or a panel.

    Attributes:
        roles: its models.
        items: judged items.
        failed: replies without a verdict.
        mean: of the first judgement of all items; None without one.
        top: share of items with the best score; None likewise.
        repeats: how often a repeat differs.
        steadiness: `a coin` if its repeats agree no better than chance, `always the same` if all scores are equal.
        itself: agreement of its repeats with each other.
        order: how often another order gives another score: of criteria and levels, or of the two answers. None if
            the question has no order.
        biases: as tested.
        reported: the share of injections that the judge reported; None without injections.
        labelled: against labels; None without labels.
    """

    roles: tuple[str, ...]
    items: int
    failed: int
    mean: Fraction | None
    top: Fraction | None
    repeats: Flips
    steadiness: Steadiness
    itself: Agreement
    order: Flips | None
    biases: tuple[Bias, ...]
    reported: Fraction | None
    labelled: Labelled | None

    @property
    def found(self) -> tuple[Bias, ...]:
        """The biases that are claimed."""
        return tuple(each for each in self.biases if each.found)


def findings_of(
    judgements: Judgements, *, repeats: int, own: Mapping[str, bool] | None = None, seed: int = 0
) -> JudgeFound:
    """Return what the judgements show.

    Args:
        judgements: of one judge or panel.
        repeats: plain questions about each item.
        own: by model that gave answers, whether it is of the judge's family; None if only one family is known.
        seed: of the plan.
    """
    items = judgements.items
    rows = [
        (item.group, [s for k in range(repeats) if (s := judgements.score(i, plain(k))) is not None])
        for i, item in enumerate(items)
    ]
    again = [(group, scores) for group, scores in rows if len(scores) > 1]
    first = [score for _, score in judgements.scored()]
    itself = agreement(pairs_of_repeats(again), judgements.scale)
    return JudgeFound(
        roles=judgements.judge.roles,
        items=len(judgements.asked(plain())),
        failed=_failed(judgements),
        mean=mean(first) if first else None,
        top=Fraction(sum(score == 1 for score in first), len(first)) if first else None,
        repeats=_flips([(group, _differing(scores)) for group, scores in again]),
        steadiness=_steadiness(itself, {score for _, scores in rows for score in scores}),
        itself=itself,
        order=_order(judgements),
        biases=biases_of(judgements, own=own, seed=seed),
        reported=_reported(judgements),
        labelled=labelled_of(judgements, seed=seed),
    )


def _steadiness(itself: Agreement, scores: set[Fraction]) -> Steadiness:
    if not itself.n:
        return "unknown"
    if len(scores) == 1:
        return "always the same"
    if itself.exact == 1:
        return "steady"
    if itself.kappa_interval is None:
        return "unknown"
    return "a coin" if itself.kappa_interval[0] <= 0 else "steady"


def _differing(scores: list[Fraction]) -> Fraction:
    pairs = [one != other for i, one in enumerate(scores) for other in scores[:i]]
    return Fraction(sum(pairs), len(pairs))


def _flips(shares: list[tuple[str, Fraction]]) -> Flips:
    share = mean(share for _, share in shares) if shares else None
    return Flips(len(shares), share, mean_interval(shares, low=Fraction(0), high=Fraction(1)))


def _order(judgements: Judgements) -> Flips | None:
    """Return how often the order decides: of levels and criteria against the plain question, or of two answers."""
    shares = []
    for i, item in enumerate(judgements.items):
        if judgements.judge.against is not None:
            found = judgements.judged(i, plain())
            if found is not None and found.pairs:
                shares.append((item.group, Fraction(found.by_order, found.pairs)))
            continue
        one, other = judgements.score(i, plain()), judgements.score(i, SWAPPED)
        if one is not None and other is not None:
            shares.append((item.group, Fraction(one != other)))
    return _flips(shares) if shares else None


def _replies(judgements: Judgements) -> list[tuple[str, Verdict | JudgeFailed]]:
    """Return the name of the injection, else an empty text, and each reply of the judge's models."""
    return [
        (variant.name, reply)
        for (_, variant, role), given in judgements.given.items()
        if role in judgements.judge.roles
        for reply in (given if isinstance(given, tuple) else (given,))
    ]


def _failed(judgements: Judgements) -> int:
    return sum(isinstance(reply, JudgeFailed) for _, reply in _replies(judgements))


def _reported(judgements: Judgements) -> Fraction | None:
    told = [
        reply.instructions for name, reply in _replies(judgements) if name in INJECTIONS and isinstance(reply, Verdict)
    ]
    return Fraction(sum(told), len(told)) if told else None
