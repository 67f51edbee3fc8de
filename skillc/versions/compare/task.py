"""Inputs, outputs, and how a rollout runs."""

from __future__ import annotations

from collections.abc import Iterator

from skillc.budget.render import type_text
from skillc.plan.schema import FieldPlan, TypePlan
from skillc.versions.change import Change, Place
from skillc.versions.compare.values import fields_that_differ, shown
from skillc.versions.version import Version


def task_changes(old: Version, new: Version) -> Iterator[Change]:
    """What goes in, what comes out, and how."""
    before, after = old.plan.task, new.plan.task
    yield from _fields("input", before.inputs, after.inputs)
    yield from _fields("output", before.outputs, after.outputs)
    for kind, one, other in (("inputs", before.inputs, after.inputs), ("outputs", before.outputs, after.outputs)):
        names, now = [field.name for field in one], [field.name for field in other]
        if names != now and sorted(names) == sorted(now):
            yield Change("task", f"order of {kind}", shown(names), shown(now), place=Place("task"))
    if before.rollout != after.rollout:
        place = Place("task", None, "rollout")
        yield Change("task", "rollout", shown(before.rollout), shown(after.rollout), place=place)


def _fields(kind: str, old: tuple[FieldPlan, ...], new: tuple[FieldPlan, ...]) -> Iterator[Change]:
    before, after = ({field.name: field for field in fields} for fields in (old, new))
    for name in before.keys() | after.keys():
        one, other = before.get(name), after.get(name)
        if one is None and other is not None:
            yield _added(kind, other)
        elif other is None and one is not None:
            yield _removed(kind, one)
        elif one is not None and other is not None:
            yield from _changed(kind, one, other)


def _added(kind: str, field: FieldPlan) -> Change:
    text, place = type_text(field.type), Place(kind, field.name)
    if kind == "output" or field.type.optional:
        return Change("task", f"{kind} {field.name}", None, text, place=place)
    message = f"the input `{field.name}` is new, and every caller has to give it"
    hint = f"make it one that may be left out: `input {field.name}: {text} | none`"
    return Change("task", f"{kind} {field.name}", None, text, "", "input-added", message, hint, place=place)


def _removed(kind: str, field: FieldPlan) -> Change:
    text = type_text(field.type)
    if kind == "input":
        return Change("task", f"{kind} {field.name}", text, None, place=Place("task"))
    message = f"the output `{field.name}` is gone, and every caller that reads it fails"
    return Change(
        "task", f"{kind} {field.name}", text, None, "", "output-removed", message, place=Place("output", field.name)
    )


def _changed(kind: str, old: FieldPlan, new: FieldPlan) -> Iterator[Change]:
    subject, place = f"{kind} {new.name}", Place(kind, new.name)
    if old.type != new.type:
        before, after = type_text(old.type), type_text(new.type)
        if kind == "input":
            wider = _fits(old.type, new.type)
            message = f"the input `{new.name}` no longer takes all that it took: `{before}` became `{after}`"
            yield Change("task", subject, before, after, "", None if wider else "input-changed", message, place=place)
        else:
            rule, message = _output_rule(new.name, old.type, new.type)
            yield Change("task", subject, before, after, "", rule, message, place=place)
    for name, one, other in fields_that_differ(old, new, but=("type", "name")):
        yield Change("task", f"{subject}: {name}", shown(one), shown(other), place=Place(kind, new.name, name))


def _output_rule(name: str, old: TypePlan, new: TypePlan) -> tuple[str | None, str]:
    gone = [label for label in old.labels if label not in new.labels]
    fresh = [label for label in new.labels if label not in old.labels]
    if old.kind == new.kind == "labels" and (gone or fresh) and not (new.optional and not old.optional):
        if gone:
            listed = ", ".join(f'`"{label}"`' for label in gone)
            return "labels-removed", f"the output `{name}` can no longer be {listed}"
        listed = ", ".join(f'`"{label}"`' for label in fresh)
        return "labels-added", f"the output `{name}` can be {listed} now, which callers may not know"
    if _fits(new, old):
        return None, ""
    return "output-changed", f"the output `{name}` was `{type_text(old)}` and is `{type_text(new)}`"


def _fits(narrow: TypePlan, wide: TypePlan) -> bool:
    """Whether every value of one type is one of the other."""
    if narrow.optional and not wide.optional:
        return False
    if narrow.kind == "labels":
        return wide.kind == "text" or (wide.kind == "labels" and set(narrow.labels) <= set(wide.labels))
    if narrow.kind == "integer" and wide.kind == "number":
        return True
    if narrow.item is not None and wide.item is not None:
        return _fits(narrow.item, wide.item)
    return narrow.kind == wide.kind
