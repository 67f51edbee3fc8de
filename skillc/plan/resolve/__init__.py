"""From a checked program to the plan: one module an idea, every default filled in."""

from __future__ import annotations

from dataclasses import dataclass

from skillc.diagnostics.diagnostic import Diagnostic
from skillc.language.checked import Checked, Entity
from skillc.plan.resolve.data import resolve_data
from skillc.plan.resolve.loop import resolve_budget, resolve_optimize
from skillc.plan.resolve.measures import resolve_gates, resolve_metrics, resolve_requires
from skillc.plan.resolve.models import resolve_models
from skillc.plan.resolve.skill import resolve_skill
from skillc.plan.resolve.task import resolve_task
from skillc.plan.resolve.values import Findings
from skillc.plan.schema import Plan
from skillc.syntax.source import Span

__all__ = ["Resolved", "resolve"]

_NEEDED = {
    "task": "task { input question: text; output answer: text }",
    "skill": 'skill name { about = "..."; trainable section rules }',
    "data": 'data { source = "examples.jsonl" }',
}
_ROLES = ("target", "optimizer")


@dataclass(frozen=True, slots=True)
class Resolved:
    """The plan of a program, None where the program has errors or is a library, and what resolving found."""

    plan: Plan | None
    diagnostics: tuple[Diagnostic, ...] = ()


def resolve(checked: Checked) -> Resolved:
    """The plan of a checked program.

    A program with errors has no plan, and nothing is added to what the checker said.
    """
    if checked.broken:
        return Resolved(None)
    findings = Findings()
    found = {kind: tuple(e for e in checked.entities if e.kind == kind) for kind in (*_NEEDED, "model", "rubric")}
    _require(findings, checked, found)
    if findings.failed():
        return Resolved(None, tuple(findings.items))
    (task,), (skill, *_), (data,) = found["task"], found["skill"], found["data"]
    metrics = resolve_metrics(findings, checked.metrics)
    skill_plan = resolve_skill(findings, skill)
    data_plan = resolve_data(findings, data)
    if findings.failed():
        return Resolved(None, tuple(findings.items))
    plan = Plan(
        language=checked.version,
        task=resolve_task(task),
        skill=skill_plan,
        models=resolve_models(found["model"]),
        data=data_plan,
        metrics=metrics,
        optimize=resolve_optimize(_once(checked, "optimize")),
        budget=resolve_budget(_once(checked, "budget")),
        gates=resolve_gates(checked.gates),
        requires=resolve_requires(checked.gates),
        required_verdict=checked.required.verdict if checked.required is not None else None,
        rubrics={rubric.name or "": str(rubric.value or "") for rubric in found["rubric"]},
    )
    return Resolved(plan, tuple(findings.items))


def _once(checked: Checked, kind: str) -> Entity | None:
    return next((entity for entity in checked.entities if entity.kind == kind and entity.name is None), None)


def _require(findings: Findings, checked: Checked, found: dict[str, tuple[Entity, ...]]) -> None:
    """What a compile cannot do without; a library such as `lab.skill` has none of it."""
    source, start = checked.program.source, Span(0, min(1, len(checked.program.source.text)))
    if checked.library:
        hint = "compile a program that uses it"
        findings.error("SK559", f"`{source.name}` only declares what others use", source, start, hint)
        return
    for kind, example in _NEEDED.items():
        if not found[kind]:
            findings.error("SK559", f"`{source.name}` declares no `{kind}`", source, start, f"add `{example}`")
    roles = {model.name for model in found["model"]}
    for role in _ROLES:
        if role not in roles:
            hint = f'add `model {role} = "provider/name"`'
            findings.error("SK559", f"`{source.name}` declares no model `{role}`", source, start, hint)
    if not any(metric.goal for metric in checked.metrics):
        hint = "add `goal name = ...`"
        findings.error("SK559", f"`{source.name}` declares no goal", source, start, hint)
    if not any(gate.kind == "gate" for gate in checked.gates):
        hint = "add `gate better = candidate.name > incumbent.name`"
        findings.error("SK559", f"`{source.name}` declares no gate", source, start, hint)
    for skill in found["skill"][1:]:
        message = f"`{skill.name}` is a second skill; this version trains one skill of a program"
        findings.error("SK560", message, skill.source, skill.span, "move it into a program of its own")
