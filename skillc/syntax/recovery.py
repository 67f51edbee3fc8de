"""Recovery from mistakes: chunk by chunk, and within a chunk by repairing or dropping one statement at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.syntax import nodes
from skillc.syntax.mistakes import Mistake, Situation, explain
from skillc.syntax.mistakes.situation import Draft
from skillc.syntax.outline import chunks, statement_at
from skillc.syntax.reader import Failure, Reading, read
from skillc.syntax.source import Source, Span
from skillc.syntax.tokens import Tokens, tokenize

MISTAKES_LIMIT = 100
"""The number of mistakes after which the rest of a file is not read."""

_WORK = 400_000
_HEAD = re.compile(r"[^={(:]*")
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(slots=True)
class Recovered:
    """The parts of a text with mistakes that could be read.

    Attributes:
        dropped: the words and names of dropped statements; references to them are not reported too.
    """

    statements: list[nodes.Statement] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)


def recover(source: Source, whole: Tokens) -> Recovered:
    """Read a source that can't be read as a whole."""
    found, text = Recovered(), whole.text
    for start, end in chunks(text):
        if len(found.diagnostics) >= MISTAKES_LIMIT:
            message = f"more than {MISTAKES_LIMIT} mistakes; the rest of the file was not read"
            place = Span(start, text.find("\n", start, end) if "\n" in text[start:end] else end)
            found.diagnostics.append(Diagnostic("SK011", message, Label(source, place)))
            found.dropped.update(_NAME.findall(text, start))
            break
        _Chunk(Draft(source, text[start:end], range(start, end + 1)), whole, found).read()
    return found


class _Chunk:
    """The reading of one chunk. Each attempt reads a repaired or smaller draft."""

    def __init__(self, draft: Draft, whole: Tokens, found: Recovered) -> None:
        self.draft = draft
        self.whole = whole
        self.found = found
        self._told: set[int] = set()
        self._repaired: set[tuple[str, int]] = set()

    def read(self) -> None:
        """Read the chunk and add the results."""
        # Each attempt reads the whole chunk: a huge one gets few.
        for _ in range(max(2, min(60, _WORK // max(1, len(self.draft.text))))):
            lexed = tokenize(self.draft.text, whole=False)
            outcome = read(self.draft.source, lexed, self.draft.places, self.whole)
            if isinstance(outcome, Reading):
                self.found.statements.extend(outcome.statements)
                self.found.diagnostics.extend(outcome.diagnostics)
                return
            self._go_on(outcome)
        self.found.dropped.update(_NAME.findall(self.draft.text))

    def _go_on(self, failure: Failure) -> None:
        text = self.draft.text
        place = statement_at(text, _anchor(text, failure))
        mistake = explain(Situation(self.draft, failure, place))
        span = mistake.diagnostic.primary.span
        told = self.draft.places[place[0]]
        if mistake.repair and (mistake.diagnostic.code, span.start) not in self._repaired:
            self._repaired.add((mistake.diagnostic.code, span.start))
            self._tell(mistake, told)
            self.draft = self.draft.edited(mistake.repair)
            return
        if told not in self._told:
            self._tell(mistake, told)
        self._give_up(place, failure)

    def _tell(self, mistake: Mistake, statement: int) -> None:
        self.found.diagnostics.append(mistake.diagnostic)
        self._told.add(statement)

    def _give_up(self, place: tuple[int, int], failure: Failure) -> None:
        text = self.draft.text
        if not text[place[0] : place[1]].strip():
            place = (failure.at.start, failure.at.end)
        if not text[place[0] : place[1]].strip():
            place = (0, len(text))
        head = _HEAD.match(text, place[0], place[1])
        self.found.dropped.update(_NAME.findall(head[0]) if head else ())
        self.draft = self.draft.blanked(*place)


def _anchor(text: str, failure: Failure) -> int:
    """A place inside the statement at fault: a token that ends a statement is not part of it."""
    if failure.at.kind in ("_END", "RBRACE", "$END") and failure.last:
        return failure.last.start
    return min(failure.at.start, max(0, len(text) - 1))
