"""The plan for a module: gates, caps and mechanisms in skillc's own language, read by its own checker."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from skillc.diagnostics.diagnostic import Severity
from skillc.errors import SkillcError
from skillc.frontend import check
from skillc.language.modules import Loader
from skillc.plan.resolve import resolve
from skillc.plan.schema import FieldPlan, ModelPlan, Plan, SkillPlan, TaskPlan
from skillc.syntax.source import Source

GOAL = "score"
_NAME = re.compile(r"[a-z][a-z0-9_]*")

_PROGRAM = """language 1
use std.gates
task {{
{fields}
}}
skill {name} {{
  about = "Instructions of a module."
  trainable section instructions
}}
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data {{ source = "examples.jsonl"; seed = {seed} }}
goal score = python("skillc.teleprompter.rollouts:score_of", low = {low}, high = {high})
optimize {{
{optimize}
}}
budget {{
{budget}
}}
{gates}
"""


def plan_for(
    *,
    skill: SkillPlan,
    inputs: Sequence[FieldPlan],
    outputs: Sequence[FieldPlan],
    models: Mapping[str, ModelPlan],
    gates: Mapping[str, str],
    budget: Mapping[str, object],
    optimize: Mapping[str, object],
    low: float,
    high: float,
    seed: int,
) -> Plan:
    """The plan of a module.

    Args:
        skill: its instructions as sections.
        inputs: of the examples.
        outputs: their labels.
        models: by role.
        gates: conditions by name, as a program writes them: `candidate.score > incumbent.score`.
        budget: settings of a program's `budget` block.
        optimize: settings of its `optimize` block.
        low: the worst score of the metric.
        high: its best.
        seed: of all that is drawn.

    Raises:
        SkillcError: a gate or a setting is none that the language has; the message is the checker's.
    """
    text = _PROGRAM.format(
        fields="\n".join([*_fields("input", inputs), *(_fields("output", outputs) or ["  output answer: text"])]),
        name=skill.name,
        seed=seed,
        low=_number(low),
        high=_number(high),
        optimize=_settings(optimize),
        budget=_settings(budget),
        gates="\n".join(f"gate {name} = {condition}" for name, condition in gates.items()),
    )
    plan = _resolved(text)
    task = TaskPlan(inputs=tuple(inputs), outputs=tuple(outputs))
    return plan.model_copy(update={"skill": skill, "task": task, "models": dict(models)})


def _resolved(text: str) -> Plan:
    checked = check(Source("SkillOptimizer", text), Loader(Path.cwd()))
    resolved = resolve(checked)
    for found in (*checked.diagnostics, *resolved.diagnostics):
        if found.severity is Severity.ERROR:
            line = text[: found.primary.span.start].count("\n")
            raise SkillcError(f"{found.message}, in `{text.splitlines()[line].strip()}`", hint=found.hint)
    assert resolved.plan is not None
    return resolved.plan


def _fields(kind: str, fields: Sequence[FieldPlan]) -> list[str]:
    """Fields that the language can name, for gates to speak of; the others are the module's own business."""
    return [f"  {kind} {field.name}: text" for field in fields if _NAME.fullmatch(field.name)]


def _settings(settings: Mapping[str, object]) -> str:
    return "\n".join(f"  {name} = {_value(value)}" for name, value in settings.items())


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return _number(value)
    return str(value)


def _number(value: float) -> str:
    return f"{value:f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
