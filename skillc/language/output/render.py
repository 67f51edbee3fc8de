"""Diagnostics as a reader sees them: text with the source under it, one line each, or JSON.

What other tools read, SARIF and the annotations of GitHub, is made in `sarif.py` and `annotations.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skillc.language.diagnostics import Diagnostic, Fix, Label, Severity, Suppressed
from skillc.language.output import excerpt
from skillc.syntax.source import Source, Span

FORMAT_VERSION = 1

_COLORS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.NOTE: "1;36"}
_BOLD, _BLUE = "1", "1;34"


def text(diagnostic: Diagnostic, *, color: bool = False) -> str:
    """A diagnostic with the lines that it is about, without a newline at the end. Colour adds nothing but colour."""
    tone = _COLORS[diagnostic.severity]
    head = _paint(f"{diagnostic.severity.value}[{diagnostic.code}]", tone, color) + _mark(diagnostic)
    message = _paint(f": {excerpt.printable(diagnostic.message)}", _BOLD, color)
    labels = (diagnostic.primary, *diagnostic.secondary)
    width = max(len(str(_position(label)[0])) for label in labels)
    lines = [head + message]
    for i, source in enumerate(dict.fromkeys(label.source for label in labels)):
        own = [label for label in labels if label.source == source]
        line, column = _position(own[0])
        arrow = _paint(f"{' ' * width}{'-->' if i == 0 else ':::'}", _BLUE, color)
        lines.append(f"{arrow} {excerpt.printable(source.name)}:{line}:{column}")
        if source.text:
            lines += _drawn(source, own, diagnostic.primary, width, tone, color)
    told = {"help": diagnostic.hint, **_shown_fix(diagnostic)}
    if any(told.values()) and diagnostic.primary.source.text:
        lines.append(_paint(f"{' ' * width} |", _BLUE, color))
    edge = _paint(f"{' ' * width} =", _BLUE, color)
    lines += [f"{edge} {_paint(what, _BOLD, color)}: {excerpt.printable(said)}" for what, said in told.items() if said]
    return "\n".join(lines)


def concise(diagnostic: Diagnostic) -> str:
    """One line: `tickets.skill:6:34: error[SK201]: unknown metric`."""
    line, column = _position(diagnostic.primary)
    place = f"{excerpt.printable(diagnostic.primary.source.name)}:{line}:{column}"
    head = f"{diagnostic.severity.value}[{diagnostic.code}]{_mark(diagnostic)}"
    return f"{place}: {head}: {excerpt.printable(diagnostic.message)}"


def as_json(diagnostics: Sequence[Diagnostic], suppressed: Sequence[Suppressed] = ()) -> dict[str, Any]:
    """All diagnostics for a program to read: lines and columns from 1, offsets in characters from 0."""
    return {
        "format_version": FORMAT_VERSION,
        "diagnostics": [_object(each) for each in diagnostics],
        "suppressed": [{**_object(each.diagnostic), "reason": each.reason} for each in suppressed],
    }


def summary(diagnostics: Sequence[Diagnostic], suppressed: int = 0) -> str:
    """`2 errors and 1 note, 1 fixable with --fix, 1 suppressed`, or `no findings`."""
    safe = sum(each.fix is not None and each.fix.safe for each in diagnostics)
    unsafe = sum(each.fix is not None and not each.fix.safe for each in diagnostics)
    parts = [_counted(diagnostics)]
    if safe:
        parts.append(f"{safe} fixable with `--fix`")
    if unsafe:
        parts.append(f"{unsafe} {'more ' if safe else ''}with `--fix --unsafe-fixes`")
    if suppressed:
        parts.append(f"{suppressed} suppressed")
    return ", ".join(parts)


def _counted(diagnostics: Sequence[Diagnostic]) -> str:
    counts = []
    for severity in Severity:
        count = sum(each.severity is severity for each in diagnostics)
        if count:
            counts.append(f"{count} {severity.value}{'s' if count != 1 else ''}")
    if not counts:
        return "no findings"
    return counts[0] if len(counts) == 1 else ", ".join(counts[:-1]) + " and " + counts[-1]


def _mark(diagnostic: Diagnostic) -> str:
    """The sign of a finding that `--fix` mends."""
    return " [*]" if diagnostic.fix is not None and diagnostic.fix.safe else ""


def _shown_fix(diagnostic: Diagnostic) -> dict[str, str]:
    """The line as the fix would leave it, where it is about one line; the hint says the rest."""
    fix, source = diagnostic.fix, diagnostic.primary.source
    if fix is None or source.position(fix.span.start)[0] != source.position(fix.span.end)[0] or "\n" in fix.text:
        return {}
    begin = source.line_starts[source.position(fix.span.start)[0] - 1]
    line = source.line(source.position(fix.span.start)[0])
    start, end = fix.span.start - begin, fix.span.end - begin
    after = line[:start] + fix.text + line[end:]
    margin = len(after) - len(after.lstrip())
    window = excerpt.window(after[margin:].rstrip(), [(max(0, start - margin), max(0, start - margin) + len(fix.text))])
    return {"fix" if fix.safe else "fix, to be confirmed": window.shown}


def _drawn(source: Source, labels: Sequence[Label], primary: Label, width: int, tone: str, color: bool) -> list[str]:
    edge = _paint(f"{' ' * width} |", _BLUE, color)
    lines, shown = [edge], 0
    for number in sorted({_position(label)[0] for label in labels}):
        if shown and number == shown + 2:
            lines.append(_code(source, shown + 1, width, color))
        elif shown and number > shown + 1:
            lines.append(_paint(f"{' ' * width}...", _BLUE, color))
        own = sorted((each for each in labels if _position(each)[0] == number), key=lambda each: -each.span.start)
        window = excerpt.window(source.line(number), [_columns(source, each, number) for each in own])
        lines.append(_row(number, window.shown, width, color))
        for label in own:
            mark = "^" if label is primary else "-"
            start, length = window.underline(*_columns(source, label, number))
            drawn = _paint(
                f"{mark * length} {excerpt.printable(label.text)}".rstrip(), tone if mark == "^" else _BLUE, color
            )
            lines.append(f"{edge} {' ' * start}{drawn}")
        shown = number
    return lines


def _code(source: Source, number: int, width: int, color: bool) -> str:
    return _row(number, excerpt.window(source.line(number), []).shown, width, color)


def _row(number: int, shown: str, width: int, color: bool) -> str:
    return f"{_paint(f'{number:>{width}} |', _BLUE, color)} {shown}".rstrip()


def _position(label: Label) -> tuple[int, int]:
    return label.source.position(min(label.span.start, len(label.source.text)))


def _columns(source: Source, label: Label, number: int) -> tuple[int, int]:
    """First column and end of a label on its first line, from 0."""
    begin = source.line_starts[number - 1]
    start = label.span.start - begin
    return start, max(start, min(label.span.end - begin, len(source.line(number))))


def _paint(words: str, tone: str, color: bool) -> str:
    return f"\x1b[{tone}m{words}\x1b[0m" if color else words


def _object(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "code": diagnostic.code,
        "page": f"docs/errors/{diagnostic.code}.md",
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        **_place(diagnostic.primary.source, diagnostic.primary.span),
        "label": diagnostic.primary.text,
        "related": [{**_place(each.source, each.span), "label": each.text} for each in diagnostic.secondary],
        "fix": _fix(diagnostic.primary.source, diagnostic.fix) if diagnostic.fix else None,
    }


def _fix(source: Source, fix: Fix) -> dict[str, Any]:
    return {**_place(source, fix.span), "text": fix.text, "safe": fix.safe}


def _place(source: Source, span: Span) -> dict[str, Any]:
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
