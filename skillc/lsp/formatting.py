"""The canonical form of a document, as edits of the lines that differ from it."""

from __future__ import annotations

from lsprotocol import types

from skillc.lsp.edits import line_edits
from skillc.lsp.workspace import Analysis, Project


def formatting(project: Project, analysis: Analysis) -> list[types.TextEdit]:
    """The edits of a document; none where it has a form already, or mistakes that leave none to be found."""
    from skillc.syntax.formatting import format_source

    if not analysis.readable:
        return []
    source = analysis.source
    text = format_source(source).text
    return [] if text is None else line_edits(project.positions(source), source.text, text)
