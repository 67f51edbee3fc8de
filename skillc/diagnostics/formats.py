"""Write diagnostics for other tools: JSON, SARIF 2.1.0 and the annotations of GitHub workflows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from skillc.diagnostics.diagnostic import Diagnostic, Fix, Label, Severity, Suppressed
from skillc.syntax.source import Source, Span

if TYPE_CHECKING:
    from skillc.diagnostics.codes import Code

FORMAT_VERSION = 1
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_GITHUB_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def as_json(diagnostics: Sequence[Diagnostic], suppressed: Sequence[Suppressed] = ()) -> dict[str, Any]:
    """Return all diagnostics as JSON: lines and columns from 1, offsets in characters from 0."""
    return {
        "format_version": FORMAT_VERSION,
        "diagnostics": [_json_object(each) for each in diagnostics],
        "suppressed": [{**_json_object(each.diagnostic), "reason": each.reason} for each in suppressed],
    }


def _json_object(diagnostic: Diagnostic) -> dict[str, Any]:
    fix = diagnostic.fix
    return {
        "code": diagnostic.code,
        "page": f"docs/errors/{diagnostic.code}.md",
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        **_json_location(diagnostic.primary.source, diagnostic.primary.span),
        "label": diagnostic.primary.text,
        "related": [{**_json_location(each.source, each.span), "label": each.text} for each in diagnostic.secondary],
        "fix": fix and {**_json_location(diagnostic.primary.source, fix.span), "text": fix.text, "safe": fix.safe},
    }


def _json_location(source: Source, span: Span) -> dict[str, Any]:
    line, column = source.position(span.start)
    end_line, end_column = source.position(span.end)
    return {
        "file": source.name,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "start": span.start,
        "end": span.end,
    }


# ---- SARIF ------------------------------------------------------------------------------------------


def log(
    diagnostics: Sequence[Diagnostic], suppressed: Sequence[Suppressed] = (), *, version: str, root: Path | None = None
) -> dict[str, Any]:
    """Return the SARIF log of a run. Columns count UTF-16 code units from 1; an end column is after the last character.

    Args:
        diagnostics: the findings.
        suppressed: suppressed findings, which are results too, with the reason.
        version: of skillc.
        root: files below it get relative URIs, others absolute ones; the working folder if None.
    """
    from skillc.diagnostics.codes import CODES

    root = (root or Path.cwd()).resolve()
    known = sorted({each.code for each in diagnostics} | {each.diagnostic.code for each in suppressed})
    rules = {code: i for i, code in enumerate(known)}
    results = [_result(each, rules, root) for each in diagnostics]
    for each in suppressed:
        place = _physical(each.comment.source, each.comment.span, root)
        suppression = {"kind": "inSource", "justification": each.reason, "location": {"physicalLocation": place}}
        results.append({**_result(each.diagnostic, rules, root), "suppressions": [suppression]})
    # If one result has suppressions, every result must have the property.
    if suppressed:
        results = [{"suppressions": [], **result} for result in results]
    driver = {"name": "skillc", "semanticVersion": version, "rules": [_rule(code, CODES.get(code)) for code in known]}
    run = {"tool": {"driver": driver}, "columnKind": "utf16CodeUnits", "results": results}
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str, entry: Code | None) -> dict[str, Any]:
    # No `helpUri`: it must be absolute, and the pages have no host. `help` contains the whole page.
    if entry is None:
        return {"id": code}
    words = markdown = entry.explanation
    if entry.bad:
        markdown += f"\n\n```\n{entry.bad.strip()}\n```\n\nFixed:\n\n```\n{entry.good.strip()}\n```"
    return {
        "id": code,
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": words},
        "help": {"text": words, "markdown": markdown},
        "properties": {"tags": [entry.stage]},
    }


def _result(found: Diagnostic, rules: dict[str, int], root: Path) -> dict[str, Any]:
    message = found.message if found.hint is None else f"{found.message}; {found.hint}"
    result: dict[str, Any] = {
        "ruleId": found.code,
        "ruleIndex": rules[found.code],
        "level": found.severity.value,
        "message": {"text": message},
        "locations": [_location(found.primary, root)],
    }
    if found.secondary:
        result["relatedLocations"] = [
            {"id": i, **_location(label, root)} for i, label in enumerate(found.secondary, start=1)
        ]
    if found.fix is not None:
        result["fixes"] = [_fix(found, found.fix, root)]
    return result


def _location(label: Label, root: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"physicalLocation": _physical(label.source, label.span, root)}
    if label.text:
        found["message"] = {"text": label.text}
    return found


def _physical(source: Source, span: Span, root: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"artifactLocation": {"uri": _uri(source.name, root)}}
    if source.text:
        found["region"] = _region(source, span)
    return found


def _region(source: Source, span: Span) -> dict[str, Any]:
    length = len(source.text)
    line, column = _position(source, min(span.start, length))
    end_line, end_column = _position(source, min(span.end, length))
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _position(source: Source, offset: int) -> tuple[int, int]:
    line, column = source.position(offset)
    start = source.line_starts[line - 1]
    surrogates = sum(character > "\uffff" for character in source.text[start:offset])
    return line, column + surrogates


def _fix(found: Diagnostic, fix: Fix, root: Path) -> dict[str, Any]:
    source = found.primary.source
    replacement = {"deletedRegion": _region(source, fix.span), "insertedContent": {"text": fix.text}}
    change = {"artifactLocation": {"uri": _uri(source.name, root)}, "replacements": [replacement]}
    words = found.hint or "apply the fix"
    if not fix.safe:
        words += " (unsafe: it may change the meaning of the program)"
    return {"description": {"text": words}, "artifactChanges": [change]}


def _uri(name: str, root: Path) -> str:
    """Return the URI of a file, relative if it is below the root, because code scanning resolves only these."""
    path = Path(name)
    absolute = path if path.is_absolute() else root / path
    for place in (absolute, absolute.resolve()):
        if place.is_relative_to(root) and ".." not in place.relative_to(root).parts:
            return quote(place.relative_to(root).as_posix(), safe="/", errors="surrogateescape")
    return absolute.resolve().as_uri()


# ---- GitHub -----------------------------------------------------------------------------------------


def annotation(diagnostic: Diagnostic) -> str:
    """Return a workflow command, such as `::error file=a.skill,line=6,endLine=7,title=SK204 unknown name::message`.

    Findings over several lines have no columns, because GitHub rejects those.
    """
    from skillc.diagnostics.codes import CODES

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
    properties = ",".join(
        f"{name}={_data(value).replace(':', '%3A').replace(',', '%2C')}" for name, value in places.items()
    )
    return f"::{_GITHUB_LEVELS[diagnostic.severity]} {properties}::{_data(diagnostic.text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
