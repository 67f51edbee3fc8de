"""Metrics that are a noisy signal: `noisy(passed, sensitivity = 92%, specificity = 85%)`."""

from __future__ import annotations

from fractions import Fraction

from skillc.gates.terms import CallTerm, Constant, Term
from skillc.gates.units import decimal
from skillc.stats.error_rates import ErrorRates

NOISY = "noisy"


def rates_of(term: Term) -> ErrorRates | None:
    """Return the declared error rates of a metric's term; None if the metric is no noisy signal."""
    if not (isinstance(term, CallTerm) and term.function == NOISY):
        return None
    given = {name: value.value for name, value in term.options if isinstance(value, Constant)}
    return ErrorRates(
        given.get("sensitivity", Fraction(1)),
        given.get("specificity", Fraction(1)),
        *(int(given[name]) if name in given else None for name in ("positives", "negatives")),
    )


def declaration(signal: str, rates: ErrorRates) -> str:
    """Return how a program declares a signal with measured error rates, to two decimals of a per cent."""
    parts = [signal]
    for name, rate in (("sensitivity", rates.sensitivity), ("specificity", rates.specificity)):
        parts.append(f"{name} = {decimal(Fraction(round(rate * 10_000), 100))}%")
    for name, count in (("positives", rates.positives), ("negatives", rates.negatives)):
        parts += [f"{name} = {count} example{'s' * (count != 1)}"] if count is not None else []
    return f"{NOISY}({', '.join(parts)})"
