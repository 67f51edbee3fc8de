"""The registry of lint rules, what they are given, and the driver that runs them.

A rule is one function in a module of this package under `@rule(...)`, and one entry for each of its codes in
`skillc/diagnostics/codes`. Commands, suppression, `explain` and the language server need no further change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from skillc.diagnostics.diagnostic import Diagnostic, Fix, Label, Severity
from skillc.language.checked import Checked, Entity
from skillc.language.modules import Module
from skillc.syntax.source import Source, Span

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
        modules: the modules of this package with rules over these facts, in the order in which they run.
    """

    checked: Checked
    modules: ClassVar[tuple[str, ...]] = ()

    def at(self, kind: str, name: str | None, setting: str | None = None) -> Label:
        """The place of a declaration or of one of its settings; the first statement if the program has neither."""
        return place_of(self.checked, kind, name, setting)


@dataclass(frozen=True, slots=True)
class ProgramFacts(LintFacts):
    """A checked program and the module of its main file: what `check` knows."""

    module: Module
    modules: ClassVar[tuple[str, ...]] = ("declarations", "limits")

    def declared(self, kind: str) -> Entity | None:
        """The declaration of a kind that is in force: the one without a name."""
        return next((each for each in self.checked.entities if each.kind == kind and each.name is None), None)


@dataclass(frozen=True, slots=True)
class PlanFacts(LintFacts):
    """A program with its plan, and what a run may spend on its data: what `plan` and `compile` know."""

    plan: Plan
    bounds: Bounds
    modules: ClassVar[tuple[str, ...]] = ("plan", "limits")

    @property
    def sizes(self) -> Sizes:
        """The sizes of the splits."""
        return self.bounds.sizes


@dataclass(frozen=True, slots=True)
class DataFacts(LintFacts):
    """A program with its examples: what `check --data` knows.

    Attributes:
        compiled: texts of a skill that was compiled before, by their names in messages; empty if there is none.
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
    """A function that yields findings over facts of one type.

    Attributes:
        codes: those that it may yield.
        libraries: whether it also runs on files that only declare what others use.
    """

    over: type[LintFacts]
    codes: tuple[str, ...]
    find: Find
    libraries: bool = False


RULES: list[LintRule] = []
"""The rules of all modules that are loaded; those of a module run in its order."""


def rule(over: type[LintFacts], *codes: str, libraries: bool = False) -> Callable[[F], F]:
    """Register a function as a rule; a function over two kinds of facts is decorated twice."""

    def register(find: F) -> F:
        RULES.append(LintRule(over, codes, find, libraries))
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


class Located(Protocol):
    """A part of a program with a place."""

    @property
    def source(self) -> Source:
        """The file that contains it."""

    @property
    def span(self) -> Span:
        """Its place in the file."""


def note(
    code: str,
    at: Label | Located,
    message: str,
    hint: str | None = None,
    *,
    fix: Fix | None = None,
    secondary: tuple[Label, ...] = (),
) -> Diagnostic:
    """A finding that is worth knowing and stops nothing."""
    return Diagnostic(code, message, _label(at), Severity.NOTE, secondary, hint, fix)


def warning(
    code: str,
    at: Label | Located,
    message: str,
    hint: str | None = None,
    *,
    secondary: tuple[Label, ...] = (),
) -> Diagnostic:
    """A finding that is probably a mistake."""
    return Diagnostic(code, message, _label(at), Severity.WARNING, secondary, hint)


def error(code: str, at: Label | Located, message: str, hint: str | None = None) -> Diagnostic:
    """A finding that leaves the run no chance."""
    return Diagnostic(code, message, _label(at), hint=hint)


def _label(at: Label | Located) -> Label:
    return at if isinstance(at, Label) else Label(at.source, at.span)


def place_of(checked: Checked, kind: str, name: str | None, setting: str | None = None) -> Label:
    """The place of a declaration or of one of its settings; the first statement if the program has neither."""
    found = checked.place_of(kind, name, setting)
    if found is not None:
        return Label(*found)
    source = checked.program.source
    first = checked.program.statements[0].span.start if checked.program.statements else 0
    return Label(source, Span(first, min(first + 1, len(source.text))))
