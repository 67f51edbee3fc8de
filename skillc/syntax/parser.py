"""`parse`: from a source to its syntax tree and its mistakes of syntax. It never raises, whatever the text."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillc.diagnostics.diagnostic import Diagnostic, Fix, Label
from skillc.syntax import nodes
from skillc.syntax.reader import Reading, read
from skillc.syntax.source import Source, Span
from skillc.syntax.tokens import Fault, Token, tokenize

if TYPE_CHECKING:
    from skillc.conflict import Conflict

_ZIP = "PK\x03\x04"
_MERGED = "<<<<<<< "
_CONFLICTS_SHOWN = 20
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A syntax tree and the mistakes of the text.

    Attributes:
        program: every statement that could be read.
        diagnostics: in the order of the text.
        dropped: words of statements that could not be read. Something of this name may be declared, so a pass that
            misses one of them reports nothing.
        tokens: all tokens; of a text without mistakes without the newlines that end nothing.
    """

    program: nodes.Program
    diagnostics: tuple[Diagnostic, ...]
    dropped: frozenset[str] = frozenset()
    tokens: tuple[Token, ...] = field(default=(), compare=False, repr=False)


def parse(source: Source) -> Parsed:
    """Read a whole file.

    A mistake costs at most its statement, and in most cases not even that.
    """
    text = source.text
    if text.startswith(_ZIP):
        return _unreadable(source, zipped(source))
    with collector_paused():
        text, faults = _one_side(source) if _MERGED in text else (text, [])
        tokens = tokenize(text)
        faults += [_fault(source, fault) for fault in tokens.faults]
        found = read(source, tokens, range(len(text) + 1), tokens)
        if isinstance(found, Reading):
            statements, diagnostics, dropped = found.statements, [*faults, *found.diagnostics], frozenset[str]()
        else:
            # Half as large as all the rest of the parser, and not needed for a sound program.
            from skillc.syntax.recovery import recover

            recovered = recover(source, tokens)
            statements = tuple(recovered.statements)
            diagnostics, dropped = [*faults, *recovered.diagnostics], frozenset(recovered.dropped)
        # Whatever an open text has swallowed may have been declared.
        swallowed = (fault.span for fault in tokens.faults if fault.kind == "unclosed")
        dropped = dropped.union(*(_NAME.findall(source.text, span.start, span.end) for span in swallowed))
    diagnostics.sort(key=lambda each: each.primary.span)
    program = nodes.Program(Span(0, len(text)), source, statements, tokens.comments)
    shown = found.tokens if isinstance(found, Reading) else tuple(tokens.found)
    return Parsed(program, tuple(diagnostics), dropped, shown)


def zipped(source: Source) -> Diagnostic:
    """The message for an agent skill in its packed form, which has the same suffix."""
    message = f"`{source.name}` is a zipped skill, not a program"
    hint = 'unpack it, and take its text over with `use "./SKILL.md" as today`'
    return Diagnostic("SK025", message, Label(source, Span(0, min(4, len(source.text)))), hint=hint)


def _one_side(source: Source) -> tuple[str, list[Diagnostic]]:
    """The text with one side of each conflict that a merge left in it, and the message for each."""
    from skillc.conflict import conflicts, keep_ours

    found = list(conflicts(source.text))
    return keep_ours(source.text, found), [_conflict(source, each) for each in found[:_CONFLICTS_SHOWN]]


def _conflict(source: Source, found: Conflict) -> Diagnostic:
    others = (
        Label(source, Span(*found.between), "the other side begins"),
        Label(source, Span(*found.end), "and ends"),
    )
    hint = "keep one side, or make one of both, and remove the three marks"
    primary = Label(source, Span(*found.begin))
    return Diagnostic("SK032", "a git merge left both sides of this place", primary, secondary=others, hint=hint)


def _unreadable(source: Source, why: Diagnostic) -> Parsed:
    return Parsed(nodes.Program(Span(0, len(source.text)), source, (), ()), (why,))


def _fault(source: Source, fault: Fault) -> Diagnostic:
    start = fault.span.start
    opening = Span(start, start + 3)
    if fault.kind == "fence" and fault.fence:
        message = 'the closing `"""` must stand on a line of its own'
        label = Label(source, opening, "the text begins here")
        # The line of a closing fence is no part of a text, so this changes nothing of it.
        begin = source.text.rfind("\n", 0, fault.fence.start) + 1
        line = source.text[begin : fault.fence.start]
        fix = Fix(Span(fault.fence.start, fault.fence.start), "\n" + line[: len(line) - len(line.lstrip())])
        hint = "begin a new line before it"
        return Diagnostic("SK007", message, Label(source, fault.fence), secondary=(label,), hint=hint, fix=fix)
    seen = (Label(source, fault.fence, "this begins another text"),) if fault.fence else ()
    hint = 'close it with `"""` on a line of its own'
    return Diagnostic("SK006", 'this `"""` is never closed', Label(source, opening), secondary=seen, hint=hint)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Nothing that parsing and formatting make is garbage, and looking for some takes longer than both."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
