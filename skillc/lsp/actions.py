"""Quick fixes: what a finding offers to mend, all of them at once, and the comment that lets a finding stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lsprotocol import types

from skillc.language.diagnostics import Diagnostic, Fix, Severity
from skillc.language.scan import STRING, TEXT
from skillc.language.source import Source, Span
from skillc.lsp.diagnostics import as_lsp, overlapping
from skillc.lsp.workspace import Analysis, Project

KINDS = (types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll)
REASON = "say why"

_TEXTS = re.compile(rf'(?P<text>{TEXT}|"""(?:.*)\Z)|{STRING}|\#[^\n]*|///[^\n]*', re.DOTALL)


def code_actions(
    project: Project, analysis: Analysis, span: Span, only: Iterable[str] | None = None
) -> list[types.CodeAction]:
    """What can be done about the findings that touch a span.

    Args:
        project: the workspace.
        analysis: of the file.
        span: the selection.
        only: the kinds of action that the editor asks for, or what they begin with.
    """
    wanted = tuple(only) if only is not None else None
    found: list[types.CodeAction] = []
    name = analysis.source.name
    if _asked(types.CodeActionKind.QuickFix, wanted):
        for diagnostic in overlapping(project, analysis.checked.diagnostics, name, span):
            found += _quick_fixes(project, analysis, diagnostic)
    if _asked(types.CodeActionKind.SourceFixAll, wanted):
        fixes = list(safe_fixes(analysis))
        if fixes and (wanted is not None or len(fixes) > 1):
            edit = _edit(project, analysis.source, fixes)
            title = f"Mend all that can be mended safely ({len(fixes)})"
            found.append(types.CodeAction(title, types.CodeActionKind.SourceFixAll, edit=edit))
    return found


def _asked(kind: types.CodeActionKind, only: tuple[str, ...] | None) -> bool:
    if only is None:
        return True
    return any(not each or kind.value == each or kind.value.startswith(f"{each}.") for each in only)


def _quick_fixes(project: Project, analysis: Analysis, diagnostic: Diagnostic) -> Iterator[types.CodeAction]:
    shown = [as_lsp(project, diagnostic)]
    fix = diagnostic.fix
    if fix is not None:
        yield types.CodeAction(
            title=_title(diagnostic, fix),
            kind=types.CodeActionKind.QuickFix,
            diagnostics=shown,
            is_preferred=fix.safe,
            edit=_edit(project, analysis.source, [fix]),
        )
    quiet = suppression(analysis, diagnostic)
    if quiet is not None:
        yield types.CodeAction(
            title=f"Let {diagnostic.code} stand here",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=shown,
            edit=_edit(project, analysis.source, [quiet]),
        )


def _title(diagnostic: Diagnostic, fix: Fix) -> str:
    text = " ".join(fix.text.split())
    hint = diagnostic.hint
    if hint is not None and not hint.endswith("?"):
        return hint[:1].upper() + hint[1:]
    return f"Change to `{text}`" if text else "Remove it"


def safe_fixes(analysis: Analysis) -> Iterator[Fix]:
    """The safe fixes of a file that do not overlap, in its order."""
    end = -1
    fixes = [
        each.fix
        for each in analysis.checked.diagnostics
        if each.fix is not None and each.fix.safe and each.primary.source.name == analysis.source.name
    ]
    for fix in sorted(fixes, key=lambda fix: fix.span):
        if fix.span.start > end or (fix.span.start == end and fix.span.end > fix.span.start):
            yield fix
            end = fix.span.end


def suppression(analysis: Analysis, diagnostic: Diagnostic) -> Fix | None:
    """The comment at the end of the line that lets a finding stand; None for an error, and where none can be."""
    if diagnostic.severity is Severity.ERROR:
        return None
    text = analysis.source.text
    end = text.find("\n", diagnostic.primary.span.start)
    end = len(text) if end < 0 else end
    end = len(text[:end].rstrip("\r"))
    if _in_text(text, end):
        return None
    comment = f"  # skillc: ignore[{diagnostic.code}] {REASON}"
    for item in analysis.work.program.trivia:
        if item.kind != "blank" and item.span.start < end <= item.span.end:
            # What is said there already stays behind the comment of its own.
            at = item.span.start
            return Fix(Span(at, at), f"{comment.lstrip()}  ", safe=False)
    return Fix(Span(end, end), comment, safe=False)


def _in_text(text: str, place: int) -> bool:
    return any(match["text"] and match.start() < place < match.end() for match in _TEXTS.finditer(text))


def _edit(project: Project, source: Source, fixes: Iterable[Fix]) -> types.WorkspaceEdit:
    positions = project.positions(source)
    edits = [types.TextEdit(positions.range(fix.span), fix.text) for fix in fixes]
    return types.WorkspaceEdit(changes={project.uri(source.name): edits})
