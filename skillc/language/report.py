"""Where the passes put what they find."""

from __future__ import annotations

from collections.abc import Iterable

from skillc.language.diagnostics import Diagnostic, Fix, Label, Severity
from skillc.language.source import Source, Span


class Report:
    """Collects diagnostics; the same finding at the same place is kept once."""

    def __init__(self, found: Iterable[Diagnostic] = ()) -> None:
        self._found: dict[tuple[str, str, Span, str], Diagnostic] = {}
        for each in found:
            self._keep(each)

    def _keep(self, found: Diagnostic) -> None:
        key = (found.code, found.primary.source.name, found.primary.span, found.message)
        self._found.setdefault(key, found)

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

    @property
    def errors(self) -> int:
        """How many errors were reported."""
        return sum(d.severity is Severity.ERROR for d in self._found.values())

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
