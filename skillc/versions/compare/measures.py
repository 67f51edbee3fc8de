"""Changes of metrics, gates and requires: which metrics were only renamed, and which conditions require less."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from skillc.dataclass import dataclass
from skillc.gates.intervals import Interval
from skillc.gates.normal import normal_form
from skillc.gates.prove import Axioms, as_strict
from skillc.gates.stages import gates_for
from skillc.gates.terms import (
    CallTerm,
    ListTerm,
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
from skillc.plan.judges import judge_of
from skillc.plan.schema import GatePlan, MetricPlan, Plan, RequirePlan, RubricPlan
from skillc.text import cut
from skillc.user_code import code_digest
from skillc.versions.change import Anchor, Change
from skillc.versions.compare.settings import entries_that_differ, render_value
from skillc.versions.version import Version


def measure_changes(old: Version, new: Version) -> Iterator[Change]:
    """Yield changes of the metrics, the gates and the requires."""
    before, after = _meanings(old), _meanings(new)
    names = _renamed_metrics(before, after)
    redefined = {name for name, meaning in after.items() if before.get(names.get(name, name)) != meaning}
    yield from _metric_changes(old.plan, new.plan, names, redefined)
    axioms = _axioms(old.plan, new.plan, names)
    gates = tuple(gate.model_copy(update={"term": _renamed(gate.term, names)}) for gate in new.plan.gates)
    yield from _condition_changes("gate", _gates(old.plan.gates), _gates(gates), axioms)
    requires = [each.model_copy(update={"term": _renamed(each.term, names)}) for each in new.plan.requires]
    yield from _condition_changes("require", _requires(old.plan.requires), _requires(requires), axioms)
    yield from _required_verdict(old.plan.required_verdict, new.plan.required_verdict)


def _meanings(version: Version) -> dict[str, str]:
    """Return a digest of the meaning of each metric, equal for equal meanings in any version."""
    found: dict[str, str] = {}
    for metric in version.plan.metrics:
        found[metric.name] = _meaning(version, metric, found)
    return found


def _renamed_metrics(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return the old name of each metric that was only renamed."""
    gone = {meaning: name for name, meaning in before.items() if name not in after}
    return {name: gone[meaning] for name, meaning in after.items() if name not in before and meaning in gone}


def _renamed(term: Term, names: Mapping[str, str]) -> Term:
    """Return a term with the metrics under their old names."""
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
    """Return a judge with the content of its rubric and the models that it asks."""
    rubric = TextConstant(digest(judge_of(plan, term).rubric))
    options = tuple((name, _judging(value, plan)) for name, value in term.options)
    return CallTerm(term.function, (*term.arguments[:1], rubric), options)


def _judging(value: Term, plan: Plan) -> Term:
    if isinstance(value, ListTerm):
        return ListTerm(tuple(_judging(each, plan) for each in value.items))
    role = value.word if isinstance(value, WordTerm) else getattr(value, "name", None)
    model = redact_plan(plan).models.get(role) if isinstance(role, str) else None
    if model is None:
        return value
    return TextConstant(digest([model.model, model.model_env, model.parameters, model.exec, model.backend]))


# ---- metrics --------------------------------------------------------------------------------------


def _metric_changes(old: Plan, new: Plan, names: Mapping[str, str], redefined: Collection[str]) -> Iterator[Change]:
    """Yield changes of the metrics. An expression that is a gate's argument belongs to that gate."""
    plans = {metric.name: metric for metric in old.metrics}
    now = {metric.name: metric for metric in new.metrics}
    deciding = _deciding_metrics(old)
    for name, metric in now.items():
        was = plans.get(names.get(name, name))
        if was is None:
            if metric.declared:
                yield Change("metrics", f"metric {name}", None, show_term(metric.term), _anchor(metric))
        elif name in redefined:
            yield _redefined(was, metric, is_deciding=was.name in deciding)
        elif was.name != name and was.declared:
            yield Change("metrics", "metric", was.name, name, _anchor(metric))
    kept = {names.get(name, name) for name in now}
    for name, metric in plans.items():
        if name not in kept and metric.declared:
            yield Change("metrics", f"metric {name}", show_term(metric.term), None)
    goal, new_goal = old.goal.name, new.goal.name
    if names.get(new_goal, new_goal) != goal:
        message, hint = f"the goal was `{goal}` and is `{new_goal}`", "do not compare scores of the two versions"
        yield Change("metrics", "goal", goal, new_goal, _anchor(new.goal), "goal-changed", message, hint)
    for name, one, other in sorted(entries_that_differ(old.rubrics, new.rubrics), key=lambda each: each[0]):
        anchor = Anchor("rubric", name) if other is not None else Anchor()
        yield Change("metrics", f"rubric {name}", _brief(one), _brief(other), anchor)


def _deciding_metrics(plan: Plan) -> frozenset[str]:
    """Return the metrics that the goal, a gate or a require reads, directly or through others."""
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


def _redefined(old: MetricPlan, new: MetricPlan, *, is_deciding: bool) -> Change:
    kind = "goal" if new.goal else "metric"
    before, after = (
        f"{show_term(each.term)}, {render_value(each.low, each.unit)} to {render_value(each.high, each.unit)}"
        for each in (old, new)
    )
    changed = "what it reads changed" if before == after else f"`{before}` became `{after}`"
    message = f"the {kind} `{new.name}` measures something else: {changed}"
    hint = "do not compare scores of the two versions; give the new measure another name"
    rule = "metric-redefined" if is_deciding else None
    subject = f"{kind} {new.name}"
    return Change("metrics", subject, before, after, _anchor(new), rule, message, hint, stated="unordered")


