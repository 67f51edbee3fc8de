"""Diagnostics are collected as values, never raised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum

from skillc.dataclass import dataclass
from skillc.syntax.source import Source, Span

LATER_VERSION = "SK605"
"""The code for features of a later version. A program with this error still has a meaning."""


class Severity(Enum):
    """An error stops a compile; a warning and a note do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Label:
    """A location that a message points at, with an optional text."""

    source: Source
    span: Span
    text: str = ""


@dataclass(frozen=True, slots=True)
class Fix:
    """Replace `span` with `text`; `safe` if that can't change the meaning that the author intended."""

    span: Span
    text: str
    safe: bool = True


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    Attributes:
        code: a code of the registry (`codes/`), such as `SK201`.
        message: lower case, no final stop, the user's words in backticks.
        primary: the location.
        secondary: a few related locations.
        hint: how to fix it, in one line.
    """

    code: str
    message: str
    primary: Label
    severity: Severity = Severity.ERROR
    secondary: tuple[Label, ...] = ()
    hint: str | None = None
    fix: Fix | None = None

    @property
    def text(self) -> str:
        """The message, and on a new line the hint."""
        return self.message if self.hint is None else f"{self.message}\n{self.hint}"


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that a comment of the program suppresses."""

    diagnostic: Diagnostic
    reason: str
    comment: Label


_SEARCH_LIMIT = 2_000_000
"""Character comparisons for spelling suggestions in one program, about two seconds."""
_REPEATS_SHOWN = 3
"""Further locations of an unknown name in its diagnostic."""


class Reporter:
    """Collects diagnostics; duplicates at the same location are dropped.

    Attributes:
        errors: the number of errors.
    """

    def __init__(self, found: Iterable[Diagnostic] = ()) -> None:
        self._found: dict[tuple[str, str, Span, str], Diagnostic] = {}
        self._unknown: dict[str, tuple[tuple[str, str, Span, str], bool]] = {}
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
    ) -> None:
        """Report an error."""
        self._keep(Diagnostic(code, message, Label(source, span, label), Severity.ERROR, secondary, hint, fix))

    def offsets(self, code: str, source: Source) -> list[int]:
        """Return the offsets in a source of the findings with a code."""
        return [
            found.primary.span.start
            for found in self._found.values()
            if found.code == code and found.primary.source is source
        ]

    def repeats_unknown(self, source: Source, span: Span, name: str) -> bool:
        """Return whether an unknown name was reported before; if so, add this location to that diagnostic."""
        known = self._unknown.get(name)
        if known is None:
            return False
        found = self._found[known[0]]
        if (found.primary.source, found.primary.span) != (source, span) and len(found.secondary) < _REPEATS_SHOWN:
            self._found[known[0]] = replace(found, secondary=(*found.secondary, Label(source, span, "and here")))
        return True

    def add_unknown(
        self, source: Source, span: Span, message: str, name: str, hint: str | None, *, in_gate: bool
    ) -> None:
        """Report an unknown name that resembles no other; `repeats_unknown` adds its further locations."""
        self.add("SK204", source, span, message, hint=hint)
        self._unknown[name] = ("SK204", source.name, span, message), in_gate

    def take_missing_metric(self) -> tuple[str, Label] | None:
        """Remove and return the unknown name that gates read most often: the missing goal probably has this name."""
        read = {name: key for name, (key, in_gate) in self._unknown.items() if in_gate and key in self._found}
        if not read:
            return None
        name = max(read, key=lambda each: len(self._found[read[each]].secondary))
        self.errors -= 1
        return name, self._found.pop(read[name]).primary

    def spelling_candidates(self, word: str, known: Iterable[str], *, ordered: bool = False) -> list[str]:
        """Return the known words to search for suggestions, sorted if asked; none once the search limit is reached.

        The limit keeps generated programs with thousands of names and errors from taking minutes.
        """
        if self._searched > _SEARCH_LIMIT:
            return []
        names = sorted(known) if ordered else list(known)
        self._searched += len(names) * len(word) ** 2
        return names

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return all findings in the order of their reports."""
        return tuple(self._found.values())
