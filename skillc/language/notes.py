"""What is legal, and worth knowing."""

from __future__ import annotations

from collections.abc import Sequence

from skillc.diagnostics.diagnostic import Fix, Report
from skillc.gates.functions import EXAMPLE_FUNCTIONS
from skillc.gates.terms import (
    CallTerm,
    Constant,
    Operation,
    StateTerm,
    WordTerm,
    calls,
    conjuncts,
    metrics_read,
    show_term,
    sides,
    walk,
)
from skillc.language.checked import CheckedGate, CheckedMetric, Entity, Items, Word
from skillc.language.facts import amount, epoch_steps
from skillc.language.modules import Module
from skillc.language.rules import is_library
from skillc.language.shadows import note_shadows
from skillc.language.spending import note_caps
from skillc.language.unread_goal import note_goal
from skillc.language.untrained import note_untrained
from skillc.language.unused import note_unused
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span

_JUDGES = EXAMPLE_FUNCTIONS["judge"].since
_HEADING = 8
"""Tokens that are granted for the heading of a section."""


def leave_notes(
    report: Report,
    module: Module,
    entities: Sequence[Entity],
    metrics: Sequence[CheckedMetric],
    gates: Sequence[CheckedGate],
    statements: tuple[nodes.Statement, ...] = (),
) -> None:
    """Adds the notes of a program without errors."""
    _unused_modules(report, module)
    note_shadows(report, module, statements)
    if is_library(module):
        return
    _unread_metrics(report, metrics, gates)
    _unused_roles(report, module, entities, metrics)
    note_unused(report, module, entities, metrics, gates)
    note_untrained(report, entities, gates)
    note_goal(report, entities, metrics, gates)
    note_caps(report, entities, metrics)
    for gate in gates:
        _undecidable(report, gate)
        _kept_already(report, gate, entities)
    if _worth_judging(gates):
        from skillc.language.contradictions import judge_gates

        judge_gates(report, entities, metrics, gates)
    _long_patience(report, entities)
    _free_to_copy(report, entities, gates)


def _unread_metrics(report: Report, metrics: Sequence[CheckedMetric], gates: Sequence[CheckedGate]) -> None:
    terms = [metric.term for metric in metrics] + [gate.term for gate in gates]
    read = {name for term in terms for name in metrics_read(term)}
    for metric in metrics:
        if metric.declared and not metric.goal and metric.name not in read:
            message = f"no gate and no goal reads the metric `{metric.name}`"
            report.note("SK409", metric.source, metric.span, message, hint="it is measured and reported all the same")


def _unused_modules(report: Report, module: Module) -> None:
    for alias, place in module.places.items():
        if alias not in module.used and module.uses.get(alias) is not None:
            fix = _line_removed(module.source, place)
            report.note("SK109", module.source, place, f"nothing of `{alias}` is used", hint="remove the line", fix=fix)


def _line_removed(source: Source, place: Span) -> Fix | None:
    """The line of a statement gone, where nothing else stands on it."""
    begin = source.text.rfind("\n", 0, place.start) + 1
    end = source.text.find("\n", place.end)
    end = end + 1 if end >= 0 else len(source.text)
    alone = not source.text[begin : place.start].strip() and not source.text[place.end : end].strip()
    return Fix(Span(begin, end), "") if alone else None


def _unused_roles(report: Report, module: Module, entities: Sequence[Entity], metrics: Sequence[CheckedMetric]) -> None:
    judges = {each.word for metric in metrics for each in walk(metric.term) if isinstance(each, WordTerm)}
    # One that another model is made of has its use.
    asked = {"target", "optimizer", *judges, *(name for kind, name in module.reached if kind == "model")}
    for model in entities:
        if model.kind == "model" and model.name not in asked:
            message = f"no metric asks the model `{model.name}`"
            judged, tried = f"judge(answer, rubric, model = {model.name})", f"skillc eval --model {model.name}"
            hint = f"remove it; `{tried}` tries it as the target, and `{judged}` comes with skillc {_JUDGES}"
            report.note("SK604", model.source, model.span, message, hint=hint)


# ---- gates ----------------------------------------------------------------------------------------


