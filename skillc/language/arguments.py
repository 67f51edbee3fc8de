"""Arguments of functions: one reader for each kind of argument; the reference of functions quotes the docstrings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from skillc.diagnostics.diagnostic import Fix
from skillc.gates.functions import Level
from skillc.gates.terms import (
    Constant,
    FieldTerm,
    ListTerm,
    MeanTerm,
    MetricTerm,
    Operation,
    SkillState,
    StateTerm,
    TextConstant,
    WordTerm,
)
from skillc.gates.units import describe_unit
from skillc.language.kinds import STATES
from skillc.language.modules import hint_elsewhere
from skillc.language.scope import unknown_module
from skillc.language.types import ArgumentType, Broken, ColumnType, NumberType, TextType, Typed, metric_quantity
from skillc.syntax import nodes
from skillc.syntax.source import Span
from skillc.text import listed

if TYPE_CHECKING:
    from skillc.language.expressions import Lowering

Reader = Callable[["Lowering", nodes.Expression], Typed]

REFERENCES = ("gold", "initial")
"""What a judge may compare an output with."""

_GROUPS = ("text", "labels", "bool", "integer", "number")
"""Types of fields that examples can be grouped by."""


def word(node: nodes.Expression) -> str | None:
    """The name of an argument that is a bare word."""
    return node.name if isinstance(node, nodes.Reference) else None


def is_none(node: nodes.Expression) -> bool:
    """Whether an argument is the word `none`."""
    return word(node) == "none"


def _expected(low: Lowering, node: nodes.Expression, what: str, hint: str | None = None) -> Broken:
    return low.scope.fail("SK311", node.span, f"expected {what}, found `{low.scope.text(node.span)}`", hint)


def _quoted(node: nodes.Expression) -> Typed | None:
    return Typed(TextConstant(node.value), TextType()) if isinstance(node, nodes.String | nodes.Text) else None


def _bound(low: Lowering, node: nodes.Expression, kind: str) -> Typed | None:
    """The value of an argument that is a parameter of a type."""
    bound = (low.scope.parameters or {}).get(word(node) or "")
    return bound.typed if bound is not None and bound.type == kind else None


def _name_of(low: Lowering, node: nodes.Expression, kind: str, known: Iterable[str]) -> str:
    name = word(node)
    if name is not None:
        return name
    if (written := low.scope.hyphenated_name(node.span, known)) is not None:
        raise low.scope.fail("SK022", written.span, written.message, written.hint, written.fix)
    raise _expected(low, node, f"the name of a {kind}")


# ---- of one rollout -------------------------------------------------------------------------------


def column(low: Lowering, node: nodes.Expression) -> Typed:
    """Any field of task or data."""
    scope = low.scope
    name = word(node)
    if name is None:
        raise _expected(low, node, "a field")
    if scope.parameters is None and name not in scope.facts.columns and name not in scope.metrics.names:
        raise scope.unknown("SK204", "field", name, node.span, scope.facts.columns)
    typed = low.at(Level.EXAMPLE).lower(node)
    if not isinstance(typed.type, ColumnType):
        known = list(scope.facts.columns)[:6]
        hint = f"valid options: {listed(known)}" if known else None
        raise scope.fail("SK311", node.span, f"`{name}` is not a field", hint)
    return typed


def output(low: Lowering, node: nodes.Expression) -> Typed:
    """An output of the task."""
    typed = column(low, node)
    assert isinstance(typed.type, ColumnType)
    if typed.type.role != "output":
        known = [c.name for c in low.scope.facts.columns.values() if c.role == "output"]
        hint = f"valid options: {listed(known[:6])}" if known else None
        raise low.scope.fail("SK311", node.span, f"`{low.scope.text(node.span)}` is not an output", hint)
    return typed


def readable(low: Lowering, node: nodes.Expression) -> Typed:
    """A field that contains text."""
    typed = column(low, node)
    assert isinstance(typed.type, ColumnType)
    type_ = typed.type.type
    if type_.kind not in ("text", "labels", "json") and not (type_.kind == "list" and type_.item):
        raise low.scope.fail("SK311", node.span, f"`{low.scope.text(node.span)}` is not a field that contains text")
    return typed


def prose(low: Lowering, node: nodes.Expression) -> Typed:
    """A field, or a text in quotes."""
    return _quoted(node) or column(low, node)


def condition(low: Lowering, node: nodes.Expression) -> Typed:
    """A condition on one rollout."""
    return low.at(Level.EXAMPLE).condition(node)[0]


def metric_value(low: Lowering, node: nodes.Expression) -> Typed:
    """A metric, or an expression of example level; a condition counts as 0 or 1."""
    typed, quantity = low.at(Level.EXAMPLE).number(node)
    return Typed(typed.term, quantity)


def metric(low: Lowering, node: nodes.Expression) -> Typed:
    """A metric by name; an expression becomes one."""
    found = low.as_metric(metric_value(low, node), node.span)
    return Typed(MetricTerm(found.name), metric_quantity(found, Level.EXAMPLE))


# ---- of a run -------------------------------------------------------------------------------------


def mean(low: Lowering, node: nodes.Expression) -> Typed:
    """`state.metric`."""
    typed = low.lower(node)
    if not isinstance(typed.term, MeanTerm):
        raise _expected(low, node, "the mean of a metric", "write `candidate.metric`")
    return typed


def state(low: Lowering, node: nodes.Expression) -> Typed:
    """A skill of the run."""
    name = word(node)
    if name not in STATES:
        hint = f"valid options: {listed(STATES)}"
        if name in low.scope.facts.columns:
            hint = f"`{name}` is a field of one rollout: measure it in a metric, and compare `candidate.metric`"
        raise _expected(low, node, "a skill", hint)
    return Typed(StateTerm(cast("SkillState", name)), ArgumentType())


def candidate(low: Lowering, node: nodes.Expression) -> Typed:
    """The candidate alone."""
    typed = state(low, node)
    if typed.term != StateTerm("candidate"):
        raise low.scope.fail("SK311", node.span, "only the candidate changes", "write `change(candidate)`")
    return typed


def claim(low: Lowering, node: nodes.Expression) -> Typed:
    """A comparison of the means of one metric for two skills."""
    hint = "write `candidate.metric > incumbent.metric`"
    message = f"expected a comparison, found `{low.scope.text(node.span)}`"
    metric = _one_metric(low, node)
    if metric is not None:
        right = f"candidate.{metric} > incumbent.{metric}"
        raise low.scope.fail("SK316", node.span, message, f"write `{right}`", Fix(node.span, right, safe=False))
    typed = low.lower(node)
    term = typed.term
    if not (isinstance(term, Operation) and term.operator in ("<", "<=", ">", ">=")):
        raise low.scope.fail("SK316", node.span, message, hint)
    means = [operand for operand in term.operands if isinstance(operand, MeanTerm)]
    if len(means) != 2 or means[0].metric != means[1].metric:
        raise low.scope.fail("SK316", node.span, "a claim compares one metric of two skills", hint)
    return typed


def _one_metric(low: Lowering, node: nodes.Expression) -> str | None:
    """The metric of a claim that lacks its comparison: `correct`, or `candidate.correct`."""
    name = word(node)
    if isinstance(node, nodes.Member) and isinstance(node.of, nodes.Reference) and node.of.name in STATES:
        name = node.name.text
    return name if name in low.scope.metrics.names and name not in (low.scope.parameters or {}) else None


def group(low: Lowering, node: nodes.Expression) -> Typed:
    """A field that examples can be grouped by."""
    scope = low.scope
    name = _name_of(low, node, "field", scope.facts.columns)
    if scope.parameters is not None and name in scope.parameters:
        bound = scope.parameters[name]
        if bound.type == "field" and bound.typed is not None:
            return bound.typed
        raise scope.fail("SK311", node.span, f"`{name}` is not a field", f"declare the parameter as `{name}: field`")
    found = scope.facts.columns.get(name)
    if found is None or scope.parameters is not None:
        known = [c.name for c in scope.facts.columns.values() if c.role != "output"]
        raise scope.unknown("SK403", "field", name, node.span, known)
    problem = group_problem(name, found.role, found.type.kind)
    if problem is not None:
        raise scope.fail(problem[0], node.span, *problem[1:])
    return Typed(FieldTerm(name), found)


def group_problem(name: str, role: str, kind: str) -> tuple[str, str, str] | None:
    """Code, message and hint for a field that examples can't be grouped by."""
    if role == "output":
        hint = f'declare the gold answer as a field: `field gold_{name}: text {{ column = "{name}" }}`'
        return "SK403", f"`{name}` is an output, not a property of an example", hint
    if kind not in _GROUPS:
        hint = "group by a field of text, labels, bool or a number"
        return "SK404", f"examples can't be grouped by `{name}`, a field of type {kind}", hint
    return None


