"""Lower calls of functions: read the arguments, and derive the unit and range of the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING

from skillc.diagnostics.diagnostic import Label
from skillc.gates.functions import (
    CONDITIONAL,
    EXAMPLE_FUNCTIONS,
    RUN_FUNCTIONS,
    Builtin,
    BuiltinParameter,
    Level,
    lookup,
)
from skillc.gates.intervals import EVERYTHING, UNIT, Interval
from skillc.gates.noisy import NOISY, rates_of
from skillc.gates.terms import CallTerm, Constant, FieldTerm, ListTerm, MetricTerm, Term, TextConstant, WordTerm, walk
from skillc.language.arguments import READERS, is_none
from skillc.language.checked import Unsupported
from skillc.language.functions import expand, own_function, wrong_level
from skillc.language.judges import MALFORMED, RubricProblem, read_rubric
from skillc.language.modules import hint_elsewhere
from skillc.language.rollouts import ONE_TURN, WITHOUT_FILES, WITHOUT_REWARD
from skillc.language.types import Broken, ColumnType, NumberType, Typed
from skillc.syntax import nodes
from skillc.text import counted, listed

if TYPE_CHECKING:
    from skillc.language.expressions import Lowering

# Functions that read a rollout even if no argument is an output.
_OF_ROLLOUTS = frozenset(
    {
        *("python", "opened", "judge", "reward", "turns", "seconds", "cost"),
        *("used", "calls", "order", "call_mentions", "file_contains"),
    }
)

_OF_TOOLS = "calls of tools", ONE_TURN, 'an agent has them: `rollout = react { tools = [python("module:function")] }`'
_REWARD = "reward", WITHOUT_REWARD, 'measure its output; `rollout = environment("module:Class")` has a reward'
_FILES = "files", WITHOUT_FILES, 'an agent in a workspace writes files: `rollout = command("...")`'
_LACKED: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    **dict.fromkeys(("used", "calls", "order", "call_mentions"), _OF_TOOLS),
    "reward": _REWARD,
    "file_contains": _FILES,
}
"""By function: what it reads, the kinds of rollouts without it, and a hint."""

Given = list[tuple[BuiltinParameter, nodes.Argument, Typed]]


def lower_call(low: Lowering, node: nodes.Call) -> Typed:
    """Lower a call."""
    own = own_function(low, node.function)
    if own is not None:
        return expand(low, node, own)
    scope = low.scope
    if not isinstance(node.function, nodes.Reference):
        raise scope.fail("SK205", node.function.span, "only a name can be called", "write `function(...)`")
    name = node.function.name
    builtin = lookup(name, scope.level)
    if builtin is None:
        raise _no_function(low, node, name)
    _needs_of_rollout(low, node, name)
    given = _arguments(low, node, builtin)
    arguments = tuple(typed.term for parameter, _, typed in given if not parameter.named)
    options = tuple((parameter.name, typed.term) for parameter, _, typed in given if parameter.named)
    quantity = _result(low, node, builtin, given)
    if name == NOISY:
        quantity = _corrected(low, node, CallTerm(name, arguments, options), quantity)
    if builtin.later and not scope.generic:
        place = scope.site or Label(scope.source, node.function.span)
        part = Unsupported(f"`{name}`", place.source, place.span, builtin.since, "leave it out")
        scope.effort.unsupported.append(part)
    return Typed(CallTerm(name, arguments, options), quantity)


def _needs_of_rollout(low: Lowering, node: nodes.Call, name: str) -> None:
    """Refuse a function of what no rollout of the program has: a reward, calls of tools, files."""
    scope = low.scope
    if name in _LACKED and not scope.generic and scope.facts.rollout in _LACKED[name][1]:
        what, _, hint = _LACKED[name]
        raise scope.fail("SK321", node.function.span, f"a rollout of `{scope.facts.rollout}` has no {what}", hint)


def _no_function(low: Lowering, node: nodes.Call, name: str) -> Broken:
    scope, span = low.scope, node.function.span
    if name in EXAMPLE_FUNCTIONS or name in RUN_FUNCTIONS:
        return wrong_level(scope, node, name, span)
    if name in scope.metrics.names:
        message = f"`{name}` is a metric without parameters"
        return scope.fail("SK205", span, message, f"write `{name}` without parentheses")
    known = chain(RUN_FUNCTIONS if scope.level is Level.RUN else EXAMPLE_FUNCTIONS, scope.module.functions())
    found = hint_elsewhere(name, scope.module)
    return scope.unknown("SK205", "function", name, span, known, instead=found, ordered=True)


# ---- arguments ------------------------------------------------------------------------------------


def _arguments(low: Lowering, node: nodes.Call, builtin: Builtin) -> Given:
    """Read the arguments in the order of the parameters, without those that are `none` or missing."""
    positional = [a for a in node.arguments if a.name is None]
    wanted = builtin.positional
    if builtin.many:
        wanted = wanted * max(2, len(positional))
    if builtin.rest is not None:
        wanted += (BuiltinParameter("argument", builtin.rest),) * (len(positional) - len(wanted))
    if len(positional) != len(wanted):
        raise _count(low, node, builtin, len(positional))
    pairs = list(zip(wanted, positional, strict=True)) + _options(low, node, builtin)
    given: Given = []
    broken = False
    # Not `low.every`: calls nest, and its frames would exhaust the stack earlier.
    for parameter, argument in pairs:
        if parameter.named and not parameter.required and _is_none(low, argument.value):
            continue
        try:
            given.append((parameter, argument, READERS[parameter.takes](low, argument.value)))
        except Broken:
            broken = True
    if broken:
        raise Broken
    return given


def _is_none(low: Lowering, node: nodes.Expression) -> bool:
    """Whether an option is `none` or a parameter bound to `none`."""
    parameters = low.scope.parameters or {}
    if isinstance(node, nodes.Reference) and node.name in parameters:
        return parameters[node.name].typed is None
    return is_none(node)


def _count(low: Lowering, node: nodes.Call, builtin: Builtin, found: int) -> Broken:
    wanted = len(builtin.positional)
    takes = "two or more arguments" if builtin.many else counted(wanted, "argument")
    takes = takes if wanted or builtin.many else "no arguments"
    message = f"`{builtin.name}` takes {takes}, not {found}"
    if found > wanted and builtin.options:
        return low.scope.fail("SK310", node.span, message, f"pass options by name: `{builtin.usage}`")
    return low.scope.fail("SK310", node.span, message, f"write `{builtin.usage}`")


def _options(low: Lowering, node: nodes.Call, builtin: Builtin) -> list[tuple[BuiltinParameter, nodes.Argument]]:
    named: dict[str, nodes.Argument] = {}
    known = {p.name: p for p in builtin.options}
    for argument in node.arguments:
        if argument.name is None:
            continue
        name = argument.name.text
        if name in named:
            raise low.scope.fail("SK310", argument.name.span, f"`{name}` is passed twice", "keep one of them")
        if name not in known:
            if not known:
                message = f"`{builtin.name}` takes no options"
                raise low.scope.fail("SK310", argument.name.span, message, f"write `{builtin.usage}`")
            raise low.scope.unknown("SK310", "option", name, argument.name.span, known, owner=builtin.name)
        named[name] = argument
    missing = [p for p in builtin.options if p.required and p.name not in named]
    if missing:
        hint = f"write `{builtin.usage}`"
        raise low.scope.fail("SK310", node.span, f"`{builtin.name}` needs `{missing[0].name} = ...`", hint)
    # In the order of the parameters, so that equal calls are equal terms.
    return [(known[p.name], named[p.name]) for p in builtin.options if p.name in named]


# ---- results --------------------------------------------------------------------------------------


def _result(low: Lowering, node: nodes.Call, builtin: Builtin, given: Given) -> NumberType:
    quantities = [typed.type for _, _, typed in given if isinstance(typed.type, NumberType)]
    if builtin.level is None:
        return _arithmetic(low, builtin, given, quantities)
    if builtin.name == "python":
        return _bounds(low, node, given)
    if builtin.name in _CHECKS:
        _CHECKS[builtin.name](low, node, given)
    unit = quantities[0].unit if builtin.unit is None else builtin.unit
    found = builtin.range_of([quantity.range for quantity in quantities])
    limit = _limit(low, builtin, given)
    return NumberType(unit, found if limit is None else Interval(Fraction(0), limit), builtin.level)


def _limit(low: Lowering, builtin: Builtin, given: Given) -> Fraction | None:
    """The upper bound that the program declares for the result of a function, if any."""
    field = given[0][2].type if given else None
    if builtin.limit == "field" and isinstance(field, ColumnType):
        return None if field.limit is None else Fraction(field.limit)
    facts = low.scope.facts
    return {"turns": facts.turns, "calls": facts.calls, "change": facts.change}.get(builtin.limit)


def _arithmetic(low: Lowering, builtin: Builtin, given: Given, quantities: list[NumberType]) -> NumberType:
    unit = low.one_unit([(argument.value, q) for (_, argument, _), q in zip(given, quantities, strict=True)])
    ranges = [q.range for q in quantities]
    if builtin.name == "clamp" and ranges[1].low > ranges[2].high:
        place = given[1][1].span.to(given[2][1].span)
        raise low.scope.fail("SK311", place, "the lower bound is above the upper one", "swap them")
    return NumberType(unit, builtin.range_of(ranges), max(q.level for q in quantities))


def _bounds(low: Lowering, node: nodes.Call, given: Given) -> NumberType:
    """Range of `python("module:function", low = 0, high = 1)`."""
    ends: dict[str, Constant] = {}
    for parameter, _, typed in given:
        if parameter.named and not isinstance(typed.term, Constant) and isinstance(typed.type, NumberType):
            return NumberType(typed.type.unit, EVERYTHING, Level.EXAMPLE)  # a parameter: any number
        if parameter.named and isinstance(typed.term, Constant):
            ends[parameter.name] = typed.term
    if not ends:
        return NumberType("", UNIT, Level.EXAMPLE)
    unit = next(iter(ends.values())).unit
    first, last = ends.get("low", Constant(Fraction(0), unit)), ends.get("high", Constant(Fraction(1), unit))
    if first.unit != last.unit or (unit and len(ends) == 1 and "high" not in ends):
        hint = "write both with the same unit, as in `low = 0 s, high = 60 s`"
        raise low.scope.fail("SK302", node.span, "`low` and `high` must have one unit", hint)
    if first.value >= last.value:
        raise low.scope.fail("SK311", node.span, "`low` must be below `high`", "swap or correct them")
    return NumberType(unit, Interval(first.value, last.value), Level.EXAMPLE)


def _corrected(low: Lowering, node: nodes.Call, term: CallTerm, found: NumberType) -> NumberType:
    """Range of a signal that is corrected by its error rates; its mean is the share of right answers."""
    if any(not isinstance(value, Constant) for _, value in term.options):
        return NumberType("", EVERYTHING, Level.EXAMPLE)  # a parameter: any rates
    rates = rates_of(term)
    assert rates is not None
    if rates.youden <= 0:
        message = "a signal with these error rates says nothing: sensitivity and specificity are at most 100 % together"
        hint = "a coin has 100 % together; check that none of the two is the share of errors"
        raise low.scope.fail("SK322", node.span, message, hint)
    return NumberType("", Interval(rates.low, rates.high), found.level)


def _needs_shares(low: Lowering, node: nodes.Call, given: Given) -> None:
    """Check that a signal is between 0 and 1, and that its error rates are."""
    for parameter, argument, typed in given:
        if isinstance(typed.type, NumberType) and (typed.type.range.finite or not low.scope.generic):
            if parameter.takes == "quantity":
                fits = not typed.type.unit and typed.type.range.low >= 0 and typed.type.range.high <= 1
                message = f"the signal `{low.scope.text(argument.span)}` is not between 0 and 1"
                hint = "compare it, as in `reward() >= 0.5`, or bound it with `clamp(..., 0, 1)`"
            else:
                fits = parameter.takes == "examples" or (typed.type.range.low >= 0 and typed.type.range.high <= 1)
                message, hint = f"`{parameter.name}` is a share between 0 and 1", "write `92%`, or `0.92`"
            if not fits:
                raise low.scope.fail("SK311", argument.span, message, hint)


def _has_labels(low: Lowering, given: Given) -> bool:
    """Whether the first argument is a field with labels, or may be one."""
    field = given[0][2].type
    return low.scope.generic or (isinstance(field, ColumnType) and field.type.kind == "labels")


def _needs_options(low: Lowering, node: nodes.Call, given: Given) -> None:
    if len(given) == 1 and not _has_labels(low, given):
        hint = 'write `one_of(x, options = ["a", "b"])`, or declare the labels: `output x: "a" | "b"`'
        raise low.scope.fail("SK310", node.span, "`one_of` needs options, and this output declares no labels", hint)


def _needs_judge(low: Lowering, node: nodes.Call, given: Given) -> None:
    """Check that a judge has one model or a panel of several, and that a rubric written in quotes is one."""
    scope = low.scope
    options = {parameter.name: typed.term for parameter, _, typed in given if parameter.named}
    panel = options.get("panel")
    if panel is None and "model" not in options:
        hint = "write `judge(output, rubric, model = role)`"
        raise scope.fail("SK310", node.span, "`judge` needs `model = ...`", hint)
    if panel is not None and "model" in options:
        raise scope.fail("SK310", node.span, "`judge` has both `model` and `panel`", "keep one of them")
    if scope.generic:
        return
    if isinstance(panel, ListTerm):
        roles = [each.word for each in panel.items if isinstance(each, WordTerm)]
        twice = [role for role in dict.fromkeys(roles) if roles.count(role) > 1]
        if twice:
            hint = "name each model once: equal models give equal answers"
            raise scope.fail("SK310", node.span, f"the panel names {listed(twice)} twice", hint)
        if len(roles) < 2:
            hint = "name two or more, three for a majority; or write `model = role`"
            raise scope.fail("SK310", node.span, "a panel of one model is no panel", hint)
    _, argument, rubric = given[1]
    found = read_rubric(rubric.term.value) if isinstance(rubric.term, TextConstant) else None
    if isinstance(found, RubricProblem):
        raise scope.fail(MALFORMED, argument.span, f"this is no rubric: {found.message}", found.hint)


def _needs_on_demand(low: Lowering, node: nodes.Call, given: Given) -> None:
    """Check that a skill is not read anyway: then there is nothing to open."""
    ((_, argument, typed),) = given
    name = typed.term.word if isinstance(typed.term, WordTerm) else ""
    if name in low.scope.facts.always:
        message = f"`{name}` is always read, so the target never opens it"
        raise low.scope.fail("SK410", argument.span, message, f"write `load = on_demand` in `skill {name}`")


def _needs_examples(low: Lowering, node: nodes.Call, given: Given) -> None:
    """Check that the metric is between 0 and 1, and that the condition is on the data alone."""
    (_, measured, metric), (_, held, condition) = given
    if isinstance(metric.type, NumberType) and not low.scope.generic:
        least, most = metric.type.range.bounds
        if metric.type.unit or least is None or most is None or least < 0 or most > 1:
            name, hint = low.scope.text(node.function.span), "use a metric that is 1 or 0, as `opened(skill)` is"
            message = f"`{name}` counts where a metric holds, and `{low.scope.text(measured.span)}` is no share"
            raise low.scope.fail("SK311", measured.span, message, hint)
    read = _read_from_rollout(low, condition.term)
    if read is not None:
        message = f"`{read}` depends on the rollout, so it does not say where the metric should hold"
        hint = 'use a field of the data: `field kind: text` in `data { ... }`, and `kind == "..."`'
        raise low.scope.fail("SK319", held.span, message, hint)


def _read_from_rollout(low: Lowering, term: Term) -> str | None:
    """Return what a condition reads of a rollout, directly or through metrics; None if it reads the data alone."""
    for part in walk(term):
        if isinstance(part, FieldTerm):
            column = low.scope.facts.columns.get(part.name)
            if column is not None and column.role == "output":
                return part.name
        elif isinstance(part, MetricTerm):
            found = _read_from_rollout(low, low.scope.metrics.metric(part.name).term)
            if found is not None:
                return part.name
        elif isinstance(part, CallTerm) and part.function in _OF_ROLLOUTS:
            return part.function
    return None


def _needs_divisor(low: Lowering, node: nodes.Call, given: Given) -> None:
    """Check that a divisor is above 0."""
    for parameter, argument, typed in given[1:]:
        if isinstance(typed.term, Constant) and typed.term.value <= 0:
            message = f"`{parameter.name}` is a divisor and must be above 0"
            raise low.scope.fail("SK311", argument.span, message)


def _needs_ordered_labels(low: Lowering, node: nodes.Call, given: Given) -> None:
    _needs_divisor(low, node, given)
    if not _has_labels(low, given):
        message = "`ordinal_error` needs ordered labels, and this output declares none"
        hint = 'declare them in their order: `output x: "low" | "medium" | "high"`'
        raise low.scope.fail("SK310", node.span, message, hint)


_CHECKS: Mapping[str, Callable[[Lowering, nodes.Call, Given], None]] = {
    "one_of": _needs_options,
    "relative_error": _needs_divisor,
    "ordinal_error": _needs_ordered_labels,
    "judge": _needs_judge,
    "opened": _needs_on_demand,
    NOISY: _needs_shares,
    **dict.fromkeys(CONDITIONAL, _needs_examples),
}
"""By function: what its arguments must be besides their types."""
