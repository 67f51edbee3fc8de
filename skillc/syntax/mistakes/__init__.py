"""Syntax errors: recovery chunk by chunk, and within a chunk by repairing or dropping one statement at a time.

Each detector in the modules of this package recognizes one mistake, and returns its message and the patch after which
parsing can continue.
"""

from __future__ import annotations

import re
from dataclasses import field

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.syntax import nodes
from skillc.syntax.mistakes import characters, signs, statements
from skillc.syntax.mistakes.context import Detector, ErrorContext, Mistake, PatchedText, unexpected
from skillc.syntax.outline import chunks, statement_at
from skillc.syntax.reader import Failure, ParsedText, parse_tokens
from skillc.syntax.source import Source, Span
from skillc.syntax.tokens import Tokens, tokenize

MISTAKES_LIMIT = 100
"""Syntax errors after which the rest of a file is not parsed."""

_CHARACTERS_LIMIT = 400_000
"""Characters that may be parsed again for one chunk."""
_HEAD = re.compile(r"[^={(:]*")
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(slots=True)
class Recovered:
    """The valid parts of a text with syntax errors.

    Attributes:
        dropped: the words and names of dropped statements; unknown names among them are not reported.
    """

    statements: list[nodes.Statement] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)


def recover(source: Source, whole: Tokens) -> Recovered:
    """Parse a source with syntax errors."""
    found, text = Recovered(), whole.text
    for start, end in chunks(text):
        if len(found.diagnostics) >= MISTAKES_LIMIT:
            message = f"more than {MISTAKES_LIMIT} syntax errors; the rest of the file was not parsed"
            place = Span(start, text.find("\n", start, end) if "\n" in text[start:end] else end)
            found.diagnostics.append(Diagnostic("SK011", message, Label(source, place)))
            found.dropped.update(_NAME.findall(text, start))
            break
        _Chunk(PatchedText(source, text[start:end], range(start, end + 1)), whole, found).read()
    return found


class _Chunk:
    """Parses one chunk. Each attempt parses a repaired or smaller draft."""

    def __init__(self, draft: PatchedText, whole: Tokens, found: Recovered) -> None:
        self.draft = draft
        self.whole = whole
        self.found = found
        self._reported: set[int] = set()
        self._repaired: set[tuple[str, int]] = set()

    def read(self) -> None:
        """Parse the chunk and add the results."""
        # Each attempt parses the whole chunk, so a huge one gets few attempts.
        for _ in range(max(2, min(60, _CHARACTERS_LIMIT // max(1, len(self.draft.text))))):
            tokens = tokenize(self.draft.text, whole=False)
            outcome = parse_tokens(self.draft.source, tokens, self.draft.places, self.whole)
            if isinstance(outcome, ParsedText):
                self.found.statements.extend(outcome.statements)
                self.found.diagnostics.extend(outcome.diagnostics)
                return
            self._repair(outcome)
        self.found.dropped.update(_NAME.findall(self.draft.text))

    def _repair(self, failure: Failure) -> None:
        """Report a failure once for each statement; apply its repair, or else drop the statement."""
        text = self.draft.text
        place = statement_at(text, failure.anchor(text))
        mistake = _explain(ErrorContext(self.draft, failure, place))
        statement = self.draft.places[place[0]]
        key = (mistake.diagnostic.code, mistake.diagnostic.primary.span.start)
        repairable = bool(mistake.repair) and key not in self._repaired
        if repairable or statement not in self._reported:
            self.found.diagnostics.append(mistake.diagnostic)
            self._reported.add(statement)
        if repairable:
            self._repaired.add(key)
            self.draft = self.draft.patched(mistake.repair)
        else:
            self._drop(place, failure)

    def _drop(self, place: tuple[int, int], failure: Failure) -> None:
        text = self.draft.text
        if not text[place[0] : place[1]].strip():
            place = (failure.at.start, failure.at.end)
        if not text[place[0] : place[1]].strip():
            place = (0, len(text))
        head = _HEAD.match(text, place[0], place[1])
        self.found.dropped.update(_NAME.findall(head[0]) if head else ())
        self.draft = self.draft.blanked(*place)


# In this order; the first that recognizes the error explains it.
_DETECTORS: tuple[Detector, ...] = (
    signs.nesting,
    characters.unknown_character,
    statements.colon_for_equals,
    signs.open_string,
    signs.or_sign,
    signs.comment_sign,
    statements.condition,
    statements.comma_in_block,
    statements.quoted_key,
    statements.quoted_name,
    statements.operator_as_value,
    statements.hyphen_in_name,
    statements.block_as_value,
    statements.reserved_word,
    signs.arithmetic,
    signs.comparison_sign,
    signs.setting_sign,
    signs.bare_point,
    signs.open_bracket,
    statements.missing_comma,
    statements.missing_value,
    signs.closes_nothing,
)


def _explain(context: ErrorContext) -> Mistake:
    return next((found for detector in _DETECTORS if (found := detector(context))), None) or unexpected(context)
