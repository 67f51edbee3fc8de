"""Names in expressions: position picks the namespace, and a parametric body sees its parameters only."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NoReturn, cast

from skillc.diagnostics.diagnostic import Fix
from skillc.gates.functions import NAMES, Level
from skillc.gates.terms import FieldTerm, MeanTerm, State, StateTerm
from skillc.language.checked import CheckedMetric
from skillc.language.scope import STATES, Bound
from skillc.language.types import Column, Thing, Truth, Typed
from skillc.language.values import metric_quantity, metric_value
from skillc.syntax import nodes
from skillc.syntax.source import Span

if TYPE_CHECKING:
    from skillc.language.expressions import Lowering


def lower_name(low: Lowering, node: nodes.Reference) -> Typed:
    """The meaning of a bare name.

    Raises:
        Broken: it has none here; the error has been reported.
    """
    scope, name = low.scope, node.name
    if scope.parameters is not None and name in scope.parameters:
        return _parameter(low, node, scope.parameters[name])
    if name in STATES and scope.level is Level.RUN:
        return Typed(StateTerm(cast("State", name)), Thing("state", name))
    if scope.parameters is not None:
        return _captured(low, node)
    if scope.level is Level.RUN:
        _in_gate(low, node)
    if name in scope.facts.columns:
        return Typed(FieldTerm(name), scope.facts.columns[name])
    if name in scope.metrics.names:
        return metric_value(scope.metrics.metric(name, low.depth))
    raise _unknown_value(low, node)


def _parameter(low: Lowering, node: nodes.Reference, bound: Bound) -> Typed:
    if bound.typed is None:
        raise low.scope.fail("SK311", node.span, f"`{node.name}` is `none` here, where a value is needed")
    if low.scope.level is Level.RUN:
        if bound.type == "metric":
            _bare(low, node)
        if isinstance(bound.typed.type, Column) or bound.typed.type == Truth(Level.EXAMPLE):
            raise low.scope.fail(
                "SK306", node.span, f"`{node.name}` belongs to one example, and a gate sees a whole run"
            )
    return bound.typed


def _captured(low: Lowering, node: nodes.Reference) -> Typed:
    scope, name = low.scope, node.name
    known = list(scope.parameters or ())
    if name in scope.facts.columns or name in scope.metrics.names:
        hint = f"make it a parameter: `{name}: {'metric' if name in scope.metrics.names else 'text'}`"
        raise scope.fail("SK213", node.span, f"`{name}` stands outside this body, which sees its parameters only", hint)
    raise scope.unknown("SK204", "name", name, node.span, known)


def _in_gate(low: Lowering, node: nodes.Reference) -> NoReturn:
    scope, name = low.scope, node.name
    if name in scope.metrics.names:
        _bare(low, node)
    if name in scope.facts.columns:
        hint = "a gate speaks of whole skills: `candidate.metric`, or `by = field` in a function"
        raise scope.fail("SK306", node.span, f"`{name}` belongs to one example, and a gate sees a whole run", hint)
    _unknown_value(low, node)


def _bare(low: Lowering, node: nodes.Reference) -> NoReturn:
    name = node.name
    fix = Fix(Span(node.span.start, node.span.start), "candidate.", safe=False)
    message = f"`{name}` is measured on one rollout; a gate compares skills"
    raise low.scope.fail("SK217", node.span, message, f"write `candidate.{name}`", fix)


def _unknown_value(low: Lowering, node: nodes.Reference) -> NoReturn:
    scope, name = low.scope, node.name
    if name in scope.module.functions() or name in NAMES:
        raise low.scope.fail("SK204", node.span, f"`{name}` is a function", f"call it: `{name}(...)`")
    if name in STATES:
        _no_skills(low, node.span, name)
    if name in scope.module.uses:
        raise scope.fail("SK204", node.span, f"`{name}` is a module", f"write `{name}.name`")
    known = chain(() if scope.level is Level.RUN else scope.facts.columns, scope.metrics.names)
    if name in ("true", "false", "on", "off") and name not in scope.facts.broken:
        raise scope.fail(
            "SK204", node.span, f"there is no value `{name}`", "write the condition alone, or `not` before it"
        )
    raise scope.unknown("SK204", "name", name, node.span, known, ordered=True)


def _no_skills(low: Lowering, span: Span, name: str) -> NoReturn:
    hint = "a metric measures one rollout; compare skills in a gate"
    raise low.scope.fail("SK306", span, f"a metric can't see `{name}`", hint)


def lower_member(low: Lowering, node: nodes.Member) -> Typed:
    """The meaning of `state.metric`.

    Raises:
        Broken: it has none here; the error has been reported.
    """
    scope, of = low.scope, node.of
    if not isinstance(of, nodes.Reference):
        raise scope.fail("SK204", node.span, "only a state or a module has members", "write `candidate.metric`")
    if of.name in STATES:
        if scope.level is not Level.RUN:
            _no_skills(low, node.span, f"{of.name}.{node.name.text}")
        metric = _metric_of(low, node)
        return Typed(MeanTerm(cast("State", of.name), metric.name), metric_quantity(metric, Level.RUN))
    raise _of_module(low, node, of)


def _metric_of(low: Lowering, node: nodes.Member) -> CheckedMetric:
    scope, name = low.scope, node.name.text
    bound = scope.parameters.get(name) if scope.parameters is not None else None
    if bound is not None and bound.type == "metric" and bound.typed is not None:
        return low.made_metric(bound.typed, node.name.span)
    if scope.parameters is not None:
        if name in scope.metrics.names:
            hint = f"make it a parameter: `{name}: metric`"
            raise scope.fail(
                "SK213", node.name.span, f"`{name}` stands outside this body, which sees its parameters only", hint
            )
        metrics = [each for each, b in scope.parameters.items() if b.type == "metric"]
        raise scope.unknown("SK204", "metric", name, node.name.span, metrics)
    if name not in scope.metrics.names:
        if name in scope.facts.columns:
            hint = f"measure it: `metric m = exact_match({name})`, then write `{low.scope.shown(node.of.span)}.m`"
            raise scope.fail("SK204", node.name.span, f"`{name}` is a field, not a metric", hint)
        raise scope.unknown("SK204", "metric", name, node.name.span, scope.metrics.names, ordered=True)
    return scope.metrics.metric(name, low.depth)


def _of_module(low: Lowering, node: nodes.Member, of: nodes.Reference) -> NoReturn:
    from skillc.language.functions import unknown_module
    from skillc.language.modules import elsewhere

    scope, name = low.scope, node.name.text
    module = scope.module.alias(of.name)
    if module is None:
        if of.name in scope.facts.columns or of.name in scope.metrics.names:
            raise scope.fail("SK204", node.span, f"`{of.name}` has no members", f"write `{of.name}` alone")
        # A state that does not exist is as likely as a module that is not used.
        known = [*(STATES if scope.level is Level.RUN else ()), *scope.module.uses]
        raise unknown_module(scope, of, known, "name")
    shown = f"{of.name}.{name}"
    if name in module.functions():
        raise scope.fail("SK204", node.span, f"`{shown}` is a function", f"call it: `{shown}(...)`")
    if name not in module.names():
        found, known = elsewhere(name, scope.module, module), module.names()
        raise scope.unknown("SK105", "name", name, node.name.span, known, owner=of.name, instead=found, ordered=True)
    hint = "only what has parameters can be taken from another file"
    raise scope.fail("SK112", node.span, f"`{shown}` has no meaning in this program", hint)
