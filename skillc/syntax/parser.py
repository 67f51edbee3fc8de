"""`parse`: from a source to its syntax tree and its syntax errors. It never raises, whatever the text."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Diagnostic, Fix, Label
from skillc.syntax import nodes
from skillc.syntax.reader import ParsedText, parse_tokens
from skillc.syntax.source import Source, Span
from skillc.syntax.tokens import Fault, Token, tokenize

if TYPE_CHECKING:
    from skillc.conflict import Conflict

_ZIP = "PK\x03\x04"
_CONFLICT_MARKER = "<<<<<<< "
_CONFLICTS_SHOWN = 20
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A syntax tree and the syntax errors.

    Attributes:
        program: every statement that could be parsed.
        diagnostics: in the order of the text.
        dropped: words of statements that could not be parsed. They may declare names, so later passes report none of
            these words as unknown.
        tokens: all tokens; without syntax errors, newlines that end no statement are left out.
    """

    program: nodes.Program
    diagnostics: tuple[Diagnostic, ...]
    dropped: frozenset[str] = frozenset()
    tokens: tuple[Token, ...] = field(default=(), compare=False, repr=False)


def parse(source: Source) -> Parsed:
    """Parse a whole file. An error costs at most its statement, and usually not even that."""
    text = source.text
    if text.startswith(_ZIP):
        message = f"`{source.name}` is a zipped skill, not a program"
        hint = 'unpack it, and import its sections with `use "./SKILL.md" as today`'
        zipped = Diagnostic("SK025", message, Label(source, Span(0, min(4, len(text)))), hint=hint)
        return Parsed(nodes.Program(Span(0, len(text)), source, (), ()), (zipped,))
    with collector_paused():
        text, faults = _resolve_conflicts(source) if _CONFLICT_MARKER in text else (text, [])
        tokens = tokenize(text)
        faults += [_fault(source, fault) for fault in tokens.faults]
        found = parse_tokens(source, tokens, range(len(text) + 1), tokens)
        if isinstance(found, ParsedText):
            statements, diagnostics, dropped = found.statements, [*faults, *found.diagnostics], frozenset[str]()
        else:
            # Imported late: half of the parser's code, and not needed for a valid program.
            from skillc.syntax.mistakes import recover

            recovered = recover(source, tokens)
            statements = tuple(recovered.statements)
            diagnostics, dropped = [*faults, *recovered.diagnostics], frozenset(recovered.dropped)
        # What an unterminated text contains may have been declarations.
        swallowed = (fault.span for fault in tokens.faults if fault.kind == "unclosed")
        dropped = dropped.union(*(_NAME.findall(source.text, span.start, span.end) for span in swallowed))
    diagnostics.sort(key=lambda each: each.primary.span)
    program = nodes.Program(Span(0, len(text)), source, statements, tokens.comments)
    read = found.tokens if isinstance(found, ParsedText) else tuple(tokens.found)
    return Parsed(program, tuple(diagnostics), dropped, read)


def _resolve_conflicts(source: Source) -> tuple[str, list[Diagnostic]]:
    """Return the text with our side of each merge conflict, and a diagnostic for each."""
    from skillc.conflict import conflicts, keep_ours

    found = list(conflicts(source.text))
    return keep_ours(source.text, found), [_conflict(source, each) for each in found[:_CONFLICTS_SHOWN]]


def _conflict(source: Source, found: Conflict) -> Diagnostic:
    others = (
        Label(source, Span(*found.between), "their side begins here"),
        Label(source, Span(*found.end), "the conflict ends here"),
    )
    hint = "keep one side, or combine both, and remove the three markers"
    primary = Label(source, Span(*found.begin))
    return Diagnostic("SK032", "unresolved merge conflict", primary, secondary=others, hint=hint)


def _fault(source: Source, fault: Fault) -> Diagnostic:
    start = fault.span.start
    opening = Span(start, start + 3)
    if fault.kind == "fence" and fault.fence:
        message = 'the closing `"""` must be on a separate line'
        label = Label(source, opening, "the text begins here")
        # The line of the closing fence is not part of the text, so the text stays the same.
        begin = source.line_start(fault.fence.start)
        line = source.text[begin : fault.fence.start]
        fix = Fix(Span(fault.fence.start, fault.fence.start), "\n" + line[: len(line) - len(line.lstrip())])
        hint = "begin a new line before it"
        return Diagnostic("SK007", message, Label(source, fault.fence), secondary=(label,), hint=hint, fix=fix)
    seen = (Label(source, fault.fence, "another text begins here"),) if fault.fence else ()
    hint = 'close it with `"""` on a separate line'
    return Diagnostic("SK006", 'unclosed `"""`', Label(source, opening), secondary=seen, hint=hint)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Disable garbage collection: parsing and formatting create no cycles, and the search takes longer than both."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
