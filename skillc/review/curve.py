"""The goal by decision: the incumbent with its interval, and each candidate as far as it was measured."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from skillc.dataclass import dataclass
from skillc.items.record import SplitName
from skillc.outcomes import MICRO, Scored
from skillc.review.confidence import ends_of_mean
from skillc.review.decisions import Bound, Decision
from skillc.review.run_view import RunView

_ROUNDING = Fraction(1, 100_000)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over measured examples.

    Attributes:
        interval: at 95 %, over groups; None without the cells, or with fewer than two groups.
        n, of: measured examples, and all of the split.
    """

    mean: Fraction
    interval: tuple[Fraction, Fraction] | None
    n: int
    of: int


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The state after one decision, or before the first.

    Attributes:
        decision: None before the first.
        incumbent: its mean on validation.
        changed: whether the candidate became the incumbent.
    """

    decision: Decision | None
    incumbent: Estimate | None
    changed: bool

    @property
    def candidate(self) -> Bound | None:
        """The mean of a candidate that was not accepted, as far as it was measured."""
        return None if self.decision is None or self.changed else self.decision.goal


@dataclass(frozen=True, slots=True)
class Curve:
    """The goal over a run.

    Attributes:
        points: on validation, which skills are selected on.
        held_out: means on test of the initial and the best skill, None where they were not measured.
    """

    points: tuple[CurvePoint, ...]
    held_out: tuple[Estimate | None, Estimate | None]


def estimate(view: RunView, skill: str, split: SplitName) -> Estimate | None:
    """Return the mean goal of a skill on a split from the recorded rollouts; None without a measured example."""
    if view.outcomes is None:
        return None
    goal, samples = view.plan.goal, view.plan.optimize.samples
    members = [each.example for each in view.examples.values() if each.split == split]
    scores: list[tuple[str, Fraction]] = []
    for example in members:
        cells = [
            outcome.cells.get(goal.name)
            for sample in range(samples)
            if (outcome := view.outcome(skill, example.id, sample)) is not None
        ]
        values = [cell.value for cell in cells if isinstance(cell, Scored)]
        if len(values) == samples:
            scores.append((example.group, Fraction(sum(values), samples * MICRO)))
    if not scores:
        return None
    mean = sum((value for _, value in scores), Fraction(0)) / len(scores)
    interval = ends_of_mean(scores, goal)
    return Estimate(mean, interval, len(scores), len(members))


def curve_of(view: RunView) -> Curve:
    """Return the goal by decision; means are those of lock and history, intervals those of the recorded cells."""

    @cache
    def measured(skill: str) -> Estimate | None:
        return estimate(view, skill, "validation")

    def known(skill: str, mean: Bound | None, of: int) -> Estimate | None:
        found = measured(skill)
        if mean is None or not mean.exact:
            return found
        # The history has six decimals. Cells of another mean are not those that were decided on.
        agrees = found is not None and abs(found.mean - mean.low) < _ROUNDING
        return Estimate(mean.low, found.interval if found is not None and agrees else None, of, of)

    first = next((each for each in view.decisions if each.incumbent_goal is not None), None)
    start = known(view.initial, _initial_mean(view, first), first.of if first is not None else 0)
    points, current = [CurvePoint(None, start, changed=False)], start
    for decision in view.decisions:
        if decision.accepted:
            current = known(decision.candidate, decision.reached, decision.of)
        elif decision.incumbent_goal is not None and current is None:
            current = known(decision.incumbent, decision.incumbent_goal, decision.of)
        points.append(CurvePoint(decision, current, changed=decision.accepted))
    return Curve(tuple(points), _held_out(view))


def _initial_mean(view: RunView, first: Decision | None) -> Bound | None:
    if view.lock is not None and view.lock.validation.initial.mean is not None:
        return Bound(view.lock.validation.initial.mean, view.lock.validation.initial.mean)
    return first.incumbent_goal if first is not None and first.incumbent == view.initial else None


def arm_estimate(view: RunView, skill: str, split: SplitName, mean: Fraction, n: int) -> Estimate:
    """Return the mean of an arm of the lock, with its interval if the cells are those that the lock was made of."""
    found = estimate(view, skill, split)
    agrees = found is not None and found.n == n and abs(found.mean - mean) < _ROUNDING
    return Estimate(mean, found.interval if found is not None and agrees else None, n, found.of if found else n)


def _held_out(view: RunView) -> tuple[Estimate | None, Estimate | None]:
    """Return the means on test as the lock has them."""
    if view.lock is None:
        return None, None
    arms = ((view.initial, view.lock.test.initial), (view.best, view.lock.test.best))
    initial, best = (
        None if arm.mean is None else arm_estimate(view, name, "test", arm.mean, arm.n) for name, arm in arms
    )
    return initial, best
