"""Declarations that nothing speaks of. In a library they are what others use, so nothing is said there."""

from __future__ import annotations

from collections.abc import Sequence

from skillc.diagnostics.diagnostic import Report
from skillc.gates.functions import EXAMPLE_FUNCTIONS
from skillc.gates.terms import CallTerm, FieldTerm, WordTerm, walk
from skillc.language.checked import CheckedGate, CheckedMetric, Entity, Invocation, Word
from skillc.language.modules import Module

_JUDGES = EXAMPLE_FUNCTIONS["judge"].since
_MARKED = {
    "section": "write `frozen section rules = {name}` in the skill",
    "budget": "write `budget = {name}`",
    "optimize": "write `optimize = {name}`",
}
_OF_THE_ROW = ("predict", "chain_of_thought", "react")
"""The rollouts that are given inputs alone, and no other column of the data."""


def note_unused(
    report: Report,
    module: Module,
    entities: Sequence[Entity],
    metrics: Sequence[CheckedMetric],
    gates: Sequence[CheckedGate],
) -> None:
    """Notes functions, rubrics, fields and reusable declarations that nothing uses."""
    stated = [*(metric.term for metric in metrics), *(gate.term for gate in gates)]
    terms = [each for term in stated for each in walk(term)]
    _functions(report, module)
    asked = {each.arguments[1] for each in terms if isinstance(each, CallTerm) and each.function == "judge"}
    for entity in entities:
        if entity.kind == "rubric" and WordTerm(entity.name or "") not in asked:
            message = f"no metric asks a judge by the rubric `{entity.name}`"
            hint = f"remove it; `judge(answer, {entity.name}, model = referee)` comes with skillc {_JUDGES}"
            report.note("SK416", entity.source, entity.span, message, hint=hint)
        elif entity.kind in _MARKED and entity.name and (entity.kind, entity.name) not in module.reached:
            message = f"nothing uses the {entity.kind} `{entity.name}`"
            hint = f"{_MARKED[entity.kind].format(name=entity.name)}, or remove it"
            report.note("SK418", entity.source, entity.span, message, hint=hint)
    if not any(isinstance(each, CallTerm) and each.function == "python" for each in terms):
        _fields(report, entities, {each.name for each in terms if isinstance(each, FieldTerm)})


def _functions(report: Report, module: Module) -> None:
    for name, stated in module.functions().items():
        if ("function", name) not in module.reached and stated.name is not None:
            kind = stated.kind.word
            message = f"nothing calls the {kind} `{name}`"
            hint = f"`{kind} x = {name}(...)` does; move it into a file of its own if others use it"
            report.note("SK415", module.source, stated.name.span, message, hint=hint)


def _fields(report: Report, entities: Sequence[Entity], read: set[str]) -> None:
    """Fields of the data; a function of the user's own, or an environment, may look at any."""
    tasks = [entity for entity in entities if entity.kind == "task"]
    if any(_rollout(task) not in _OF_THE_ROW for task in tasks):
        return
    for data in entities:
        if data.kind != "data":
            continue
        group = data.settings.get("group")
        grouped = group.value.text if group is not None and isinstance(group.value, Word) else None
        for field in data.children:
            if field.name not in read and field.name != grouped:
                message = f"nothing reads the field `{field.name}`"
                hint = f"a gate may, `regressed(metric, by = {field.name})`, or a metric, or `group`; or remove it"
                report.note("SK417", field.source, field.span, message, hint=hint)


def _rollout(task: Entity) -> str:
    setting = task.settings.get("rollout")
    value = setting.value if setting is not None else Word("predict")
    if isinstance(value, Invocation):
        return value.function
    return value.text if isinstance(value, Word) else ""