# ---- names and literals ---------------------------------------------------------------------------


def quantity(low: Lowering, node: nodes.Expression) -> Typed:
    """Any number of the level of the call."""
    typed, found = low.number(node)
    return Typed(typed.term, found)


def literal(low: Lowering, node: nodes.Expression) -> Typed:
    """A number literal."""
    typed, found = low.number(node)
    # In a parametric body a parameter may be bound to any literal.
    any_literal = low.scope.generic and found.level is Level.LITERAL
    if not isinstance(typed.term, Constant) and not any_literal:
        raise _expected(low, node, "a number literal")
    return Typed(typed.term, found)


def share(low: Lowering, node: nodes.Expression) -> Typed:
    """A number literal without a unit."""
    typed = literal(low, node)
    assert isinstance(typed.type, NumberType)
    if typed.type.unit:
        message = f"expected a plain number, found {describe_unit(typed.type.unit)}"
        raise low.scope.fail("SK302", node.span, message, "remove the unit")
    return typed


def examples(low: Lowering, node: nodes.Expression) -> Typed:
    """A whole number of examples, at least 1."""
    typed = literal(low, node)
    assert isinstance(typed.type, NumberType)
    if typed.type.unit != "examples" and not (low.scope.generic and typed.type.unit is None):
        message = f"expected a number of examples, found {describe_unit(typed.type.unit)}"
        raise low.scope.fail("SK302", node.span, message, "write `50 examples`")
    if isinstance(typed.term, Constant) and (typed.term.value < 1 or typed.term.value.denominator != 1):
        raise _expected(low, node, "a whole number of examples, at least 1")
    return typed


