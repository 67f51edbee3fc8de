"""Quick fixes: what a finding offers to mend, all of them at once, and the comment that lets a finding stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lsprotocol import types

from skillc.diagnostics.diagnostic import Diagnostic, Fix, Severity
from skillc.diagnostics.fixing import fix
from skillc.lsp.diagnostics import as_lsp, overlapping
from skillc.lsp.edits import line_edits
from skillc.lsp.workspace import Analysis, Project
from skillc.syntax.source import Source, Span
from skillc.syntax.tokens import parts

KINDS = (types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll)
REASON = "say why"

_SUPPRESSION = re.compile(r"#+[ \t]*skillc:[ \t]*ignore\[[^\]]*[^\]\s,]")


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
        found += _fix_all(project, analysis, asked=wanted is not None)
    return found


def _fix_all(project: Project, analysis: Analysis, *, asked: bool) -> Iterator[types.CodeAction]:
    """What `check --fix` would do; where nobody asked for it, only if there is more than one fix."""
    safe = [each for each in analysis.checked.diagnostics if each.fix is not None and each.fix.safe]
    if len(safe) < (1 if asked else 2):
        return
    fixed = fix(analysis.source, lambda source: project.analyse(source).checked)
    edits = line_edits(project.positions(analysis.source), analysis.source.text, fixed.source.text)
    if edits:
        edit = types.WorkspaceEdit(changes={project.uri(analysis.source.name): edits})
        title = f"Mend all that can be mended safely ({len(fixed.applied)})"
        yield types.CodeAction(title, types.CodeActionKind.SourceFixAll, edit=edit)


def _asked(kind: types.CodeActionKind, only: tuple[str, ...] | None) -> bool:
    if only is None:
        return True
    return any(not each or kind.value == each or kind.value.startswith(f"{each}.") for each in only)


def _quick_fixes(project: Project, analysis: Analysis, diagnostic: Diagnostic) -> Iterator[types.CodeAction]:
    shown = [as_lsp(project, diagnostic)]
    mend = diagnostic.fix
    if mend is not None:
        yield types.CodeAction(
            title=_title(diagnostic, mend),
            kind=types.CodeActionKind.QuickFix,
            diagnostics=shown,
            is_preferred=mend.safe,
            edit=_edit(project, analysis.source, mend),
        )
    quiet = suppression(analysis, diagnostic)
    if quiet is not None:
        yield types.CodeAction(
            title=f"Let {diagnostic.code} stand here",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=shown,
            edit=_edit(project, analysis.source, quiet),
        )


def _title(diagnostic: Diagnostic, mend: Fix) -> str:
    text = " ".join(mend.text.split())
    hint = diagnostic.hint
    if hint is not None and not hint.endswith("?"):
        return hint[:1].upper() + hint[1:]
    return f"Change to `{text}`" if text else "Remove it"


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
    for item in analysis.work.program.comments:
        if item.span.start < end <= item.span.end:
            at = item.span.start
            known = _SUPPRESSION.match(item.text)
            if known is not None:
                return Fix(Span(at + known.end(), at + known.end()), f", {diagnostic.code}", safe=False)
            # What is said there already stays behind the comment of its own.
            return Fix(Span(at, at), f"{comment.lstrip()}  ", safe=False)
    return Fix(Span(end, end), comment, safe=False)


def _in_text(text: str, place: int) -> bool:
    texts = (match for match in parts(text) if match["text"] and match.start() < place)
    return any(place < match.end() or match[0] == '"""' for match in texts)


def _edit(project: Project, source: Source, mend: Fix) -> types.WorkspaceEdit:
    text = mend.text.replace("\n", "\r\n") if "\r\n" in source.text else mend.text
    edit = types.TextEdit(project.positions(source).range(mend.span), text)
    return types.WorkspaceEdit(changes={project.uri(source.name): [edit]})
