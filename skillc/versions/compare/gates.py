"""Gates and requires: which of them ask less of a change than they did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from skillc.gates.intervals import Interval
from skillc.gates.prove import Axioms, as_strict
from skillc.gates.stages import gates_for
from skillc.gates.terms import Term, show_term
from skillc.plan.schema import GatePlan, Plan, RequirePlan
from skillc.versions.change import Anchor, Change
from skillc.versions.compare.metrics import renamed, renamed_metrics
from skillc.versions.version import Version

Kind = Literal["gate", "require"]
_HINT = "keep it as strict, or tell the reviewer why a change need not prove it any more"


@dataclass(frozen=True, slots=True)
class _Conditions:
    """The conditions of one version.

    Attributes:
        scopes: the terms that hold together: for steps, for slow updates.
    """

    each: dict[str, GatePlan | RequirePlan]
    scopes: tuple[tuple[Term, ...], ...]

    def where(self, condition: GatePlan | RequirePlan) -> list[int]:
        """The scopes in which a condition holds."""
        return [i for i, terms in enumerate(self.scopes) if any(term is condition.term for term in terms)]


def gate_changes(old: Version, new: Version) -> Iterator[Change]:
    """What a candidate must prove."""
    names = renamed_metrics(old, new)
    gates = [gate.model_copy(update={"term": renamed(gate.term, names)}) for gate in new.plan.gates]
    plan = new.plan.model_copy(update={"gates": tuple(gates)})
    yield from _changes("gate", _of_gates(old.plan), _of_gates(plan), axioms_of(old.plan, new.plan, names))


def require_changes(old: Version, new: Version) -> Iterator[Change]:
    """What has to hold before the first step, and the verdict that delivers the skill."""
    names = renamed_metrics(old, new)
    now = [each.model_copy(update={"term": renamed(each.term, names)}) for each in new.plan.requires]
    axioms = axioms_of(old.plan, new.plan, names)
    yield from _changes("require", _of_requires(old.plan.requires), _of_requires(now), axioms)
    yield from _verdict_changes(old.plan.required_verdict, new.plan.required_verdict)


def _verdict_changes(old: str | None, new: str | None) -> Iterator[Change]:
    if old is not None and new is None:
        message = f"`require {old}` is gone: a skill is delivered with any verdict"
        place, hint = (
            Anchor("require", old),
            "keep it, or tell the reviewer why a skill need not show a gain any more",
        )
        yield Change("gates", "require", old, None, "looser", "require-removed", message, hint, place=place)
    elif new is not None and old is None:
        yield Change("gates", "require", None, new, "stricter", place=Anchor("require", new))


def axioms_of(old: Plan, new: Plan, names: dict[str, str]) -> Axioms:
    """What is known of the metrics of both versions: the wider range where they differ."""
    found = {metric.name: Interval(metric.low, metric.high) for metric in old.metrics}
    for metric in new.metrics:
        name, own = names.get(metric.name, metric.name), Interval(metric.low, metric.high)
        before = found.get(name, own)
        found[name] = Interval(min(before.low, own.low), max(before.high, own.high))
    return Axioms(found)


def _of_gates(plan: Plan) -> _Conditions:
    scopes = (tuple(gate.term for gate in gates_for(plan.gates, slow=slow)) for slow in (False, True))
    return _Conditions({gate.name: gate for gate in plan.gates}, tuple(scopes))


def _of_requires(requires: Sequence[RequirePlan]) -> _Conditions:
    return _Conditions({each.name: each for each in requires}, (tuple(each.term for each in requires),))


def _changes(kind: Kind, old: _Conditions, new: _Conditions, axioms: Axioms) -> Iterator[Change]:
    weak = {
        name: lost
        for name, each in old.each.items()
        if (lost := [i for i in old.where(each) if not as_strict(new.scopes[i], each.term, axioms)])
    }
    told: set[str] = set()
    for name in weak:
        change, twin = _weakened(kind, old, new, name, axioms)
        told |= {name, twin} if twin is not None else {name}
        yield change
    for name, each in new.each.items():
        where = new.where(each)
        if name in told or all(as_strict(old.scopes[i], each.term, axioms) for i in where):
            continue
        before = old.each.get(name)
        yield Change("gates", f"{kind} {name}", _shown(before), _shown(each), "stricter", place=Anchor(kind, name))


def _weakened(kind: Kind, old: _Conditions, new: _Conditions, name: str, axioms: Axioms) -> tuple[Change, str | None]:
    """What became of a condition that is no longer kept, and the one that took its place."""
    was = old.each[name]
    twin = new.each.get(name) or next(
        (each for each in new.each.values() if each.name not in old.each and as_strict([was.term], each.term, axioms)),
        None,
    )
    subject = f"{kind} {name}"
    if twin is None:
        message = f"the {kind} `{name}` is gone: `{_shown(was)}`"
        return Change(
            "gates",
            subject,
            _shown(was),
            None,
            "looser",
            f"{kind}-removed",
            message,
            _HINT,
            place=Anchor(kind, name),
        ), None
    place, after = Anchor(kind, twin.name), _shown(twin)
    called = f"`{name}`" if twin.name == name else f"`{name}`, now `{twin.name}`,"
    if was.term == twin.term:
        message = f"the {kind} `{name}` holds for less than it did: {_scope(was, twin)}"
        change = Change("gates", subject, _shown(was), after, "looser", f"{kind}-loosened", message, _HINT, place=place)
    elif as_strict([was.term], twin.term, axioms):
        message = f"the {kind} {called} lets more through: `{_shown(was)}` became `{after}`"
        change = Change("gates", subject, _shown(was), after, "looser", f"{kind}-loosened", message, _HINT, place=place)
    else:
        message = f"the {kind} {called} changed, and can't be shown to be as strict: `{_shown(was)}` became `{after}`"
        rule = f"{kind}-changed"
        change = Change("gates", subject, _shown(was), after, "unordered", rule, message, _HINT, place=place)
    return change, twin.name


def _scope(was: GatePlan | RequirePlan, twin: GatePlan | RequirePlan) -> str:
    if getattr(twin, "for_", None) == "slow" and getattr(was, "for_", None) is None:
        return "for slow updates only"
    return "slow updates have gates of their own now, which do not ask for it"


def _shown(condition: GatePlan | RequirePlan | None) -> str | None:
    if condition is None:
        return None
    slow = getattr(condition, "for_", None) == "slow"
    return show_term(condition.term) + (" for slow updates" if slow else "")