def texts(low: Lowering, node: nodes.Expression) -> Typed:
    """A list of quoted texts."""
    if (bound := _bound(low, node, "texts")) is not None:
        return bound
    items = node.items if isinstance(node, nodes.List) else ()
    found = [TextConstant(item.value) for item in items if isinstance(item, nodes.String)]
    if not found or len(found) != len(items):
        raise _expected(low, node, "a list of texts", 'write `["a", "b"]`')
    return Typed(ListTerm(tuple(found)), ArgumentType())


def phrases(low: Lowering, node: nodes.Expression) -> Typed:
    """Texts that another text may contain: in quotes, a list of them, or the content of a field."""
    if isinstance(node, nodes.List) or _bound(low, node, "texts") is not None:
        return texts(low, node)
    if (quoted := _quoted(node)) is not None:
        return quoted
    bound = _bound(low, node, "text")
    return bound if bound is not None and isinstance(bound.type, TextType) else readable(low, node)


def quoted(low: Lowering, node: nodes.Expression) -> Typed:
    """A text in quotes, which no field gives."""
    found = _quoted(node) or _bound(low, node, "text")
    if found is None or not isinstance(found.type, TextType):
        raise _expected(low, node, "a text in quotes", 'write `"..."`')
    return found


def tool(low: Lowering, node: nodes.Expression) -> Typed:
    """The name of a tool in quotes; one that the program declares, if all of its tools are functions."""
    found, known = quoted(low, node), low.scope.facts.tools
    if known is not None and isinstance(found.term, TextConstant) and found.term.value not in known:
        name = Span(node.span.start + 1, node.span.end - 1)
        raise low.scope.unknown("SK204", "tool", found.term.value, name, known)
    return found


def passed(low: Lowering, node: nodes.Expression) -> Typed:
    """An argument passed to your function after the example: the name of a field, a text, a number."""
    found = _quoted(node) or _bound(low, node, "text")
    if found is not None:
        return found
    parameters = low.scope.parameters
    return literal(low, node) if word(node) is None or word(node) in (parameters or ()) else column(low, node)


def function(low: Lowering, node: nodes.Expression) -> Typed:
    """`"module:function"`."""
    parts = node.value.split(":") if isinstance(node, nodes.String) else []
    names = [name for part in parts for name in part.split(".")]
    if len(parts) != 2 or "." in parts[1] or not all(name.isidentifier() for name in names):
        raise _expected(low, node, "the name of a function", 'write `python("module:function")`')
    package = low.scope.module.package
    if package is not None and names[0] != package.module:
        message = f"`{':'.join(parts)}` is not part of the package `{package.name}`"
        hint = f'a package calls only its own code: `python("{package.module}.module:function")`'
        raise low.scope.fail("SK120", node.span, message, hint)
    return Typed(TextConstant(":".join(parts)), TextType())


