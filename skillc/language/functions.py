"""Check functions of the program and of modules once for any argument, and expand them at each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Label
from skillc.diagnostics.suggest import spelling_hint
from skillc.gates.functions import Level
from skillc.gates.intervals import EVERYTHING
from skillc.gates.terms import (
    FieldTerm,
    ListTerm,
    MeanTerm,
    MetricTerm,
    Operation,
    Term,
    TextConstant,
    WordTerm,
    size_and_depth,
)
from skillc.gates.units import decimal, describe_unit
from skillc.language import arguments
from skillc.language.checked import FieldType
from skillc.language.modules import Module, hint_elsewhere
from skillc.language.scope import Binding, Scope, unknown_module
from skillc.language.statements import KindDeclaration
from skillc.language.types import (
    ArgumentType,
    Broken,
    ColumnType,
    ConditionType,
    FileErrors,
    NumberType,
    Type,
    Typed,
    bare,
)
from skillc.syntax import nodes
from skillc.syntax.source import Span
from skillc.text import counted, listed

if TYPE_CHECKING:
    from skillc.language.expressions import Lowering

UNIT_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "share": "",
        "number": "",
        "tokens": "tokens",
        "s": "s",
        "seconds": "s",
        "dollars": "$",
        "bytes": "bytes",
        "examples": "examples",
        "steps": "steps",
        "epochs": "epochs",
        "turns": "turns",
        "rounds": "rounds",
    }
)
"""Unit of each type of parameter that is a number."""

_READERS: Mapping[str, Callable[[Lowering, nodes.Expression], Typed]] = MappingProxyType(
    {
        "metric": arguments.metric_value,
        "claim": arguments.claim,
        "condition": arguments.condition,
        "text": arguments.prose,
        "texts": arguments.texts,
        "field": arguments.group,
        "rubric": arguments.judged,
        "model": arguments.model,
        "skill": arguments.skill,
    }
)

PARAMETER_TYPES = (*_READERS, *UNIT_TYPES)

_DEEPEST = 16
_MOST_CALLS = 5000
_LARGEST = 5000
_DEEPEST_TERM = 60
_SMALLER = "give the parts names, as metrics of their own"


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A metric or gate with parameters; `label` is its name at the call."""

    module: Module
    decl: KindDeclaration
    label: str

    @property
    def name(self) -> str:
        """The name in its own file."""
        assert self.decl.name is not None
        return self.decl.name.text

    @property
    def level(self) -> Level:
        """The level at which it can be called."""
        return Level.RUN if self.decl.kind.word == "gate" else Level.EXAMPLE

    @property
    def parameters(self) -> tuple[nodes.Parameter, ...]:
        """The declared parameters."""
        return self.decl.node.parameters or ()

    @property
    def body(self) -> nodes.Expression:
        """The expression that a call is replaced by."""
        assert self.decl.node.value is not None
        return self.decl.node.value

    def errors(self, scope: Scope) -> FileErrors:
        """Report errors in its declaration."""
        return FileErrors(scope.report, self.module.source)


def own_function(low: Lowering, called: nodes.Expression) -> UserFunction | None:
    """Look up the called function in this file or a module; None for a name that may be a builtin."""
    scope = low.scope
    if isinstance(called, nodes.Reference):
        decl = scope.module.functions().get(called.name)
        return None if decl is None else UserFunction(scope.module, decl, called.name)
    if not (isinstance(called, nodes.Member) and isinstance(called.of, nodes.Reference)):
        return None
    module = scope.module.alias(called.of.name)
    if module is None:
        raise unknown_module(scope, called.of, scope.module.uses)
    decl = module.functions().get(called.name.text)
    if decl is not None:
        return UserFunction(module, decl, f"{called.of.name}.{called.name.text}")
    if called.name.text in module.dropped:
        raise Broken
    name, place, owner = called.name.text, called.name.span, called.of.name
    if name in module.names():
        hint = "only metrics and gates with parameters can be called"
        raise scope.fail("SK105", place, f"`{owner}.{name}` is not a function", hint)
    found = hint_elsewhere(name, scope.module, module)
    known = module.functions()
    raise scope.unknown("SK105", "function", name, place, known, owner=owner, instead=found, ordered=True)


# ---- any argument ---------------------------------------------------------------------------------


