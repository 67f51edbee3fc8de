"""Diagnostics are collected as values, never raised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from skillc.syntax.source import Source, Span

LATER_VERSION = "SK605"
"""The code of what only a later version can run. A program with such an error has a meaning all the same."""


class Severity(Enum):
    """How much a diagnostic weighs: an error stops a compile, a warning and a note do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Label:
    """A place that a message points at, and a text about it (may be empty)."""

    source: Source
    span: Span
    text: str = ""


@dataclass(frozen=True, slots=True)
class Fix:
    """A replacement of `span` by `text`; `safe` when it cannot change what the program means to its author."""

    span: Span
    text: str
    safe: bool = True


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    Attributes:
        code: a code of the registry (`codes/`), such as `SK201`.
        message: lower case, no final stop, the user's words in backticks.
        primary: the place; the other labels are related places.
        secondary: at most a few further places.
        hint: the fix, in one line.
    """

    code: str
    message: str
    primary: Label
    severity: Severity = Severity.ERROR
    secondary: tuple[Label, ...] = ()
    hint: str | None = None
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that a comment of the program ignores, with the reason and the comment."""

    diagnostic: Diagnostic
    reason: str
    comment: Label


_SEARCH_LIMIT = 2_000_000
"""Letters compared in search of the words that were meant, a second or two; a program of people needs few of them."""
_ALSO_SHOWN = 3
"""Further places that are shown for an undeclared name."""


class Reporter:
    """Collects diagnostics; the same finding at the same place is kept once.

    Attributes:
        errors: how many errors were reported.
    """

    def __init__(self, found: Iterable[Diagnostic] = ()) -> None:
        self._found: dict[tuple[str, str, Span, str], Diagnostic] = {}
        self._nowhere: dict[str, tuple[tuple[str, str, Span, str], bool]] = {}
        self._searched = 0
        self.errors = 0
        for each in found:
            self._keep(each)

    def _keep(self, found: Diagnostic) -> None:
        key = (found.code, found.primary.source.name, found.primary.span, found.message)
        if key not in self._found:
            self._found[key] = found
            self.errors += found.severity is Severity.ERROR

    def add(
        self,
        code: str,
        source: Source,
        span: Span,
        message: str,
        *,
        label: str = "",
        hint: str | None = None,
        secondary: tuple[Label, ...] = (),
        fix: Fix | None = None,
        severity: Severity = Severity.ERROR,
    ) -> None:
        """Report one finding."""
        self._keep(Diagnostic(code, message, Label(source, span, label), severity, secondary, hint, fix))

    def places(self, code: str, source: Source) -> list[int]:
        """Where a source has findings of a code."""
        return [
            found.primary.span.start
            for found in self._found.values()
            if found.code == code and found.primary.source is source
        ]

    def again(self, code: str, source: Source, span: Span, name: str) -> bool:
        """Whether a name that nothing declares was reported already; this place is then shown with the first."""
        known = self._nowhere.get(name)
        if known is None:
            return False
        found = self._found[known[0]]
        if (found.primary.source, found.primary.span) != (source, span) and len(found.secondary) < _ALSO_SHOWN:
            self._found[known[0]] = replace(found, secondary=(*found.secondary, Label(source, span, "and here")))
        return True

    def nowhere(self, source: Source, span: Span, message: str, name: str, hint: str | None, *, in_gate: bool) -> None:
        """Report a name that nothing declares and that is like no other; each further place is shown with the first."""
        self.add("SK204", source, span, message, hint=hint)
        self._nowhere[name] = ("SK204", source.name, span, message), in_gate

    def missing_metric(self) -> tuple[str, Label] | None:
        """Take back the name that gates alone read most and nothing declares: it names the goal that is missing."""
        read = {name: key for name, (key, in_gate) in self._nowhere.items() if in_gate and key in self._found}
        if not read:
            return None
        name = max(read, key=lambda each: len(self._found[read[each]].secondary))
        self.errors -= 1
        return name, self._found.pop(read[name]).primary

    def searchable(self, word: str, known: Iterable[str], *, ordered: bool = False) -> list[str]:
        """The known words among which the one that was meant is to be looked for, in the alphabet's order if asked.

        None of them once so many were compared that the search would take longer than it helps: names and mistakes in
        their thousands are no program of people.
        """
        if self._searched > _SEARCH_LIMIT:
            return []
        names = sorted(known) if ordered else list(known)
        self._searched += len(names) * len(word) ** 2
        return names

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All findings, in the order in which they were made."""
        return tuple(self._found.values())
