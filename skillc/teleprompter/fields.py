"""What the optimizer is told of a module's inputs and outputs: the examples' names, the predictors' types."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any, Literal, Union, get_args, get_origin

from skillc.plan.schema import FieldPlan, TypePlan

_KINDS: dict[Any, TypePlan] = {
    bool: TypePlan(kind="bool"),
    int: TypePlan(kind="integer"),
    float: TypePlan(kind="number"),
    dict: TypePlan(kind="json"),
}
_TEXT = TypePlan(kind="text")


def field_plans(student: Any, names: Iterable[str]) -> tuple[FieldPlan, ...]:
    """A field for each name; a predictor's field of that name says its type and its description, else it is text."""
    known: dict[str, Any] = {}
    for _, predictor in student.named_predictors():
        for name, field in predictor.signature.fields.items():
            known.setdefault(name, field)
    return tuple(_plan(name, known.get(name)) for name in names)


def _plan(name: str, field: Any) -> FieldPlan:
    if field is None:
        return FieldPlan(name=name, type=_TEXT, column=name)
    about = (field.json_schema_extra or {}).get("desc") or ""
    # DSPy describes a field that nobody described by its name in braces.
    told = about if about and about != f"${{{name}}}" else None
    return FieldPlan(name=name, type=type_plan(field.annotation), column=name, about=told)


def type_plan(annotation: Any) -> TypePlan:
    """A Python type as the language has it; what it has no word for is text."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal and all(isinstance(label, str) for label in arguments):
        return TypePlan(kind="labels", labels=arguments)
    if origin in (Union, types.UnionType):
        given = [argument for argument in arguments if argument is not type(None)]
        if len(given) == 1 and len(arguments) == 2:
            return type_plan(given[0]).model_copy(update={"optional": True})
        return _TEXT
    if origin is list or annotation is list:
        return TypePlan(kind="list", item=type_plan(arguments[0]) if arguments else _TEXT)
    return _KINDS.get(origin or annotation, _TEXT)
