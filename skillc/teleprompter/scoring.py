"""The user's metric, and what it gives as a cell. Its signature is that of `dspy.GEPA`; shorter ones will do."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import JsonValue

from skillc.data.examples import Example
from skillc.metrics.cells import MICRO, Scored
from skillc.metrics.meter import Measured, Meter, MetricError
from skillc.user_code import is_theirs, told

Metric = Callable[..., Any]


class Answer(dict[str, JsonValue]):
    """A prediction as JSON values, with the metric's score in millionths and its feedback."""

    def __init__(self, values: Mapping[str, JsonValue], score: int, feedback: str) -> None:
        super().__init__(values)
        self.score = score
        self.feedback = feedback


class ModuleMeter(Meter):
    """Reads the score that was given where the module's own objects were at hand."""

    def measure(
        self, example: Example, prediction: Mapping[str, JsonValue] | None, problem: str | None = None
    ) -> Measured:
        """As `Meter.measure`."""
        if not isinstance(prediction, Answer):
            return super().measure(example, None, problem)
        return Measured({self._plan.goal.name: Scored(prediction.score)}, prediction.feedback)


def arguments_of(metric: Metric) -> int:
    """How many of (gold, pred, trace, pred_name, pred_trace) a metric takes: 5, 3 or 2.

    Raises:
        TypeError: it takes neither.
    """
    for count in (5, 3, 2):
        try:
            inspect.signature(metric).bind(*[None] * count)
        except TypeError:
            continue
        return count
    raise TypeError("a metric takes (gold, pred), (gold, pred, trace) or (gold, pred, trace, pred_name, pred_trace)")


def scored(
    metric: Metric, gold: Any, prediction: Any, trace: Any, *, low: float, high: float, example: str
) -> tuple[int, str]:
    """The metric's score in millionths, and its feedback. It is called once a rollout, with the whole trace.

    Raises:
        MetricError: it failed, gave no number, or left its range; the run stops.
    """
    where = f"the metric on example `{example}`"
    try:
        given = metric(*(gold, prediction, trace, None, None)[: arguments_of(metric)])
    except BaseException as problem:
        from skillc.models.failures import find_failure

        if not is_theirs(problem):
            raise
        failure = find_failure(problem)
        if failure is not None:
            raise failure from None
        raise MetricError(f"{where} failed: {told(problem, function=metric)}") from problem
    feedback: Any = ""
    if isinstance(given, Mapping) or hasattr(given, "score"):
        feedback = given.get("feedback") if hasattr(given, "get") else getattr(given, "feedback", "")
        given = given["score"] if isinstance(given, Mapping) else given.score
    if isinstance(given, bool):
        given = float(given)
    try:
        value = float(given)
    except (TypeError, ValueError):
        raise MetricError(f"{where} gave no number but {type(given).__name__}") from None
    if not math.isfinite(value) or not low <= value <= high:
        raise MetricError(
            f"{where} gave {value:g}, outside of {low:g} to {high:g}", hint="say its range with `low=` and `high=`"
        )
    return round(value * MICRO), str(feedback or "")


def score_of(example: Mapping[str, Any], prediction: Mapping[str, Any]) -> float:
    """Stands for the user's metric in the plan's text; scores come from `ModuleMeter`.

    Raises:
        RuntimeError: always: a plan of `SkillOptimizer` is run by it alone.
    """
    raise RuntimeError("this metric exists only where SkillOptimizer runs")
