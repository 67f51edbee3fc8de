"""Which outputs of a program need right answers in its data: those that a metric compares with them.

A program may have none: a judge, a metric that reads the output alone, calls of tools, a reward, or a function of the
user measures a rollout without.
"""

from __future__ import annotations

from collections.abc import Mapping

from skillc.gates.functions import EXAMPLE_FUNCTIONS
from skillc.gates.terms import CallTerm, FieldTerm, walk
from skillc.plan.judges import judge_of
from skillc.plan.schema import MetricPlan, Plan


def compared_outputs(plan: Plan) -> Mapping[str, str]:
    """Return the outputs that a metric compares with right answers, each with the first such metric."""
    found: dict[str, str] = {}
    for metric in plan.metrics:
        for part in walk(metric.term):
            if not isinstance(part, CallTerm):
                continue
            for output in _compared(plan, part):
                found.setdefault(output, metric.name)
    return found


def _compared(plan: Plan, call: CallTerm) -> list[str]:
    """Return the outputs that a call compares with right answers, itself or by a judge that reads them."""
    if call.function == "judge":
        judge = judge_of(plan, call)
        return [judge.output] if judge.sees_gold else []
    known = EXAMPLE_FUNCTIONS.get(call.function)
    if known is None or not known.compares:
        return []
    return [argument.name for argument in call.arguments if isinstance(argument, FieldTerm)]


def may_compare(metric: MetricPlan) -> bool:
    """Whether code compares an output with right answers in a metric itself, or a function of the user may."""
    called = {part.function for part in walk(metric.term) if isinstance(part, CallTerm)}
    return any(name == "python" or (name in EXAMPLE_FUNCTIONS and EXAMPLE_FUNCTIONS[name].compares) for name in called)


def calls_python(plan: Plan) -> bool:
    """Whether a metric calls a function of the user, which is given the right answers that an example has."""
    return any(
        isinstance(part, CallTerm) and part.function == "python"
        for metric in plan.metrics
        for part in walk(metric.term)
    )
