"""Arguments of functions: one reader for each thing that a function can ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
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
from skillc.language.modules import elsewhere
from skillc.language.scope import unknown_module
from skillc.language.types import ArgumentType, ColumnType, NumberType, TextType, Typed, metric_quantity
from skillc.syntax import nodes
from skillc.text import listed

if TYPE_CHECKING:
    from skillc.language.expressions import Lowering

Reader = Callable[["Lowering", nodes.Expression], Typed]

GROUPS = ("text", "labels", "bool", "integer", "number")
"""Types of fields that examples can be grouped by."""


def word(node: nodes.Expression) -> str | None:
    """The bare word that an argument is."""
    return node.name if isinstance(node, nodes.Reference) else None


def is_none(node: nodes.Expression) -> bool:
    """Whether an argument is left out in so many words."""
    return word(node) == "none"


# ---- of one rollout -------------------------------------------------------------------------------


def column(low: Lowering, node: nodes.Expression) -> Typed:
    """Any field of task or data."""
    scope = low.scope
    name = word(node)
    if name is None:
        raise scope.fail("SK311", node.span, f"a field is needed here, not `{scope.shown(node.span)}`")
    if scope.parameters is None and name not in scope.facts.columns and name not in scope.metrics.names:
        raise scope.unknown("SK204", "field", name, node.span, scope.facts.columns)
    typed = low.at(Level.EXAMPLE).lower(node)
    if not isinstance(typed.type, ColumnType):
        raise scope.fail("SK311", node.span, f"a field is needed here, and `{name}` is none", _fields(low))
    return typed


def output(low: Lowering, node: nodes.Expression) -> Typed:
    """An output of the task."""
    typed = column(low, node)
    assert isinstance(typed.type, ColumnType)
    if typed.type.role != "output":
        known = [c.name for c in low.scope.facts.columns.values() if c.role == "output"]
        hint = f"the task answers {listed(known[:6])}" if known else None
        message = f"`{low.scope.shown(node.span)}` is given to the model, not answered by it"
        raise low.scope.fail("SK311", node.span, message, hint)
    return typed


def readable(low: Lowering, node: nodes.Expression) -> Typed:
    """A field that holds text."""
    typed = column(low, node)
    assert isinstance(typed.type, ColumnType)
    type_ = typed.type.type
    if type_.kind not in ("text", "labels", "json") and not (type_.kind == "list" and type_.item):
        raise low.scope.fail("SK311", node.span, f"`{low.scope.shown(node.span)}` holds no text")
    return typed


def prose(low: Lowering, node: nodes.Expression) -> Typed:
    """A field, or a text in quotes."""
    if isinstance(node, nodes.String | nodes.Text):
        return Typed(TextConstant(node.value), TextType())
    return column(low, node)


def condition(low: Lowering, node: nodes.Expression) -> Typed:
    """A condition on one rollout."""
    return low.at(Level.EXAMPLE).condition(node)[0]


def metric_value(low: Lowering, node: nodes.Expression) -> Typed:
    """A metric, or an expression of example level; a condition counts 0 or 1."""
    typed, quantity = low.at(Level.EXAMPLE).number(node)
    return Typed(typed.term, quantity)


def metric(low: Lowering, node: nodes.Expression) -> Typed:
    """A metric by name; an expression becomes one."""
    found = low.made_metric(metric_value(low, node), node.span)
    return Typed(MetricTerm(found.name), metric_quantity(found, Level.EXAMPLE))


# ---- of a run -------------------------------------------------------------------------------------


def mean(low: Lowering, node: nodes.Expression) -> Typed:
    """`state.metric`."""
    typed = low.lower(node)
    if not isinstance(typed.term, MeanTerm):
        message = f"the mean of a metric is needed here, not `{low.scope.shown(node.span)}`"
        raise low.scope.fail("SK311", node.span, message, "write `candidate.metric`")
    return typed


def state(low: Lowering, node: nodes.Expression) -> Typed:
    """A skill of the run."""
    name = word(node)
    if name not in STATES:
        shown = low.scope.shown(node.span)
        hint = "the skills are `candidate`, `incumbent`, `best`, `initial`"
        if name in low.scope.facts.columns:
            hint = f"`{shown}` belongs to one rollout; measure it in a metric, and read `candidate.metric`"
        raise low.scope.fail("SK311", node.span, f"a skill is needed here, not `{shown}`", hint)
    return Typed(StateTerm(cast("SkillState", name)), ArgumentType("state", name or ""))


def candidate(low: Lowering, node: nodes.Expression) -> Typed:
    """The candidate alone."""
    typed = state(low, node)
    if typed.term != StateTerm("candidate"):
        raise low.scope.fail("SK311", node.span, "only the candidate changes", "write `change(candidate)`")
    return typed


def claim(low: Lowering, node: nodes.Expression) -> Typed:
    """A written comparison of the means of one metric for two skills."""
    hint = "write `candidate.metric > incumbent.metric`"
    metric = _one_metric(low, node)
    if metric is not None:
        right = f"candidate.{metric} > incumbent.{metric}"
        message = f"a claim is a written comparison, and `{low.scope.shown(node.span)}` is none"
        raise low.scope.fail("SK316", node.span, message, f"write `{right}`", Fix(node.span, right, safe=False))
    typed = low.lower(node)
    term = typed.term
    if not (isinstance(term, Operation) and term.operator in ("<", "<=", ">", ">=")):
        message = f"a claim is a written comparison, and `{low.scope.shown(node.span)}` is none"
        raise low.scope.fail("SK316", node.span, message, hint)
    means = [operand for operand in term.operands if isinstance(operand, MeanTerm)]
    if len(means) != 2 or means[0].metric != means[1].metric:
        raise low.scope.fail("SK316", node.span, "a claim compares one metric of two skills", hint)
    return typed


def _one_metric(low: Lowering, node: nodes.Expression) -> str | None:
    """The metric without a comparison where one belongs: `correct`, or `candidate.correct`."""
    name = node.name if isinstance(node, nodes.Reference) else None
    if isinstance(node, nodes.Member) and isinstance(node.of, nodes.Reference) and node.of.name in STATES:
        name = node.name.text
    return name if name in low.scope.metrics.names and name not in (low.scope.parameters or {}) else None


def group(low: Lowering, node: nodes.Expression) -> Typed:
    """A field that examples can be grouped by."""
    scope, name = low.scope, word(node)
    if name is None and (written := scope.hyphenated_name(node.span, scope.facts.columns)) is not None:
        raise scope.fail("SK022", written.span, written.message, written.hint, written.fix)
    if name is None:
        raise scope.fail("SK311", node.span, f"the name of a field is needed here, not `{scope.shown(node.span)}`")
    if scope.parameters is not None and name in scope.parameters:
        bound = scope.parameters[name]
        if bound.type == "field" and bound.typed is not None:
            return bound.typed
        raise scope.fail("SK311", node.span, f"`{name}` is no field", f"declare the parameter as `{name}: field`")
    found = scope.facts.columns.get(name)
    known = [c.name for c in scope.facts.columns.values() if c.role != "output"]
    if found is None or scope.parameters is not None:
        raise scope.unknown("SK403", "field", name, node.span, known)
    if found.role == "output":
        hint = f'declare the gold answer as a field: `field gold_{name}: text {{ column = "{name}" }}`'
        raise scope.fail("SK403", node.span, f"`{name}` is what the model answers, no property of an example", hint)
    if found.type.kind not in GROUPS:
        message = f"`{name}` is of type {found.type.kind}, which examples can't be grouped by"
        raise scope.fail("SK404", node.span, message, f"group by a field of {', '.join(GROUPS[:3])} or a number")
    return Typed(FieldTerm(name), found)


# ---- names and literals ---------------------------------------------------------------------------


def quantity(low: Lowering, node: nodes.Expression) -> Typed:
    """Any number of the level of the call."""
    typed, found = low.number(node)
    return Typed(typed.term, found)


def literal(low: Lowering, node: nodes.Expression) -> Typed:
    """A number that is written out."""
    typed, found = low.number(node)
    # A parameter stands for whatever is written at the call.
    any_literal = low.scope.generic and found.level is Level.LITERAL
    if not isinstance(typed.term, Constant) and not any_literal:
        shown = low.scope.shown(node.span)
        raise low.scope.fail("SK311", node.span, f"a written number is needed here, not `{shown}`")
    return Typed(typed.term, found)


def share(low: Lowering, node: nodes.Expression) -> Typed:
    """A number without a unit that is written out."""
    typed = literal(low, node)
    assert isinstance(typed.type, NumberType)
    if typed.type.unit:
        message = f"a plain number is needed here, not {describe_unit(typed.type.unit)}"
        raise low.scope.fail("SK302", node.span, message, "remove the unit")
    return typed


def texts(low: Lowering, node: nodes.Expression) -> Typed:
    """A list of quoted texts."""
    if (bound := _bound(low, node, "texts")) is not None:
        return bound
    items = node.items if isinstance(node, nodes.List) else ()
    found = [TextConstant(item.value) for item in items if isinstance(item, nodes.String)]
    if not found or len(found) != len(items):
        raise low.scope.fail("SK311", node.span, "a list of texts is needed here", 'write `["a", "b"]`')
    return Typed(ListTerm(tuple(found)), ArgumentType("list"))


def phrases(low: Lowering, node: nodes.Expression) -> Typed:
    """Texts that another text may hold: in quotes, a list of them, or what a field holds."""
    if isinstance(node, nodes.List) or _bound(low, node, "texts") is not None:
        return texts(low, node)
    if isinstance(node, nodes.String | nodes.Text):
        return Typed(TextConstant(node.value), TextType())
    bound = _bound(low, node, "text")
    return bound if bound is not None and isinstance(bound.type, TextType) else readable(low, node)


def passed(low: Lowering, node: nodes.Expression) -> Typed:
    """What a function of the user's own is told besides the example: a field's name, a text, a number."""
    if isinstance(node, nodes.String | nodes.Text):
        return Typed(TextConstant(node.value), TextType())
    bound = _bound(low, node, "text")
    if bound is not None:
        return bound
    parameters = low.scope.parameters
    return literal(low, node) if word(node) is None or word(node) in (parameters or ()) else column(low, node)


def _bound(low: Lowering, node: nodes.Expression, kind: str) -> Typed | None:
    """What a parameter of a type stands for, where the argument is one."""
    bound = (low.scope.parameters or {}).get(word(node) or "")
    return bound.typed if bound is not None and bound.type == kind else None


def function(low: Lowering, node: nodes.Expression) -> Typed:
    """`"module:function"`."""
    parts = node.value.split(":") if isinstance(node, nodes.String) else []
    names = [name for part in parts for name in part.split(".")]
    if len(parts) != 2 or "." in parts[1] or not all(name.isidentifier() for name in names):
        hint = 'write `python("module:function")`'
        raise low.scope.fail("SK311", node.span, f"`{low.scope.shown(node.span)}` names no function", hint)
    package = low.scope.module.package
    if package is not None and names[0] != package.module:
        message = f"`{':'.join(parts)}` is no part of the package `{package.name}`"
        hint = f'a package calls its own code: `python("{package.module}.module:function")`'
        raise low.scope.fail("SK120", node.span, message, hint)
    return Typed(TextConstant(":".join(parts)), TextType())


def judged(low: Lowering, node: nodes.Expression) -> Typed:
    """A rubric by name, or a text of its own."""
    if isinstance(node, nodes.String | nodes.Text):
        return Typed(TextConstant(node.value), TextType())
    if isinstance(node, nodes.Member) and isinstance(node.of, nodes.Reference):
        return _rubric_of(low, node, node.of)
    return _named(low, node, "rubric", low.scope.facts.rubrics)


def _rubric_of(low: Lowering, node: nodes.Member, of: nodes.Reference) -> Typed:
    """A rubric of a module stands for its text, which is all that a judge reads of it."""
    scope, name = low.scope, node.name.text
    module = scope.module.alias(of.name)
    if module is None:
        raise unknown_module(scope, of, scope.module.uses)
    rubrics = module.named("rubric")
    if name not in rubrics:
        found = elsewhere(name, scope.module, module)
        raise scope.unknown("SK105", "rubric", name, node.name.span, sorted(rubrics), owner=of.name, instead=found)
    text = rubrics[name].node.value
    if not isinstance(text, nodes.String | nodes.Text):
        raise scope.fail("SK112", node.span, f"`{of.name}.{name}` has no text of its own")
    return Typed(TextConstant(text.value), TextType())


def model(low: Lowering, node: nodes.Expression) -> Typed:
    """A model's role."""
    return _named(low, node, "model", low.scope.facts.roles)