def verify(low: Lowering, function: UserFunction) -> bool:
    """Check a body for any argument, once; return False if it has an error."""
    scope, verified = low.scope, function.module.verified
    if function.name in verified:
        if verified[function.name] is None:
            verified[function.name] = False
            assert function.decl.name is not None
            message, hint = f"`{function.name}` calls itself", "recursion is not supported"
            function.errors(scope).add("SK212", function.decl.name.span, message, hint)
        return bool(verified[function.name])
    verified[function.name] = None
    try:
        parameters = {p.name.text: _placeholder(scope, function, p) for p in function.parameters}
        _distinct(scope, function)
        _defaults(low, function)
        body = replace(
            scope,
            module=function.module,
            level=function.level,
            parameters=parameters,
            site=None,
            generic=True,
            inside=(*scope.inside, (function.module.key, function.name)),
        )
        _lower_body(low.within(body, low.depth), function)
    except Broken:
        verified[function.name] = False
        return False
    # Still None unless the body contains a call of the function.
    verified[function.name] = verified[function.name] is None
    return bool(verified[function.name])


def _lower_body(low: Lowering, function: UserFunction) -> Typed:
    if function.level is Level.RUN:
        typed, truth = low.condition(function.body)
        return Typed(typed.term, truth)
    typed, quantity = low.number(function.body)
    return Typed(typed.term, quantity) if not isinstance(typed.type, ConditionType) else typed


def _type(scope: Scope, function: UserFunction, parameter: nodes.Parameter) -> str:
    name, written, errors = parameter.name.text, parameter.type, function.errors(scope)
    if written is None:
        hint = f"write `{name}: metric`, or `{name}: share`"
        raise errors.add("SK215", parameter.name.span, f"the parameter `{name}` has no type", hint)
    if isinstance(written, nodes.NamedType) and written.item is None and written.name in PARAMETER_TYPES:
        return written.name
    word = written.name if isinstance(written, nodes.NamedType) else errors.source.slice(written.span)
    hint = spelling_hint(word, PARAMETER_TYPES) or f"valid options: {listed(PARAMETER_TYPES[:11])}, or a unit"
    raise errors.add("SK216", written.span, f"`{word}` is not a type of parameters", hint)


def _placeholder(scope: Scope, function: UserFunction, parameter: nodes.Parameter) -> Binding:
    """A value that represents any argument of a parameter's type."""
    kind, name = _type(scope, function, parameter), f"<{parameter.name.text}>"
    if kind in UNIT_TYPES:
        return Binding(kind, Typed(FieldTerm(name), NumberType(UNIT_TYPES[kind], EVERYTHING, Level.LITERAL)))
    text = ColumnType(name, "output", FieldType("text"))
    claim = Operation(">", (MeanTerm("candidate", name), MeanTerm("incumbent", name)))
    placeholders: dict[str, tuple[Term, Type]] = {
        "metric": (MetricTerm(name), NumberType(None, EVERYTHING, Level.EXAMPLE)),
        "claim": (claim, ConditionType(Level.RUN)),
        "condition": (MetricTerm(name), ConditionType(Level.EXAMPLE)),
        "text": (FieldTerm(name), text),
        "texts": (ListTerm((TextConstant(name),)), ArgumentType()),
        "field": (FieldTerm(name), text),
        "rubric": (TextConstant(name), ArgumentType()),
        "model": (WordTerm(name), ArgumentType()),
        "skill": (WordTerm(name), ArgumentType()),
    }
    return Binding(kind, Typed(*placeholders[kind]))


def _distinct(scope: Scope, function: UserFunction) -> None:
    errors = function.errors(scope)
    seen: dict[str, nodes.Parameter] = {}
    for parameter in function.parameters:
        first = seen.setdefault(parameter.name.text, parameter)
        if first is not parameter:
            label = (Label(errors.source, first.name.span, "first declared here"),)
            message = f"two parameters are named `{parameter.name.text}`"
            raise errors.add("SK203", parameter.name.span, message, "rename one of them", secondary=label)


def _defaults(low: Lowering, function: UserFunction) -> None:
    """Check that each default is a literal or `none`, of the parameter's type."""
    for parameter in function.parameters:
        default = parameter.default
        if default is None or arguments.is_none(default):
            continue
        unsigned = default.operand if isinstance(default, nodes.Unary) else default
        texts = (nodes.String, nodes.Text) if unsigned is default else ()
        if not isinstance(unsigned, (nodes.Quantity, nodes.Money, *texts)):
            message, hint = "a default must be a literal or `none`", "pass the expression at the call"
            raise function.errors(low.scope).add("SK313", default.span, message, hint)
        inside = replace(low.scope, module=function.module, level=function.level, parameters={}, site=None)
        _bind(low.within(inside, 0), function, parameter, default)


# ---- a call ---------------------------------------------------------------------------------------


