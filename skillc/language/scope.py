"""What an expression may speak of, and how its faults are reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from skillc.diagnostics.diagnostic import Fix, Label, Report
from skillc.diagnostics.suggest import meant, mended
from skillc.gates.functions import NAMES, Level
from skillc.gates.terms import Term
from skillc.language.checked import CheckedMetric, Later
from skillc.language.modules import STATES, Module
from skillc.language.types import Broken, Column, Quantity, Typed
from skillc.syntax.source import Source, Span
from skillc.text import listed

if TYPE_CHECKING:
    from skillc.diagnostics.suggest import Hyphened

__all__ = ["STATES", "Bound", "Effort", "Facts", "Metrics", "Scope"]


class Metrics(Protocol):
    """The metrics of the main program."""

    @property
    def names(self) -> frozenset[str]:
        """Names of all that are declared."""

    def metric(self, name: str, depth: int = 0) -> CheckedMetric:
        """A metric, lowered when it is first asked for, at a depth of the expression that asks.

        Raises:
            Broken: it has an error, which has been reported.
        """

    def anonymous(self, term: Term, quantity: Quantity, source: Source, span: Span) -> CheckedMetric:
        """The metric that an expression in a gate makes."""


@dataclass(frozen=True)
class Facts:
    """What the main program declares, as far as expressions may speak of it.

    Attributes:
        columns: fields of task and data by name.
        broken: names that are declared with an error, so that what speaks of them stays silent.
        roles: model roles.
        rubrics: names of rubrics.
        skills: names of skills.
        turns: the declared most turns of a rollout.
        without: kinds that the program does not have at all, which is reported once and not for each use.
        change: the most that `change(candidate)` can be, where the sections' limits bound it.
    """

    columns: Mapping[str, Column] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    roles: tuple[str, ...] = ()
    rubrics: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    turns: Fraction | None = None
    without: frozenset[str] = frozenset()
    change: Fraction | None = None


@dataclass
class Effort:
    """What lowering has come across.

    Attributes:
        expansions: calls expanded so far, so that no program can keep the checker busy for ever.
        later: calls of functions that this version can't run.
    """

    expansions: int = 0
    later: list[Later] = field(default_factory=list)


@dataclass(frozen=True)
class Bound:
    """What a parameter stands for; `typed` is None for `none`."""

    type: str
    typed: Typed | None


@dataclass(frozen=True)
class Scope:
    """The names of one expression.

    Attributes:
        parameters: of a parametric body, which sees nothing else; None elsewhere.
        site: the call that a parametric body is expanded for, where the faults of that body are shown.
        generic: whether parameters stand for any argument, so that ranges decide nothing.
        inside: the functions that are being expanded.
        effort: of the whole check.
    """

    report: Report
    module: Module
    level: Level
    facts: Facts
    metrics: Metrics
    parameters: Mapping[str, Bound] | None = None
    site: Label | None = None
    generic: bool = False
    inside: tuple[tuple[str, str], ...] = ()
    effort: Effort = field(default_factory=Effort)

    @property
    def source(self) -> Source:
        """Where the expression stands."""
        return self.module.source

    def shown(self, span: Span) -> str:
        """What was written, on one line."""
        return " ".join(self.source.slice(span).split())

    def fail(self, code: str, span: Span, message: str, hint: str | None = None, fix: Fix | None = None) -> Broken:
        """Reports an error, at the call for a body that is expanded; raise what it gives to leave the expression."""
        if self.site is None:
            self.report.add(code, self.source, span, message, hint=hint, fix=fix)
        else:
            inner = Label(self.source, span, "in this expression")
            site = self.site
            self.report.add(code, site.source, site.span, message, hint=hint, secondary=(inner,))
        return Broken()

    def hyphened(self, span: Span, known: Iterable[str]) -> Hyphened | None:
        """The name around a place that was written with hyphens: one of the known ones, or a function."""
        text = self.source.text
        if "-" not in text[max(0, span.start - 1) : span.end + 1]:
            return None
        from skillc.diagnostics.suggest import hyphened

        return hyphened(self.source, span, {*known, *NAMES, *self.module.functions()})

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
        """Reports a name that there is not, unless it may be declared in a statement that could not be read.

        Args:
            code: of the registry.
            what: what it would be: a metric, a function.
            name: as it was written.
            span: where.
            known: the names that there are, for the hint.
            owner: what it would belong to.
            otherwise: the hint where none of the known names is near.
            instead: the hint in any case, with no edit: the very name is known to be somewhere else.
            ordered: whether the known names are to be put into the alphabet's order.
        """
        if name in self.module.dropped or name in self.facts.broken:
            return Broken()
        message = f"`{owner}` has no {what} `{name}`" if owner is not None else f"unknown {what} `{name}`"
        if instead is not None:
            return self.fail(code, span, message, instead)
        names = self.report.searchable(name, known, ordered=ordered)
        written = self.hyphened(span, names)
        if written is not None:
            return self.fail("SK022", written.span, written.message, written.hint, written.fix)
        hint = meant(name, names)
        if code == "SK403" and "data" in self.facts.without:
            return Broken()
        nowhere = code == "SK204" and what in ("metric", "name") and hint is None and self.site is None
        if nowhere and self.report.again(code, self.source, span, name):
            return Broken()
        if hint is None and otherwise is not None:
            hint = otherwise
        elif hint is None and names:
            hint = f"there is {listed(names, most=8)}"
        if nowhere:
            self.report.nowhere(self.source, span, message, name, hint, in_gate=self.level is Level.RUN)
            return Broken()
        return self.fail(code, span, message, hint, mended(name, span, names))
