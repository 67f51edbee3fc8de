"""Parts of a split by the value of a field: `skillc eval --by FIELD`."""

from __future__ import annotations

from collections.abc import Iterable

from skillc.diagnostics.suggest import suggest
from skillc.errors import SkillcError
from skillc.json_values import as_text
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.text import listed

NO_VALUE = "(no value)"


def fields_of_data(plan: Plan) -> list[str]:
    """Return the names that `--by` can have: data fields, outputs, inputs, and the column of the groups."""
    task, data = plan.task, plan.data
    names = [each.name for each in (*data.fields, *task.outputs, *task.inputs)]
    return list(dict.fromkeys([*names, *([data.group] if data.group is not None else [])]))


def check_field(plan: Plan, name: str) -> None:
    """Refuse a field that the program does not have.

    Raises:
        SkillcError: with the closest name, or all names.
    """
    names = fields_of_data(plan)
    if name not in names:
        near = suggest(name, names)
        hint = f"did you mean `{near}`?" if near else f"fields of the data: {listed(names)}"
        raise SkillcError(f"`--by {name}`: the program has no such field", hint=hint)


def value_of(plan: Plan, example: Example, name: str) -> str:
    """Return the value of a field in an example, as text."""
    for values in (example.fields, example.gold, example.inputs):
        if name in values:
            value = values[name]
            return NO_VALUE if value is None or value == "" else as_text(value)
    return example.group if name == plan.data.group else NO_VALUE


def parts_by(plan: Plan, examples: Iterable[Example], name: str) -> dict[str, tuple[Example, ...]]:
    """Return the examples by the value of a field: values with most examples first, then by name."""
    parts: dict[str, list[Example]] = {}
    for example in examples:
        parts.setdefault(value_of(plan, example, name), []).append(example)
    return {value: tuple(parts[value]) for value in sorted(parts, key=lambda value: (-len(parts[value]), value))}
