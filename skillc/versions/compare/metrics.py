"""Changes of metrics: which are the same under another name, and which measure something else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from skillc.gates.normal import normal_form
from skillc.gates.terms import (
    CallTerm,
    MeanTerm,
    MetricTerm,
    Term,
    TextConstant,
    WordTerm,
    metrics_read,
    rebuild,
    show_term,
)
from skillc.json_values import digest
from skillc.plan.digest import redact_plan
from skillc.plan.schema import MetricPlan, Plan
from skillc.text import cut
from skillc.user_code import code_digest
from skillc.versions.change import Anchor, Change
from skillc.versions.compare.settings import shown
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

    return rebuild(term, named)


def _meaning(version: Version, metric: MetricPlan, known: Mapping[str, str]) -> str:
    plan = version.plan

    def read(part: Term) -> Term:
        if isinstance(part, MetricTerm):
            return MetricTerm(known.get(part.name, part.name))
        if isinstance(part, CallTerm) and part.function == "python" and isinstance(part.arguments[0], TextConstant):
            code = TextConstant(code_digest(version.read, part.arguments[0].value))
            return CallTerm("python", (*part.arguments, code), part.options)
        return _judge(part, plan) if isinstance(part, CallTerm) and part.function == "judge" else part

    form = normal_form(rebuild(metric.term, read))
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
    model = redact_plan(plan).models.get(role) if isinstance(role, str) else None
    if model is None:
        return value
    return TextConstant(digest([model.model, model.model_env, model.parameters, model.exec, model.backend]))


def metric_changes(old: Version, new: Version) -> Iterator[Change]:
    """Yield changes of the metrics. An expression that is a gate's argument belongs to that gate."""
    before, after = meanings(old), meanings(new)
    names = renamed_metrics(old, new)
    plans = {metric.name: metric for metric in old.plan.metrics}
    now = {metric.name: metric for metric in new.plan.metrics}
    read = deciding(old.plan)
    for name, metric in now.items():
        was = plans.get(names.get(name, name))
        if was is None:
            if metric.declared:
                yield Change("metrics", f"metric {name}", None, show_term(metric.term), place=_place(metric))
        elif before[was.name] != after[name]:
            yield _redefined(was, metric, deciding_=was.name in read)
        elif was.name != name and was.declared:
            yield Change("metrics", "metric", was.name, name, place=_place(metric))
    kept = {names.get(name, name) for name in now}
    for name, metric in plans.items():
        if name not in kept and metric.declared:
            yield Change("metrics", f"metric {name}", show_term(metric.term), None)
    yield from _goal(old.plan, new.plan, names)
    for name in sorted(old.plan.rubrics.keys() | new.plan.rubrics.keys()):
        one, other = old.plan.rubrics.get(name), new.plan.rubrics.get(name)
        if one != other:
            place = Anchor("rubric", name) if other is not None else Anchor()
            yield Change("metrics", f"rubric {name}", _brief(one), _brief(other), place=place)


def deciding(plan: Plan) -> frozenset[str]:
    """Return the metrics that the goal, a gate or a require reads, directly or by others."""
    terms = {metric.name: metric.term for metric in plan.metrics}
    waiting = [plan.goal.name]
    for term in (*(gate.term for gate in plan.gates), *(each.term for each in plan.requires)):
        waiting += metrics_read(term)
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found and name in terms:
            found.add(name)
            waiting += metrics_read(terms[name])
    return frozenset(found)


def _redefined(old: MetricPlan, new: MetricPlan, *, deciding_: bool) -> Change:
    kind = "goal" if new.goal else "metric"
    before, after = _shown(old), _shown(new)
    if before == after:
        message = f"the {kind} `{new.name}` measures something else: what it reads changed"
    else:
        message = f"the {kind} `{new.name}` measures something else: `{before}` became `{after}`"
    hint = "scores of before and after do not compare; give the new measure a name of its own"
    rule = "metric-redefined" if deciding_ else None
    return Change("metrics", f"{kind} {new.name}", before, after, "unordered", rule, message, hint, place=_place(new))


def _shown(metric: MetricPlan) -> str:
    text = show_term(metric.term)
    return f"{text}, {shown(metric.low, metric.unit)} to {shown(metric.high, metric.unit)}"


def _goal(old: Plan, new: Plan, names: dict[str, str]) -> Iterator[Change]:
    before, after = old.goal.name, new.goal.name
    if names.get(after, after) != before:
        message = f"the goal was `{before}` and is `{after}`"
        hint = "scores of before and after do not compare"
        yield Change(
            "metrics", "goal", before, after, "unordered", "goal-changed", message, hint, place=_place(new.goal)
        )


def _brief(text: str | None) -> str | None:
    return None if text is None else cut(text, 60)


def _place(metric: MetricPlan) -> Anchor:
    return Anchor("goal" if metric.goal else "metric", metric.name)
