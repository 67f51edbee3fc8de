"""Lower the metrics and gates of a program to terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from typing import Literal

from skillc.diagnostics.diagnostic import Reporter
from skillc.gates.functions import RUN_FUNCTIONS, Level
from skillc.gates.noisy import NOISY, rates_of
from skillc.gates.terms import MeanTerm, MetricTerm, StateTerm, Term, calls, show_term, size_and_depth, walk
from skillc.language.checked import CheckedGate, CheckedMetric
from skillc.language.expressions import Lowering
from skillc.language.functions import UserFunction, verify
from skillc.language.modules import Module
from skillc.language.scope import Declarations, Effort, Scope
from skillc.language.statements import KindDeclaration
from skillc.language.types import Broken, FileErrors, NumberType
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span

_LARGEST = 20_000
_CIRCLE_SHOWN = 8


class Lower:
    """Lower the metrics and gates of one program, metrics also on demand of the expressions that read them.

    Attributes:
        names: of all metrics without parameters, the goal included.
        metrics: the lowered metrics, each after those that it reads.
        effort: what the expressions need besides.
    """

    def __init__(
        self, report: Reporter, module: Module, facts: Declarations, comments: tuple[nodes.Comment, ...]
    ) -> None:
        self._errors = FileErrors(report, module.source)
        self._module = module
        self._comments = comments
        self._declared: dict[str, KindDeclaration] = {}
        for decl in module.declarations:
            if decl.kind.word in ("metric", "goal") and decl.node.parameters is None and decl.name is not None:
                self._declared.setdefault(decl.name.text, decl)
        self._done: dict[str, CheckedMetric | None] = {}
        self._open: list[str] = []
        self.effort = Effort()
        self._scope = Scope(report, module, Level.EXAMPLE, facts, self, effort=self.effort)
        self.names = frozenset(self._declared)
        self.metrics: dict[str, CheckedMetric] = {}

    # ---- functions ----

    def check_functions(self) -> None:
        """Check the body of every function, even if nothing calls it."""
        for name, decl in self._module.functions().items():
            verify(Lowering(self._scope), UserFunction(self._module, decl, name))

    # ---- metrics ----

    def lower_metrics(self) -> None:
        """Lower all metrics."""
        for name in dependency_order({name: decl.node.value for name, decl in self._declared.items()}):
            with suppress(Broken):
                self.metric(name)

    def metric(self, name: str, depth: int = 0) -> CheckedMetric:
        """Look up a metric and lower it on first use, at the depth of the expression that uses it."""
        if name in self._open:
            raise self._circle(name)
        if name not in self._done:
            self._open.append(name)
            try:
                self._done[name] = self._lowered(name, self._declared[name], depth)
            except Broken:
                self._done[name] = None
            finally:
                self._open.pop()
        found = self._done[name]
        if found is None:
            raise Broken
        self.metrics.setdefault(name, found)
        return found

    def _circle(self, name: str) -> Broken:
        circle = self._open[self._open.index(name) :]
        first = circle.index(min(circle, key=lambda each: self._declared[each].span))
        circle = [*circle[first:], *circle[: first + 1]]
        shown = [f"`{each}`" for each in circle]
        shown[_CIRCLE_SHOWN:-1] = ["..."] * (len(shown) > _CIRCLE_SHOWN + 1)
        message, hint = f"circular metrics: {' → '.join(shown)}", "let one of them read only fields"
        return self._errors.add("SK212", self._declared[circle[0]].span, message, hint)

    def _lowered(self, name: str, decl: KindDeclaration, depth: int) -> CheckedMetric:
        node = decl.node.value
        assert node is not None
        before = len(self.effort.unsupported)
        typed, quantity = Lowering(self._scope, depth).number(node)
        self._deduplicate(before)
        self._check_size(node, typed.term)
        self._check_noisy(typed.term, self._module.source, node.span)
        (least, most), unit = quantity.range.bounds, quantity.unit or ""
        if not quantity.range.finite and not self._reads_unbounded(typed.term):
            suffix = f" {unit}" if unit else ""
            message = f"the {decl.kind.word} `{name}` has no {'upper' if most is None else 'lower'} bound"
            self._errors.add("SK304", node.span, message, f"bound it: `clamp(..., 0{suffix}, 300{suffix})`")
        place = (self._module.source, decl.span, decl.node.doc)
        return CheckedMetric(name, typed.term, unit, least, most, decl.kind.word == "goal", True, *place)

    def _reads_unbounded(self, term: Term) -> bool:
        """Whether a term reads a metric without a finite range, which is reported already."""
        read = (self.metrics.get(each.name) for each in walk(term) if isinstance(each, MetricTerm))
        return any(each is not None and (each.low is None or each.high is None) for each in read)

    def anonymous(self, term: Term, quantity: NumberType, source: Source, span: Span) -> CheckedMetric:
        """Make a metric of an expression in a gate, named by its canonical text."""
        name = show_term(term)
        if name not in self.metrics:
            self._check_noisy(term, source, span)
            (least, most), unit = quantity.range.bounds, quantity.unit or ""
            self.metrics[name] = CheckedMetric(name, term, unit, least, most, False, False, source, span)
        return self.metrics[name]

    def _check_noisy(self, term: Term, source: Source, span: Span) -> None:
        """Refuse a metric that computes with a corrected signal: only means of one are corrected."""
        own = rates_of(term) is not None
        read = (self.metrics.get(each.name) for each in walk(term) if isinstance(each, MetricTerm))
        name = next((each.name for each in read if each is not None and rates_of(each.term) is not None), None)
        if name is None and (own or all(call.function != NOISY for call in calls(term))):
            return
        shown = f"`{name}`" if name is not None else f"`{NOISY}(...)`"
        hint = "compare its mean in a gate: `candidate.metric`; or compute first, and correct the result: `noisy(...)`"
        message = f"{shown} is right on average only, so no metric can compute with it"
        raise FileErrors(self._scope.report, source).add("SK323", span, message, hint)

    def _deduplicate(self, before: int) -> None:
        """Keep the first call of each unsupported function in one expression."""
        unsupported = self.effort.unsupported
        unsupported[before:] = {each.what: each for each in reversed(unsupported[before:])}.values()

    def _check_size(self, node: nodes.Expression, term: Term) -> None:
        if size_and_depth(term)[0] > _LARGEST:
            raise self._errors.add(
                "SK320", node.span, "this expression is too large", "split it into metrics with names"
            )

    # ---- gates ----

    def lower_gates(self) -> tuple[CheckedGate, ...]:
        """Lower the gates and requires, in the order of the file; leave out those with errors."""
        found: list[CheckedGate] = []
        for decl in self._module.declarations:
            if decl.kind.word in ("gate", "require") and decl.node.parameters is None and decl.bare is None:
                with suppress(Broken):
                    found.append(self._gate(decl))
        return tuple(found)

    def _gate(self, decl: KindDeclaration) -> CheckedGate:
        node, name = decl.node.value, decl.name
        assert node is not None
        assert name is not None
        scope, before = replace(self._scope, level=Level.RUN), len(self.effort.unsupported)
        low = Lowering(scope)
        typed = low.lower(node)
        if isinstance(typed.type, NumberType):
            shown = scope.text(node.span)
            hint = f"compare it: `{shown} >= ...{' ' + typed.type.unit if typed.type.unit else ''}`"
            message = f"the {decl.kind.word} `{name.text}` is a number, not a condition"
            raise scope.fail("SK309", node.span, message, hint)
        low.as_condition(node, typed)
        self._deduplicate(before)
        self._check_size(node, typed.term)
        kind: Literal["gate", "require"] = "gate" if decl.kind.word == "gate" else "require"
        self._check_states(kind, scope, decl, typed.term)
        for_: Literal["slow"] | None = "slow" if decl.suffix else None
        text = self._text(node)
        return CheckedGate(name.text, typed.term, kind, for_, text, scope.source, decl.span, decl.node.doc)

    def _check_states(self, kind: str, scope: Scope, decl: KindDeclaration, term: Term) -> None:
        """Report a gate that does not read the candidate, and a require that reads more than the initial skill."""
        assert decl.name is not None
        assert decl.node.value is not None
        states = {each.state for each in walk(term) if isinstance(each, MeanTerm | StateTerm)}
        functions = (RUN_FUNCTIONS.get(each.function) for each in calls(term))
        moved = [each.name for each in functions if each is not None and each.about_candidate]
        if kind == "gate" and "candidate" not in states and not moved:
            hint = f"compare `candidate.metric`, or write `require {decl.name.text} = ...`"
            message = f"the gate `{decl.name.text}` does not depend on the candidate"
            raise scope.fail("SK502", decl.name.span, message, hint)
        if kind == "require" and (moved or states - {"initial"}):
            word = f"`{moved[0]}`" if moved else f"`{min(states - {'initial'})}`"
            message = f"a require is decided before the first step and can't read {word}"
            raise scope.fail("SK503", decl.node.value.span, message, "write `initial.metric`, or make it a gate")

    def _text(self, node: nodes.Expression) -> str:
        """The text of an expression, on one line, without comments."""
        source, start, parts = self._module.source, node.span.start, []
        for comment in self._comments:
            if start <= comment.span.start and comment.span.end <= node.span.end:
                parts.append(source.text[start : comment.span.start])
                start = comment.span.end
        parts.append(source.text[start : node.span.end])
        return " ".join(" ".join(parts).split())


def dependency_order(expressions: Mapping[str, nodes.Expression | None]) -> list[str]:
    """Sort metrics so that each comes after those that it reads; a circle keeps the given order.

    Any reference with the name of a metric counts, even if it means something else there.
    """
    found: dict[str, None] = {}
    begun: set[str] = set()
    for first in expressions:
        waiting = [] if first in begun else [(first, _read(expressions, first))]
        begun.add(first)
        while waiting:
            name, read = waiting[-1]
            following = next((each for each in read if each not in begun), None)
            if following is None:
                found[name] = None
                waiting.pop()
            else:
                begun.add(following)
                waiting.append((following, _read(expressions, following)))
    return list(found)


def _read(expressions: Mapping[str, nodes.Expression | None], name: str) -> Iterator[str]:
    """Yield the names of metrics in the expression of one."""
    waiting: list[object] = [expressions[name]]
    while waiting:
        node = waiting.pop()
        if isinstance(node, nodes.Reference):
            if node.name in expressions:
                yield node.name
        elif isinstance(node, tuple):
            waiting += reversed(node)
        elif isinstance(node, nodes.Node):
            waiting += (getattr(node, field.name) for field in reversed(fields(node)))
