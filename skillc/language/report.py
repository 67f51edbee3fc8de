"""Where the passes put what they find."""

from __future__ import annotations

from collections.abc import Iterable

from skillc.language.diagnostics import Diagnostic, Fix, Label, Severity
from skillc.language.source import Source, Span

_SEARCH_LIMIT = 2_000_000
"""Letters compared in search of the words that were meant, a second or two; a program of people needs few of them."""


class Report:
    """Collects diagnostics; the same finding at the same place is kept once.

    Attributes:
        errors: how many errors were reported.
    """

    def __init__(self, found: Iterable[Diagnostic] = ()) -> None:
        self._found: dict[tuple[str, str, Span, str], Diagnostic] = {}
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

    def note(
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
        """Report what is worth knowing and stops nothing."""
        severity = Severity.NOTE
        self.add(code, source, span, message, label=label, hint=hint, secondary=secondary, fix=fix, severity=severity)

    def warn(
        self, code: str, source: Source, span: Span, message: str, *, label: str = "", hint: str | None = None
    ) -> None:
        """Report what is probably a mistake."""
        self.add(code, source, span, message, label=label, hint=hint, severity=Severity.WARNING)

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


def mended(word: str, span: Span, known: Iterable[str]) -> Fix | None:
    """The edit that writes the one of the known words that was probably meant."""
    from skillc.language.suggest import suggest

    near = suggest(word, known)
    return Fix(span, near, safe=False) if near else None


def meant(word: str, known: Iterable[str]) -> str | None:
    """The one of the known words that was probably meant, in the form of a hint."""
    from skillc.language.suggest import suggest

    near = suggest(word, known)
    return f"did you mean `{near}`?" if near else None
