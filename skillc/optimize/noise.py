"""How far a skill differs from itself: with chance in the answers, a gate on regressions fails by chance too."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import sqrt

from skillc.document.skill import Document
from skillc.gates.terms import CallTerm, Constant, MetricTerm, conjuncts
from skillc.metrics.cells import MICRO, Scored
from skillc.optimize.engine import Engine
from skillc.plan.chance import comparison
from skillc.plan.schema import Plan


def warn_of_noise(engine: Engine, skill: Document) -> None:
    """Tells of each gate on regressions that a skill would not even pass against itself (ENGINE section 3)."""
    for gate, metric, most in _tolerances(engine.plan):
        rate = self_regression(engine, skill, metric)
        if rate is None:
            continue
        expected = float(rate) / sqrt(engine.plan.optimize.samples)
        if expected > most:
            engine.observer.note(
                f"the initial skill regresses against itself by {expected:.1%} from run to run, and the gate "
                f"`{gate}` admits {float(most):.1%}: it will reject by chance; lower the "
                "target's temperature, or raise `samples`"
            )


def self_regression(engine: Engine, skill: Document, metric: str) -> Fraction | None:
    """What a skill loses against itself from one rollout to the next, as `regressed` counts it: the A/A rate.

    The mean over validation examples of half the distance between samples 0 and 1, since half of what differs is a
    loss; None where no example has both. Between means of k samples it is smaller by the root of k.
    """
    distances = []
    for example in engine.dataset.validation:
        outcomes = [engine.rollouts.known(skill, example, sample) for sample in (0, 1)]
        cells = [outcome.cells.get(metric) for outcome in outcomes if outcome is not None]
        scores = [cell.value for cell in cells if isinstance(cell, Scored)]
        if len(scores) == len(outcomes):
            distances.append(abs(scores[0] - scores[1]))
    return Fraction(sum(distances), 2 * len(distances) * MICRO) if distances else None


def _tolerances(plan: Plan) -> Iterator[tuple[str, str, Fraction]]:
    """Gate, metric and bound of each `regressed(metric) <= bound`."""
    for gate in plan.gates:
        for part in conjuncts(gate.term):
            above, below = comparison(part) or (None, None)
            if not (isinstance(below, CallTerm) and below.function == "regressed" and isinstance(above, Constant)):
                continue
            (metric,) = below.arguments
            if isinstance(metric, MetricTerm):
                yield gate.name, metric.name, above.value
