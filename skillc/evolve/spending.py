"""Error budget over the nights: how much evidence a challenger needs.

A challenger is a skill that passed the gates of one night. It is compared with the current skill on test rows that no
earlier look has used. Its evidence is an e-process that continues over the nights until it is accepted or dropped.
A false challenger j is accepted at any time with a probability of at most `share(j)`. The shares of all challengers
add up to the declared error. This bounds the probability of a single false accept over all nights, for any number of
challengers, even if a later one depends on earlier results.

`benchmarks/nights.py` compares this rule with equal shares and with tests of one night each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import pi
from typing import Literal

from skillc.dataclass import dataclass
from skillc.stats.betting import confidence_sequence, evidence_above
from skillc.stats.error_rates import ErrorRates
from skillc.stats.misclassification import gain_interval

Word = Literal["accepted", "open", "dropped"]

HOPELESS = 0.2
"""A challenger is dropped when its evidence falls to this: five to one against it."""
PATIENCE = 21
"""Nights with new test rows after which an undecided challenger gives way to another."""


def share(number: int, error: float) -> float:
    """Return what challenger `number`, counted from 1, may spend of the error budget: `6 / (pi * number)²` of it."""
    return error * 6 / (pi * number) ** 2


@dataclass(frozen=True, slots=True)
class Challenge:
    """State of a challenger.

    Attributes:
        number: from 1, over all nights.
        share: what it spends of the error budget.
        evidence: the e-value of all of its nights together.
        needed: the e-value that accepts it, `1 / share`.
        gain: mean difference over the current skill, in points of the goal; None before the first row.
        interval: its confidence sequence at the level `1 - 2 * share`, which excludes 0 when it is accepted.
        rows: clusters of rows behind it.
        nights: with new test rows.
    """

    number: int
    share: float
    evidence: float
    needed: float
    word: Word
    gain: float | None
    interval: tuple[float, float] | None
    rows: int
    nights: int


def judge_challenger(
    nights: Sequence[Sequence[float]], *, number: int, error: float, width: float, rates: ErrorRates | None = None
) -> Challenge:
    """Return the state of a challenger after all nights.

    Args:
        nights: for each night the mean differences by cluster, challenger minus current skill. No cluster is in two
            nights, and none was used before.
        number: of the challenger, from 1.
        error: the declared budget over all nights, such as 0.05.
        width: the range of the goal.
        rates: error rates of the goal, if it is a noisy signal: their error widens the interval and changes no word.
    """
    spent = share(number, error)
    values = [value for night in nights for value in night]
    looked = sum(bool(night) for night in nights)
    found = Challenge(number, spent, 1.0, 1 / spent, "open", None, None, len(values), looked)
    if not values:
        return found
    # The e-process may be stopped after each night: a challenger accepted after an earlier night stays accepted.
    evidence, until = 1.0, list[float]()
    for night in nights:
        until += night
        evidence = evidence_above(until, 0.0, low=-width, high=width)
        if evidence >= found.needed:
            break
    word: Word = "open"
    if evidence >= found.needed:
        word = "accepted"
    elif evidence <= HOPELESS or looked >= PATIENCE:
        word = "dropped"
    gain = sum(until) / len(until)
    low, high = confidence_sequence(until, low=-width, high=width, error=2 * spent)
    if rates is not None:
        ends = gain_interval(Fraction(gain), (Fraction(low), Fraction(high)), rates, Fraction(2 * spent))
        low, high = float(ends[0]), float(ends[1])
    return replace(found, evidence=evidence, word=word, gain=gain, interval=(low, high))