def judged(low: Lowering, node: nodes.Expression) -> Typed:
    """A rubric by name, or a text."""
    if (quoted := _quoted(node)) is not None:
        return quoted
    if isinstance(node, nodes.Member) and isinstance(node.of, nodes.Reference):
        return _rubric_of(low, node, node.of)
    return _named(low, node, "rubric", low.scope.facts.rubrics)


def _rubric_of(low: Lowering, node: nodes.Member, of: nodes.Reference) -> Typed:
    """Replace a rubric of a module by its text; one with a block is kept under its name, `std.judging.name`."""
    scope, name = low.scope, node.name.text
    module = scope.module.alias(of.name)
    if module is None:
        raise unknown_module(scope, of, scope.module.uses)
    rubrics = module.named("rubric")
    if name not in rubrics:
        found = hint_elsewhere(name, scope.module, module)
        raise scope.unknown("SK105", "rubric", name, node.name.span, sorted(rubrics), owner=of.name, instead=found)
    decl = rubrics[name]
    text = decl.node.value
    if decl.node.block is not None or not isinstance(text, nodes.String | nodes.Text):
        whole = f"{module.label}.{name}"
        if whole not in scope.effort.rubrics:
            # Only here: rubrics of modules are few, and entities import the readers of settings.
            from skillc.language.entities import Entities

            scope.effort.rubrics[whole] = Entities(scope.report, module).one(decl)
        return Typed(WordTerm(whole), ArgumentType())
    return Typed(TextConstant(text.value), TextType())


def model(low: Lowering, node: nodes.Expression) -> Typed:
    """A model's role."""
    return _named(low, node, "model", low.scope.facts.roles)


def models(low: Lowering, node: nodes.Expression) -> Typed:
    """A list of models' roles."""
    if not isinstance(node, nodes.List):
        raise _expected(low, node, "a list of models", "write `[role, role, role]`")
    return Typed(ListTerm(tuple(model(low, item).term for item in node.items)), ArgumentType())


def reference(low: Lowering, node: nodes.Expression) -> Typed:
    """`gold`, the right answer of the example, or `initial`, the output of the initial skill."""
    name = word(node)
    if name not in REFERENCES:
        raise _expected(low, node, "`gold` or `initial`", f"valid options: {listed(REFERENCES)}")
    return Typed(WordTerm(name), ArgumentType())


def skill(low: Lowering, node: nodes.Expression) -> Typed:
    """A skill of the program."""
    return _named(low, node, "skill", low.scope.facts.skills)


def _named(low: Lowering, node: nodes.Expression, kind: str, known: tuple[str, ...]) -> Typed:
    scope, name = low.scope, _name_of(low, node, kind, known)
    if (bound := _bound(low, node, kind)) is not None:
        return bound
    if scope.parameters is not None or name not in known:
        value = {"rubric": '"""..."""', "model": '"provider/name"'}.get(kind)
        otherwise = f"declare it: `{kind} {name} = {value}`" if value and not known else None
        raise scope.unknown("SK204", kind, name, node.span, known, otherwise=otherwise)
    return Typed(WordTerm(name), ArgumentType())


def _only(right: str) -> Reader:
    def read(low: Lowering, node: nodes.Expression) -> Typed:
        if word(node) != right:
            raise _expected(low, node, f"`{right}`", f"write `{right}`")
        return Typed(WordTerm(right), ArgumentType())

    return read


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "output": output,
        "readable": readable,
        "quantity": quantity,
        "literal": literal,
        "share": share,
        "examples": examples,
        "texts": texts,
        "phrases": phrases,
        "quoted": quoted,
        "tool": tool,
        "passed": passed,
        "function": function,
        "metric": metric,
        "mean": mean,
        "state": state,
        "candidate": candidate,
        "claim": claim,
        "field": group,
        "condition": condition,
        "judged": judged,
        "model": model,
        "models": models,
        "reference": reference,
        "skill": skill,
        "batch": _only("batch"),
        "run": _only("run"),
    }
)
"""By `takes` of a parameter."""
