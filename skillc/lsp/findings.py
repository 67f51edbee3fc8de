"""Diagnostics for an editor, quick fixes and suppressions; and formatting as edits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import accumulate
from pathlib import Path

from lsprotocol import types

from skillc.diagnostics import fixing
from skillc.diagnostics.diagnostic import Diagnostic, Fix, Severity
from skillc.errors import SkillcError
from skillc.lsp.workspace import Analysis, Positions, Project
from skillc.syntax.source import Source, Span
from skillc.syntax.tokens import opaque

SOURCE = "skillc"

_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}
UNUSED = frozenset({"SK045", "SK109", "SK409", "SK415", "SK416", "SK417", "SK418"})
"""Codes of unused declarations, which an editor may show faded."""


class Findings:
    """The findings of every open program, by file.

    Several programs may have findings in the same file, so they are stored by program.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._of: dict[str, dict[str, list[types.Diagnostic]]] = {}
        self.read: dict[str, frozenset[str]] = {}

    def check(self, name: str) -> set[str]:
        """Check a program again; return the files whose findings changed."""
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
        """Forget a program; return the files whose findings changed."""
        self.read.pop(name, None)
        return self._put(name, {}) | {name}

    def users(self, name: str) -> list[str]:
        """Return the open programs that use a file, the file itself first."""
        return sorted((main for main, read in self.read.items() if name in read), key=lambda main: (main != name, main))

    def of(self, name: str) -> list[types.Diagnostic]:
        """Return all findings in a file, without duplicates."""
        found: dict[tuple[object, ...], types.Diagnostic] = {}
        mains = self._of.get(name, {})
        for main in sorted(mains, key=lambda each: (each != name, each)):
            for each in mains[main]:
                found.setdefault((each.code, each.message, str(each.range)), each)
        return list(found.values())

    def _put(self, main: str, found: dict[str, list[types.Diagnostic]]) -> set[str]:
        touched = {name for name, mains in self._of.items() if main in mains}
        for name in touched:
            del self._of[name][main]
        for name, diagnostics in found.items():
            self._of.setdefault(name, {})[main] = diagnostics
        self._of = {name: mains for name, mains in self._of.items() if mains}
        return touched | set(found)


def as_lsp(project: Project, diagnostic: Diagnostic) -> types.Diagnostic:
    """Convert a finding; its hint follows the message on a new line."""
    primary = diagnostic.primary
    related = [
        types.DiagnosticRelatedInformation(
            project.location(label.source, label.span),
            label.text or " ".join(label.source.slice(label.span).split())[:80] or "here",
        )
        for label in diagnostic.secondary
        if Path(label.source.name).is_absolute() or ":" in label.source.name
    ]
    return types.Diagnostic(
        range=project.positions(primary.source).range(visible(primary.source, primary.span)),
        message=diagnostic.text,
        severity=_SEVERITIES[diagnostic.severity],
        code=diagnostic.code,
        source=SOURCE,
        related_information=related or None,
        tags=[types.DiagnosticTag.Unnecessary] if diagnostic.code in UNUSED else None,
    )


def visible(source: Source, span: Span) -> Span:
    """Return a visible span: extend an empty one to a neighbour."""
    if span.end == span.start:
        if span.end < len(source.text) and source.text[span.end] not in "\r\n":
            return Span(span.start, span.end + 1)
        if span.start > 0 and source.text[span.start - 1] not in "\r\n":
            return Span(span.start - 1, span.end)
    return span


def overlapping(diagnostics: Iterable[Diagnostic], name: str, span: Span) -> list[Diagnostic]:
    """Return the findings in a file that touch a span."""
    return [
        each
        for each in diagnostics
        if each.primary.source.name == name
        and (shown := visible(each.primary.source, each.primary.span)).start <= span.end
        and span.start <= shown.end
    ]


def _unreadable(error: SkillcError) -> types.Diagnostic:
    start = types.Position(0, 0)
    message = error.message if error.hint is None else f"{error.message}\n{error.hint}"
    return types.Diagnostic(types.Range(start, start), message, types.DiagnosticSeverity.Error, source=SOURCE)


# ---- edits of lines -------------------------------------------------------------------------------


