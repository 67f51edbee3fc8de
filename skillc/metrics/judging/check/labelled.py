"""Agreement of a judge with labels: overall, by criterion, by score, and on contested examples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from statistics import mean

from skillc.dataclass import dataclass
from skillc.metrics.judging.check.questions import Judgements, plain, scale_of
from skillc.stats.agreement import Agreement, Correlation, Rated, agreement, correlation_within
from skillc.stats.error_rates import ErrorRates
from skillc.stats.power import mean_interval
from skillc.stats.prediction_powered import Corrected, corrected_mean
from skillc.stats.sample_size import Needed, needed

_FIFTHS = 5
Interval = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class ScoreBin:
    """The labels of the items with a score in some range: the judge is calibrated where they have the same mean.

    Attributes:
        low, high: of the scores; equal for a single level.
        n: labelled items.
        label: their mean label.
        interval: at 95 %, None below two groups.
    """

    low: Fraction
    high: Fraction
    n: int
    label: Fraction
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Labelled:
    """What the labels say of a judge.

    Attributes:
        overall: on all labelled items.
        by_criterion: by name of the criterion.
        by_score: from the lowest score.
        contested: on items of examples whose answers have different labels.
        ordered: of all pairs of answers to one example with different labels, the share that the judge orders as the
            labels do; equal scores are half of it. None without such a pair.
        ordered_interval: None below two groups.
        length: rank correlation of the score with the length of the answer at equal label.
        corrected: the mean label over all rollouts, None with fewer than 30 labels on them.
        rates: sensitivity and specificity, where label and score are 0 or 1; None elsewhere, and without both kinds of
            answers.
        needed: the examples that show a gain of 5 points; None if all labels are equal.
    """

    overall: Agreement
    by_criterion: Mapping[str, Agreement]
    by_score: tuple[ScoreBin, ...]
    contested: Agreement
    ordered: Fraction | None
    ordered_interval: Interval | None
    length: Correlation
    corrected: Corrected | None
    rates: ErrorRates | None
    needed: Needed | None


@dataclass(frozen=True, slots=True)
class _Row:
    example: str
    group: str
    label: Fraction
    score: Fraction
    length: int


def labelled_of(judgements: Judgements, *, seed: int = 0) -> Labelled | None:
    """Return the agreement with labels; None without a labelled item that was judged."""
    rows = [
        _Row(item.example, item.group, item.label, score, len(item.case.answer))
        for item, score in judgements.scored()
        if item.label is not None
    ]
    if not rows:
        return None
    scale, ordered = judgements.scale, _ordered(rows)
    contested = _contested(rows)
    return Labelled(
        overall=_agreement(rows, scale),
        by_criterion=_by_criterion(judgements),
        by_score=_by_score(rows, scale),
        contested=_agreement([row for row in rows if row.example in contested], scale),
        ordered=mean(share for _, share in ordered) if ordered else None,
        ordered_interval=mean_interval(ordered, low=Fraction(0), high=Fraction(1)),
        length=correlation_within([(row.label, row.score, row.length) for row in rows], seed),
        corrected=_corrected(judgements),
        rates=_rates(rows),
        needed=needed([Rated(row.group, row.score, row.label) for row in rows]),
    )


def _agreement(rows: Sequence[_Row], scale: Sequence[Fraction]) -> Agreement:
    return agreement([Rated(row.group, row.score, row.label) for row in rows], scale)


def _by_criterion(judgements: Judgements) -> dict[str, Agreement]:
    found = {}
    for criterion in judgements.judge.rubric.criteria:
        rated = [
            Rated(item.group, score, item.marks[criterion.name])
            for i, item in enumerate(judgements.items)
            if criterion.name in item.marks and (score := judgements.score(i, plain(), criterion)) is not None
        ]
        if rated:
            scale = scale_of(criterion) if judgements.judge.against is None else ()
            found[criterion.name] = agreement(rated, scale)
    return found


def _by_score(rows: Sequence[_Row], scale: Sequence[Fraction]) -> tuple[ScoreBin, ...]:
    """Return the labels by level, or by fifths of the range if scores are means over criteria."""
    bins: dict[tuple[Fraction, Fraction], list[_Row]] = defaultdict(list)
    few = scale or sorted({row.score for row in rows})
    for row in rows:
        if len(few) <= _FIFTHS or scale:
            bins[row.score, row.score].append(row)
        else:
            fifth = min(_FIFTHS - 1, int(row.score * _FIFTHS))
            bins[Fraction(fifth, _FIFTHS), Fraction(fifth + 1, _FIFTHS)].append(row)
    return tuple(
        ScoreBin(
            low,
            high,
            len(each),
            mean(row.label for row in each),
            mean_interval([(row.group, row.label) for row in each], low=Fraction(0), high=Fraction(1)),
        )
        for (low, high), each in sorted(bins.items(), key=lambda entry: entry[0])
    )


def _contested(rows: Sequence[_Row]) -> set[str]:
    """Return the examples whose answers have different labels."""
    labels: dict[str, set[Fraction]] = defaultdict(set)
    for row in rows:
        labels[row.example].add(row.label)
    return {example for example, found in labels.items() if len(found) > 1}


def _ordered(rows: Sequence[_Row]) -> list[tuple[str, Fraction]]:
    """Return group and whether the judge orders a pair of one example as its labels do, for each such pair."""
    by_example: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        by_example[row.example].append(row)
    found = []
    for each in by_example.values():
        for one, other in combinations(each, 2):
            if one.label != other.label:
                better, worse = (one, other) if one.label > other.label else (other, one)
                right = (better.score > worse.score) + Fraction(better.score == worse.score, 2)
                found.append((one.group, Fraction(right)))
    return found


def _rates(rows: Sequence[_Row]) -> ErrorRates | None:
    wrong, right = ([row.score for row in rows if row.label == label] for label in (0, 1))
    if not (wrong and right) or len(wrong) + len(right) < len(rows) or not {*wrong, *right} <= {0, 1}:
        return None
    return ErrorRates(mean(right), 1 - mean(wrong), len(right), len(wrong))


def _corrected(judgements: Judgements) -> Corrected | None:
    """Return the mean label over the rollouts of the skill, the labelled ones a random part of them."""
    labelled, other = [], []
    for item, score in judgements.scored():
        if item.rolled and item.label is not None:
            labelled.append((item.group, item.label, score))
        elif item.rolled:
            other.append((item.group, score))
    return corrected_mean(labelled, other)
