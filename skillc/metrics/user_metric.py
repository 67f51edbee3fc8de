"""Call a metric of the user: `python("module:function")`, from a module beside the program or an installed one."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from skillc import user_code
from skillc.errors import SkillcError
from skillc.json_values import JsonObject
from skillc.metrics.primitives import Measurement
from skillc.outcomes import Example


def load_function(name: str, root: Path) -> Callable[..., Any]:
    """Return the metric behind `module:function`.

    Raises:
        SkillcError: the name is not of that form, or there is no such module or function.
    """
    return user_code.load_function(name, root, "metric")


def call(
    function: Callable[..., Any],
    example: Example,
    prediction: JsonObject,
    told: Sequence[JsonValue] = (),
    root: Path | None = None,
) -> Measurement:
    """Call a user's function, which returns a number, a bool, (score, feedback) or an object with both.

    The function is called as `function(example, prediction)` with dicts of its own; the example holds the inputs and
    the data fields by name, the right answers under `gold`, and `id`. What stands behind its name in the program comes
    after these: `python("module:function", reply, 3)` calls it with the name `"reply"` and with 3.

    Raises:
        MetricFailed: it raised, or what it gave holds no number.
    """
    data = {**example.inputs, **example.fields, "gold": dict(example.gold), "id": example.id}
    given = copy.deepcopy(data), copy.deepcopy(dict(prediction))
    try:
        measure = _measured(function(*given, *told))
        _exact(measure.score)
        return measure
    except MetricFailed as problem:
        place = user_code.defined_at(function, root)
        raise MetricFailed(f"{problem.message}, from the function at `{place}`" if place else problem.message) from None
    except BaseException as problem:
        if not user_code.raised_by_user_code(problem):
            raise
        raise MetricFailed(user_code.describe_exception(problem, root, function)) from problem


class MetricFailed(SkillcError):  # noqa: N818
    """A metric of the user raised an exception or returned no number."""


def _measured(result: Any) -> Measurement:
    feedback: object = ""
    if isinstance(result, tuple) and len(result) == 2:
        result, feedback = result
    elif isinstance(result, Mapping) and "score" in result:
        result, feedback = result["score"], result.get("feedback")
    elif hasattr(result, "score"):
        result, feedback = result.score, getattr(result, "feedback", "")
    return Measurement(_number(result), str(feedback or ""))


def _number(value: object) -> Fraction | int | float:
    if hasattr(value, "item") and callable(value.item):
        value = value.item()  # a scalar of numpy or of torch
    if isinstance(value, bool | int | float | Fraction):
        return value
    if isinstance(value, Decimal) and value.is_finite():
        return Fraction(value)
    if isinstance(value, Decimal):
        raise MetricFailed(f"`{value}` is no finite number")
    raise MetricFailed(f"a score must be a number, not {type(value).__name__}")


def _exact(score: Fraction | int | float) -> None:
    """Refuse a float that is no number."""
    if isinstance(score, float) and not math.isfinite(score):
        raise MetricFailed(f"`{score}` is no finite number")
