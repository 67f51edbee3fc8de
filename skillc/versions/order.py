"""Which of two quantities is never below the other, whatever the evidence. What cannot be shown counts as unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from skillc.gates.terms import CallTerm, FieldTerm, MeanTerm, MetricTerm, Operation, Term
from skillc.versions.quantities import Atom, Linear

_ZERO, _ONE = Fraction(0), Fraction(1)
_NEVER_NEGATIVE = ("tokens", "change", "cost", "latency", "improved", "regressed", "e_value")
_SHARES = ("overlap", "confidence", "precision", "recall", "flip_rate")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range of each metric by name, which every value and every mean of it keeps within."""

    metrics: Mapping[str, tuple[Fraction, Fraction]]

    def least(self, sum_: Linear) -> Fraction | None:
        """A number that a sum is never below; None where none can be shown.

        Atoms that can be ordered are set against each other first, then each that is left takes its own bound.
        """
        rest = dict(sum_.terms)
        for more in [atom for atom, coefficient in sum_.terms if coefficient > 0]:
            for less in [atom for atom, coefficient in sum_.terms if coefficient < 0]:
                shared = min(rest.get(more, _ZERO), -rest.get(less, _ZERO))
                if shared > 0 and self._ordered(more, less):
                    rest[more] -= shared
                    rest[less] += shared
        total = sum_.constant
        for atom, coefficient in rest.items():
            if not coefficient:
                continue
            low, high = self._range(atom)
            end = low if coefficient > 0 else high
            if end is None:
                return None
            total += coefficient * end
        return total

    def at_least(self, more: Linear, less: Linear) -> bool:
        """Whether one sum is never below another."""
        least = self.least(more - less)
        return least is not None and least >= 0

    # ---- atoms ----

    def _ordered(self, more: Atom, less: Atom) -> bool:
        """Whether one atom is never below another."""
        if more == less:
            return True
        one, other = _as_sum(more), _as_sum(less)
        if less.kind == "max":
            return all(self.at_least(one, part) for part in less.parts)
        if more.kind == "min":
            return all(self.at_least(part, other) for part in more.parts)
        if more.kind == "max" and any(self.at_least(part, other) for part in more.parts):
            return True
        if less.kind == "min" and any(self.at_least(one, part) for part in less.parts):
            return True
        return more.term is not None and less.term is not None and _never_below(more.term, less.term)

    def _range(self, atom: Atom) -> tuple[Fraction | None, Fraction | None]:
        if atom.kind in ("min", "max"):
            return self._extreme(atom)
        if atom.kind == "truth":
            return _ZERO, _ONE
        if isinstance(atom.term, MeanTerm):
            return self.metrics.get(atom.term.metric, (None, None))
        return self._of_call(atom.term) if isinstance(atom.term, CallTerm) else (None, None)

    def _extreme(self, atom: Atom) -> tuple[Fraction | None, Fraction | None]:
        lows = [self.least(part) for part in atom.parts]
        highs = [None if (low := self.least(part.scaled(-_ONE))) is None else -low for part in atom.parts]
        if atom.kind == "min":
            return (None if None in lows else min(low for low in lows if low is not None)), _smallest(highs)
        known = [low for low in lows if low is not None]
        high = None if None in highs else max(high for high in highs if high is not None)
        return (max(known) if known else None), high

    def _of_call(self, term: CallTerm) -> tuple[Fraction | None, Fraction | None]:
        first = term.arguments[0] if term.arguments else None
        if term.function == "worst" and isinstance(first, MeanTerm):
            return self.metrics.get(first.metric, (None, None))
        if term.function in ("improved", "regressed") and isinstance(first, MetricTerm):
            low, high = self.metrics.get(first.name, (None, None))
            return _ZERO, None if low is None or high is None else high - low
        if term.function in _SHARES:
            return _ZERO, _ONE
        return (_ZERO if term.function in _NEVER_NEGATIVE else None), None


def _smallest(ends: list[Fraction | None]) -> Fraction | None:
    known = [end for end in ends if end is not None]
    return min(known) if known else None


def _as_sum(atom: Atom) -> Linear:
    return Linear(_ZERO, ((atom, _ONE),))


def _never_below(more: Term, less: Term) -> bool:
    """What functions of a gate promise of each other; groups of a field part all examples, so that their worst mean
    is never above the mean of all.
    """
    if isinstance(more, MeanTerm) and isinstance(less, CallTerm) and less.function == "worst":
        return less.arguments[0] == more
    if not (isinstance(more, CallTerm) and isinstance(less, CallTerm) and more.function == less.function):
        return False
    if more.arguments != less.arguments:
        return False
    ours, theirs = dict(more.options), dict(less.options)
    if more.function in ("confidence", "e_value"):
        # Sharing the error among a run's decisions makes each less sure, and lowers each e-value.
        return "over" not in ours and "over" in theirs and _claims_means(more)
    grouped, plain = (ours, theirs) if more.function == "regressed" else (theirs, ours)
    if more.function not in ("improved", "regressed") or not isinstance(grouped.pop("by", None), FieldTerm):
        return False
    return grouped == plain


def _claims_means(term: CallTerm) -> bool:
    claim = term.arguments[0]
    return isinstance(claim, Operation) and all(isinstance(part, MeanTerm) for part in claim.operands)
