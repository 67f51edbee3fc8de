"""Report what the language has and this version of skillc cannot run: SK605, for every verb and for editors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from skillc.diagnostics.diagnostic import LATER, Report
from skillc.language.checked import Entity, Invocation, Later, Setting, Word

ROLLOUTS = {"environment": "0.5", "react": "0.5", "code": "0.5", "codex": "0.5", "command": "0.5"}
SECOND_SKILL = "0.5"
ON_DEMAND = "0.5"

_ROLLOUT_HINT = "this version compiles `predict` and `chain_of_thought`"
_LOAD_HINT = "leave it out: this version has the target read the skill for every example"
_SKILL_HINT = "move it into a program of its own; programs share models, budgets and sections by `use`"


def needs(entities: Sequence[Entity], called: Iterable[Later]) -> tuple[Later, ...]:
    """List everything that waits for a later version, once for each place, in the order of the file.

    Args:
        entities: the declarations of the program.
        called: the functions that its metrics and gates call and this version does not have.
    """
    found = [later for entity in entities for later in _of_entity(entity)]
    skills = [entity for entity in entities if entity.kind == "skill"]
    found += [Later("a second skill", skill.source, skill.span, SECOND_SKILL, _SKILL_HINT) for skill in skills[1:]]
    found += called
    unique = {(each.what, each.source.name, each.span): each for each in found}
    return tuple(sorted(unique.values(), key=lambda each: (each.source.name, each.span)))


def report_later(report: Report, later: Iterable[Later]) -> None:
    """Report each of them as an error."""
    for each in later:
        message = f"{each.what} comes with skillc {each.version}, so this version can't compile it"
        report.add(LATER, each.source, each.span, message, hint=each.hint)


def _of_entity(entity: Entity) -> Iterator[Later]:
    if entity.kind == "task":
        yield from _chosen(entity, "rollout", ROLLOUTS, _ROLLOUT_HINT)
    elif entity.kind == "skill":
        yield from _chosen(entity, "load", {"on_demand": ON_DEMAND}, _LOAD_HINT)


def _chosen(entity: Entity, name: str, versions: dict[str, str], hint: str) -> Iterator[Later]:
    setting = entity.settings.get(name)
    word = _word(setting) if setting is not None else None
    if setting is not None and word is not None and word in versions:
        yield Later(f"`{name} = {word}`", setting.source, setting.span, versions[word], hint)


def _word(setting: Setting) -> str | None:
    if isinstance(setting.value, Invocation):
        return setting.value.function
    return setting.value.text if isinstance(setting.value, Word) else None
