"""Names that DSPy and Python can carry: the program's own where possible, else with an underscore behind."""

from __future__ import annotations

import keyword
import re
from functools import cache

from skillc.plan.schema import TaskPlan

_LONGEST = 40
# Names that the emitted module has for other things.
_IN_MODULE = frozenset({"Any", "INSTRUCTIONS", "Literal", "Path", "Program"})
# Keyword arguments that `dspy.Predict` takes for itself, and the marker that ends a reply.
_TAKEN = frozenset({"signature", "new_signature", "demos", "config", "lm", "prediction", "completed", "self"})


def field_names(task: TaskPlan) -> dict[str, str]:
    """For each input and output the name of its signature field; mostly the same."""
    reserved = _reserved() | ({"reasoning"} if task.rollout.kind == "chain_of_thought" else frozenset())
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
    """`RouteTickets` for `route_tickets`: the name of the signature."""
    words = [word for word in re.split(r"[^0-9A-Za-z]+", skill) if word]
    name = "".join(word[:1].upper() + word[1:] for word in words)
    if not name.isidentifier() or keyword.iskeyword(name) or name in _IN_MODULE or len(name) == 1:
        name = f"Skill{name}"
    return name[:_LONGEST]


@cache
def _reserved() -> frozenset[str]:
    """Attributes of a signature class, which a field of that name would hide."""
    import dspy

    return _TAKEN | frozenset(dir(dspy.Signature)) | frozenset(dir(type(dspy.Signature)))