def expand(low: Lowering, node: nodes.Call, function: UserFunction) -> Typed:
    """Expand a call to the body with the arguments in place of the parameters."""
    scope = low.scope
    # Compared before `verify`, which recurses into the functions that the body calls.
    too_deep = len(scope.inside) >= _DEEPEST
    if function.module.verified.get(function.name) is False or not (too_deep or verify(low, function)):
        raise Broken
    if function.level is not scope.level:
        raise wrong_level(scope, node, function.label, node.span)
    if not scope.generic:
        function.module.reached.add(("function", function.name))
    scope.effort.expansions += 1
    if too_deep or scope.effort.expansions > _MOST_CALLS:
        raise scope.fail("SK320", node.span, "this call expands to too many calls of functions", _SMALLER)
    bound = _bindings(low, node, function)
    inside = replace(
        scope,
        module=function.module,
        parameters=bound,
        site=scope.site if scope.generic else scope.site or Label(scope.source, node.span),
        inside=(*scope.inside, (function.module.key, function.name)),
    )
    typed = _lower_body(low.within(inside, low.depth), function)
    count, depth = size_and_depth(typed.term)
    if count > _LARGEST or depth > _DEEPEST_TERM:
        raise scope.fail("SK320", node.span, "this call expands to too large an expression", _SMALLER)
    return typed


def wrong_level(scope: Scope, node: nodes.Call, name: str, span: Span) -> Broken:
    """Report a function of metrics in a gate, or a function of gates in a metric."""
    if scope.level is Level.RUN:
        hint = f"make it a metric: `metric m = {scope.text(node.span)}`, and write `candidate.m`"
        message = f"`{name}` measures one rollout, and a gate compares whole runs"
    else:
        message, hint = f"`{name}` compares skills, and a metric measures one rollout", "call it in a gate"
    return scope.fail("SK306", span, message, hint)


def _bindings(low: Lowering, node: nodes.Call, function: UserFunction) -> dict[str, Binding]:
    given = _given(low.scope, node, function)
    bound: dict[str, Binding] = {}
    broken = False
    for parameter in function.parameters:
        name = parameter.name.text
        if name in given:
            try:
                # One level more than other operands: a call of a function takes twice the stack.
                bound[name] = _bind(low.within(low.scope, low.depth + 1), function, parameter, given[name])
            except Broken:
                broken = True
        elif parameter.default is not None:
            inside = replace(low.scope, module=function.module, parameters={})
            bound[name] = _bind(low.within(inside, 0), function, parameter, parameter.default)
        else:
            message = f"`{function.label}` needs `{name}`"
            raise low.scope.fail("SK310", node.span, message, f"write `{_usage(function)}`")
    if broken:
        raise Broken
    return bound


def _given(scope: Scope, node: nodes.Call, function: UserFunction) -> dict[str, nodes.Expression]:
    names = [p.name.text for p in function.parameters]
    given: dict[str, nodes.Expression] = {}
    for index, argument in enumerate(node.arguments):
        if argument.name is None and index >= len(names):
            takes = counted(len(names), "argument")
            message = f"`{function.label}` takes {takes}, not {len(node.arguments)}"
            raise scope.fail("SK310", argument.span, message, f"write `{_usage(function)}`")
        name = argument.name.text if argument.name else names[index]
        if name not in names:
            assert argument.name is not None
            raise scope.unknown("SK310", "parameter", name, argument.name.span, names, owner=function.label)
        if name in given:
            raise scope.fail("SK310", argument.span, f"`{name}` is passed twice", "keep one of them")
        given[name] = argument.value
    return given


def _usage(function: UserFunction) -> str:
    parts = [p.name.text if p.default is None else f"{p.name.text} = ..." for p in function.parameters]
    return f"{function.label}({', '.join(parts)})"


def _bind(low: Lowering, function: UserFunction, parameter: nodes.Parameter, node: nodes.Expression) -> Binding:
    scope = low.scope
    kind = _type(scope, function, parameter)
    outer = (scope.parameters or {}).get(node.name) if isinstance(node, nodes.Reference) else None
    if arguments.is_none(node) or (outer is not None and outer.typed is None):
        return Binding(kind, None)
    if kind not in UNIT_TYPES:
        return Binding(kind, _READERS[kind](low, node))
    typed, quantity = low.number(node)
    unit = UNIT_TYPES[kind]
    if quantity.unit is not None and quantity.unit != unit:
        wanted = describe_unit(unit) if unit else f"a {kind}"
        message = f"`{parameter.name.text}` takes {wanted}, not {describe_unit(quantity.unit)}"
        hint = None
        if unit and isinstance(node, nodes.Quantity) and node.unit is None:
            shown = scope.text(node.span)
            hint = f"write `${shown}`" if unit == "$" else f"write `{shown} {unit}`"
        raise scope.fail("SK302", node.span, message, hint)
    value, high = quantity.range.bounds
    is_literal = kind == "share" and quantity.level is Level.LITERAL
    if is_literal and value is not None and value == high and abs(value) > 1:
        hint = f"did you mean `{decimal(value)}%`?" if bare(node) else "a share is at most 100%"
        raise scope.fail("SK311", node.span, f"`{parameter.name.text}` is a share, at most 1", hint)
    return Binding(kind, Typed(typed.term, quantity))
