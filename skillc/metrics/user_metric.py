"""Call a user's metric: `python("module:function")`."""

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


class MetricFailed(SkillcError):  # noqa: N818
    """A metric of the user raised an exception or returned no number."""


def call(
    function: Callable[..., Any],
    example: Example,
    prediction: JsonObject,
    arguments: Sequence[JsonValue] = (),
    root: Path | None = None,
) -> Measurement:
    """Call a user's function, which returns a number, a bool, (score, feedback) or an object with both.

    The function is called as `function(example, prediction)` with copies; the example has the inputs and the data
    fields by name, the right answers under `gold`, and `id`. Further arguments of the program follow:
    `python("module:function", reply, 3)` passes the name `"reply"` and 3.

    Raises:
        MetricFailed: it raised an exception, or returned no number.
    """
    data = {**example.inputs, **example.fields, "gold": dict(example.gold), "id": example.id}
    given = copy.deepcopy(data), copy.deepcopy(dict(prediction))
    try:
        return _measurement(function(*given, *arguments))
    except MetricFailed as problem:
        place = user_code.defined_at(function, root)
        raise MetricFailed(f"{problem.message}, from the function at `{place}`" if place else problem.message) from None
    except BaseException as problem:
        if not user_code.raised_by_user_code(problem):
            raise
        raise MetricFailed(user_code.describe_exception(problem, root, function)) from problem


def _measurement(result: Any) -> Measurement:
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
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise MetricFailed(f"`{value}` is not a finite number")
    if isinstance(value, Decimal):
        return Fraction(value)
    if isinstance(value, bool | int | float | Fraction):
        return value
    raise MetricFailed(f"a score must be a number, not {type(value).__name__}")