def line_edits(positions: Positions, old: str, new: str) -> list[types.TextEdit]:
    """Return replacements of whole lines; none if the texts are equal."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    offsets = list(accumulate(map(len, before), initial=0))
    found = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            place = positions.range(Span(offsets[a], offsets[b]))
            found.append(types.TextEdit(place, "".join(after[c:d])))
    return found


# ---- code actions ---------------------------------------------------------------------------------


REASON = "why it may stay"

_SUPPRESSION = re.compile(r"#+[ \t]*skillc:[ \t]*ignore\[[^\]]*[^\]\s,]")


def code_actions(
    project: Project, analysis: Analysis, span: Span, only: Iterable[str] | None = None
) -> list[types.CodeAction]:
    """Offer fixes and suppressions for findings that touch a span; `only` are the requested kinds, or prefixes."""
    wanted = tuple(only) if only is not None else None
    found: list[types.CodeAction] = []
    name = analysis.source.name
    if _is_requested(types.CodeActionKind.QuickFix, wanted):
        for diagnostic in overlapping(analysis.checked.diagnostics, name, span):
            found += _quick_fixes(project, analysis, diagnostic)
    if _is_requested(types.CodeActionKind.SourceFixAll, wanted):
        found += _fix_all(project, analysis, requested=wanted is not None)
    return found


def _fix_all(project: Project, analysis: Analysis, *, requested: bool) -> Iterator[types.CodeAction]:
    """Offer what `check --fix` does; unless requested, only if there are several fixes."""
    safe = [each for each in analysis.checked.diagnostics if each.fix is not None and each.fix.safe]
    if len(safe) < (1 if requested else 2):
        return
    fixed = fixing.fix(analysis.source, lambda source: project.analyse(source).checked)
    edits = line_edits(project.positions(analysis.source), analysis.source.text, fixed.source.text)
    if edits:
        edit = types.WorkspaceEdit(changes={project.uri(analysis.source.name): edits})
        title = f"Apply all safe fixes ({len(fixed.applied)})"
        yield types.CodeAction(title, types.CodeActionKind.SourceFixAll, edit=edit)


def _is_requested(kind: types.CodeActionKind, only: tuple[str, ...] | None) -> bool:
    return only is None or any(not each or kind.value == each or kind.value.startswith(f"{each}.") for each in only)


def _quick_fixes(project: Project, analysis: Analysis, diagnostic: Diagnostic) -> Iterator[types.CodeAction]:
    shown = [as_lsp(project, diagnostic)]
    kind = types.CodeActionKind.QuickFix
    if diagnostic.fix is not None:
        title, edit = _title(diagnostic, diagnostic.fix), _edit(project, analysis.source, diagnostic.fix)
        yield types.CodeAction(title, kind, shown, is_preferred=diagnostic.fix.safe, edit=edit)
    comment = suppression(analysis, diagnostic)
    if comment is not None:
        title = f"Suppress {diagnostic.code} here"
        yield types.CodeAction(title, kind, shown, edit=_edit(project, analysis.source, comment))


def _title(diagnostic: Diagnostic, fix: Fix) -> str:
    text = " ".join(fix.text.split())
    hint = diagnostic.hint
    if hint is not None and not hint.endswith("?"):
        return hint[:1].upper() + hint[1:]
    return f"Change to `{text}`" if text else "Remove it"


def suppression(analysis: Analysis, diagnostic: Diagnostic) -> Fix | None:
    """Return the edit that suppresses a finding; None for an error, and inside a text."""
    if diagnostic.severity is Severity.ERROR:
        return None
    text = analysis.source.text
    end = len(text[: analysis.source.line_end(diagnostic.primary.span.start)].rstrip("\r"))
    texts = (match for match in opaque(text) if match["text"] and match.start() < end)
    if any(end < match.end() or match[0] == '"""' for match in texts):
        return None
    comment = f"  # skillc: ignore[{diagnostic.code}] {REASON}"
    for item in analysis.work.program.comments:
        if item.span.start < end <= item.span.end:
            at = item.span.start
            known = _SUPPRESSION.match(item.text)
            if known is not None:
                return Fix(Span(at + known.end(), at + known.end()), f", {diagnostic.code}", safe=False)
            # Insert it before the existing comment.
            return Fix(Span(at, at), f"{comment.lstrip()}  ", safe=False)
    return Fix(Span(end, end), comment, safe=False)


def _edit(project: Project, source: Source, fix: Fix) -> types.WorkspaceEdit:
    edit = types.TextEdit(project.positions(source).range(fix.span), fixing.with_line_ends_of(source, fix.text))
    return types.WorkspaceEdit(changes={project.uri(source.name): [edit]})


# ---- formatting -----------------------------------------------------------------------------------


def formatting(project: Project, analysis: Analysis) -> list[types.TextEdit]:
    """Return the edits that format a document; none if it is formatted, or has syntax errors."""
    from skillc.syntax.formatting import format_source

    if not analysis.readable:
        return []
    source = analysis.source
    text = format_source(source).text
    return [] if text is None else line_edits(project.positions(source), source.text, text)
