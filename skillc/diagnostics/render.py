"""Render diagnostics for a reader: text with the source line below it, or one line each; and unified diffs."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from skillc.diagnostics.diagnostic import Diagnostic, Label, Severity
from skillc.syntax.source import Source
from skillc.text import counted, joined

LONGEST = 120
"""Characters of a line that are shown."""

_BEFORE = 40
_TAB = 4
_COLORS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.NOTE: "1;36"}
_BOLD, _BLUE = "1", "1;34"


def text(diagnostic: Diagnostic, *, color: bool = False) -> str:
    """A diagnostic with the lines that it is about, without a newline at the end. Colour adds nothing but colour."""
    tone = _COLORS[diagnostic.severity]
    head = _paint(f"{diagnostic.severity.value}[{diagnostic.code}]", tone, color) + _mark(diagnostic)
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
            lines += _drawn(source, own, diagnostic.primary, width, tone, color)
    told = {"help": diagnostic.hint, **_shown_fix(diagnostic)}
    if any(told.values()) and diagnostic.primary.source.text:
        lines.append(_paint(f"{' ' * width} |", _BLUE, color))
    edge = _paint(f"{' ' * width} =", _BLUE, color)
    lines += [f"{edge} {_paint(what, _BOLD, color)}: {printable(said)}" for what, said in told.items() if said]
    return "\n".join(lines)


def concise(diagnostic: Diagnostic) -> str:
    """One line: `tickets.skill:6:34: error[SK201]: unknown metric`."""
    line, column = _position(diagnostic.primary)
    place = f"{printable(diagnostic.primary.source.name)}:{line}:{column}"
    head = f"{diagnostic.severity.value}[{diagnostic.code}]{_mark(diagnostic)}"
    return f"{place}: {head}: {printable(diagnostic.message)}"


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
            counts.append(counted(count, severity.value))
    if not counts:
        return "no findings"
    return joined(counts)


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
    visible = window(after[margin:].rstrip(), [(max(0, start - margin), max(0, start - margin) + len(fix.text))])
    return {"fix" if fix.safe else "fix, to be confirmed": visible.shown}


def _drawn(source: Source, labels: Sequence[Label], primary: Label, width: int, tone: str, color: bool) -> list[str]:
    edge = _paint(f"{' ' * width} |", _BLUE, color)
    lines, shown = [edge], 0
    for number in sorted({_position(label)[0] for label in labels}):
        if shown and number == shown + 2:
            lines.append(_code(source, shown + 1, width, color))
        elif shown and number > shown + 1:
            lines.append(_paint(f"{' ' * width}...", _BLUE, color))
        own = sorted((each for each in labels if _position(each)[0] == number), key=lambda each: -each.span.start)
        visible = window(source.line(number), [_columns(source, each, number) for each in own])
        lines.append(_row(number, visible.shown, width, color))
        for label in own:
            mark = "^" if label is primary else "-"
            start, length = visible.underline(*_columns(source, label, number))
            drawn = _paint(f"{mark * length} {printable(label.text)}".rstrip(), tone if mark == "^" else _BLUE, color)
            lines.append(f"{edge} {' ' * start}{drawn}")
        shown = number
    return lines


def _code(source: Source, number: int, width: int, color: bool) -> str:
    return _row(number, window(source.line(number), []).shown, width, color)


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


# ---- lines of source ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Window:
    """The visible part of a line.

    Attributes:
        shown: what is printed.
        cells: for each character of the line's visible part, the terminal column at which it begins, and one more.
        first: the character of the line with which the visible part begins.
    """

    shown: str
    cells: tuple[int, ...]
    first: int

    def underline(self, start: int, end: int) -> tuple[int, int]:
        """Column and length of the marks under the characters `start` to `end` of the line, at least one long."""
        last = len(self.cells) - 1
        a = self.cells[min(max(start - self.first, 0), last)]
        b = self.cells[min(max(end - self.first, 0), last)]
        return a, max(1, b - a)


def window(line: str, spans: Sequence[tuple[int, int]]) -> Window:
    """The part of a line that is shown: all of it, or the surroundings of the first span."""
    first, end = 0, len(line)
    if end > LONGEST:
        place = min((start for start, _ in spans), default=0)
        first = max(0, min(place - _BEFORE, end - LONGEST))
        end = min(end, first + LONGEST)
    shown, cells, column = [], [], 0
    if first:
        shown.append("…")
        column = 1
    for character in line[first:end]:
        cells.append(column)
        drawn = _as_shown(character, column)
        shown.append(drawn)
        column += sum(_width(each) for each in drawn)
    cells.append(column)
    if end < len(line):
        shown.append("…")
    return Window("".join(shown), tuple(cells), first)


def printable(words: str) -> str:
    """Words without what would move the cursor or could not be encoded."""
    return "".join(character if character == " " else _as_shown(character, 0) for character in words)


def _as_shown(character: str, column: int) -> str:
    if character == "\t":
        return " " * (_TAB - column % _TAB)
    if character.isprintable() or unicodedata.combining(character):
        return character
    # A no-break space is not printable, and looks as it should; the rest would show as nothing, or do harm.
    if unicodedata.category(character) == "Zs":
        return " "
    if unicodedata.category(character) == "Cf":
        return "·"
    return "\ufffd"


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def difference(name: str, before: str, after: str) -> str:
    """A unified diff of two texts of a file; empty where they are the same."""
    lines = difflib.unified_diff(_lines(before), _lines(after), name, name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Lines with their line feed. `splitlines` would also break at characters that end no line of a program."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
