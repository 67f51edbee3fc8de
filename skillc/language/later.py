"""What a program may say already, and only a later version of skillc can run."""

from __future__ import annotations

from dataclasses import dataclass

from skillc.language.builtins import EXAMPLE_FUNCTIONS, RUN_FUNCTIONS
from skillc.language.checked import Checked, CheckedGate, CheckedMetric, Entity, Invocation, Setting, Word
from skillc.language.show import walk
from skillc.language.source import Source, Span
from skillc.language.terms import CallTerm

ROLLOUTS = {"environment": "0.5", "react": "0.5", "code": "0.5", "codex": "0.5", "command": "0.5"}
SECOND_SKILL = "0.5"
ON_DEMAND = "0.5"
TRAINABLE_ABOUT = "0.5"


@dataclass(frozen=True, slots=True)
class Later:
    """A part of a program that this version can't run: what it is, where it stands, which version brings it."""

    what: str
    source: Source
    span: Span
    version: str


def needs(checked: Checked) -> tuple[Later, ...]:
    """Everything in a program that waits for a later version, in the order of the file."""
    found = [later for entity in checked.entities for later in _of_entity(entity)]
    skills = [entity for entity in checked.entities if entity.kind == "skill"]
    found += [Later("a second skill", skill.source, skill.span, SECOND_SKILL) for skill in skills[1:]]
    expressions: tuple[CheckedMetric | CheckedGate, ...] = (*checked.metrics, *checked.gates)
    for expression in expressions:
        for term in walk(expression.term):
            since = _since(term) if isinstance(term, CallTerm) else None
            if since is not None and isinstance(term, CallTerm):
                found.append(Later(f"`{term.function}`", expression.source, expression.span, since))
    unique = {(each.what, each.source.name, each.span): each for each in found}
    return tuple(sorted(unique.values(), key=lambda each: (each.source.name, each.span)))


def _since(term: CallTerm) -> str | None:
    builtin = EXAMPLE_FUNCTIONS.get(term.function) or RUN_FUNCTIONS.get(term.function)
    return builtin.since if builtin is not None and builtin.since != "0.1" else None


def _of_entity(entity: Entity) -> list[Later]:
    if entity.kind == "task":
        return _chosen(entity, "rollout", ROLLOUTS)
    return []


def _chosen(entity: Entity, name: str, versions: dict[str, str]) -> list[Later]:
    setting = entity.settings.get(name)
    word = _word(setting) if setting is not None else None
    if setting is None or word is None or word not in versions:
        return []
    return [Later(f"`{name} = {word}`", setting.source, setting.span, versions[word])]


def _word(setting: Setting) -> str | None:
    if isinstance(setting.value, Invocation):
        return setting.value.function
    return setting.value.text if isinstance(setting.value, Word) else None
