"""Identifiers, class names, instructions and inputs of the compiled module."""

from __future__ import annotations

import keyword
import re
from functools import cache

from skillc.errors import SkillcError
from skillc.plan.initial import task_text
from skillc.plan.schema import FieldPlan, TaskPlan, TypePlan
from skillc.text import listed

_LONGEST = 40
# Other names of the emitted module.
_IN_MODULE = frozenset({"Any", "INSTRUCTIONS", "Literal", "Path", "Program", "ValidationError"})
# Fields that a kind of rollout adds to the signature.
_OF_KIND = {
    "chain_of_thought": frozenset({"reasoning"}),
    "native": frozenset({"history", "tools", "next_thought", "tool_calls", "termination_reason", "max_iters"}),
    "react": frozenset({"reasoning", "trajectory", "next_thought", "next_tool_name", "next_tool_args", "max_iters"}),
    "environment": frozenset({"trajectory", "next_thought", "next_tool_name", "next_tool_args"}),
}
# Keyword arguments of `dspy.Predict`, and the marker that ends a reply.
_TAKEN = frozenset({"signature", "new_signature", "demos", "config", "lm", "prediction", "completed", "self"})


def field_names(task: TaskPlan) -> dict[str, str]:
    """Return the signature field of each input and output: its name, changed only if it is reserved."""
    kind = "native" if task.rollout.native_calls else task.rollout.kind
    reserved = _reserved() | _OF_KIND.get(kind, frozenset())
    names: dict[str, str] = {}
    used = {field.name for field in (*task.inputs, *task.outputs)}
    for field in (*task.inputs, *task.outputs):
        name = field.name
        if name in reserved or name.startswith(("_", "model_")):
            name = f"{name.strip('_') or 'field'}_"
            while name in used:
                name += "_"
        used.add(name)
        names[field.name] = name
    return names


def class_name(skill: str) -> str:
    """Return the name of the signature: `RouteTickets` for `route_tickets`."""
    words = [word for word in re.split(r"[^0-9A-Za-z]+", skill) if word]
    name = "".join(word[:1].upper() + word[1:] for word in words)
    if not name.isidentifier() or keyword.iskeyword(name) or name in _IN_MODULE or len(name) == 1:
        name = f"Skill{name}"
    return name[:_LONGEST]


@cache
def _reserved() -> frozenset[str]:
    """Return the names that a field would shadow."""
    import dspy

    return _TAKEN | frozenset(dir(dspy.Signature)) | frozenset(dir(type(dspy.Signature)))


PREDICTORS = {"predict": "Predict", "chain_of_thought": "ChainOfThought"}
"""DSPy's module by the kind of rollout."""
KINDS = tuple(PREDICTORS)


def kind_of(task: TaskPlan) -> str:
    """Return the kind of the rollout.

    Raises:
        SkillcError: this version does not compile it.
    """
    kind = task.rollout.kind
    if kind not in KINDS:
        raise SkillcError(f"`rollout = {kind}` is not supported yet", hint=f"use {listed(KINDS, 'or')}")
    return kind


def instructions(task: TaskPlan, text: str | None) -> str:
    """Return the instructions of the target: the body of SKILL.md, or the task text without a skill."""
    return task_text(task) if text is None else text.strip()


def as_read(task: TaskPlan) -> TaskPlan:
    """Return the task of inputs that the loader has read: nothing is left to cut, and in one turn files are their text.

    An agent with tools reads the paths of files, for its tools.
    """
    if not any(field.cut is not None or field.type.file_kind == "file" for field in task.inputs):
        return task
    return task.model_copy(
        update={"inputs": tuple(_field_as_read(field, texts=task.rollout.one_turn) for field in task.inputs)}
    )


def _field_as_read(field: FieldPlan, *, texts: bool) -> FieldPlan:
    type_ = field.type
    if texts and type_.file_kind == "file":
        type_ = TypePlan(kind="text", optional=type_.optional)
    return field.model_copy(update={"type": type_, "cut": None})
