"""Measure how far the sources of labels agree, and how often each is right where a person has labelled too.

Agreement is over the outcomes `worked` and `failed`: a label `unclear` is neither and is counted separately. Kappa is
Cohen's (J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20, 1960)
with the jackknife's interval over sessions; for two outcomes it equals the weighted one of `skillc.stats.agreement`.
Intervals of shares are Wilson's, all at 95 %.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from skillc.dataclass import dataclass
from skillc.sessions.labels import CONSENSUS, JUDGE, PERSON, Label, Outcome, consensus
from skillc.sessions.signals import CERTAINTY
from skillc.stats.agreement import Rated, agreement
from skillc.stats.error_rates import ErrorRates
from skillc.stats.power import wilson

LEAST_OVERLAP = 10
"""Sessions that two sources must both have labelled before their agreement is reported."""
LEAST_MEASURED = 10
"""Sessions with a person's label before the rate of a source's outcome replaces its certainty."""
_OUTCOMES: tuple[Outcome, ...] = ("worked", "failed")
Interval = tuple[float, float]
_Case = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How far two sources agree.

    Attributes:
        both: sessions that both labelled `worked` or `failed`.
        unclear: sessions that both labelled, one or both as `unclear`.
        equal: share of `both` with the same outcome, with its interval; None below `LEAST_OVERLAP`.
        kappa: 1 is full agreement, 0 that of chance; None too where all outcomes are the same.
    """

    one: str
    other: str
    both: int
    unclear: int
    equal: float | None = None
    equal_interval: Interval | None = None
    kappa: float | None = None
    kappa_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """How often a source is right where it gives an outcome.

    Attributes:
        right, n: sessions with a person's outcome, and those where it is the same.
        declared: the certainty to begin with; None for a judge, which has none before it is measured.
        measured: (right + 1) / (n + 2), as the certainty that replaces it; None below `LEAST_MEASURED`.
        interval: of the share right; None likewise.
    """

    source: str
    outcome: Outcome
    right: int
    n: int
    declared: float | None
    measured: float | None = None
    interval: Interval | None = None

    @property
    def enough(self) -> bool:
        """Whether enough sessions have a person's label."""
        return self.n >= LEAST_MEASURED


@dataclass(frozen=True, slots=True)
class Agreements:
    """Agreement and accuracy of the sources of labels.

    Attributes:
        sessions: labelled sessions; one with two skills counts twice.
        by_person: those with a person's label.
        confusion: number of cases by source, its outcome and the person's.
        errors: sensitivity and specificity of each source, for a program that measures by it; only of sources that
            labelled ten sessions of either outcome, by the person's labels.
    """

    sessions: int
    by_person: int
    pairs: tuple[PairAgreement, ...]
    rates: tuple[Rate, ...]
    confusion: Mapping[str, Mapping[tuple[Outcome, Outcome], int]]
    errors: Mapping[str, ErrorRates]


def agreements_of(labels: Iterable[Label]) -> Agreements:
    """Return how far all sources agree with each other, and how often they are right by the persons' labels."""
    cases: dict[_Case, dict[str, Label]] = defaultdict(dict)
    for each in labels:
        if each.source != CONSENSUS:
            cases[each.session, each.skill][each.source] = each
    truth: dict[_Case, Outcome] = {}
    for case, by in cases.items():
        persons = [each for each in by.values() if each.kind == PERSON]
        if persons:
            truth[case] = consensus(persons).outcome
    sources = sorted({source for by in cases.values() for source in by}, key=_place)
    confusion: dict[str, Counter[tuple[Outcome, Outcome]]] = {each: Counter() for each in sources}
    for case, by in cases.items():
        for source, label in by.items():
            if case in truth and label.kind != PERSON:
                confusion[source][label.outcome, truth[case]] += 1
    return Agreements(
        sessions=len(cases),
        by_person=len(truth),
        pairs=tuple(_pair(one, other, list(cases.values())) for one, other in combinations(sources, 2)),
        rates=tuple(
            _rate(source, outcome, confusion[source])
            for source in sources
            if not source.startswith(f"{PERSON}:")
            for outcome in _OUTCOMES
            if any(source in by and by[source].outcome == outcome for by in cases.values())
        ),
        confusion={source: counts for source, counts in confusion.items() if counts},
        errors={source: rates for source, counts in confusion.items() if (rates := error_rates(counts)) is not None},
    )


def _place(source: str) -> tuple[int, str]:
    kinds = (PERSON, JUDGE)
    kind = source.partition(":")[0]
    return kinds.index(kind) if kind in kinds else len(kinds), source


def _pair(one: str, other: str, cases: Sequence[Mapping[str, Label]]) -> PairAgreement:
    both = [(by[one].outcome, by[other].outcome) for by in cases if one in by and other in by]
    clear = [pair for pair in both if "unclear" not in pair]
    found = PairAgreement(one, other, len(clear), len(both) - len(clear))
    if len(clear) < LEAST_OVERLAP:
        return found
    # Each session is its own group, so that the jackknife leaves out one at a time.
    rated = [Rated(str(i), Fraction(a == "worked"), Fraction(b == "worked")) for i, (a, b) in enumerate(clear)]
    same = agreement(rated)
    equal = sum(a == b for a, b in clear)
    return replace(
        found,
        equal=equal / len(clear),
        equal_interval=_wilson(equal, len(clear)),
        kappa=same.kappa,
        kappa_interval=same.kappa_interval,
    )


def _rate(source: str, outcome: Outcome, counts: Mapping[tuple[Outcome, Outcome], int]) -> Rate:
    right = counts.get((outcome, outcome), 0)
    n = sum(number for (said, true), number in counts.items() if said == outcome and true != "unclear")
    found = Rate(source, outcome, right, n, CERTAINTY.get((source.partition(":")[2], outcome)))
    if not found.enough:
        return found
    return replace(found, measured=(right + 1) / (n + 2), interval=_wilson(right, n))


def error_rates(counts: Mapping[tuple[Outcome, Outcome], int]) -> ErrorRates | None:
    """Return how often a source gives `worked` and `failed` where the person does; None below ten sessions of either.

    Sessions labelled `unclear` are not counted.
    """
    hits, misses = counts.get(("worked", "worked"), 0), counts.get(("failed", "worked"), 0)
    passes, alarms = counts.get(("failed", "failed"), 0), counts.get(("worked", "failed"), 0)
    positives, negatives = hits + misses, passes + alarms
    if min(positives, negatives) < LEAST_MEASURED:
        return None
    return ErrorRates(Fraction(hits, positives), Fraction(passes, negatives), positives, negatives)


def _wilson(right: int, n: int) -> Interval:
    low, high = wilson(Fraction(right, n), n, low=Fraction(0), high=Fraction(1))
    return float(low), float(high)


def calibrated(labels: Iterable[Label], found: Agreements) -> list[Label]:
    """Return labels with the measured certainty where there is one; those of persons and `unclear` ones as they are.

    A source that is wrong more often than right counts as a guess: its certainty becomes a half. Its labels are not
    inverted: in a small sample a rate below a half is more often chance than a source that is reliably wrong.
    """
    measured = {(rate.source, rate.outcome): rate.measured for rate in found.rates if rate.measured is not None}
    return [
        replace(each, certainty=max(0.5, measured.get((each.source, each.outcome), each.certainty))) for each in labels
    ]
