"""Rules over judges: their family, and the optimizer as a judge of its own work."""

from __future__ import annotations

from collections.abc import Iterator

from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.gates.functions import judge_roles
from skillc.gates.terms import CallTerm, Term, walk
from skillc.language.checked import Entity
from skillc.language.families import family_of
from skillc.lint.rules import ProgramFacts, note, rule, warning

TARGET, OPTIMIZER = "target", "optimizer"
_MEASURE = "ask a model of another maker, or a panel with one"


@rule(ProgramFacts)
def related_judges(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Judges of the target's family, which they prefer, and judges that are the optimizer's model."""
    models = {entity.name or "": entity for entity in facts.checked.entities if entity.kind == "model"}
    terms = [metric.term for metric in facts.checked.metrics]
    roles = dict.fromkeys(role for term in terms for role in _alone(term))
    target, optimizer = (_name(models.get(role)) for role in (TARGET, OPTIMIZER))
    for role in roles:
        model, name = models.get(role), _name(models.get(role))
        if model is None or name is None:
            continue
        family = family_of(name)
        if role == TARGET or name == target:
            if family is not None:
                message = f"the judge `{role}` is the target's model, `{name}`: it judges its own answers"
                yield warning("SK606", model, message, _MEASURE)
        elif family is not None and target is not None and family == family_of(target):
            message = f"the judge `{role}` (`{name}`) is of the target's family (`{target}`)"
            yield warning(
                "SK606", model, message, f"models prefer answers like their own; {_MEASURE}", secondary=_at(models)
            )
        elif family is not None and (role == OPTIMIZER or name == optimizer):
            message = f"the judge `{role}` is the optimizer's model, `{name}`: it judges what it proposed"
            yield note("SK607", model, message, _MEASURE)


def _alone(term: Term) -> Iterator[str]:
    """Yield the judges that decide without a panel of other families."""
    for call in walk(term):
        if isinstance(call, CallTerm) and call.function == "judge" and call.option("panel") is None:
            yield from judge_roles(call)


def _name(model: Entity | None) -> str | None:
    return model.value if model is not None and isinstance(model.value, str) else None


def _at(models: dict[str, Entity]) -> tuple[Label, ...]:
    target = models[TARGET]
    return (Label(target.source, target.span, "the target"),)
