"""Where a program says what a change is about."""

from __future__ import annotations

from collections.abc import Iterable

from skillc.diagnostics.diagnostic import Label
from skillc.language.checked import Checked, Entity
from skillc.syntax.source import Source, Span
from skillc.versions.change import Place


def label_of(checked: Checked, place: Place, text: str = "") -> Label:
    """The declaration or the setting that a place names; the program's first line where it says nothing of it."""
    found = _found(checked, place)
    if found is None:
        source = checked.program.source
        return Label(source, first_line(source), text)
    return Label(found[0], found[1], text)


def first_line(source: Source) -> Span:
    """The first line that says something."""
    for number in range(1, len(source.line_starts) + 1):
        line = source.line(number)
        if line.strip() and not line.lstrip().startswith("#"):
            start = source.line_starts[number - 1]
            return Span(start, start + len(line))
    return Span(0, 0)


def _found(checked: Checked, place: Place) -> tuple[Source, Span] | None:
    if place.kind in ("gate", "require"):
        gates = (gate for gate in checked.gates if gate.kind == place.kind and gate.name == place.name)
        found = next(((gate.source, gate.span) for gate in gates), None)
        required = checked.required if place.kind == "require" else None
        if found is None and required is not None and required.verdict == place.name:
            return required.source, required.span
        return found
    if place.kind in ("metric", "goal"):
        metrics = (metric for metric in checked.metrics if metric.name == place.name)
        return next(((metric.source, metric.span) for metric in metrics), None)
    entity = next((each for each in _every(checked.entities) if _is(each, place)), None)
    if entity is None:
        return None
    setting = entity.settings.get(place.setting) if place.setting is not None else None
    return (setting.source, setting.span) if setting is not None else (entity.source, entity.span)


def _every(entities: Iterable[Entity]) -> Iterable[Entity]:
    for entity in entities:
        yield entity
        yield from entity.children


def _is(entity: Entity, place: Place) -> bool:
    return entity.kind == place.kind and (place.name is None or entity.name == place.name)
