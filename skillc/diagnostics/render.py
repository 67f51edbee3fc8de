"""Render diagnostics for people: with their source lines, or as one line each; and unified diffs."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Sequence

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Diagnostic, Label, Severity
from skillc.syntax.source import Source
from skillc.text import counted, joined, text_width

LINE_LIMIT = 120
"""Characters of a source line that are shown."""

_CONTEXT = 40
_TAB = 4
_COLORS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.NOTE: "1;36"}
_BOLD, _BLUE = "1", "1;34"


def text(diagnostic: Diagnostic, *, color: bool = False) -> str:
    """Render a diagnostic with its source lines, without a newline at the end."""
    tone = _COLORS[diagnostic.severity]
    head = _paint(f"{diagnostic.severity.value}[{diagnostic.code}]", tone, color) + _fix_mark(diagnostic)
    message = _paint(f": {printable(diagnostic.message)}", _BOLD, color)
    labels = (diagnostic.primary, *diagnostic.secondary)
    width = max(len(str(_position(label)[0])) for label in labels)
    lines = [head + message]
    for i, source in enumerate(dict.fromkeys(label.source for label in labels)):
        own = [label for label in labels if label.source == source]
        line, column = _position(own[0])
        arrow = _paint(f"{' ' * width}{'-->' if i == 0 else ':::'}", _BLUE, color)
        lines.append(f"{arrow} {printable(source.name)}:{line}:{column}")
        if source.text:
            lines += _excerpt(source, own, diagnostic.primary, width, tone, color)
    notes = {"help": diagnostic.hint, **_preview_fix(diagnostic)}
    if any(notes.values()) and diagnostic.primary.source.text:
        lines.append(_paint(f"{' ' * width} |", _BLUE, color))
    edge = _paint(f"{' ' * width} =", _BLUE, color)
    lines += [f"{edge} {_paint(kind, _BOLD, color)}: {printable(note)}" for kind, note in notes.items() if note]
    return "\n".join(lines)


def concise(diagnostic: Diagnostic) -> str:
    """Render a diagnostic as one line: `tickets.skill:6:34: error[SK201]: unknown metric`."""
    line, column = _position(diagnostic.primary)
    place = f"{printable(diagnostic.primary.source.name)}:{line}:{column}"
    head = f"{diagnostic.severity.value}[{diagnostic.code}]{_fix_mark(diagnostic)}"
    return f"{place}: {head}: {printable(diagnostic.message)}"


def summary(diagnostics: Sequence[Diagnostic], suppressed: int = 0) -> str:
    """Summarize: `2 errors and 1 note, 1 fixable with --fix, 1 suppressed`, or `no findings`."""
    safe = sum(each.fix is not None and each.fix.safe for each in diagnostics)
    unsafe = sum(each.fix is not None and not each.fix.safe for each in diagnostics)
    counts = {severity: sum(each.severity is severity for each in diagnostics) for severity in Severity}
    parts = [joined([counted(count, severity.value) for severity, count in counts.items() if count]) or "no findings"]
    if safe:
        parts.append(f"{safe} fixable with `--fix`")
    if unsafe:
        parts.append(f"{unsafe} {'more ' if safe else ''}with `--fix --unsafe-fixes`")
    if suppressed:
        parts.append(f"{suppressed} suppressed")
    return ", ".join(parts)


def _fix_mark(diagnostic: Diagnostic) -> str:
    """Return the mark of a finding that `--fix` repairs."""
    return " [*]" if diagnostic.fix is not None and diagnostic.fix.safe else ""


def _preview_fix(diagnostic: Diagnostic) -> dict[str, str]:
    """Return the line after the fix, if the fix is within one line."""
    fix, source = diagnostic.fix, diagnostic.primary.source
    if fix is None or "\n" in fix.text or "\n" in source.slice(fix.span):
        return {}
    number = source.position(fix.span.start)[0]
    begin, line = source.line_starts[number - 1], source.line(number)
    start, end = fix.span.start - begin, fix.span.end - begin
    after = line[:start] + fix.text + line[end:]
    margin = len(after) - len(after.lstrip())
    visible = window(after[margin:].rstrip(), [(max(0, start - margin), max(0, start - margin) + len(fix.text))])
    return {"fix" if fix.safe else "suggested fix (unsafe)": visible.text}


def _excerpt(source: Source, labels: Sequence[Label], primary: Label, width: int, tone: str, color: bool) -> list[str]:
    edge = _paint(f"{' ' * width} |", _BLUE, color)
    lines, shown = [edge], 0
    for number in sorted({_position(label)[0] for label in labels}):
        if shown and number == shown + 2:
            lines.append(_row(shown + 1, window(source.line(shown + 1), []).text, width, color))
        elif shown and number > shown + 1:
            lines.append(_paint(f"{' ' * width}...", _BLUE, color))
        own = sorted((each for each in labels if _position(each)[0] == number), key=lambda each: -each.span.start)
        visible = window(source.line(number), [_columns(source, each, number) for each in own])
        lines.append(_row(number, visible.text, width, color))
        for label in own:
            mark = "^" if label is primary else "-"
            start, length = visible.underline(*_columns(source, label, number))
            drawn = _paint(f"{mark * length} {printable(label.text)}".rstrip(), tone if mark == "^" else _BLUE, color)
            lines.append(f"{edge} {' ' * start}{drawn}")
        shown = number
    return lines


def _row(number: int, shown: str, width: int, color: bool) -> str:
    return f"{_paint(f'{number:>{width}} |', _BLUE, color)} {shown}".rstrip()


def _position(label: Label) -> tuple[int, int]:
    return label.source.position(min(label.span.start, len(label.source.text)))


def _columns(source: Source, label: Label, number: int) -> tuple[int, int]:
    """Return the first column and the end of a label on its first line, from 0."""
    begin = source.line_starts[number - 1]
    start = label.span.start - begin
    return start, max(start, min(label.span.end - begin, len(source.line(number))))


def _paint(words: str, tone: str, color: bool) -> str:
    return f"\x1b[{tone}m{words}\x1b[0m" if color else words


# ---- lines of source ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Window:
    """The visible part of a line.

    Attributes:
        text: the printed text.
        cells: the terminal column of each visible character, and the column after the last.
        first: the index in the line of the first visible character.
    """

    text: str
    cells: tuple[int, ...]
    first: int

    def underline(self, start: int, end: int) -> tuple[int, int]:
        """Return column and length of the underline for the characters `start` to `end`; the length is at least 1."""
        last = len(self.cells) - 1
        a = self.cells[min(max(start - self.first, 0), last)]
        b = self.cells[min(max(end - self.first, 0), last)]
        return a, max(1, b - a)


def window(line: str, spans: Sequence[tuple[int, int]]) -> Window:
    """Return the whole line, or of a long one the part around the first span."""
    first, end = 0, len(line)
    if end > LINE_LIMIT:
        place = min((start for start, _ in spans), default=0)
        first = max(0, min(place - _CONTEXT, end - LINE_LIMIT))
        end = min(end, first + LINE_LIMIT)
    shown, cells, column = [], [], 0
    if first:
        shown.append("…")
        column = 1
    for character in line[first:end]:
        cells.append(column)
        visible = _printable(character, column)
        shown.append(visible)
        column += text_width(visible)
    cells.append(column)
    if end < len(line):
        shown.append("…")
    return Window("".join(shown), tuple(cells), first)


def printable(words: str) -> str:
    """Replace characters that would move the cursor or can't be encoded."""
    return "".join(character if character == " " else _printable(character, 0) for character in words)


def _printable(character: str, column: int) -> str:
    if character == "\t":
        return " " * (_TAB - column % _TAB)
    if character.isprintable() or unicodedata.combining(character):
        return character
    # No-break spaces look like spaces; the others would be invisible, or change the display.
    if unicodedata.category(character) == "Zs":
        return " "
    if unicodedata.category(character) == "Cf":
        return "·"
    return "\ufffd"


def difference(name: str, before: str, after: str) -> str:
    """Return the unified diff of two versions of a file; empty if they are the same."""
    import difflib

    # `splitlines` would also break at characters that end no line of a program.
    old, new = (io.StringIO(text, newline="\n").readlines() for text in (before, after))
    lines = difflib.unified_diff(old, new, name, name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
