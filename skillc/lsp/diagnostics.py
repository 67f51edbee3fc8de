"""What the checker finds, as an editor shows it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lsprotocol import types

from skillc.diagnostics.diagnostic import Diagnostic, Label, Severity
from skillc.errors import SkillcError
from skillc.lsp.workspace import Project
from skillc.syntax.source import Source, Span

SOURCE = "skillc"

_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}
UNUSED = frozenset({"SK045", "SK109", "SK409", "SK415", "SK416", "SK417", "SK418"})
"""Codes that say that something has no use, so that it may be drawn faded."""


class Findings:
    """The findings of every open program, by the file that they stand in.

    A file may be spoken of by several programs, so each program's findings are kept apart, and a file is told all.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._of: dict[str, dict[str, list[types.Diagnostic]]] = {}
        self.read: dict[str, frozenset[str]] = {}

    def check(self, name: str) -> set[str]:
        """Find out again what is wrong with a program; the files that have something new to show."""
        try:
            analysis = self._project.analysis(name)
        except SkillcError as error:
            self.read[name] = frozenset({name})
            return self._put(name, {name: [_unreadable(error)]})
        found: dict[str, list[types.Diagnostic]] = {name: []}
        for diagnostic in analysis.checked.diagnostics:
            place = diagnostic.primary.source
            found.setdefault(place.name, []).append(as_lsp(self._project, diagnostic))
        self.read[name] = frozenset(analysis.read)
        return self._put(name, found)

    def drop(self, name: str) -> set[str]:
        """Forget a program; the files that have something new to show."""
        self.read.pop(name, None)
        return self._put(name, {}) | {name}

    def users(self, name: str) -> list[str]:
        """The open programs that were made from a file, itself first."""
        return sorted((main for main, read in self.read.items() if name in read), key=lambda main: (main != name, main))

    def of(self, name: str) -> list[types.Diagnostic]:
        """All that there is to say about a file, each once."""
        found: list[types.Diagnostic] = []
        keys = set()
        mains = self._of.get(name, {})
        for main in sorted(mains, key=lambda each: (each != name, each)):
            for each in mains[main]:
                key = (each.code, each.message, str(each.range))
                if key not in keys:
                    keys.add(key)
                    found.append(each)
        return found

    def _put(self, main: str, found: dict[str, list[types.Diagnostic]]) -> set[str]:
        touched = {name for name, mains in self._of.items() if main in mains}
        for name in touched:
            del self._of[name][main]
        for name, diagnostics in found.items():
            self._of.setdefault(name, {})[main] = diagnostics
        self._of = {name: mains for name, mains in self._of.items() if mains}
        return touched | set(found)


def as_lsp(project: Project, diagnostic: Diagnostic) -> types.Diagnostic:
    """A finding in the editor's terms; the hint stands behind the message, on a line of its own."""
    primary = diagnostic.primary
    message = diagnostic.message if diagnostic.hint is None else f"{diagnostic.message}\n{diagnostic.hint}"
    related = [
        types.DiagnosticRelatedInformation(
            project.location(label.source, label.span), label.text or _shown(label.source, label.span)
        )
        for label in diagnostic.secondary
        if _has_place(label)
    ]
    return types.Diagnostic(
        range=project.positions(primary.source).range(visible(primary.source, primary.span)),
        message=message,
        severity=_SEVERITIES[diagnostic.severity],
        code=diagnostic.code,
        source=SOURCE,
        related_information=related or None,
        tags=[types.DiagnosticTag.Unnecessary] if diagnostic.code in UNUSED else None,
    )


def visible(source: Source, span: Span) -> Span:
    """A span that can be seen: an empty one takes in a neighbour."""
    if span.end == span.start:
        if span.end < len(source.text) and source.text[span.end] not in "\r\n":
            return Span(span.start, span.end + 1)
        if span.start > 0 and source.text[span.start - 1] not in "\r\n":
            return Span(span.start - 1, span.end)
    return span


def overlapping(project: Project, diagnostics: Iterable[Diagnostic], name: str, span: Span) -> list[Diagnostic]:
    """The findings in a file that touch a span."""
    return [
        each
        for each in diagnostics
        if each.primary.source.name == name
        and (shown := visible(each.primary.source, each.primary.span)).start <= span.end
        and span.start <= shown.end
    ]


def _has_place(label: Label) -> bool:
    return Path(label.source.name).is_absolute() or ":" in label.source.name


def _shown(source: Source, span: Span) -> str:
    return " ".join(source.slice(span).split())[:80] or "here"


def _unreadable(error: SkillcError) -> types.Diagnostic:
    start = types.Position(0, 0)
    message = error.message if error.hint is None else f"{error.message}\n{error.hint}"
    return types.Diagnostic(types.Range(start, start), message, types.DiagnosticSeverity.Error, source=SOURCE)
