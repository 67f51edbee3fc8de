"""The error rates of a yes-or-no signal, and the corrected value of a rollout.

`misclassification.py` has the intervals. It is apart because the checker of programs needs no statistics.
"""

from __future__ import annotations

from fractions import Fraction

from skillc.dataclass import dataclass

# That of `outcomes`, which loads pydantic; the checker has no need of it.
MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """How often a signal is right.

    Attributes:
        sensitivity: the share of right answers that it calls right.
        specificity: the share of wrong answers that it calls wrong.
        positives: right answers on which the sensitivity was measured; None if it is known exactly.
        negatives: wrong answers on which the specificity was measured; None likewise.
    """

    sensitivity: Fraction
    specificity: Fraction
    positives: int | None = None
    negatives: int | None = None

    @property
    def youden(self) -> Fraction:
        """What the signal leaves of a gain: 1 for one without errors, 0 for a coin."""
        return self.sensitivity + self.specificity - 1

    @property
    def estimated(self) -> bool:
        """Whether the rates are uncertain."""
        return self.positives is not None or self.negatives is not None

    @property
    def low(self) -> Fraction:
        """The corrected value where the signal says no, in whole millionths."""
        return Fraction(round((self.specificity - 1) / self.youden * MICRO), MICRO)

    @property
    def high(self) -> Fraction:
        """The corrected value where the signal says yes, in whole millionths."""
        return Fraction(round(self.specificity / self.youden * MICRO), MICRO)

    def corrected(self, signal: Fraction) -> Fraction:
        """Return the corrected value of a signal from 0 to 1."""
        return self.low + signal * (self.high - self.low)

    def at_equal_answers(self, right: Fraction) -> Fraction:
        """Return the mean loss that errors alone show between two equal sets of answers, a share `right` of them right.

        The signal is right on one answer and wrong on the other with the probability se (1 - se) or sp (1 - sp), if it
        errs on the two independently; each such pair counts as the width of the corrected range.
        """
        yes, no = self.sensitivity, self.specificity
        return (right * yes * (1 - yes) + (1 - right) * no * (1 - no)) * (self.high - self.low)
