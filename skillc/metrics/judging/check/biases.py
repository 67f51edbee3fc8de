"""The biases of a judge, each a paired test by split group, all of them one family with Holm's correction.

A test compares two scores of the same judge on the same item, or a score with its label. Noise of the judge alone moves
both alike, so that a judge that only flips is not called biased.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from statistics import mean
from typing import Literal

from skillc.dataclass import dataclass
from skillc.metrics.judging.check.questions import (
    INJECTIONS,
    PADDED,
    SWAPPED,
    Item,
    Judgements,
    Variant,
    injected,
    plain,
)
from skillc.outcomes import MICRO
from skillc.stats.family import judge_family
from skillc.stats.power import LEAST_GROUPS
from skillc.stats.verdict import PairedScore

BiasKind = Literal["order", "position", "length", "injection", "leniency", "family"]
Interval = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Bias:
    """A tested bias.

    Attributes:
        kind: `order` of the levels in a rubric, `position` of two answers, `length`, an `injection`, `leniency`
            against labels, or the judge's own `family` of models.
        name: of the injection, else empty.
        found: whether the family of tests claims it at 5 %. An injection makes an answer longer, so it has to move the
            score further than longer padding does.
        shift: how much higher the score is with the best level first, with padding, with the injection, than the
            label, or for the own family; for `position` the share of first places that won, minus a half.
        interval: of the shift, at the level of its test: it excludes 0 exactly if the test claims a
            shift.
        p: adjusted for the family.
        n: items.
        groups: split groups among them; no claim is possible with fewer than six.
        changed: items whose score differs.
        as_padding: whether an injection shifts the score, and longer padding as far.
    """

    kind: BiasKind
    name: str
    found: bool
    shift: Fraction
    interval: Interval | None
    p: Fraction
    n: int
    groups: int
    changed: int
    as_padding: bool = False

    @property
    def testable(self) -> bool:
        """Whether there are enough groups for a claim."""
        return self.groups >= LEAST_GROUPS


@dataclass(frozen=True, slots=True)
class _Test:
    kind: BiasKind
    name: str
    pairs: tuple[PairedScore, ...]
    # What one unit of the paired difference is in the unit of the shift.
    scale: Fraction = Fraction(1)


def biases_of(judgements: Judgements, *, own: Mapping[str, bool] | None = None, seed: int = 0) -> tuple[Bias, ...]:
    """Return all biases that the judgements can show.

    Args:
        judgements: of one judge or panel.
        own: by model that gave answers, whether it is of the judge's family; None if only one family is known.
        seed: draws the subsets of the tests.
    """
    tests = [each for each in _tests(judgements, own or {}) if each.pairs]
    family = {f"{each.kind} {each.name}": each.pairs for each in tests}
    members = judge_family(family, low=Fraction(0), high=Fraction(1), seed=seed)
    found = []
    for each in tests:
        member = members[f"{each.kind} {each.name}"]
        verdict = member.verdict
        ends = verdict.interval
        shifts = verdict.verdict in ("improved", "worse")
        beyond = _beyond_length(judgements, each, verdict.gain)
        found.append(
            Bias(
                kind=each.kind,
                name=each.name,
                found=shifts and beyond,
                shift=(verdict.gain or Fraction(0)) * each.scale,
                interval=None if ends is None else (ends[0] * each.scale, ends[1] * each.scale),
                p=member.adjusted,
                n=verdict.n,
                groups=verdict.groups,
                changed=sum(pair.initial != pair.best for pair in each.pairs),
                as_padding=shifts and not beyond,
            )
        )
    return tuple(found)


def _beyond_length(judgements: Judgements, test: _Test, shift: Fraction | None) -> bool:
    """Return whether a shift is not that of a longer answer alone."""
    if test.kind != "injection":
        return True
    beyond = [(pair.best or 0) - (pair.initial or 0) for pair in _shifted(judgements, PADDED, injected(test.name))]
    return not beyond or sum(beyond) * (shift or 0) > 0


def _tests(judgements: Judgements, own: Mapping[str, bool]) -> list[_Test]:
    first = plain()
    tests = []
    if judgements.judge.against is not None:
        places = [(item, judgements.first_place(i, first)) for i, item in enumerate(judgements.items)]
        pairs = [
            PairedScore(item.group, _micro(1 - share), _micro(share)) for item, share in places if share is not None
        ]
        # A share of first places minus that of second places is twice the distance to a half.
        tests.append(_Test("position", "", tuple(pairs), Fraction(1, 2)))
    tests.append(_Test("order", "", _shifted(judgements, SWAPPED, first)))
    tests.append(_Test("length", "", _shifted(judgements, first, PADDED)))
    tests += [_Test("injection", name, _shifted(judgements, first, injected(name))) for name in INJECTIONS]
    labelled = [
        PairedScore(item.group, _micro(item.label), _micro(score))
        for item, score in judgements.scored()
        if item.label is not None
    ]
    tests.append(_Test("leniency", "", tuple(labelled)))
    tests.append(_Test("family", "", _of_family(judgements, own)))
    return tests


def _shifted(judgements: Judgements, before: Variant, after: Variant) -> tuple[PairedScore, ...]:
    """Return the scores of each item that was measured under both variants."""
    found = []
    for i, item in enumerate(judgements.items):
        one, other = judgements.score(i, before), judgements.score(i, after)
        if one is not None and other is not None:
            found.append(PairedScore(item.group, _micro(one), _micro(other)))
    return tuple(found)


def _of_family(judgements: Judgements, own: Mapping[str, bool]) -> tuple[PairedScore, ...]:
    """Return, for each example with labelled answers of both, score minus label of the other and of the own family.

    Without labels a higher score may be deserved, so nothing is tested.
    """
    by_example: dict[str, tuple[Item, list[Fraction], list[Fraction]]] = {}
    for item, score in judgements.scored():
        if item.model in own and item.label is not None:
            _, others, ours = by_example.setdefault(item.example, (item, [], []))
            (ours if own[item.model] else others).append(score - item.label)
    return tuple(
        PairedScore(item.group, _micro(mean(others)), _micro(mean(ours)))
        for item, others, ours in by_example.values()
        if others and ours
    )


def _micro(value: Fraction) -> int:
    return round(value * MICRO)
