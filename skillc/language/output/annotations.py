"""Findings as commands of a GitHub workflow, which show them beside the lines of a pull request."""

from __future__ import annotations

from skillc.language.codes import CODES
from skillc.language.diagnostics import Diagnostic, Severity

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def annotation(diagnostic: Diagnostic) -> str:
    """One line: `::error file=a.skill,line=6,col=34,endLine=6,endColumn=41,title=SK204 an unknown name::message`.

    Columns are left out where a finding goes over several lines, which GitHub refuses otherwise.
    """
    source, span = diagnostic.primary.source, diagnostic.primary.span
    length = len(source.text)
    line, column = source.position(min(span.start, length))
    end_line, end_column = source.position(min(span.end, length))
    places = {"file": source.name.replace("\\", "/"), "line": str(line)}
    if line == end_line:
        places |= {"col": str(column), "endLine": str(end_line), "endColumn": str(end_column)}
    else:
        places |= {"endLine": str(end_line)}
    code = CODES.get(diagnostic.code)
    places["title"] = f"{diagnostic.code} {code.title}" if code is not None else diagnostic.code
    said = diagnostic.message if diagnostic.hint is None else f"{diagnostic.message}\n{diagnostic.hint}"
    listed = ",".join(f"{name}={_property(value)}" for name, value in places.items())
    return f"::{_LEVELS[diagnostic.severity]} {listed}::{_data(said)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
