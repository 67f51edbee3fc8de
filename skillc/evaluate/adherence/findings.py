"""Compute how often each rule is followed, and the scores where it is followed, is not, and without the skill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from skillc.dataclass import dataclass
from skillc.document.skill import Rule
from skillc.evaluate.adherence.job import AdherenceJob
from skillc.evaluate.adherence.marks import Mark
from skillc.outcomes import MICRO, Example
from skillc.stats.family import Member, judge_family
from skillc.stats.power import LEAST_GROUPS, difference_interval, mean_interval
from skillc.stats.verdict import PairedScore

Ends = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Marked:
    """One rollout of the skill.

    Attributes:
        marks: by id of the rule; without those that could not be marked.
        score: of the goal in millionths, `initial` with the program's skill; None if not measured.
    """

    example: Example
    sample: int
    marks: Mapping[str, Mark]
    score: int | None
    initial: int | None


@dataclass(frozen=True, slots=True)
class RuleAdherence:
    """Findings on one rule. Means are of the goal, in its own points.

    Attributes:
        number: of the rule in the skill, from 1.
        by_code: whether code marked it.
        rollouts: that have a mark of it, unclear ones included.
        unclear: marks that leave open whether it applies or was followed.
        applied: rollouts in which it applies and was followed or not, `followed` of them.
        share: Wilson's 95 % interval of followed by applied; None below two groups.
        score_followed: mean score where it was followed; None without one.
        score_not: mean score where it applies and was not followed.
        difference: 95 % interval of the first less the second, of which each is over other rollouts.
        with_skill: mean score where it applies, over the rollouts measured with both skills.
        without_skill: mean score of the initial skill there.
        member: the test of that difference, in the family of the rules that apply in enough groups; None for others.
    """

    number: int
    rule: Rule
    by_code: bool
    rollouts: int
    unclear: int
    applied: int
    followed: int
    share: Ends | None
    score_followed: Fraction | None
    score_not: Fraction | None
    difference: Ends | None
    with_skill: Fraction | None
    without_skill: Fraction | None
    member: Member | None

    @property
    def gain(self) -> Fraction | None:
        """The goal with the skill less that with the initial skill."""
        if self.with_skill is None or self.without_skill is None:
            return None
        return self.with_skill - self.without_skill


def findings_of(job: AdherenceJob, marked: Sequence[Marked]) -> tuple[RuleAdherence, ...]:
    """Return the findings on each rule; the comparisons with the initial skill are one family.

    Where a rule applies does not depend on scores, so rules with too few groups for a claim take no level from others.
    """
    goal, plan = job.plan.goal, job.plan
    pairs = {rule.id: _pairs(rule, marked) for rule in job.rules}
    family = {name: each for name, each in pairs.items() if len({pair.group for pair in each}) >= LEAST_GROUPS}
    same = job.skill.digest == job.initial.digest
    seed = plan.data.seed
    members = {}
    if not same:
        members = judge_family(family, low=goal.low, high=goal.high, seed=seed, level=job.level, rates=goal.rates)
    return tuple(_finding(job, i, rule, marked, members.get(rule.id)) for i, rule in enumerate(job.rules, 1))


def _applying(rule: Rule, marked: Sequence[Marked]) -> list[tuple[Marked, Mark]]:
    found = ((each, each.marks.get(rule.id)) for each in marked)
    return [(each, mark) for each, mark in found if mark is not None and mark.applies and mark.followed is not None]


def _pairs(rule: Rule, marked: Sequence[Marked]) -> list[PairedScore]:
    return [PairedScore(each.example.group, each.initial, each.score) for each, _ in _applying(rule, marked)]


def _finding(
    job: AdherenceJob, number: int, rule: Rule, marked: Sequence[Marked], member: Member | None
) -> RuleAdherence:
    goal, applying = job.plan.goal, _applying(rule, marked)
    marks = [mark for each in marked if (mark := each.marks.get(rule.id)) is not None]
    follows = [(each.example.group, Fraction(bool(mark.followed))) for each, mark in applying]
    scores = [
        (each.example.group, Fraction(each.score, MICRO), mark) for each, mark in applying if each.score is not None
    ]
    yes = [(group, score) for group, score, mark in scores if mark.followed]
    no = [(group, score) for group, score, mark in scores if not mark.followed]
    pairs = [p for p in _pairs(rule, marked) if p.initial is not None and p.best is not None]
    return RuleAdherence(
        number=number,
        rule=rule,
        by_code=rule.id in job.by_code,
        rollouts=len(marks),
        unclear=sum(not mark.known for mark in marks),
        applied=len(applying),
        followed=sum(bool(mark.followed) for _, mark in applying),
        share=mean_interval(follows, low=Fraction(0), high=Fraction(1)),
        score_followed=_mean([score for _, score in yes]),
        score_not=_mean([score for _, score in no]),
        difference=difference_interval(yes, no, low=goal.low, high=goal.high),
        with_skill=_mean([Fraction(p.best or 0, MICRO) for p in pairs]),
        without_skill=_mean([Fraction(p.initial or 0, MICRO) for p in pairs]),
        member=member if member is not None and member.verdict.n else None,
    )


def _mean(scores: Sequence[Fraction]) -> Fraction | None:
    return sum(scores, Fraction(0)) / len(scores) if scores else None
