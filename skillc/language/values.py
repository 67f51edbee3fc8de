"""Typed values that more than one module makes."""

from __future__ import annotations

from fractions import Fraction

from skillc.gates.functions import Level
from skillc.gates.intervals import Interval
from skillc.gates.terms import Constant, MetricTerm
from skillc.language.checked import CheckedMetric
from skillc.language.types import Quantity, Typed

ANY_UNIT = "?"
"""The unit of a metric that stands for any metric, inside a parametric body."""


def literal(value: Fraction, unit: str) -> Typed:
    """A number that is written out."""
    return Typed(Constant(value, unit), Quantity(unit, Interval.point(value), Level.LITERAL))


def metric_value(metric: CheckedMetric) -> Typed:
    """A metric's value on one rollout."""
    return Typed(MetricTerm(metric.name), metric_quantity(metric, Level.EXAMPLE))


def metric_quantity(metric: CheckedMetric, level: Level) -> Quantity:
    """What is known of a metric's value on one rollout, or of its mean over a run."""
    unit = None if metric.unit == ANY_UNIT else metric.unit
    return Quantity(unit, Interval.of(metric.low, metric.high), level)
