"""Scopes: the names that an expression can use, how they are resolved, and how its errors are reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, NoReturn, cast

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Fix, Label, Reporter
from skillc.diagnostics.suggest import spelling_fix, spelling_hint
from skillc.gates.functions import NAMES, Level
from skillc.gates.terms import FieldTerm, MeanTerm, SkillState, StateTerm
from skillc.language.checked import CheckedMetric, Entity, Unsupported, amount_of, count_of, fields_of, of_kind, word_of
from skillc.language.kinds import STATES, default_of
from skillc.language.modules import Module, alias_hint, hint_elsewhere, use_hint
from skillc.language.rollouts import most_calls, most_turns, rollout_kind, tools_of
from skillc.language.types import (
    ArgumentType,
    Broken,
    ColumnType,
    ConditionType,
    FileErrors,
    Typed,
    metric_quantity,
    metric_value,
)
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span
from skillc.text import listed

if TYPE_CHECKING:
    from skillc.diagnostics.suggest import HyphenatedName
    from skillc.language.expressions import Lowering
    from skillc.language.lower import Lower


@dataclass(frozen=True)
class Declarations:
    """Declarations of the main program that expressions refer to.

    Attributes:
        columns: fields of task and data by name.
        broken: names declared with an error; references to them are not reported.
        roles: model roles.
        rubrics: names of rubrics.
        skills: names of skills.
        always: those that the target always reads.
        rollout: the kind of rollout; empty without a task.
        turns: the limit of the turns of a rollout.
        calls: the limit of the calls of one tool in a rollout.
        tools: the names of an agent's tools; None if only a run can know them.
        without: kinds that the program lacks; references to them are not reported.
        change: upper bound of `change(candidate)`, if the limits of the sections imply one.
    """

    columns: Mapping[str, ColumnType] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    roles: tuple[str, ...] = ()
    rubrics: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    rollout: str = ""
    tools: tuple[str, ...] | None = None
    always: tuple[str, ...] = ()
    turns: Fraction | None = None
    calls: Fraction | None = None
    without: frozenset[str] = frozenset()
    change: Fraction | None = None

    @classmethod
    def of(cls, entities: Sequence[Entity], module: Module, broken: Iterable[str]) -> Declarations:
        """Collect what the expressions of a program can use."""
        task = next(iter(of_kind(entities, "task")), None)
        return cls(
            # Of two fields with one name, an expression reads the task's.
            columns={
                name: _column(name, field)
                for name, field in fields_of([*of_kind(entities, "task"), *of_kind(entities, "data")]).items()
            },
            broken=frozenset(broken),
            roles=tuple(module.named("model")),
            rubrics=tuple(module.named("rubric")),
            skills=tuple(module.named("skill")),
            always=tuple(
                each.name or ""
                for each in of_kind(entities, "skill")
                if word_of(each.settings, "load") in (None, default_of("skill", "load"))
            ),
            rollout=rollout_kind(task),
            turns=most_turns(task),
            calls=most_calls(task),
            tools=tools_of(task),
            without=frozenset({"data", "goal"} - {decl.kind.word for decl in module.declarations}),
            change=largest_change(of_kind(entities, "skill")),
        )


def _column(name: str, field: Entity) -> ColumnType:
    assert field.type is not None
    return ColumnType(name, field.kind, field.type, count_of(field.settings, "limit"))


def largest_change(skills: Iterable[Entity]) -> Fraction | None:
    """Upper bound of `change`; None if a section that may change has no limit.

    At most all old tokens are removed and all allowed ones added, and `change` divides by the larger count.
    """
    sections = [child for skill in skills for child in skill.children if {"trainable", "slow"} & set(child.words)]
    limited = [child.kind == "section" and amount_of(child.settings, "limit") is not None for child in sections]
    return Fraction(2) if sections and all(limited) else None


@dataclass
class Effort:
    """Counters of the whole check.

    Attributes:
        expansions: calls expanded so far; bounded, so that the check ends.
        unsupported: calls of functions that this version can't run.
        rubrics: those of modules that judges use and that are more than a text, by module and name.
    """

    expansions: int = 0
    unsupported: list[Unsupported] = field(default_factory=list)
    rubrics: dict[str, Entity] = field(default_factory=dict)


@dataclass(frozen=True)
class Binding:
    """The argument bound to a parameter; `typed` is None for `none`."""

    type: str
    typed: Typed | None


@dataclass(frozen=True)
class Scope:
    """The names that one expression can use.

    Attributes:
        metrics: of the main program.
        parameters: of a parametric body, which can use no other names; None elsewhere.
        site: the call that a parametric body is expanded for, where errors of the body are reported.
        generic: whether parameters are placeholders for any argument; errors of ranges are not reported.
        inside: the functions that are being expanded.
        effort: of the whole check.
    """

    report: Reporter
    module: Module
    level: Level
    facts: Declarations
    metrics: Lower
    parameters: Mapping[str, Binding] | None = None
    site: Label | None = None
    generic: bool = False
    inside: tuple[tuple[str, str], ...] = ()
    effort: Effort = field(default_factory=Effort)

    @property
    def source(self) -> Source:
        """The file of the expression."""
        return self.module.source

    @property
    def errors(self) -> FileErrors:
        """Report errors in the file of the expression."""
        return FileErrors(self.report, self.source)

    def text(self, span: Span) -> str:
        """The text of a span, on one line."""
        return " ".join(self.source.slice(span).split())

    def fail(self, code: str, span: Span, message: str, hint: str | None = None, fix: Fix | None = None) -> Broken:
        """Report an error, in an expanded body at its call; return the exception to raise."""
        if self.site is None:
            self.report.add(code, self.source, span, message, hint=hint, fix=fix)
        else:
            inner = Label(self.source, span, "in this expression")
            self.report.add(code, self.site.source, self.site.span, message, hint=hint, secondary=(inner,))
        return Broken()

    def hyphenated_name(self, span: Span, known: Iterable[str]) -> HyphenatedName | None:
        """The known name or function that is written with hyphens around a place, if any."""
        text = self.source.text
        if "-" not in text[max(0, span.start - 1) : span.end + 1]:
            return None
        from skillc.diagnostics.suggest import hyphenated_name

        return hyphenated_name(self.source, span, {*known, *NAMES, *self.module.functions()})

    def unknown(
        self,
        code: str,
        what: str,
        name: str,
        span: Span,
        known: Iterable[str],
        *,
        owner: str | None = None,
        otherwise: str | None = None,
        instead: str | None = None,
        ordered: bool = False,
    ) -> Broken:
        """Report an unknown name, unless a statement that could not be read may declare it.

        `what` is what it is expected to be, such as a metric; `owner` the module or function that was searched. The
        hint is `instead`, else the nearest of the `known` names, else `otherwise`, else all of them, perhaps `ordered`.
        """
        if name in self.module.dropped or name in self.facts.broken:
            return Broken()
        message = f"`{owner}` has no {what} `{name}`" if owner is not None else f"unknown {what} `{name}`"
        if instead is not None:
            return self.fail(code, span, message, instead)
        names = self.report.spelling_candidates(name, known, ordered=ordered)
        written = self.hyphenated_name(span, names)
        if written is not None:
            return self.fail("SK022", written.span, written.message, written.hint, written.fix)
        hint = spelling_hint(name, names)
        if code == "SK403" and "data" in self.facts.without:
            return Broken()
        nowhere = code == "SK204" and what in ("metric", "name") and hint is None and self.site is None
        if nowhere and self.report.repeats_unknown(self.source, span, name):
            return Broken()
        if hint is None and otherwise is not None:
            hint = otherwise
        elif hint is None and names:
            hint = f"valid options: {listed(names, most=8)}"
        if nowhere:
            self.report.add_unknown(self.source, span, message, name, hint, in_gate=self.level is Level.RUN)
            return Broken()
        return self.fail(code, span, message, hint, spelling_fix(name, span, names))


def lower_name(low: Lowering, node: nodes.Reference) -> Typed:
    """Resolve a name."""
    scope, name = low.scope, node.name
    if scope.parameters is not None and name in scope.parameters:
        return _parameter(low, node, scope.parameters[name])
    if name in STATES and scope.level is Level.RUN:
        return Typed(StateTerm(cast("SkillState", name)), ArgumentType())
    if scope.parameters is not None:
        if name in scope.facts.columns or name in scope.metrics.names:
            raise _not_a_parameter(scope, node.span, name, "metric" if name in scope.metrics.names else "text")
        raise scope.unknown("SK204", "name", name, node.span, scope.parameters)
    if scope.level is Level.RUN:
        raise _in_gate(low, node)
    if name in scope.facts.columns:
        return Typed(FieldTerm(name), scope.facts.columns[name])
    if name in scope.metrics.names:
        return metric_value(scope.metrics.metric(name, low.depth))
    raise _unknown_value(low, node)


def _parameter(low: Lowering, node: nodes.Reference, bound: Binding) -> Typed:
    if bound.typed is None:
        raise low.scope.fail("SK311", node.span, f"`{node.name}` is `none`, and a value is required")
    if low.scope.level is Level.RUN:
        if bound.type == "metric":
            raise _bare(low, node)
        if isinstance(bound.typed.type, ColumnType) or bound.typed.type == ConditionType(Level.EXAMPLE):
            message = f"`{node.name}` is a value of one example, and a gate compares whole runs"
            raise low.scope.fail("SK306", node.span, message)
    return bound.typed


def _not_a_parameter(scope: Scope, span: Span, name: str, type_: str) -> Broken:
    hint = f"make it a parameter: `{name}: {type_}`"
    return scope.fail("SK213", span, f"`{name}` is not a parameter of this body", hint)


def _in_gate(low: Lowering, node: nodes.Reference) -> Broken:
    scope, name = low.scope, node.name
    if name in scope.metrics.names:
        return _bare(low, node)
    if name in scope.facts.columns:
        message = f"`{name}` is a field of one example, and a gate compares whole runs"
        hint = "compare skills: `candidate.metric`, or group by the field: `by = field`"
        return scope.fail("SK306", node.span, message, hint)
    return _unknown_value(low, node)


def _bare(low: Lowering, node: nodes.Reference) -> Broken:
    name = node.name
    fix = Fix(Span(node.span.start, node.span.start), "candidate.", safe=False)
    message = f"`{name}` is measured on one rollout; a gate compares skills"
    return low.scope.fail("SK217", node.span, message, f"write `candidate.{name}`", fix)


def _unknown_value(low: Lowering, node: nodes.Reference) -> Broken:
    scope, name = low.scope, node.name
    if name in scope.module.functions() or name in NAMES:
        return low.scope.fail("SK204", node.span, f"`{name}` is a function", f"call it: `{name}(...)`")
    if name in STATES:
        return _no_skills(low, node.span, name)
    if name in scope.module.uses:
        return scope.fail("SK204", node.span, f"`{name}` is a module", f"write `{name}.name`")
    known = chain(() if scope.level is Level.RUN else scope.facts.columns, scope.metrics.names)
    if name in ("true", "false", "on", "off") and name not in scope.facts.broken:
        hint = "write the condition alone, or `not` before it"
        return scope.fail("SK204", node.span, f"`{name}` is not a value", hint)
    return scope.unknown("SK204", "name", name, node.span, known, ordered=True)


def _no_skills(low: Lowering, span: Span, name: str) -> Broken:
    message = f"a metric measures one rollout, so it can't read `{name}`"
    return low.scope.fail("SK306", span, message, "compare skills in a gate")


def lower_member(low: Lowering, node: nodes.Member) -> Typed:
    """Resolve `state.metric`."""
    scope, of = low.scope, node.of
    if not isinstance(of, nodes.Reference):
        raise scope.fail("SK204", node.span, "only skills and modules have members", "write `candidate.metric`")
    if of.name in STATES:
        if scope.level is not Level.RUN:
            raise _no_skills(low, node.span, f"{of.name}.{node.name.text}")
        metric = _metric_of(low, node)
        return Typed(MeanTerm(cast("SkillState", of.name), metric.name), metric_quantity(metric, Level.RUN))
    raise _of_module(low, node, of)


def _metric_of(low: Lowering, node: nodes.Member) -> CheckedMetric:
    scope, name = low.scope, node.name.text
    bound = scope.parameters.get(name) if scope.parameters is not None else None
    if bound is not None and bound.type == "metric" and bound.typed is not None:
        return low.as_metric(bound.typed, node.name.span)
    if scope.parameters is not None:
        if name in scope.metrics.names:
            raise _not_a_parameter(scope, node.name.span, name, "metric")
        metrics = [each for each, b in scope.parameters.items() if b.type == "metric"]
        raise scope.unknown("SK204", "metric", name, node.name.span, metrics)
    if name not in scope.metrics.names:
        if name in scope.facts.columns:
            hint = f"measure it: `metric m = exact_match({name})`, then write `{low.scope.text(node.of.span)}.m`"
            raise scope.fail("SK204", node.name.span, f"`{name}` is a field, not a metric", hint)
        raise scope.unknown("SK204", "metric", name, node.name.span, scope.metrics.names, ordered=True)
    return scope.metrics.metric(name, low.depth)


def _of_module(low: Lowering, node: nodes.Member, of: nodes.Reference) -> NoReturn:
    scope, name = low.scope, node.name.text
    module = scope.module.alias(of.name)
    if module is None:
        if of.name in scope.facts.columns or of.name in scope.metrics.names:
            raise scope.fail("SK204", node.span, f"`{of.name}` has no members", f"write `{of.name}` alone")
        known = [*(STATES if scope.level is Level.RUN else ()), *scope.module.uses]
        raise unknown_module(scope, of, known, "name")
    shown = f"{of.name}.{name}"
    if name in module.functions():
        raise scope.fail("SK204", node.span, f"`{shown}` is a function", f"call it: `{shown}(...)`")
    if name not in module.names():
        found, known = hint_elsewhere(name, scope.module, module), module.names()
        raise scope.unknown("SK105", "name", name, node.name.span, known, owner=of.name, instead=found, ordered=True)
    hint = "only metrics and gates with parameters can be used from another file"
    raise scope.fail("SK112", node.span, f"`{shown}` can't be used in this program", hint)


def unknown_module(scope: Scope, of: nodes.Reference, known: Iterable[str], what: str = "module") -> Broken:
    """Report a module that is not used, or used under another name."""
    otherwise = use_hint(of.name)
    return scope.unknown(
        "SK204", what, of.name, of.span, known, otherwise=otherwise, instead=alias_hint(of.name, scope.module)
    )
