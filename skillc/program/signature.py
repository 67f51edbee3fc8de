"""The task as a DSPy signature, always in the dict form: no string is parsed and no caller's frame is searched."""

from __future__ import annotations

from typing import Any, Literal, Optional

import dspy
from dspy.signatures.signature import make_signature

from skillc.plan.schema import TaskPlan, TypePlan
from skillc.program.names import class_name, field_names

_PLAIN: dict[str, Any] = {
    "text": str,
    "bool": bool,
    "number": float,
    "integer": int,
    "json": dict[str, Any],
    "file": str,
    "image": dspy.Image,
}


def signature_of(task: TaskPlan, name: str, instructions: str) -> type[dspy.Signature]:
    """The signature of a task.

    Args:
        task: its inputs and outputs. Their `about` is part of the instructions and is not repeated as a description.
        name: the skill's name, from which the signature's unique name is made.
        instructions: what the model receives; see `present.instructions`.
    """
    names = field_names(task)
    fields: dict[str, tuple[Any, Any]] = {}
    for plan in task.inputs:
        fields[names[plan.name]] = (annotation(plan.type), dspy.InputField())
    for plan in task.outputs:
        fields[names[plan.name]] = (annotation(plan.type), dspy.OutputField())
    signature: type[dspy.Signature] = make_signature(fields, instructions, signature_name=class_name(name))
    return signature


def annotation(type_: TypePlan) -> Any:
    """The Python type of a declared type."""
    if type_.kind == "labels":
        plain: Any = Literal[tuple(type_.labels)]
    elif type_.kind == "list":
        plain = list[annotation(type_.item)] if type_.item is not None else list[str]  # type: ignore[misc]
    else:
        plain = _PLAIN[type_.kind]
    return Optional[plain] if type_.optional else plain  # noqa: UP045  # `X | None` needs X to be a class