def _worth_judging(gates: Sequence[CheckedGate]) -> bool:
    """Whether there may be more to find than the checker asked of each comparison alone."""
    return len(gates) > 1 or any(
        isinstance(operand, Operation | CallTerm)
        for gate in gates
        if isinstance(gate.term, Operation)
        for operand in gate.term.operands
    )


def _undecidable(report: Report, gate: CheckedGate) -> None:
    if any(call.function == "latency" for call in calls(gate.term)):
        message = f"the gate `{gate.name}` can't be decided early, for nothing bounds a latency"
        report.note("SK504", gate.source, gate.span, message, hint="it costs the whole validation split each time")


def _kept_already(report: Report, gate: CheckedGate, entities: Sequence[Entity]) -> None:
    """A cap on tokens that frozen texts and the limits of the other sections keep anyway."""
    for each in conjuncts(gate.term):
        match sides(each):
            case (Constant(cap), CallTerm("tokens", (StateTerm("candidate"),))):
                most = _most_tokens(entities)
            case _:
                continue
        if most is not None and most <= cap:
            message = f"the limits of the sections keep `{show_term(each)}` already"
            hint = f"with all of them full, the skill has at most {most} tokens"
            report.note("SK506", gate.source, gate.span, message, hint=hint)


def _most_tokens(entities: Sequence[Entity]) -> int | None:
    from skillc.tokens import count_tokens

    total = 0
    for skill in entities:
        if skill.kind != "skill":
            continue
        for child in skill.children:
            limit = amount(child.settings, "limit")
            if "frozen" in child.words:
                total += count_tokens(child.value) if isinstance(child.value, str) else 0
            elif limit is None:
                return None
            else:
                total += int(limit)
            total += _HEADING
    return total


# ---- budget ---------------------------------------------------------------------------------------


def _long_patience(report: Report, entities: Sequence[Entity]) -> None:
    """Patience that cannot run out before the steps do."""
    by_kind = {entity.kind: entity for entity in entities if entity.name is None}
    budget = by_kind.get("budget")
    if budget is None or "patience" not in budget.settings:
        return
    steps, patience = _steps(by_kind, budget), amount(budget.settings, "patience")
    if steps is None or patience is None or patience <= steps:
        return
    setting = budget.settings["patience"]
    message = f"patience of {int(patience)} steps never runs out, for there are at most {steps}"
    report.note("SK507", setting.source, setting.span, message, hint="make it smaller, or leave it out")


def _steps(by_kind: dict[str, Entity], budget: Entity) -> int | None:
    """The most steps of a run, as far as the text says."""
    bounds: list[int] = []
    capped = amount(budget.settings, "steps")
    if capped is not None:
        bounds.append(int(capped))
    epochs, each = amount(budget.settings, "epochs"), epoch_steps(by_kind.get("data"), by_kind.get("optimize"))
    if epochs is not None and each is not None:
        bounds.append(int(epochs) * each)
    return min(bounds) if bounds else None


# ---- copying --------------------------------------------------------------------------------------


def _free_to_copy(report: Report, entities: Sequence[Entity], gates: Sequence[CheckedGate]) -> None:
    """The optimizer is shown right answers that are texts, and no gate looks at what it copies."""
    optimize = next((entity for entity in entities if entity.kind == "optimize"), None)
    sees = optimize.settings.get("sees") if optimize is not None else None
    if sees is None or not isinstance(sees.value, Items) or Word("gold") not in sees.value.items:
        return
    read = any(call.function == "overlap" for gate in gates for call in calls(gate.term))
    if not read and _answers_in_words(entities):
        message = "the optimizer sees the right answers, and no gate keeps it from copying them into the skill"
        hint = "add `gate own_words = overlap(candidate) <= 20%`, or leave `gold` out"
        report.note("SK509", sees.source, sees.span, message, hint=hint)


def _answers_in_words(entities: Sequence[Entity]) -> bool:
    outputs = (child for entity in entities if entity.kind == "task" for child in entity.children)
    return any(
        each.kind == "output" and each.type is not None and each.type.kind in ("text", "json") for each in outputs
    )