def _brief(rubric: RubricPlan | None) -> str | None:
    """Return the beginning of the questions and levels of a rubric."""
    if rubric is None:
        return None
    if rubric.each is not None:
        return f"each of `{rubric.each}`"
    parts = [
        each.question or "; ".join(f"{level} {meaning}" for level, meaning in each.levels) for each in rubric.criteria
    ]
    return cut("; ".join(parts), 60)


def _anchor(metric: MetricPlan) -> Anchor:
    return Anchor("goal" if metric.goal else "metric", metric.name)


# ---- gates and requires ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Conditions:
    """The gates or the requires of one version; terms of a scope hold together: for steps, for slow updates."""

    by_name: dict[str, GatePlan | RequirePlan]
    scopes: tuple[tuple[Term, ...], ...]

    def where(self, condition: GatePlan | RequirePlan) -> list[int]:
        """Return the scopes in which a condition holds."""
        return [i for i, terms in enumerate(self.scopes) if any(term is condition.term for term in terms)]


def _required_verdict(before: str | None, after: str | None) -> Iterator[Change]:
    """Yield the change of the verdict that delivers the skill."""
    if before is not None and after is None:
        message = f"`require {before}` is gone: a skill is delivered with any verdict"
        hint = "keep it, or explain in the review why a skill no longer has to show a gain"
        yield Change("gates", "require", before, None, Anchor("require", before), "require-removed", message, hint)
    elif after is not None and before is None:
        yield Change("gates", "require", None, after, Anchor("require", after), stated="stricter")


def _axioms(old: Plan, new: Plan, names: Mapping[str, str]) -> Axioms:
    """Return the ranges of the metrics of both versions: the wider one if they differ."""
    found = {metric.name: Interval(metric.low, metric.high) for metric in old.metrics}
    for metric in new.metrics:
        name, own = names.get(metric.name, metric.name), Interval(metric.low, metric.high)
        before = found.get(name, own)
        found[name] = Interval(min(before.low, own.low), max(before.high, own.high))
    return Axioms(found)


def _gates(gates: tuple[GatePlan, ...]) -> _Conditions:
    scopes = (tuple(gate.term for gate in gates_for(gates, slow=slow)) for slow in (False, True))
    return _Conditions({gate.name: gate for gate in gates}, tuple(scopes))


def _requires(requires: Sequence[RequirePlan]) -> _Conditions:
    return _Conditions({each.name: each for each in requires}, (tuple(each.term for each in requires),))


def _condition_changes(kind: str, old: _Conditions, new: _Conditions, axioms: Axioms) -> Iterator[Change]:
    reported: set[str] = set()
    for name, each in old.by_name.items():
        if not all(as_strict(new.scopes[i], each.term, axioms) for i in old.where(each)):
            change, twin = _weakened(kind, old, new, each, axioms)
            reported |= {name, twin} if twin is not None else {name}
            yield change
    for name, each in new.by_name.items():
        if name in reported or all(as_strict(old.scopes[i], each.term, axioms) for i in new.where(each)):
            continue
        before = _condition_text(old.by_name.get(name))
        yield Change("gates", f"{kind} {name}", before, _condition_text(each), Anchor(kind, name), stated="stricter")


def _weakened(
    kind: str, old: _Conditions, new: _Conditions, was: GatePlan | RequirePlan, axioms: Axioms
) -> tuple[Change, str | None]:
    """Return the change of a condition that no longer holds, and the name of its replacement."""
    name, before = was.name, _condition_text(was)
    twin = new.by_name.get(name) or next(
        (
            each
            for each in new.by_name.values()
            if each.name not in old.by_name and as_strict([was.term], each.term, axioms)
        ),
        None,
    )
    after = _condition_text(twin)
    if twin is None:
        rule, message = f"{kind}-removed", f"the {kind} `{name}` is gone: `{before}`"
    else:
        called = f"`{name}`" if twin.name == name else f"`{name}`, now `{twin.name}`,"
        if was.term == twin.term:
            rule, message = f"{kind}-loosened", f"the {kind} `{name}` holds for less than before: {_scope(was, twin)}"
        elif as_strict([was.term], twin.term, axioms):
            rule, message = f"{kind}-loosened", f"the {kind} {called} admits more: `{before}` became `{after}`"
        else:
            rule = f"{kind}-changed"
            message = f"the {kind} {called} changed, and is not provably as strict: `{before}` became `{after}`"
    hint = "keep it as strict, or explain in the review why a change no longer has to prove it"
    anchor = Anchor(kind, twin.name if twin else name)
    return Change("gates", f"{kind} {name}", before, after, anchor, rule, message, hint), twin.name if twin else None


def _scope(was: GatePlan | RequirePlan, twin: GatePlan | RequirePlan) -> str:
    if getattr(twin, "for_", None) == "slow" and getattr(was, "for_", None) is None:
        return "only for slow updates"
    return "slow updates now have separate gates, which do not require it"


def _condition_text(condition: GatePlan | RequirePlan | None) -> str | None:
    if condition is None:
        return None
    slow = getattr(condition, "for_", None) == "slow"
    return show_term(condition.term) + (" for slow updates" if slow else "")