def skill(low: Lowering, node: nodes.Expression) -> Typed:
    """A skill of the program."""
    return _named(low, node, "skill", low.scope.facts.skills)


def _named(low: Lowering, node: nodes.Expression, kind: str, known: Sequence[str]) -> Typed:
    scope, name = low.scope, word(node)
    if name is None and (written := scope.hyphenated_name(node.span, known)) is not None:
        raise scope.fail("SK022", written.span, written.message, written.hint, written.fix)
    if name is None:
        raise scope.fail("SK311", node.span, f"the name of a {kind} is needed here, not `{scope.shown(node.span)}`")
    bound = scope.parameters.get(name) if scope.parameters is not None else None
    if bound is not None and bound.type == kind and bound.typed is not None:
        return bound.typed
    if scope.parameters is not None or name not in known:
        declared = {"rubric": '"""..."""', "model": '"provider/name"'}
        otherwise = f"declare it: `{kind} {name} = {declared[kind]}`" if kind in declared and not known else None
        raise scope.unknown("SK204", kind, name, node.span, known, otherwise=otherwise)
    return Typed(WordTerm(name), ArgumentType("word", name))


def only(right: str) -> Reader:
    """A word of the language, the only one that can stand there."""

    def read(low: Lowering, node: nodes.Expression) -> Typed:
        if word(node) != right:
            shown = low.scope.shown(node.span)
            raise low.scope.fail("SK311", node.span, f"`{shown}` has no meaning here", f"write `{right}`")
        return Typed(WordTerm(right), ArgumentType("word", right))

    return read


def _fields(low: Lowering) -> str | None:
    known = list(low.scope.facts.columns)[:6]
    return f"there is {listed(known)}" if known else None


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "output": output,
        "readable": readable,
        "quantity": quantity,
        "literal": literal,
        "share": share,
        "texts": texts,
        "phrases": phrases,
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
        "skill": skill,
        "batch": only("batch"),
        "run": only("run"),
    }
)
"""By what a builtin's parameter takes."""


def outside(value: NumberType) -> Fraction | None:
    """A written number that can't be a share; None for one that can, and for what is not written out."""
    low, high = value.range.bounds
    if value.level is Level.LITERAL and low is not None and low == high and abs(low) > 1:
        return low
    return None
