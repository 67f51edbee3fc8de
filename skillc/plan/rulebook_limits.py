"""What the embedded rulebook cannot learn or answer, by the types of a task: it is not a language model."""

from __future__ import annotations

from collections.abc import Sequence

from skillc.plan.schema import FieldPlan, Plan, TypePlan

_PREFIX = "rulebook/"
_UNSEEN = frozenset({"image", "file"})


def rulebook_roles(plan: Plan) -> tuple[str, ...]:
    """The roles that the rulebook plays."""
    return tuple(role for role, model in plan.models.items() if model.model.startswith(_PREFIX))


def rulebook_limits(plan: Plan) -> list[str]:
    """One sentence for each field that is beyond the rulebook or only partly within its reach; none without it.

    An optimizer alone is limited by what it can propose, a target alone by what it can answer: both are the same forms.
    """
    if not {"target", "optimizer"} & set(rulebook_roles(plan)):
        return []
    return [*_inputs(plan.task.inputs), *_outputs(plan.task.outputs)]


def _inputs(fields: Sequence[FieldPlan]) -> list[str]:
    return [
        f"the rulebook is not a language model: it cannot look into the {field.type.kind} `{field.name}`"
        for field in fields
        if field.type.kind in _UNSEEN
    ]


def _outputs(fields: Sequence[FieldPlan]) -> list[str]:
    found = [(field.name, limit) for field in fields if (limit := _limit(field.type))]
    return [f"the rulebook is not a language model: for `{name}` it {limit}" for name, limit in found]


def _limit(kind: TypePlan) -> str:
    if kind.kind in ("number", "integer"):
        return "only learns which number of the input to copy, and computes nothing"
    if kind.kind == "text":
        return "only learns which part of the input to copy, and writes no text of its own"
    if kind.kind == "json":
        return "only learns keys that copy a part of the input or have a few fixed values, and no nested ones"
    if kind.kind == "list":
        return "only learns lists of all parts of the input that look alike"
    return f"can answer no {kind.kind}" if kind.kind in _UNSEEN else ""
