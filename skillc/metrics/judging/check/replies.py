"""The judged items, the replies of all judges to all variants, and the scores that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from skillc.metrics.judging.ask import JudgeFailed
from skillc.metrics.judging.case import Case
from skillc.metrics.judging.check.variants import Variant
from skillc.metrics.judging.combine import Judged, Reply, combine_levels, combine_pairs
from skillc.metrics.judging.prompt import TIE, A
from skillc.metrics.judging.verdict import Verdict
from skillc.plan.judges import JudgePlan
from skillc.plan.schema import CriterionPlan

Given = Reply | tuple[Reply, Reply]
"""The reply of a judge; in a comparison that with the answer as A, then as B."""


@dataclass(frozen=True, slots=True)
class Item:
    """One answer that is judged.

    Attributes:
        example: id of its example.
        group: split group of the example.
        case: what the judge reads.
        sample: number of the rollout of the example.
        model: that gave the answer; empty for a labelled answer that no rollout gave.
        label: what a human says, from 0 to 1; None without a label.
        marks: likewise by criterion.
    """

    example: str
    group: str
    case: Case
    sample: int = 0
    model: str = ""
    label: Fraction | None = None
    marks: Mapping[str, Fraction] = field(default_factory=dict)

    @property
    def rolled(self) -> bool:
        """Whether a rollout gave the answer."""
        return bool(self.model)


@dataclass(frozen=True, slots=True)
class Judgements:
    """What the models of one call of `judge` said about all items.

    Attributes:
        judge: the rubric, and the models; several are a panel.
        items: what was judged.
        given: the reply by number of the item, variant and role; what was not asked is missing.
    """

    judge: JudgePlan
    items: tuple[Item, ...]
    given: Mapping[tuple[int, Variant, str], Given]

    def of(self, role: str) -> Judgements:
        """Return those of one model of a panel."""
        return replace(self, judge=replace(self.judge, roles=(role,)))

    def judged(self, item: int, variant: Variant, criterion: CriterionPlan | None = None) -> Judged | None:
        """Return the result on an item, or on one criterion of it; None if a judge failed or was not asked."""
        judge, given = self.judge, [self.given.get((item, variant, role)) for role in self.judge.roles]
        if criterion is not None:
            judge = replace(judge, rubric=judge.rubric.model_copy(update={"criteria": (criterion,)}))
        if any(each is None for each in given):
            return None
        if judge.against is None:
            single = [each for each in given if isinstance(each, Verdict | JudgeFailed)]
            result = combine_levels(judge, single)
        else:
            result = combine_pairs(judge, [each for each in given if isinstance(each, tuple)])
        return result if isinstance(result, Judged) else None

    def score(self, item: int, variant: Variant, criterion: CriterionPlan | None = None) -> Fraction | None:
        """Return the score on an item, None if it is unmeasured."""
        found = self.judged(item, variant, criterion)
        return None if found is None else found.score

    def first_place(self, item: int, variant: Variant) -> Fraction | None:
        """Return the share of first places among the winners of a comparison in both orders; a tie is half of one."""
        shares = []
        for role in self.judge.roles:
            given = self.given.get((item, variant, role))
            if not isinstance(given, tuple) or any(isinstance(each, JudgeFailed) for each in given):
                return None
            values = [mark.value for each in given if isinstance(each, Verdict) for mark in each.marks]
            # In either order, A is the answer in the first place.
            shares += [Fraction(1, 2) if value == TIE else Fraction(value == A) for value in values]
        return sum(shares, Fraction(0)) / len(shares) if shares else None

    def asked(self, variant: Variant) -> Sequence[int]:
        """Return the items about which every judge was asked."""
        roles = self.judge.roles
        return [i for i in range(len(self.items)) if all((i, variant, role) in self.given for role in roles)]


def scale_of(criterion: CriterionPlan) -> tuple[Fraction, ...]:
    """Return the scores of all levels of a criterion, in ascending order; of a question 0 and 1."""
    if not criterion.levels:
        return (Fraction(0), Fraction(1))
    return tuple(sorted(criterion.score(level) for level, _ in criterion.levels))
