"""The registry of lint rules, the facts that they read, and the driver.

A rule is one function in a module of this package under `@rule(...)`, and one entry for each of its codes in
`skillc/diagnostics/codes`. Commands, suppression, `explain` and the language server need no further change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, TypeVar

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Diagnostic, Fix, Label, Severity
from skillc.language.checked import Checked, CheckedGate, CheckedMetric, Entity, Setting, Settings, of_kind
from skillc.language.modules import Module
from skillc.syntax.source import Span

if TYPE_CHECKING:
    from skillc.budget.bounds import Bounds
    from skillc.budget.spend import Sizes
    from skillc.data.dataset import Dataset
    from skillc.plan.schema import Plan


@dataclass(frozen=True, slots=True)
class LintFacts:
    """A checked program.

    Attributes:
        checked: the program, without errors.
        modules: modules of this package with rules over these facts, in the order in which they run.
    """

    checked: Checked
    modules: ClassVar[tuple[str, ...]] = ()

    def at(self, kind: str, name: str | None, setting: str | None = None) -> Label:
        """The location of a declaration or a setting; the first statement if the program has neither."""
        return place_of(self.checked, kind, name, setting)


@dataclass(frozen=True, slots=True)
class ProgramFacts(LintFacts):
    """A checked program and the module of its main file, for `check`."""

    module: Module
    modules: ClassVar[tuple[str, ...]] = ("declarations", "limits")

    @property
    def goal(self) -> CheckedMetric | None:
        """The goal, unless the program has none."""
        return next((metric for metric in self.checked.metrics if metric.goal), None)

    def of_kind(self, kind: str) -> tuple[Entity, ...]:
        """The declarations of a kind."""
        return of_kind(self.checked.entities, kind)

    def settings(self, kind: str) -> Settings:
        """The settings of the declaration of a kind that applies to the run, the one without a name."""
        return next((entity.settings for entity in self.of_kind(kind) if entity.name is None), {})


@dataclass(frozen=True, slots=True)
class PlanFacts(LintFacts):
    """A program with its plan and the bounds of a run on its data, for `plan` and `compile`."""

    plan: Plan
    bounds: Bounds
    modules: ClassVar[tuple[str, ...]] = ("plan", "limits")

    @property
    def sizes(self) -> Sizes:
        """The sizes of the splits."""
        return self.bounds.sizes


@dataclass(frozen=True, slots=True)
class DataFacts(LintFacts):
    """A program with its examples, for `check --data`.

    Attributes:
        compiled: texts of the skill compiled before, by their names in messages.
    """

    plan: Plan
    dataset: Dataset
    sizes: Sizes
    compiled: Mapping[str, str]
    modules: ClassVar[tuple[str, ...]] = ("examples", "thresholds")


Find = Callable[..., Iterable[Diagnostic]]
F = TypeVar("F", bound=Find)


@dataclass(frozen=True, slots=True)
class LintRule:
    """A function that yields findings over facts of one type; `libraries` if it also runs on libraries."""

    over: type[LintFacts]
    find: Find
    libraries: bool = False


RULES: list[LintRule] = []
"""The rules of all loaded modules; those of a module run in its order."""


def rule(over: type[LintFacts], *, libraries: bool = False) -> Callable[[F], F]:
    """Register a function as a rule; a function over two kinds of facts is decorated twice."""

    def register(find: F) -> F:
        RULES.append(LintRule(over, find, libraries))
        return find

    return register


def lint(facts: LintFacts) -> Iterator[Diagnostic]:
    """Run every rule over facts."""
    # Most commands need the rules of one kind, and those over data load pydantic and numpy.
    for name in facts.modules:
        home = import_module(f"skillc.lint.{name}").__name__
        for each in RULES:
            runs = each.over is type(facts) and (each.libraries or not facts.checked.library)
            if runs and each.find.__module__ == home:
                yield from each.find(facts)


# ---- findings -------------------------------------------------------------------------------------


def finding(
    severity: Severity,
    code: str,
    at: Label | Entity | Setting | CheckedMetric | CheckedGate,
    message: str,
    hint: str | None = None,
    *,
    fix: Fix | None = None,
    secondary: tuple[Label, ...] = (),
) -> Diagnostic:
    """A diagnostic at a part of the program."""
    place = at if isinstance(at, Label) else Label(at.source, at.span)
    return Diagnostic(code, message, place, severity, secondary, hint, fix)


note = partial(finding, Severity.NOTE)
warning = partial(finding, Severity.WARNING)
error = partial(finding, Severity.ERROR)


def place_of(checked: Checked, kind: str, name: str | None, setting: str | None = None) -> Label:
    """The location of a declaration or a setting; the first statement if the program has neither."""
    found = checked.place_of(kind, name, setting)
    if found is not None:
        return Label(*found)
    source = checked.program.source
    first = checked.program.statements[0].span.start if checked.program.statements else 0
    return Label(source, Span(first, min(first + 1, len(source.text))))
