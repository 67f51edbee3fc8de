"""The task: what goes in, what comes out, and how one rollout runs."""

from __future__ import annotations

from skillc.language.checked import Entity, FieldType, Invocation, Setting, Word
from skillc.plan.resolve.values import count_of, plain, plain_block, text_of
from skillc.plan.schema import FieldPlan, RolloutPlan, TaskPlan, TypePlan


def resolve_task(task: Entity) -> TaskPlan:
    """The task of the program."""
    rollout = task.settings.get("rollout")
    return TaskPlan(
        inputs=tuple(field_plan(child) for child in task.children if child.kind == "input"),
        outputs=tuple(field_plan(child) for child in task.children if child.kind == "output"),
        rollout=_rollout(rollout) if rollout is not None else RolloutPlan(),
    )


def field_plan(entity: Entity) -> FieldPlan:
    """An input, an output, or a column of the data, which bears the field's own name unless one is given."""
    name = entity.name or ""
    return FieldPlan(
        name=name,
        type=_type(entity.type or FieldType("text")),
        column=text_of(entity, "column") or name,
        about=text_of(entity, "about"),
        limit=count_of(entity, "limit"),
    )


def _type(type_: FieldType) -> TypePlan:
    item = _type(type_.item) if type_.item is not None else None
    return TypePlan(kind=type_.kind, labels=type_.labels, item=item, optional=type_.optional)


def _rollout(setting: Setting) -> RolloutPlan:
    settings = plain_block(setting.block)
    if isinstance(setting.value, Invocation):
        arguments = tuple(plain(argument) for argument in setting.value.arguments)
        options = {name: plain(value) for name, value in setting.value.options}
        return RolloutPlan(kind=setting.value.function, arguments=arguments, settings={**options, **settings})
    kind = setting.value.text if isinstance(setting.value, Word) else "predict"
    return RolloutPlan(kind=kind, settings=settings)
