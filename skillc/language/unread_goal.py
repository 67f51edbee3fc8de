"""A goal that no gate has anything to do with: accepts then have nothing to do with it either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from skillc.diagnostics.diagnostic import Report
from skillc.gates.terms import MeanTerm, MetricTerm, Term, walk
from skillc.language.checked import CheckedGate, CheckedMetric, Entity, Word


def note_goal(
    report: Report, entities: Sequence[Entity], metrics: Sequence[CheckedMetric], gates: Sequence[CheckedGate]
) -> None:
    """Warns where the gates of a step read neither the goal nor anything that it is made of."""
    goal = next((metric for metric in metrics if metric.goal), None)
    deciding = [gate for gate in gates if gate.kind == "gate" and gate.for_ is None]
    if goal is None or not deciding or _accepts_all(entities):
        return
    terms = {metric.name: metric.term for metric in metrics}
    of_goal = _closure([goal.name], terms)
    if of_goal & _closure((name for gate in deciding for name in _read(gate.term)), terms):
        return
    message = f"no gate reads the goal `{goal.name}`, so edits are accepted that make it worse"
    hint = f"add `gate better = candidate.{goal.name} > incumbent.{goal.name}`"
    report.warn("SK514", goal.source, goal.span, message, hint=hint)


def _accepts_all(entities: Sequence[Entity]) -> bool:
    optimize = next((entity for entity in entities if entity.kind == "optimize" and entity.name is None), None)
    accept = optimize.settings.get("accept") if optimize is not None else None
    return accept is not None and accept.value == Word("always")


def _closure(names: Iterable[str], terms: Mapping[str, Term]) -> set[str]:
    """The metrics of some names, with all that they are made of."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            term = terms.get(name)
            waiting += _read(term) if term is not None else ()
    return found


def _read(term: Term) -> list[str]:
    return [
        each.name if isinstance(each, MetricTerm) else each.metric
        for each in walk(term)
        if isinstance(each, MetricTerm | MeanTerm)
    ]
