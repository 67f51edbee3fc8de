"""Findings about a plan and its data, each at the place of the program that it is about."""

from __future__ import annotations

from itertools import chain

from skillc.budget.bounds import Bounds
from skillc.budget.spend import Sizes
from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.language.checked import Checked
from skillc.plan.advice import Place, plan_advice
from skillc.plan.affordable import budget_advice
from skillc.plan.schema import Plan
from skillc.syntax.source import Span


def findings(plan: Plan, sizes: Sizes, bounds: Bounds, checked: Checked) -> tuple[Diagnostic, ...]:
    """What the figures of a plan give reason to say, errors first. An error means that the run has no chance."""
    advice = [*budget_advice(plan, bounds), *plan_advice(plan, sizes, bounds)]
    order = ("error", "warning", "note")
    found = [Diagnostic(a.code, a.message, label_at(checked, a.at), a.severity, hint=a.hint) for a in advice]
    return tuple(sorted(found, key=lambda d: order.index(d.severity.value)))


def label_at(checked: Checked, place: Place) -> Label:
    """The place of a declaration or of one of its settings; the first statement where it has neither."""
    kind, name, setting = place
    if kind == "gate":
        gate = next((gate for gate in checked.gates if gate.name == name), None)
        if gate is not None:
            return Label(gate.source, gate.span)
    declared = chain(checked.entities, *(each.children for each in checked.entities))
    entity = next((e for e in declared if e.kind == kind and e.name == name), None)
    if entity is None:
        source = checked.program.source
        first = checked.program.statements[0].span.start if checked.program.statements else 0
        return Label(source, Span(first, min(first + 1, len(source.text))))
    written = entity.settings.get(setting or "")
    return Label(written.source, written.span) if written is not None else Label(entity.source, entity.span)
