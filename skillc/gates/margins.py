"""The margin over the incumbent that gates ask of a candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import sqrt
from statistics import NormalDist

from skillc.gates.functions import multiplicity
from skillc.gates.stages import Gate
from skillc.gates.terms import CallTerm, Constant, MeanTerm, Operation, Term, conjuncts, sides
from skillc.stats.betting import standard_errors
from skillc.stats.power import DIFFERING


def margin_of(gates: Iterable[Gate], width: Callable[[str], Fraction], examples: int, decisions: int) -> float | None:
    """The largest margin that a gate asks of a candidate's mean over the incumbent's, in standard errors.

    None where no gate asks for a higher mean.

    Args:
        gates: of a plan.
        width: of a metric's range.
        examples: of the validation split.
        decisions: that share the error of a claim `over = run`.
    """
    asked = (_margins(gate.term, width, examples, decisions) for gate in gates if gate.for_ is None)
    return max((margin for margins in asked for margin in margins), default=None)


def _margins(term: Term, width: Callable[[str], Fraction], examples: int, decisions: int) -> Iterator[float]:
    for part in conjuncts(term):
        match sides(part):
            case (CallTerm("e_value") as claim, Constant(threshold)):
                yield standard_errors(
                    max(1, round(DIFFERING * examples)), threshold * multiplicity(claim, max(1, decisions))
                )
            case (CallTerm("confidence") as claim, Constant(level)):
                alpha = (1 - level) / multiplicity(claim, max(1, decisions))
                if 0 < alpha < 1:
                    yield NormalDist().inv_cdf(1 - float(alpha))
            case (MeanTerm(_, metric) as above, below) if (points := points_above(above, below)) is not None:
                whole = width(metric)
                yield float(points / whole) * sqrt(2 * examples) if whole else 0.0


def points_above(above: Term, below: Term) -> Fraction | None:
    """`c` where a comparison is `candidate.m > incumbent.m + c`; None where it is another one."""
    if not (isinstance(above, MeanTerm) and above.state == "candidate"):
        return None
    match below:
        case MeanTerm(state, metric):
            return Fraction(0) if state != "candidate" and metric == above.metric else None
        case Operation("+" | "-" as operator, (MeanTerm(_, metric), Constant(points))) if metric == above.metric:
            return points if operator == "+" else -points
    return None
