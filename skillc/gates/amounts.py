"""Quantities of gates as people read them: `66.95 %`, `1.3 points`, `2,013 tokens`, `$0.012`, `0.8 s`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from skillc.gates.evidence import Evidence
from skillc.gates.terms import CallTerm, Constant, MeanTerm, MetricTerm, Operation, Term
from skillc.gates.units import DOLLARS, SECONDS, TOKENS

SHARE, POINTS = "%", "points"
_PLACES = {SHARE: 2, POINTS: 2, TOKENS: 0, DOLLARS: 6, SECONDS: 3}
_MOST_PLACES = 30
_SHARES = ("change", "overlap", "confidence")
_FIRST_ARGUMENT = ("improved", "regressed", "worst", "min", "max", "clamp")


@dataclass(frozen=True, slots=True)
class Unit:
    """How a quantity is shown: `%` and `points` are a hundred times the value, any other unit follows it as it is."""

    name: str


def unit_of_metric(unit: str, low: Fraction | int, high: Fraction | int) -> Unit:
    """The unit of a metric's mean: per cent for a plain number between 0 and 1, else its own unit."""
    return Unit(SHARE) if not unit and low >= 0 and high <= 1 else Unit(unit)


def unit_of(term: Term, evidence: Evidence) -> Unit | None:
    """The unit of a quantity of run level; None for a constant without one, which takes that of its surroundings."""
    if isinstance(term, Constant):
        return Unit(term.unit) if term.unit else None
    if isinstance(term, MeanTerm):
        return _of_metric(term.metric, evidence)
    if isinstance(term, MetricTerm):
        return _of_metric(term.name, evidence)
    if isinstance(term, CallTerm):
        if term.function in _FIRST_ARGUMENT:
            return next((unit for each in term.arguments if (unit := unit_of(each, evidence))), None)
        own = {"tokens": TOKENS, "cost": DOLLARS, "latency": SECONDS} | dict.fromkeys(_SHARES, SHARE)
        return Unit(own.get(term.function, ""))
    return _of_operation(term, evidence) if isinstance(term, Operation) else None


def _of_metric(name: str, evidence: Evidence) -> Unit:
    whole = evidence.validation.ranges[name]
    return unit_of_metric(whole.unit, Fraction(whole.low, 10**6), Fraction(whole.high, 10**6))


def _of_operation(term: Operation, evidence: Evidence) -> Unit | None:
    """A difference of two shares is in points; a product or quotient with a constant keeps its unit."""
    parts = [unit_of(operand, evidence) for operand in term.operands]
    known = [part for part in parts if part is not None]
    if term.operator == "-" and parts == [Unit(SHARE)] * 2:
        return Unit(POINTS)
    if term.operator in ("*", "/") and len(known) > 1:
        return Unit("")
    if term.operator == "/" and parts[0] is None:
        return Unit("")
    return known[0] if known else None


def places_for(values: Sequence[Fraction], unit: Unit) -> int:
    """How many decimal places tell apart all values that differ; at least those that the unit is usually shown with."""
    places, distinct = _PLACES.get(unit.name, 4), len(set(values))
    scaled = [value * _scale(unit) for value in values]
    while places < _MOST_PLACES and len({round(value * 10**places) for value in scaled}) < distinct:
        places += 1
    return places


def amount(value: Fraction, unit: Unit, places: int) -> str:
    """A value in its unit, rounded to so many places, without trailing zeros."""
    ticks = round(value * _scale(unit) * 10**places)
    whole, rest = divmod(abs(ticks), 10**places)
    digits = f"{whole:,}" + (f".{rest:0{places}d}".rstrip("0").rstrip(".") if places else "")
    sign = "-" if ticks < 0 else ""
    if unit.name == DOLLARS:
        return f"{sign}${digits}"
    return f"{sign}{digits} {unit.name}" if unit.name else sign + digits


def _scale(unit: Unit) -> int:
    return 100 if unit.name in (SHARE, POINTS) else 1
