"""What a metric measures, whatever it is called: its term in one form, with all that it reads in place of names."""

from __future__ import annotations

from collections.abc import Mapping

from skillc.gates.normal import normal
from skillc.gates.terms import CallTerm, MeanTerm, MetricTerm, Term, TextConstant, WordTerm, rebuilt
from skillc.json_values import digest
from skillc.plan.digest import without_secrets
from skillc.plan.schema import MetricPlan, Plan
from skillc.user_code import code_digest
from skillc.versions.version import Version


def meanings(version: Version) -> dict[str, str]:
    """A name for what each metric measures: the same for the same meaning, in any version."""
    found: dict[str, str] = {}
    for metric in version.plan.metrics:
        found[metric.name] = _meaning(version, metric, found)
    return found


def renamed_metrics(old: Version, new: Version) -> dict[str, str]:
    """New names of metrics that measure what one of another name did, with that name."""
    before, after = meanings(old), meanings(new)
    gone = {meaning: name for name, meaning in before.items() if name not in after}
    return {name: gone[meaning] for name, meaning in after.items() if name not in before and meaning in gone}


def renamed(term: Term, names: Mapping[str, str]) -> Term:
    """A term with other names of metrics."""
    if not names:
        return term

    def named(part: Term) -> Term:
        if isinstance(part, MetricTerm):
            return MetricTerm(names.get(part.name, part.name))
        if isinstance(part, MeanTerm):
            return MeanTerm(part.state, names.get(part.metric, part.metric))
        return part

    return rebuilt(term, named)


def _meaning(version: Version, metric: MetricPlan, known: Mapping[str, str]) -> str:
    plan = version.plan

    def read(part: Term) -> Term:
        if isinstance(part, MetricTerm):
            return MetricTerm(known.get(part.name, part.name))
        if isinstance(part, CallTerm) and part.function == "python" and isinstance(part.arguments[0], TextConstant):
            code = TextConstant(code_digest(version.read, part.arguments[0].value))
            return CallTerm("python", (*part.arguments, code), part.options)
        return _judge(part, plan) if isinstance(part, CallTerm) and part.function == "judge" else part

    form = normal(rebuilt(metric.term, read))
    return digest([repr(form), metric.unit, metric.low, metric.high])


def _judge(term: CallTerm, plan: Plan) -> CallTerm:
    """A judge with the text of its rubric, and with the model that judges in place of its role."""
    arguments = tuple(
        TextConstant(plan.rubrics[part.word]) if isinstance(part, WordTerm) and part.word in plan.rubrics else part
        for part in term.arguments
    )
    return CallTerm(term.function, arguments, tuple((name, _judging(value, plan)) for name, value in term.options))


def _judging(value: Term, plan: Plan) -> Term:
    role = value.word if isinstance(value, WordTerm) else getattr(value, "name", None)
    model = without_secrets(plan).models.get(role) if isinstance(role, str) else None
    if model is None:
        return value
    return TextConstant(digest([model.model, model.model_env, model.parameters, model.exec, model.backend]))
